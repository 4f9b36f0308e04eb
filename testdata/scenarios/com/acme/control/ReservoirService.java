package com.acme.control;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

/** Keeps samples of call durations for 40 operations. A reservoir holds at most 500: 250 after phase 1, and then 500. */
class ReservoirService {
    private final Map<String, Reservoir> reservoirs = new HashMap<>();
    private final Random random = new Random(7);

    private void work(int phase) {
        for (int operation = 0; operation < 40; operation++) {
            Reservoir reservoir = reservoirs.computeIfAbsent("operation " + operation, o -> new Reservoir());
            for (int i = 0; i < (phase == 1 ? 250 : 1_000); i++) {
                reservoir.add(new TimedCall(random.nextLong()), random);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        ReservoirService service = new ReservoirService();
        for (int phase = 1; phase <= 4; phase++) {
            service.work(phase);
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class Reservoir {
    private static final int SIZE = 500;

    private final List<TimedCall> calls = new ArrayList<>();

    void add(TimedCall call, Random random) {
        if (calls.size() < SIZE) {
            calls.add(call);
        } else {
            calls.set(random.nextInt(SIZE), call);
        }
    }
}

class TimedCall {
    final long nanos;
    final int[] parts = new int[6];

    TimedCall(long nanos) {
        this.nanos = nanos;
    }
}
