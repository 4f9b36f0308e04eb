package com.acme.bus;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Consumer;

/** Each page subscribes lambdas to an event bus, which keeps a list of them for each kind of event. */
class ShopFloor {
    private static final int PAGES = 1_500;

    private final EventBus bus = new EventBus();
    private int next;

    private void work(boolean leak) {
        for (int i = 0; i < PAGES; i++) {
            Page page = new Page("page " + ++next);
            bus.subscribe("order", page::show);
            bus.subscribe("price", page::show);
            if (!leak) {
                bus.subscribers.values().forEach(List::clear);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        ShopFloor server = new ShopFloor();
        for (int phase = 1; phase <= 3; phase++) {
            server.work(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class EventBus {
    final Map<String, List<Consumer<String>>> subscribers = new ConcurrentHashMap<>();

    void subscribe(String kind, Consumer<String> subscriber) {
        subscribers.computeIfAbsent(kind, k -> new CopyOnWriteArrayList<>()).add(subscriber);
    }
}

class Page {
    final String title;
    final long[] rows = new long[60];

    Page(String title) {
        this.title = title;
    }

    void show(String event) {
        rows[0] += event.length();
    }
}
