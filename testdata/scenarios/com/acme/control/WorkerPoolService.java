package com.acme.control;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/** A pool of ten threads at most, each with a buffer in a thread local that it keeps by intent. */
class WorkerPoolService {
    private static final int[] BUSY = {4, 10, 10, 10};

    private static final ThreadLocal<Scratch> SCRATCH = ThreadLocal.withInitial(Scratch::new);

    private final ThreadPoolExecutor workers =
            new ThreadPoolExecutor(10, 10, 1, TimeUnit.HOURS, new LinkedBlockingQueue<>());

    private void serve(int busy) throws InterruptedException {
        for (int round = 0; round < 20; round++) {
            CountDownLatch all = new CountDownLatch(busy);
            CountDownLatch done = new CountDownLatch(busy);
            for (int i = 0; i < busy; i++) {
                workers.execute(() -> {
                    all.countDown();
                    try {
                        // So that each task has a thread of its own.
                        all.await();
                    } catch (InterruptedException e) {
                        return;
                    }
                    SCRATCH.get().pages[0]++;
                    done.countDown();
                });
            }
            done.await();
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        WorkerPoolService service = new WorkerPoolService();
        for (int phase = 1; phase <= 4; phase++) {
            service.serve(BUSY[phase - 1]);
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
        service.workers.shutdown();
    }
}

class Scratch {
    final int[] pages = new int[32_768];
}
