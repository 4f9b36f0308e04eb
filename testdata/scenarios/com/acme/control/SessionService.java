package com.acme.control;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayDeque;
import java.util.Deque;

/** Visits expire after two phases, so their number rises in two phases and is constant from then on. */
class SessionService {
    private static final int VISITS = 8_000;

    private final VisitLog log = new VisitLog();

    private void serve(int phase) {
        while (!log.visits.isEmpty() && log.visits.peek().phase <= phase - 2) {
            log.visits.remove();
        }
        for (int i = 0; i < VISITS; i++) {
            log.visits.add(new Visit(phase, "visitor " + i));
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        SessionService service = new SessionService();
        for (int phase = 1; phase <= 4; phase++) {
            service.serve(phase);
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class VisitLog {
    final Deque<Visit> visits = new ArrayDeque<>();
}

class Visit {
    final int phase;
    final String visitor;

    Visit(int phase, String visitor) {
        this.phase = phase;
        this.visitor = visitor;
    }
}
