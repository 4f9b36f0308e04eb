package com.acme.names;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;

/** Keeps many names from the start, and later adds more. */
class NameServer {
    private static final int[] NAMES = {6_000, 30_000, 12_000};

    private final NameTable table = new NameTable();

    private void work(boolean leak, int phase) {
        for (int i = 0; i < (leak ? NAMES[phase - 1] : 6_000); i++) {
            if (leak || phase == 1) {
                table.names.add(new Name(i));
            }
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        NameServer server = new NameServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.work(args[0].equals("leak"), phase);
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class NameTable {
    final List<Name> names = new ArrayList<>();
}

class Name {
    final long number;
    final byte[] text = new byte[40];

    Name(long number) {
        this.number = number;
    }
}
