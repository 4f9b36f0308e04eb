package com.acme.control;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicLong;

/** Waits for 5,000 answers at any time. In each phase, these answers arrive, and 5,000 new ones are awaited. */
class FutureService {
    private static final int ANSWERS = 5_000;

    private final Map<Integer, CompletableFuture<String>> awaited = new HashMap<>();
    private final AtomicLong answered = new AtomicLong();
    private int next;

    private void work(int phase) {
        awaited.values().forEach(answer -> answer.complete("yes"));
        awaited.clear();
        for (int i = 0; i < ANSWERS; i++) {
            CompletableFuture<String> answer = new CompletableFuture<>();
            AwaitedAnswer waiting = new AwaitedAnswer(++next, answered);
            answer.thenAccept(waiting::take);
            awaited.put(next, answer);
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        FutureService service = new FutureService();
        for (int phase = 1; phase <= 4; phase++) {
            service.work(phase);
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class AwaitedAnswer {
    final int number;
    final AtomicLong answered;

    AwaitedAnswer(int number, AtomicLong answered) {
        this.number = number;
        this.answered = answered;
    }

    void take(String answer) {
        answered.addAndGet(answer.length());
    }
}
