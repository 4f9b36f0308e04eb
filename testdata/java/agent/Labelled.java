import io.github.heapdiff.labels.LabelScope;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * Keeps objects that threads with different labels allocate. Prints a line "ITEMS number thread labels" for each thread and its
 * labels.
 */
public class Labelled {
    static final List<Object> kept = new ArrayList<>();
    static final Map<String, Integer> expected = new TreeMap<>();

    static class Item {}

    /** Allocates objects. "labels" are those that the current thread should have. */
    static void items(int number, String labels) {
        String key = (Thread.currentThread().getName() + " " + labels).trim();
        for (int i = 0; i < number; i++) {
            Object item = new Item();
            synchronized (kept) {
                kept.add(item);
                expected.merge(key, 1, Integer::sum);
            }
        }
    }

    static void nested(String tenant) {
        items(1, "");
        try (LabelScope outer = LabelScope.open("tenant", tenant, "route", "POST /book")) {
            items(2, "tenant=" + tenant + ",route=POST /book");
            try (LabelScope inner = LabelScope.open("route", "/pay", "user", "7")) {
                items(3, "tenant=" + tenant + ",route=/pay,user=7");
                try (LabelScope full = LabelScope.open("job", "left out")) {
                    items(4, "tenant=" + tenant + ",route=/pay,user=7");
                }
            }
            try (LabelScope empty = LabelScope.open("user", null)) {
                items(5, "tenant=" + tenant + ",route=POST /book");
            }
        }
        items(6, "");
    }

    static void closedElsewhere() throws Exception {
        LabelScope scope = LabelScope.open("tenant", "here");
        Thread other = new Thread(() -> {
            try (LabelScope own = LabelScope.open("tenant", "there")) {
                scope.close();
                items(7, "tenant=there");
            }
            items(8, "");
        }, "other");
        other.start();
        other.join();
        items(9, "tenant=here");
        scope.close();
        scope.close();
        items(10, "");
    }

    static void closedInWrongOrder() {
        LabelScope outer = LabelScope.open("a", "1");
        LabelScope inner = LabelScope.open("b", "2");
        outer.close();
        items(11, "a=1,b=2");
        inner.close();
        items(12, "a=1");
        outer.close();
        items(13, "");
    }

    static void wrapped() throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(2, task -> new Thread(task, "pool"));
        Future<?> run;
        Future<String> call;
        try (LabelScope scope = LabelScope.open("tenant", "acme")) {
            run = pool.submit(LabelScope.wrap(() -> items(21, "tenant=acme")));
            call = pool.submit(LabelScope.wrap(() -> {
                try (LabelScope inner = LabelScope.open("route", "/pay")) {
                    items(22, "tenant=acme,route=/pay");
                }
                return "done";
            }));
        }
        run.get();
        call.get();
        pool.submit(() -> items(23, "")).get();
        pool.submit(LabelScope.wrap(() -> items(24, ""))).get();
        Runnable unlabelled = LabelScope.wrap(() -> items(25, ""));
        pool.submit(() -> {
            try (LabelScope scope = LabelScope.open("tenant", "acme")) {
                unlabelled.run();
                items(26, "tenant=acme");
            }
        }).get();
        pool.shutdown();
    }

    /** Virtual threads change their carrier threads while they have labels. */
    static void virtual() throws Exception {
        Class<?> builder = Class.forName("java.lang.Thread$Builder");
        Method ofVirtual = Thread.class.getMethod("ofVirtual");
        CountDownLatch all = new CountDownLatch(200);
        for (int i = 0; i < 200; i++) {
            String tenant = "t" + i % 7;
            Runnable work = () -> {
                try (LabelScope scope = LabelScope.open("tenant", tenant)) {
                    for (int round = 0; round < 5; round++) {
                        items(1, "tenant=" + tenant);
                        Thread.sleep(1);
                    }
                } catch (InterruptedException e) {
                    throw new AssertionError(e);
                }
                items(1, "");
                all.countDown();
            };
            Object named = builder.getMethod("name", String.class).invoke(ofVirtual.invoke(null), "job-" + i % 10);
            builder.getMethod("start", Runnable.class).invoke(named, work);
        }
        all.await();
    }

    public static void main(String[] args) throws Exception {
        items(14, "");
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < 8; i++) {
            String tenant = i % 2 == 0 ? "acme" : "globex";
            threads.add(new Thread(() -> {
                for (int round = 0; round < 10; round++) nested(tenant);
            }, "worker-" + i));
        }
        for (Thread thread : threads) thread.start();
        for (Thread thread : threads) thread.join();
        closedElsewhere();
        closedInWrongOrder();
        wrapped();
        if (Runtime.version().feature() >= 21) virtual();
        expected.forEach((key, number) -> System.out.println("ITEMS " + number + " " + key));
        System.out.println("READY 1");
        System.in.read();
    }
}
