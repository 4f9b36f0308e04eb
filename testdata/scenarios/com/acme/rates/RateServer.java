package com.acme.rates;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;

/** Has a table with fields for a maximum, a limit and a capacity, but nothing reads these fields. */
class RateServer {
    private static final int REQUESTS = 9_000;

    private final RateTable table = new RateTable(20_000, 50_000, 64);
    private int next;

    private void work(boolean leak) {
        for (int i = 0; i < REQUESTS; i++) {
            String pair = "pair " + ++next;
            table.rates.put(pair, new ExchangeRate(next));
            if (!leak) {
                table.rates.remove(pair);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        RateServer server = new RateServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.work(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class RateTable {
    final int max;
    final int limit;
    final int capacity;
    final Map<String, ExchangeRate> rates = new HashMap<>();

    RateTable(int max, int limit, int capacity) {
        this.max = max;
        this.limit = limit;
        this.capacity = capacity;
    }
}

class ExchangeRate {
    final int number;
    final double[] history = new double[8];

    ExchangeRate(int number) {
        this.number = number;
    }
}
