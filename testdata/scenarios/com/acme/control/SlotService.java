package com.acme.control;

import java.io.BufferedReader;
import java.io.InputStreamReader;

/** Has an array of eight slots for sessions. In the four phases, three, five, six and six slots are used. */
class SlotService {
    private static final int[] USED = {3, 5, 6, 6};

    private final SlotTable table = new SlotTable();

    private void work(int phase) {
        for (int i = 0; i < USED[phase - 1]; i++) {
            if (table.slots[i] == null) {
                table.slots[i] = new SlotSession();
            }
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        SlotService service = new SlotService();
        for (int phase = 1; phase <= 4; phase++) {
            service.work(phase);
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class SlotTable {
    final SlotSession[] slots = new SlotSession[8];
}

class SlotSession {
    final byte[] buffer = new byte[60_000];
}
