package com.acme.console;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;

/** Keeps 50 consoles in a ring of constant size. The lines of each console are never removed. */
class ConsoleServer {
    private static final int LINES = 12_000;

    private final ConsoleRing ring = new ConsoleRing();
    private int next;

    private void work(boolean leak) {
        for (int i = 0; i < LINES; i++) {
            Console console = ring.consoles[++next % ring.consoles.length];
            console.lines.add(new ConsoleLine(next, "output of step " + next));
            if (!leak) {
                console.lines.clear();
            }
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        ConsoleServer server = new ConsoleServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.work(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class ConsoleRing {
    final Console[] consoles = new Console[50];

    ConsoleRing() {
        for (int i = 0; i < consoles.length; i++) {
            consoles[i] = new Console();
        }
    }
}

class Console {
    final List<ConsoleLine> lines = new ArrayList<>();
}

class ConsoleLine {
    final int step;
    final String text;

    ConsoleLine(int step, String text) {
        this.step = step;
        this.text = text;
    }
}
