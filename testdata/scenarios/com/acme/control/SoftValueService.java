package com.acme.control;

import com.google.common.cache.Cache;
import com.google.common.cache.CacheBuilder;
import java.io.BufferedReader;
import java.io.InputStreamReader;

/** Keeps pictures as soft values of a Guava cache. Memory is ample, so no value is cleared. */
class SoftValueService {
    private static final int PICTURES = 300;

    private final Cache<Integer, Picture> pictures = CacheBuilder.newBuilder().softValues().build();
    private int next;

    private void work(int phase) {
        for (int i = 0; i < PICTURES; i++) {
            pictures.put(++next, new Picture());
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        SoftValueService service = new SoftValueService();
        for (int phase = 1; phase <= 4; phase++) {
            service.work(phase);
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class Picture {
    final byte[] pixels = new byte[8_192];
}
