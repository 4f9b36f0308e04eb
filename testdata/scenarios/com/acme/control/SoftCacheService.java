package com.acme.control;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.ref.SoftReference;
import java.util.HashMap;
import java.util.Map;

/** Keeps thumbnails by soft references, which the GC clears when memory runs short. Here this never happens. */
class SoftCacheService {
    private static final int IMAGES = 400;

    private final Map<Integer, SoftReference<Thumbnail>> thumbnails = new HashMap<>();
    private int next;

    private void render() {
        for (int i = 0; i < IMAGES; i++) {
            Thumbnail thumbnail = new Thumbnail(++next);
            thumbnails.put(thumbnail.number, new SoftReference<>(thumbnail));
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        SoftCacheService service = new SoftCacheService();
        for (int phase = 1; phase <= 4; phase++) {
            service.render();
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class Thumbnail {
    final int number;
    final byte[] pixels = new byte[4_096];

    Thumbnail(int number) {
        this.number = number;
    }
}
