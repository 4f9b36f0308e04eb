package com.acme.control;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;

/** Allocates some megabytes of garbage in each phase, and keeps only its 6,000 contracts. */
class GarbageService {
    private final List<KeptContract> contracts = new ArrayList<>();
    private long sum;

    private void work(int phase) {
        if (phase == 1) {
            for (int i = 0; i < 6_000; i++) {
                contracts.add(new KeptContract("contract " + i));
            }
        }
        for (int round = 0; round < 50; round++) {
            List<String> lines = new ArrayList<>();
            for (KeptContract contract : contracts) {
                lines.add(contract.text + " in round " + round);
            }
            sum += String.join(";", lines).length();
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        GarbageService service = new GarbageService();
        for (int phase = 1; phase <= 4; phase++) {
            service.work(phase);
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class KeptContract {
    final String text;

    KeptContract(String text) {
        this.text = text;
    }
}
