import java.lang.reflect.Method;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Parked N: starts N virtual threads that wait with objects in local variables, some by an executor and some directly, and one virtual
 * thread that is mounted. Then waits, and does the same again for each line of input. JDK 21 and later.
 */
public class Parked {
    static final Semaphore gate = new Semaphore(0);
    static final AtomicInteger begun = new AtomicInteger();
    static volatile boolean done;

    static class Request {
        byte[] body = new byte[2000];
        Object[] same = {this};
    }

    static void handle(int number) {
        Request request = new Request();
        begun.incrementAndGet();
        serve(request, number);
        System.out.println(request.body.length);
    }

    static void serve(Request request, int number) {
        Object[] own = {request};
        try {
            if (number % 2 == 0) gate.acquire();
            else Thread.sleep(1_000_000);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
        System.out.println(own.length);
    }

    static void spin() {
        Thread.currentThread().setName("mounted");
        Request request = new Request();
        begun.incrementAndGet();
        while (!done) Thread.onSpinWait();
        System.out.println(request.body.length);
    }

    public static void main(String[] args) throws Exception {
        int n = Integer.parseInt(args[0]);
        Method start = Thread.class.getMethod("startVirtualThread", Runnable.class);
        Method perTask = Executors.class.getMethod("newVirtualThreadPerTaskExecutor");
        ExecutorService executor = (ExecutorService) perTask.invoke(null);
        for (int i = 0; i < n; i++) {
            int number = i;
            Runnable task = () -> {
                Thread.currentThread().setName("request " + number);
                handle(number);
            };
            if (i % 5 == 0) executor.execute(task);
            else start.invoke(null, task);
        }
        while (begun.get() < n) Thread.sleep(1);
        Runnable spin = Parked::spin;
        start.invoke(null, spin);
        while (begun.get() <= n) Thread.sleep(1);
        Thread.sleep(500);
        for (int phase = 1; phase <= 100; phase++) {
            System.gc();
            System.out.println("READY " + phase);
            if (System.in.read() < 0) System.exit(0);
        }
    }
}
