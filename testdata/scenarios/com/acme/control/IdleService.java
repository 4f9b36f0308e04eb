package com.acme.control;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;

/** Loads its prices, and then does nothing. */
class IdleService {
    private final Map<String, IdlePrice> prices = new HashMap<>();

    private void work(int phase) {
        if (phase == 1) {
            for (int i = 0; i < 12_000; i++) {
                prices.put("article " + i, new IdlePrice(i));
            }
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        IdleService service = new IdleService();
        for (int phase = 1; phase <= 4; phase++) {
            service.work(phase);
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class IdlePrice {
    final long cents;

    IdlePrice(long cents) {
        this.cents = cents;
    }
}
