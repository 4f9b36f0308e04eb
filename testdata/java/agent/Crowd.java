import java.util.concurrent.CountDownLatch;

/**
 * Crowd THREADS OBJECTS: starts THREADS threads at once. Each keeps OBJECTS small objects. There are far more threads than
 * processors.
 */
public class Crowd {
    static final Object[][] kept = new Object[4096][];

    static final class Small {}

    static void keep(int thread, int objects) {
        Object[] mine = kept[thread];
        for (int i = 0; i < objects; i++) mine[i] = new Small();
    }

    public static void main(String[] args) throws Exception {
        int threads = Integer.parseInt(args[0]);
        int objects = Integer.parseInt(args[1]);
        CountDownLatch go = new CountDownLatch(1);
        Thread[] all = new Thread[threads];
        for (int t = 0; t < threads; t++) {
            int number = t;
            kept[t] = new Object[objects];
            all[t] = new Thread(() -> {
                try {
                    go.await();
                } catch (InterruptedException e) {
                    return;
                }
                keep(number, objects);
            }, "crowd-" + t);
            all[t].start();
        }
        go.countDown();
        for (Thread t : all) t.join();
        System.out.println("READY 1");
        System.in.read();
    }
}
