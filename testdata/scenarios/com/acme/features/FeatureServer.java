package com.acme.features;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;

/**
 * Requests wait for the next configuration. In leak mode no configuration arrives, and the future for it keeps a callback for each
 * request.
 */
class FeatureServer {
    private static final int REQUESTS = 10_000;

    private final ConfigClient client = new ConfigClient();
    private final Map<Integer, String> flags = new HashMap<>();
    private int number;
    private long answered;

    private FeatureServer() {
        for (int i = 0; i < 15_000; i++) {
            flags.put(i, "flag " + i);
        }
    }

    private void serve(boolean leak) {
        for (int i = 0; i < REQUESTS; i++) {
            Request request = new Request(++number, "/features/" + number);
            client.next.thenAccept(version -> answer(request, version));
        }
        if (!leak) {
            client.publish(number);
        }
    }

    private void answer(Request request, int version) {
        answered += request.path.length() + version;
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        FeatureServer server = new FeatureServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.serve(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class ConfigClient {
    CompletableFuture<Integer> next = new CompletableFuture<>();

    void publish(int version) {
        CompletableFuture<Integer> published = next;
        next = new CompletableFuture<>();
        published.complete(version);
    }
}

class Request {
    final int number;
    final String path;

    Request(int number, String path) {
        this.number = number;
        this.path = path;
    }
}
