package com.acme.batches;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;

/** A queue has two lists of tickets. Open tickets are removed from their list. Closed tickets are never removed. */
class BatchServer {
    private static final int TICKETS = 8_000;

    private final TicketQueue queue = new TicketQueue();

    private void work(boolean leak) {
        queue.open.clear();
        if (!leak) {
            queue.closed.clear();
        }
        for (int i = 0; i < TICKETS; i++) {
            queue.open.add(new Ticket(i));
            queue.closed.add(new Ticket(-i));
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        BatchServer server = new BatchServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.work(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class TicketQueue {
    final List<Ticket> open = new ArrayList<>();
    final List<Ticket> closed = new ArrayList<>();
}

class Ticket {
    final long number;
    final byte[] text = new byte[40];

    Ticket(long number) {
        this.number = number;
    }
}
