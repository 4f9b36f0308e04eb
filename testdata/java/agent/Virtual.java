import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;

/** Starts 100 virtual threads, half of them with names. Each keeps 10 objects. JDK 21 and later. */
public class Virtual {
    static final List<Object> kept = new ArrayList<>();

    static class Item {}

    static Object item() { return new Item(); }

    static void work() {
        for (int i = 0; i < 10; i++) {
            Object o = item();
            synchronized (kept) {
                kept.add(o);
            }
            try {
                Thread.sleep(1);
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        CountDownLatch all = new CountDownLatch(100);
        Runnable work = () -> {
            work();
            all.countDown();
        };
        // Uses reflection, because the program is compiled for JDK 17, which has no virtual threads.
        Method ofVirtual = Thread.class.getMethod("ofVirtual");
        Class<?> builder = Class.forName("java.lang.Thread$Builder");
        for (int i = 0; i < 100; i++) {
            Object b = ofVirtual.invoke(null);
            if (i % 2 == 0) b = builder.getMethod("name", String.class).invoke(b, "job-" + i);
            builder.getMethod("start", Runnable.class).invoke(b, work);
        }
        all.await();
        System.out.println("READY 1");
        System.in.read();
    }
}
