package com.acme.codec;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.ref.Cleaner;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Codecs release native memory by a cleaner. In leak mode, one cleaning action waits for a device that never answers, and all later actions
 * wait behind it.
 */
class CodecServer {
    private static final int CODECS = 10_000;

    private final Map<String, int[]> profiles = new HashMap<>();
    private int created;

    private CodecServer() {
        for (int i = 0; i < 15_000; i++) {
            profiles.put("profile " + i, new int[] {i, i, i});
        }
    }

    private void transcode(int from, int count) {
        for (int i = 0; i < count; i++) {
            new Codec(from + i);
        }
        created += count;
    }

    private void work() throws InterruptedException {
        transcode(created, CODECS);
        System.gc();
        if (Release.device == null) {
            while (Release.done.get() < created) {
                System.gc();
                Thread.sleep(5);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        Release.device = args[0].equals("leak") ? new CountDownLatch(1) : null;
        CodecServer server = new CodecServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.work();
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class Codec {
    private static final Cleaner CLEANER = Cleaner.create();

    Codec(long handle) {
        CLEANER.register(this, new Release(handle));
    }
}

class Release implements Runnable {
    static final AtomicInteger done = new AtomicInteger();
    static CountDownLatch device;

    private final long handle;
    private final byte[] parameters = new byte[48];

    Release(long handle) {
        this.handle = handle;
    }

    @Override
    public void run() {
        if (device != null) {
            try {
                device.await();
            } catch (InterruptedException e) {
                return;
            }
        }
        done.incrementAndGet();
    }
}
