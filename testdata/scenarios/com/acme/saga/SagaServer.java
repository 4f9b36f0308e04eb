package com.acme.saga;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.CompletableFuture;

/** Chains steps to a future that is never completed, so no step runs. In leak mode, the chain grows without limit. */
class SagaServer {
    private static final int STEPS = 6_000;

    private final Saga saga = new Saga();
    private int next;

    private void work(boolean leak) {
        for (int i = 0; i < STEPS; i++) {
            Step step = new Step("step " + ++next);
            saga.last = saga.last.thenApply(step::run);
        }
        if (!leak) {
            saga.first = new CompletableFuture<>();
            saga.last = saga.first;
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        SagaServer server = new SagaServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.work(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class Saga {
    CompletableFuture<Integer> first = new CompletableFuture<>();
    CompletableFuture<Integer> last = first;
}

class Step {
    final String name;
    final int[] state = new int[16];

    Step(String name) {
        this.name = name;
    }

    Integer run(Integer before) {
        return before + state.length;
    }
}
