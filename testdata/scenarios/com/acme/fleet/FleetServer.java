package com.acme.fleet;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.NavigableMap;
import java.util.concurrent.ConcurrentSkipListMap;

/** Keeps all positions in a skip list. Positions older than a minute should be removed, but nothing does that. */
class FleetServer {
    private static final int POSITIONS = 9_000;

    private final Track track = new Track();
    private long time;

    private void work(boolean leak) {
        for (int i = 0; i < POSITIONS; i++) {
            track.byTime.put(++time, new Position(time));
        }
        if (!leak) {
            track.byTime.headMap(time, true).clear();
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        FleetServer server = new FleetServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.work(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class Track {
    final NavigableMap<Long, Position> byTime = new ConcurrentSkipListMap<>();
}

class Position {
    final long time;
    final double[] place = new double[4];

    Position(long time) {
        this.time = time;
    }
}
