package com.acme.geo;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;

/** Caches places in a Caffeine cache without a size limit: every requested address stays. */
class GeoServer {
    private static final int LOOKUPS = 8_000;

    private final PlaceCache cache = new PlaceCache();
    private final Map<Integer, String> countries = new HashMap<>();
    private int next;

    private GeoServer() {
        for (int i = 0; i < 15_000; i++) {
            countries.put(i, "country " + i);
        }
    }

    private void work(boolean leak) {
        for (int i = 0; i < LOOKUPS; i++) {
            String address = "street " + ++next;
            cache.places.get(address, Place::new);
            if (!leak) {
                cache.places.invalidate(address);
            }
        }
        cache.places.cleanUp();
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        GeoServer server = new GeoServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.work(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class PlaceCache {
    final Cache<String, Place> places = Caffeine.newBuilder().build();
}

class Place {
    final String address;
    final double[] position = new double[6];

    Place(String address) {
        this.address = address;
    }
}
