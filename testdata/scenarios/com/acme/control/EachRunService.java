package com.acme.control;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.LongUnaryOperator;

/** Keeps 15,000 accounts in each run. The compared dumps are from different runs. */
class EachRunService {
    private final Map<String, KeptAccount> accounts = new HashMap<>();
    private final List<LongUnaryOperator> rates = new ArrayList<>();

    private void work(int phase) {
        accounts.clear();
        rates.clear();
        for (int i = 0; i < 15_000; i++) {
            long cents = i;
            accounts.put("account " + i, new KeptAccount(i));
            rates.add(rate -> rate * cents);
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        EachRunService service = new EachRunService();
        for (int phase = 1; phase <= 4; phase++) {
            service.work(phase);
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class KeptAccount {
    final int number;
    final long[] balances = new long[6];

    KeptAccount(int number) {
        this.number = number;
    }
}
