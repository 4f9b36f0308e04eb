package com.acme.deadlines;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.PriorityQueue;

/** Contracts wait in a priority queue for their deadline. Contracts that were cancelled long before wait, too. */
class DeadlineServer {
    private static final int CONTRACTS = 8_000;

    private final Deadlines deadlines = new Deadlines();
    private int next;

    private void work(boolean leak) {
        for (int i = 0; i < CONTRACTS; i++) {
            deadlines.waiting.add(new Contract(++next * 31 % 9_973, "contract " + next));
        }
        if (!leak) {
            deadlines.waiting.clear();
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        DeadlineServer server = new DeadlineServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.work(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class Deadlines {
    final PriorityQueue<Contract> waiting = new PriorityQueue<>();
}

class Contract implements Comparable<Contract> {
    final int day;
    final String text;

    Contract(int day, String text) {
        this.day = day;
        this.text = text;
    }

    @Override
    public int compareTo(Contract other) {
        return Integer.compare(day, other.day);
    }
}
