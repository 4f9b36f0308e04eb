package com.acme.control;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Map;
import java.util.WeakHashMap;

/** Caches data of each open document in a weak map. The map is used correctly: values do not refer to keys. */
class WeakCacheService {
    private static final int DOCUMENTS = 9_000;
    private static final int OPEN = 3_000;

    private final Map<Document, Layout> layouts = new WeakHashMap<>();
    private final Deque<Document> open = new ArrayDeque<>();

    private void edit() throws InterruptedException {
        for (int i = 0; i < DOCUMENTS; i++) {
            Document document = new Document("document " + i);
            open.add(document);
            layouts.put(document, new Layout());
            if (open.size() > OPEN) {
                open.remove();
            }
        }
        // Cleared entries leave the map at its next use, after the JVM has enqueued their references.
        while (layouts.size() > open.size()) {
            System.gc();
            Thread.sleep(5);
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        WeakCacheService service = new WeakCacheService();
        for (int phase = 1; phase <= 4; phase++) {
            service.edit();
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class Document {
    final String title;

    Document(String title) {
        this.title = title;
    }
}

class Layout {
    final int[] lines = new int[40];
}
