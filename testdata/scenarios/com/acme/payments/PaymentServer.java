package com.acme.payments;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.Map;

/** Keeps exceptions with their stack traces for a page with the last few. In leak mode, it keeps all exceptions. */
class PaymentServer {
    private static final int PAYMENTS = 3_000;
    private static final int DEPTH = 12;

    private final FailureLog log;
    private final Map<Integer, String> accounts = new HashMap<>();
    private int number;

    private PaymentServer(boolean leak) {
        log = new FailureLog(leak ? Integer.MAX_VALUE : 100);
        for (int i = 0; i < 15_000; i++) {
            accounts.put(i, "account " + i);
        }
    }

    private void pay(int depth) {
        if (depth > 0) {
            pay(depth - 1);
            return;
        }
        throw new PaymentFailed(++number);
    }

    private void work() {
        for (int i = 0; i < PAYMENTS; i++) {
            try {
                pay(DEPTH);
            } catch (PaymentFailed failure) {
                log.add(failure);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        PaymentServer server = new PaymentServer(args[0].equals("leak"));
        for (int phase = 1; phase <= 3; phase++) {
            server.work();
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class FailureLog {
    private final Deque<PaymentFailed> failures = new ArrayDeque<>();
    private final int limit;

    FailureLog(int limit) {
        this.limit = limit;
    }

    void add(PaymentFailed failure) {
        failures.add(failure);
        if (failures.size() > limit) {
            failures.remove();
        }
    }
}

class PaymentFailed extends RuntimeException {
    private static final long serialVersionUID = 1;

    final int payment;

    PaymentFailed(int payment) {
        super("payment " + payment + " was refused");
        this.payment = payment;
    }
}
