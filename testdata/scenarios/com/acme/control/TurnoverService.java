package com.acme.control;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;

/** Has 20,000 to 21,300 guests at the dumps. No guest stays from one dump to the next. */
class TurnoverService {
    private static final int[] GUESTS = {20_000, 20_700, 21_300, 20_400};

    private final Map<Long, Guest> guests = new HashMap<>();
    private long next;

    private void work(int phase) {
        for (int round = 0; round < 2; round++) {
            guests.clear();
            for (int i = 0; i < GUESTS[phase - 1]; i++) {
                guests.put(++next, new Guest("guest " + next));
            }
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        TurnoverService service = new TurnoverService();
        for (int phase = 1; phase <= 4; phase++) {
            service.work(phase);
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class Guest {
    final String name;
    final int[] nights = new int[8];

    Guest(String name) {
        this.name = name;
    }
}
