package com.acme.meter;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;

/** Keeps the same number of new readings in each second. The third dump comes soon after the second. */
class MeterServer {
    private static final int SECOND = 1_500;

    private final MeterStore store = new MeterStore();
    private int phase;
    private int next;

    private void work(boolean leak) throws InterruptedException {
        int seconds = ++phase == 3 ? 1 : 7;
        for (int second = 0; second < seconds; second++) {
            for (int i = 0; i < SECOND; i++) {
                store.readings.add(new MeterReading(++next, "meter " + next % 500));
            }
            if (!leak) {
                store.readings.clear();
            }
            Thread.sleep(1_000);
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        MeterServer server = new MeterServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.work(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class MeterStore {
    final List<MeterReading> readings = new ArrayList<>();
}

class MeterReading {
    final int number;
    final String meter;

    MeterReading(int number, String meter) {
        this.number = number;
        this.meter = meter;
    }
}
