package com.acme.control;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;

/** Has a full cache of 10,000 orders. At some dumps it has a few orders more, which are not evicted yet. */
class NoisyCacheService {
    private static final int[] ENTRIES = {10_000, 10_003, 10_006, 10_004};

    private final Map<Integer, CachedOrder> orders = new HashMap<>();
    private int first;

    private void work(int phase) {
        orders.clear();
        first += 20_000;
        for (int i = 0; i < ENTRIES[phase - 1]; i++) {
            orders.put(first + i, new CachedOrder());
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        NoisyCacheService service = new NoisyCacheService();
        for (int phase = 1; phase <= 4; phase++) {
            service.work(phase);
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class CachedOrder {
    final byte[] text = new byte[100];
}
