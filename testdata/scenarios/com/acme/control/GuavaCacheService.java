package com.acme.control;

import com.google.common.cache.Cache;
import com.google.common.cache.CacheBuilder;
import java.io.BufferedReader;
import java.io.InputStreamReader;

/** Has a Guava cache of at most 8,000 routes, which is already full at the first dump. All routes are replaced. */
class GuavaCacheService {
    private static final int ROUTES = 16_000;

    private final Cache<Long, PlannedRoute> routes =
            CacheBuilder.newBuilder().maximumSize(8_000).concurrencyLevel(1).build();
    private long next;

    private void work(int phase) {
        for (int i = 0; i < ROUTES; i++) {
            routes.put(++next, new PlannedRoute("route " + next));
        }
        routes.cleanUp();
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        GuavaCacheService service = new GuavaCacheService();
        for (int phase = 1; phase <= 4; phase++) {
            service.work(phase);
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class PlannedRoute {
    final String name;
    final int[] stops = new int[12];

    PlannedRoute(String name) {
        this.name = name;
    }
}
