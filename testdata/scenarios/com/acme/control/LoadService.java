package com.acme.control;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;

/** Has requests in flight: twice as many from the second phase on, because the load is twice as high. */
class LoadService {
    private static final int[] LOAD = {4_000, 8_000, 8_000, 8_000};

    private final Map<Long, InFlight> requests = new HashMap<>();
    private long next;

    private void work(int phase) {
        for (int round = 0; round < 3; round++) {
            requests.clear();
            for (int i = 0; i < LOAD[phase - 1]; i++) {
                requests.put(++next, new InFlight("request " + next));
            }
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        LoadService service = new LoadService();
        for (int phase = 1; phase <= 4; phase++) {
            service.work(phase);
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class InFlight {
    final String text;
    final byte[] body = new byte[100];

    InFlight(String text) {
        this.text = text;
    }
}
