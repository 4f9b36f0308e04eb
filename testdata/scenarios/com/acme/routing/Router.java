package com.acme.routing;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;

/** Looks up routes by a key class. In leak mode, the key has no equals method, so no look-up finds an entry. */
class Router {
    private static final int LOOKUPS = 12_000;
    private static final int DESTINATIONS = 400;

    private final RouteTable table = new RouteTable();
    private final Map<Integer, double[]> map = new HashMap<>();
    private long metres;

    private Router() {
        for (int i = 0; i < 15_000; i++) {
            map.put(i, new double[] {i, -i, 0.5 * i});
        }
    }

    private void work(boolean leak) {
        for (int i = 0; i < LOOKUPS; i++) {
            int to = i % DESTINATIONS;
            RouteKey key = leak ? new RouteKey("FRA", to) : new ComparableRouteKey("FRA", to);
            metres += table.find(key).metres;
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        Router router = new Router();
        for (int phase = 1; phase <= 3; phase++) {
            router.work(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class RouteTable {
    private final Map<RouteKey, Route> routes = new HashMap<>();

    Route find(RouteKey key) {
        return routes.computeIfAbsent(key, k -> new Route(k.to * 1000L, new int[] {k.to, k.to + 1}));
    }
}

class RouteKey {
    final String from;
    final int to;

    RouteKey(String from, int to) {
        this.from = from;
        this.to = to;
    }
}

class ComparableRouteKey extends RouteKey {
    ComparableRouteKey(String from, int to) {
        super(from, to);
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof RouteKey key && key.from.equals(from) && key.to == to;
    }

    @Override
    public int hashCode() {
        return Objects.hash(from, to);
    }
}

class Route {
    final long metres;
    final int[] legs;

    Route(long metres, int[] legs) {
        this.metres = metres;
        this.legs = legs;
    }
}
