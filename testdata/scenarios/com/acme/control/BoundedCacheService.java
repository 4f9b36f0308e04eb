package com.acme.control;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import java.io.BufferedReader;
import java.io.InputStreamReader;

/** Has a Caffeine cache of at most 10,000 offers: half full, then full, while offers are replaced. */
class BoundedCacheService {
    private static final int OFFERS = 5_000;

    private final Cache<Long, Offer> offers =
            Caffeine.newBuilder().maximumSize(10_000).executor(Runnable::run).build();
    private long next;

    private void work(int phase) {
        for (int i = 0; i < (phase == 2 ? OFFERS * 2 : OFFERS); i++) {
            offers.put(++next, new Offer("offer " + next));
        }
        offers.cleanUp();
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        BoundedCacheService service = new BoundedCacheService();
        for (int phase = 1; phase <= 4; phase++) {
            service.work(phase);
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class Offer {
    final String text;
    final int[] prices = new int[10];

    Offer(String text) {
        this.text = text;
    }
}
