import java.io.InputStream;
import java.lang.invoke.MethodHandles;
import java.lang.reflect.Method;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.function.Supplier;

/** Busy SECONDS [exit]: stresses an agent in many ways at once, for SECONDS seconds. With "exit", the JVM soon exits while all threads run. */
public class Busy {
    static volatile boolean done;
    static volatile Object sink;
    static byte[] template;

    public static class Plugin {
        public Plugin() {}

        Object o;
    }

    static class Node {
        Node next;
        byte[] body = new byte[50];
    }

    static class PluginLoader extends ClassLoader {
        PluginLoader() { super(Busy.class.getClassLoader()); }

        Class<?> define(byte[] b) { return defineClass(null, b, 0, b.length); }
    }

    interface Work {
        void run() throws Throwable;
    }

    static final ConcurrentLinkedQueue<Throwable> failures = new ConcurrentLinkedQueue<>();

    static Thread loop(String name, Work work) {
        Thread thread = new Thread(() -> {
            try {
                while (!done) work.run();
            } catch (Throwable t) {
                failures.add(t);
            }
        }, name);
        thread.start();
        return thread;
    }

    static void allocate() {
        ArrayDeque<Object> window = new ArrayDeque<>();
        Map<Integer, String> map = new HashMap<>();
        for (int i = 0; i < 20_000; i++) {
            window.add(i % 7 == 0 ? new int[i % 3000] : i % 5 == 0 ? "text" + i : new Node());
            map.put(i % 500, "value" + i);
            if (window.size() > 5_000) window.poll();
        }
        sink = window;
    }

    static void loadClasses() throws Exception {
        List<Object> some = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            some.add(new PluginLoader().define(template).getDeclaredConstructor().newInstance());
            some.add(MethodHandles.lookup().defineHiddenClass(template, true).lookupClass());
            int n = i;
            Supplier<Integer> s = () -> n;
            some.add(s);
        }
        sink = some;
        Thread.sleep(1);
    }

    static void churnThreads() throws Exception {
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            Thread t = new Thread(() -> sink = new Node[100], "short-" + System.nanoTime() % 1000);
            t.start();
            threads.add(t);
        }
        for (Thread t : threads) t.join();
    }

    static int overflow(int depth) {
        Node n = new Node();
        sink = n;
        return overflow(depth + 1) + n.body.length;
    }

    static void overflows() throws Exception {
        try {
            overflow(0);
        } catch (StackOverflowError e) {
            sink = e;
        }
        Thread.sleep(5);
    }

    static void exceptions() {
        Object none = null;
        for (int i = 0; i < 1000; i++) {
            try {
                none.hashCode();
            } catch (NullPointerException e) {
                sink = e;
            }
            try {
                sink = new int[-1 - i];
            } catch (NegativeArraySizeException e) {
                sink = e;
            }
        }
    }

    static void virtualThreads(Method start) throws Exception {
        CountDownLatch all = new CountDownLatch(200);
        for (int i = 0; i < 200; i++) {
            start.invoke(null, (Runnable) () -> {
                try {
                    for (int j = 0; j < 20; j++) {
                        sink = new byte[1000];
                        Thread.sleep(1);
                        sink = new Node();
                    }
                } catch (InterruptedException e) {
                    failures.add(e);
                } finally {
                    all.countDown();
                }
            });
        }
        all.await();
    }

    public static void main(String[] args) throws Exception {
        try (InputStream in = Busy.class.getResourceAsStream("Busy$Plugin.class")) {
            template = in.readAllBytes();
        }
        List<Thread> threads = new ArrayList<>();
        threads.add(loop("allocate-1", Busy::allocate));
        threads.add(loop("allocate-2", Busy::allocate));
        threads.add(loop("classes", Busy::loadClasses));
        threads.add(loop("threads", Busy::churnThreads));
        threads.add(loop("overflow", Busy::overflows));
        threads.add(loop("exceptions", Busy::exceptions));
        threads.add(loop("collect", () -> {
            System.gc();
            Thread.sleep(20);
        }));
        if (Runtime.version().feature() >= 21) {
            Method start = Thread.class.getMethod("startVirtualThread", Runnable.class);
            threads.add(loop("virtual", () -> virtualThreads(start)));
        }
        System.out.println("BUSY");
        if (args.length > 1) {
            Thread.sleep(300);
            System.exit(0);
        }
        Thread.sleep(1000L * Integer.parseInt(args[0]));
        done = true;
        for (Thread t : threads) t.join();
        for (Throwable t : failures) t.printStackTrace();
        sink = null;
        System.gc();
        System.out.println("READY 1");
        System.in.read();
        System.exit(failures.isEmpty() ? 0 : 1);
    }
}
