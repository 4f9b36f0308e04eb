package com.acme.control;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;

/** Collects orders and writes them in batches of 20,000, so the number of waiting orders rises and falls. */
class BatchService {
    private static final int BATCH = 20_000;
    /** New orders of each phase. 4,000 orders wait at first, then 18,000, then 9,000 after a batch, then 15,000. */
    private static final int[] ORDERS = {4_000, 14_000, 11_000, 6_000};

    private final OrderBatch batch = new OrderBatch();
    private long number;

    private void take(int count) {
        for (int i = 0; i < count; i++) {
            batch.waiting.add(new WaitingOrder(++number, "order " + number));
            if (batch.waiting.size() == BATCH) {
                batch.waiting.clear();
            }
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        BatchService service = new BatchService();
        for (int phase = 1; phase <= 4; phase++) {
            service.take(ORDERS[phase - 1]);
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class OrderBatch {
    final List<WaitingOrder> waiting = new ArrayList<>();
}

class WaitingOrder {
    final long number;
    final String text;

    WaitingOrder(long number, String text) {
        this.number = number;
        this.text = text;
    }
}
