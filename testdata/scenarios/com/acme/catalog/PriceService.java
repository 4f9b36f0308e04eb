package com.acme.catalog;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import java.util.Random;

/** Caches every requested price. In leak mode, the cache evicts nothing. */
class PriceService {
    private static final int REQUESTS = 9_000;
    private static final int LIMIT = 5_000;

    private final PriceCache cache;
    private final Map<Integer, String> articles = new HashMap<>();
    private final Random random = new Random(3);
    private long day = 20_000;

    private PriceService(boolean leak) {
        cache = new PriceCache(leak ? Integer.MAX_VALUE : LIMIT);
        for (int i = 0; i < 25_000; i++) {
            articles.put(i, "article " + i + " of the winter collection");
        }
    }

    private void work() {
        day++;
        for (int i = 0; i < REQUESTS; i++) {
            // The day is part of the key, so no key is used again.
            String key = articles.get(i) + "@" + day;
            cache.get(key, random.nextInt(100_000));
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        PriceService service = new PriceService(args[0].equals("leak"));
        for (int phase = 1; phase <= 3; phase++) {
            service.work();
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class PriceCache {
    private final Map<String, PriceQuote> quotes = new HashMap<>();
    private final int limit;

    PriceCache(int limit) {
        this.limit = limit;
    }

    PriceQuote get(String key, int cents) {
        PriceQuote quote = quotes.computeIfAbsent(key, k -> new PriceQuote(cents, "EUR", 0.19));
        if (quotes.size() > limit) {
            Iterator<String> keys = quotes.keySet().iterator();
            keys.next();
            keys.remove();
        }
        return quote;
    }
}

class PriceQuote {
    final long cents;
    final String currency;
    final double tax;

    PriceQuote(long cents, String currency, double tax) {
        this.cents = cents;
        this.currency = currency;
        this.tax = tax;
    }
}
