package com.acme.dedup;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.BitSet;

/** Records the numbers that it has seen in one bit set. In leak mode, the set is never cleared, so its only array grows. */
class DedupServer {
    private static final int NUMBERS = 8 << 20;

    private final SeenNumbers seen = new SeenNumbers();
    private int next;

    private void work(boolean leak) {
        if (!leak) {
            seen.bits = new BitSet();
            next = 0;
        }
        for (int i = 0; i < NUMBERS; i += 512) {
            seen.bits.set(next + i);
        }
        next += NUMBERS;
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        DedupServer server = new DedupServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.work(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class SeenNumbers {
    BitSet bits = new BitSet();
}
