package com.acme.control;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;

/**
 * Loads its table of exchange rates once, at the first use: the heap grows once and not again. Each phase converts amounts. A program that
 * does nothing after the load would not show that the growth is over.
 */
class TableService {
    private static final int REQUESTS = 20_000;

    private final RateTable table = new RateTable();
    private final Map<Integer, String> currencies = new HashMap<>();

    private long converted;

    private TableService() {
        for (int i = 0; i < 10_000; i++) {
            currencies.put(i, "currency " + i);
        }
    }

    private void serve(int phase) {
        if (phase >= 2) {
            table.load();
        }
        for (int i = 0; i < REQUESTS; i++) {
            converted += (i + " " + currencies.get(i % currencies.size())).length();
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        TableService service = new TableService();
        for (int phase = 1; phase <= 4; phase++) {
            service.serve(phase);
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class RateTable {
    private static final int RATES = 20_000;

    private final Map<String, Rate> rates = new HashMap<>();

    void load() {
        if (rates.isEmpty()) {
            for (int i = 0; i < RATES; i++) {
                rates.put("rate " + i, new Rate(i, 1.0 / (i + 1)));
            }
        }
    }
}

class Rate {
    final int currency;
    final double value;

    Rate(int currency, double value) {
        this.currency = currency;
        this.value = value;
    }
}
