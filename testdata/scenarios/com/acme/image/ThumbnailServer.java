package com.acme.image;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Images release native memory in a finalizer. In leak mode, one finalizer waits for a lock that is never released, and every later image
 * waits in the finalizer queue.
 */
class ThumbnailServer {
    private static final int IMAGES = 10_000;

    private final Map<String, int[]> palettes = new HashMap<>();
    private int created;

    private ThumbnailServer() {
        for (int i = 0; i < 15_000; i++) {
            palettes.put("palette " + i, new int[] {i, i, i});
        }
    }

    private void render(int from, int count) {
        for (int i = 0; i < count; i++) {
            new NativeImage(from + i);
        }
        created += count;
    }

    @SuppressWarnings("removal")
    private void work() throws InterruptedException {
        render(created, IMAGES);
        System.gc();
        // After a GC, a thread of the JDK puts the images into the finalizer queue. The finalizer of the first image waits.
        while (NativeImage.device != null
                && ManagementFactory.getMemoryMXBean().getObjectPendingFinalizationCount() < created - 1) {
            Thread.sleep(10);
            System.gc();
        }
        if (NativeImage.device == null) {
            while (NativeImage.released.get() < created) {
                System.gc();
                System.runFinalization();
            }
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        NativeImage.device = args[0].equals("leak") ? new CountDownLatch(1) : null;
        ThumbnailServer server = new ThumbnailServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.work();
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class NativeImage {
    static final AtomicInteger released = new AtomicInteger();
    static CountDownLatch device;

    private final long handle;
    private final byte[] thumbnail = new byte[48];

    NativeImage(long handle) {
        this.handle = handle;
    }

    @Override
    @SuppressWarnings({"deprecation", "removal"})
    protected void finalize() throws Throwable {
        if (device != null) {
            device.await();
        }
        released.incrementAndGet();
    }
}
