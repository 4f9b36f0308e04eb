import com.sun.management.HotSpotDiagnosticMXBean;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * {@code java Pending DUMP}: creates known numbers of waiting threads, queued tasks and incomplete futures, and writes a
 * heap dump.
 */
public class Pending {
    /** A task with this many bytes. */
    record Task(byte[] content) implements Runnable {
        @Override
        public void run() {}
    }

    /** Another kind of task. */
    record Mail() implements Runnable {
        @Override
        public void run() {}
    }

    static final CountDownLatch NEVER = new CountDownLatch(1);
    static final List<Object> KEPT = new ArrayList<>();

    static void waitHere() {
        try {
            NEVER.await();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    static void waitThere() {
        waitHere();
    }

    static void start(boolean isVirtual, int count, Runnable work, CountDownLatch begun) throws Exception {
        Runnable all = () -> {
            begun.countDown();
            work.run();
        };
        for (int i = 0; i < count; i++) {
            if (!isVirtual) {
                Thread thread = new Thread(all, "waiter-" + i);
                thread.setDaemon(true);
                thread.start();
            } else {
                // JDK 21 and later.
                Method start = Thread.class.getMethod("startVirtualThread", Runnable.class);
                KEPT.add(start.invoke(null, all));
            }
        }
    }

    static void pools() {
        ThreadPoolExecutor linked =
                new ThreadPoolExecutor(1, 1, 1, TimeUnit.HOURS, new LinkedBlockingQueue<>(), daemons());
        ThreadPoolExecutor array =
                new ThreadPoolExecutor(1, 1, 1, TimeUnit.HOURS, new ArrayBlockingQueue<>(100), daemons());
        KEPT.add(linked);
        KEPT.add(array);
        linked.execute(Pending::waitHere);
        array.execute(Pending::waitHere);
        for (int i = 0; i < 30; i++) {
            linked.execute(new Task(new byte[1000]));
        }
        for (int i = 0; i < 20; i++) {
            linked.submit(new Mail());
            CompletableFuture.runAsync(new Mail(), array);
        }
    }

    static java.util.concurrent.ThreadFactory daemons() {
        return task -> {
            Thread thread = new Thread(task, "worker");
            thread.setDaemon(true);
            return thread;
        };
    }

    static void futures() {
        for (int i = 0; i < 40; i++) {
            CompletableFuture<String> order = new CompletableFuture<>();
            order.thenApply(String::length).thenAccept(KEPT::add).exceptionally(error -> null);
            KEPT.add(order);
        }
        for (int i = 0; i < 15; i++) {
            CompletableFuture<String> order = new CompletableFuture<>();
            order.thenCompose(text -> new CompletableFuture<Integer>());
            KEPT.add(order);
            // Completed futures do not wait.
            KEPT.add(CompletableFuture.completedFuture("x").thenApply(String::length));
        }
    }

    public static void main(String[] args) throws Exception {
        boolean hasVirtual = Runtime.version().feature() >= 21;
        CountDownLatch begun = new CountDownLatch(12 + 8 + (hasVirtual ? 500 : 0));
        start(false, 12, Pending::waitHere, begun);
        start(false, 8, Pending::waitThere, begun);
        if (hasVirtual) {
            start(true, 300, Pending::waitHere, begun);
            start(true, 200, Pending::waitThere, begun);
        }
        begun.await();
        pools();
        futures();
        // The threads have begun, but may not wait yet.
        Thread.sleep(1000);
        HotSpotDiagnosticMXBean bean = ManagementFactory.getPlatformMXBean(HotSpotDiagnosticMXBean.class);
        bean.dumpHeap(args[0], true);
    }
}
