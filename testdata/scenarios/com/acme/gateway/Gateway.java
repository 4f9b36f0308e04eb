package com.acme.gateway;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/** Each call schedules a time-out, and cancels it when the answer comes. By default, a cancelled task stays in the queue. */
class Gateway {
    private static final int CALLS = 12_000;

    private final Timeouts timeouts;
    private final Map<Integer, String> backends = new HashMap<>();
    private long answered;

    private Gateway(boolean leak) {
        timeouts = new Timeouts(!leak);
        for (int i = 0; i < 15_000; i++) {
            backends.put(i, "10.0." + i / 256 + "." + i % 256);
        }
    }

    private void call() {
        for (int i = 0; i < CALLS; i++) {
            Future<?> timeout = timeouts.start(() -> System.err.println("no answer"));
            answered++;
            timeout.cancel(false);
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        Gateway gateway = new Gateway(args[0].equals("leak"));
        for (int phase = 1; phase <= 3; phase++) {
            gateway.call();
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
        gateway.timeouts.scheduler.shutdownNow();
    }
}

class Timeouts {
    final ScheduledThreadPoolExecutor scheduler = new ScheduledThreadPoolExecutor(1);

    Timeouts(boolean removeCancelled) {
        scheduler.setRemoveOnCancelPolicy(removeCancelled);
    }

    Future<?> start(Runnable action) {
        return scheduler.schedule(action, 1, TimeUnit.HOURS);
    }
}
