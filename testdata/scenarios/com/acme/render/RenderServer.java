package com.acme.render;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** Pooled workers trace each request in a thread local. In leak mode, the trace is never cleared. */
class RenderServer {
    private static final int REQUESTS = 3_000;
    private static final int SPANS = 5;

    private final Map<Integer, String> templates = new HashMap<>();
    private final ExecutorService workers = Executors.newFixedThreadPool(3);
    private final boolean leak;

    private RenderServer(boolean leak) {
        this.leak = leak;
        for (int i = 0; i < 20_000; i++) {
            templates.put(i, "<h1>template " + i + "</h1>");
        }
    }

    private int render(int request) {
        RequestContext context = RequestContext.current();
        int length = 0;
        for (int i = 0; i < SPANS; i++) {
            context.spans.add(new Span("render " + request + "/" + i, System.nanoTime()));
            length += templates.get((request + i) % templates.size()).length();
        }
        if (!leak) {
            RequestContext.clear();
        }
        return length;
    }

    private void work() throws Exception {
        List<Future<Integer>> pages = new ArrayList<>();
        for (int i = 0; i < REQUESTS; i++) {
            int request = i;
            pages.add(workers.submit(() -> render(request)));
        }
        for (Future<Integer> page : pages) {
            page.get();
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        RenderServer server = new RenderServer(args[0].equals("leak"));
        for (int phase = 1; phase <= 3; phase++) {
            server.work();
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
        server.workers.shutdown();
    }
}

class RequestContext {
    private static final ThreadLocal<RequestContext> CURRENT =
            ThreadLocal.withInitial(RequestContext::new);

    final List<Span> spans = new ArrayList<>();

    static RequestContext current() {
        return CURRENT.get();
    }

    static void clear() {
        CURRENT.remove();
    }
}

class Span {
    final String name;
    final long started;

    Span(String name, long started) {
        this.name = name;
        this.started = started;
    }
}
