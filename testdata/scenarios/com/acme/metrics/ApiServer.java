package com.acme.metrics;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;

/** Counts requests by path. In leak mode, the path contains the order's number, so each request has its own counter. */
class ApiServer {
    private static final int REQUESTS = 10_000;

    private final Map<Integer, String> routes = new HashMap<>();
    private int order;

    private ApiServer() {
        for (int i = 0; i < 15_000; i++) {
            routes.put(i, "/route/" + i);
        }
    }

    private void serve(boolean leak) {
        for (int i = 0; i < REQUESTS; i++) {
            order++;
            Metrics.count("http.requests{path=\"/orders/" + (leak ? order : "ID") + "\"}");
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        ApiServer server = new ApiServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.serve(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class Metrics {
    private static final Map<String, LongAdder> counters = new ConcurrentHashMap<>();

    static void count(String name) {
        counters.computeIfAbsent(name, n -> new LongAdder()).increment();
    }
}
