package com.acme.control;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.LinkedHashMap;
import java.util.Map;

/** Has a cache of at most 20,000 quotes that evicts the least recently used: half full, and then always full. */
class LruService {
    private static final int REQUESTS = 10_000;

    private final QuoteCache cache = new QuoteCache();
    private int next;

    private void serve() {
        for (int i = 0; i < REQUESTS; i++) {
            int product = next++;
            cache.computeIfAbsent(product, p -> new Quote(p, "quote " + p));
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        LruService service = new LruService();
        for (int phase = 1; phase <= 4; phase++) {
            service.serve();
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class QuoteCache extends LinkedHashMap<Integer, Quote> {
    private static final long serialVersionUID = 1;
    private static final int LIMIT = 20_000;

    QuoteCache() {
        super(16, 0.75f, true);
    }

    @Override
    protected boolean removeEldestEntry(Map.Entry<Integer, Quote> eldest) {
        return size() > LIMIT;
    }
}

class Quote {
    final int product;
    final String text;

    Quote(int product, String text) {
        this.product = product;
        this.text = text;
    }
}
