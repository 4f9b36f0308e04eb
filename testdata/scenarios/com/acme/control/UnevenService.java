package com.acme.control;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;

/** Has 10,000 orders at any time, and 90 % of them are new in each phase. The third dump comes soon after the second. */
class UnevenService {
    private static final int ORDERS = 10_000;
    private static final int[] SECONDS = {0, 5, 1, 1};

    private final Map<Integer, OpenOrder> orders = new HashMap<>();
    private int next;

    private void work(int phase) throws InterruptedException {
        for (int i = orders.isEmpty() ? 0 : ORDERS / 10; i < ORDERS; i++) {
            orders.put(i, new OpenOrder(++next, "order " + next));
        }
        Thread.sleep(SECONDS[phase - 1] * 1_000L);
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        UnevenService service = new UnevenService();
        for (int phase = 1; phase <= 4; phase++) {
            service.work(phase);
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class OpenOrder {
    final int number;
    final String text;

    OpenOrder(int number, String text) {
        this.number = number;
        this.text = text;
    }
}
