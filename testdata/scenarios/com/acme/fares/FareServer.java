package com.acme.fares;

import com.google.common.cache.Cache;
import com.google.common.cache.CacheBuilder;
import java.io.BufferedReader;
import java.io.InputStreamReader;

/** Caches fares in a Guava cache without a size limit. */
class FareServer {
    private static final int QUOTES = 8_000;

    private final Cache<Long, Fare> fares = CacheBuilder.newBuilder().concurrencyLevel(4).build();
    private long next;

    private void work(boolean leak) {
        for (int i = 0; i < QUOTES; i++) {
            long trip = ++next;
            fares.put(trip, new Fare("trip " + trip));
            if (!leak) {
                fares.invalidate(trip);
            }
        }
        fares.cleanUp();
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        FareServer server = new FareServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.work(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class Fare {
    final String trip;
    final long[] prices = new long[10];

    Fare(String trip) {
        this.trip = trip;
    }
}
