package com.acme.search;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;

/** Indexes documents by time. In leak mode, expired documents leave the store but not the index. */
class SearchServer {
    private static final int DOCUMENTS = 12_000;
    private static final int KEPT = 10_000;

    private final Map<Long, Document> store = new HashMap<>();
    private final TimeIndex index = new TimeIndex();
    private final Random random = new Random(14);
    private long clock = 1_000_000;

    private void work(boolean leak) {
        for (int i = 0; i < DOCUMENTS; i++) {
            Document document = new Document(clock++, random.nextInt(), "title " + i);
            store.put(document.time, document);
            index.add(document);
            long expired = clock - KEPT;
            store.remove(expired);
            if (!leak) {
                index.postings.remove(expired);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        SearchServer server = new SearchServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.work(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class TimeIndex {
    final TreeMap<Long, Posting> postings = new TreeMap<>();

    void add(Document document) {
        postings.put(document.time, new Posting(document.hash, new short[] {1, 2, 3}));
    }
}

class Document {
    final long time;
    final int hash;
    final String title;

    Document(long time, int hash, String title) {
        this.time = time;
        this.hash = hash;
        this.title = title;
    }
}

class Posting {
    final int document;
    final short[] positions;

    Posting(int document, short[] positions) {
        this.document = document;
        this.positions = positions;
    }
}
