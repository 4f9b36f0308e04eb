package com.acme.probes;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/** Probes each connected device every hour, and continues after the device has disconnected. */
class ProbeServer {
    private static final int DEVICES = 5_000;

    private final Probes probes = new Probes();
    private int next;

    private void work(boolean leak) {
        for (int i = 0; i < DEVICES; i++) {
            ScheduledFuture<?> probe = probes.start(new Probe("device " + ++next));
            if (!leak) {
                probe.cancel(false);
            }
        }
        probes.timer.purge();
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        ProbeServer server = new ProbeServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.work(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
        server.probes.timer.shutdownNow();
    }
}

class Probes {
    final ScheduledThreadPoolExecutor timer = new ScheduledThreadPoolExecutor(1);

    ScheduledFuture<?> start(Probe probe) {
        return timer.scheduleAtFixedRate(probe, 1, 1, TimeUnit.HOURS);
    }
}

class Probe implements Runnable {
    final String device;
    final long[] times = new long[10];

    Probe(String device) {
        this.device = device;
    }

    @Override
    public void run() {
        times[0] = System.nanoTime();
    }
}
