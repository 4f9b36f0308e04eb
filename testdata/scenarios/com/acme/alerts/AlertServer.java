package com.acme.alerts;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;

/** Keeps alerts by level, in an enum map of lists. */
class AlertServer {
    private static final int ALERTS = 10_000;

    private final AlertBoard board = new AlertBoard();
    private int next;

    private void work(boolean leak) {
        Level[] levels = Level.values();
        for (int i = 0; i < ALERTS; i++) {
            Level level = levels[++next % levels.length];
            board.byLevel.computeIfAbsent(level, l -> new ArrayList<>()).add(new Alert(next, "alert " + next));
        }
        if (!leak) {
            board.byLevel.clear();
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        AlertServer server = new AlertServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.work(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

enum Level { NOTICE, WARNING, ALARM }

class AlertBoard {
    final Map<Level, List<Alert>> byLevel = new EnumMap<>(Level.class);
}

class Alert {
    final int number;
    final String text;

    Alert(int number, String text) {
        this.number = number;
        this.text = text;
    }
}
