package com.acme.control;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/** Has a thread pool that grows with its load to ten threads. Each thread keeps a buffer in a thread local, by intent. */
class WorkerPoolService {
    private static final int[] BUSY = {4, 10, 10, 10};

    private static final ThreadLocal<Scratch> SCRATCH = ThreadLocal.withInitial(Scratch::new);

    private final ThreadPoolExecutor workers =
            new ThreadPoolExecutor(1, 10, 1, TimeUnit.HOURS, new LinkedBlockingQueue<>());

    private void serve(int busy) throws InterruptedException {
        workers.setCorePoolSize(busy);
        for (int round = 0; round < 20; round++) {
            CountDownLatch all = new CountDownLatch(busy);
            CountDownLatch done = new CountDownLatch(busy);
            for (int i = 0; i < busy; i++) {
                workers.execute(() -> {
                    all.countDown();
                    try {
                        // Wait, so that each task gets its own thread.
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
