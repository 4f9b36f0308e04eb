package io.github.heapdiff.junit;

import java.io.IOException;
import java.io.InputStream;
import java.lang.ref.Cleaner;
import java.lang.ref.SoftReference;
import java.lang.ref.WeakReference;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.function.Executable;

/** Code that the tests check: for each rule, methods that leak and methods that do not. */
final class Programs {
    static final int SESSION_BYTES = 10_000;

    static final List<Object> SESSIONS = new ArrayList<>();
    static final List<Object> SOFT = new ArrayList<>();
    static final List<Object> CLEANED = new ArrayList<>();
    static final List<Object> LOADED = new ArrayList<>();
    static final Map<Integer, byte[]> PRICES = new HashMap<>();
    static final Cleaner CLEANER = Cleaner.create();

    static final ThreadLocal<List<Object>> OF_THREAD = ThreadLocal.withInitial(ArrayList::new);

    static byte[] buffer = new byte[0];
    static Object lazy;

    private Programs() {}

    /** Removes all objects that earlier tests left in the static fields of this class. */
    static void reset() {
        GrowthCheck.forgetGrowthLeft();
        for (List<Object> list : List.of(SESSIONS, SOFT, CLEANED, LOADED)) {
            list.clear();
        }
        PRICES.clear();
        OF_THREAD.remove();
        buffer = new byte[0];
        lazy = null;
    }

    static void leakSession() {
        SESSIONS.add(new byte[SESSION_BYTES]);
    }

    /** Returns an array that stays reachable. The array is so large that Flight Recorder always samples it. */
    static Object openSession() {
        byte[] session = new byte[100 * SESSION_BYTES];
        SESSIONS.add(session);
        return session;
    }

    static Object closedSession() {
        return SESSIONS.remove(SESSIONS.indexOf(openSession()));
    }

    static void closeSession() {
        leakSession();
        SESSIONS.remove(SESSIONS.size() - 1);
    }

    /** Returns code that leaks a hundred sessions in each of the given rounds. */
    static Executable at(Integer... rounds) {
        int[] round = {0};
        return () -> {
            if (List.of(rounds).contains(++round[0])) {
                for (int i = 0; i < 100; i++) {
                    leakSession();
                }
            }
        };
    }

    static void growBuffer() {
        buffer = new byte[buffer.length + 50_000];
    }

    static void renewBuffer() {
        buffer = new byte[200_000];
    }

    /** Returns work that fills a cache with random keys. Fewer and fewer keys are new. */
    static Executable randomKeys() {
        Random random = new Random(7);
        return () -> {
            for (int i = 0; i < 100; i++) {
                PRICES.computeIfAbsent(random.nextInt(200), key -> new byte[1000]);
            }
        };
    }

    static Executable newKeys() {
        return someOf(1, 1);
    }

    /** Returns work that adds a new key in the first {@code leaking} of every {@code all} rounds. */
    static Executable someOf(int leaking, int all) {
        int[] key = {0};
        return () -> {
            if (key[0]++ % all < leaking) {
                PRICES.put(key[0], new byte[SESSION_BYTES]);
            }
        };
    }

    /** Returns work that alternates: it adds two objects in one round, and removes one object in the next. */
    static Executable slowQueue() {
        int[] round = {0};
        return () -> {
            if (round[0]++ % 2 == 0) {
                leakSession();
                leakSession();
            } else {
                SESSIONS.remove(0);
            }
        };
    }

    /** Returns code that changes a pool's size up and down. After every fifth round, the pool is larger than five rounds before. */
    static Executable pool() {
        int[] round = {0};
        return () -> {
            round[0]++;
            SESSIONS.clear();
            for (int i = 0; i < (round[0] % 5 == 0 ? 10 + 4 * round[0] : 3 + round[0] % 2); i++) {
                leakSession();
            }
        };
    }

    /** Returns code that runs in each round. In the given rounds (counted from 1), it loads classes and keeps them. */
    static Executable loadClassesAt(Integer... rounds) {
        int[] round = {0};
        return () -> {
            if (List.of(rounds).contains(++round[0])) {
                for (int i = 0; i < 30; i++) {
                    redeployAndKeep();
                }
            }
        };
    }

    static Executable leastRecentlyUsed() {
        Map<Integer, byte[]> cache = new LinkedHashMap<>() {
            private static final long serialVersionUID = 1L;

            @Override
            protected boolean removeEldestEntry(Map.Entry<Integer, byte[]> eldest) {
                return size() > 4;
            }
        };
        int[] key = {0};
        return () -> cache.put(key[0]++, new byte[SESSION_BYTES]);
    }

    static void softly() {
        SOFT.add(new SoftReference<>(new byte[SESSION_BYTES]));
    }

    static void weakly() {
        SOFT.add(new WeakReference<>(new byte[SESSION_BYTES]));
    }

    static void cleanedOnce() {
        CLEANER.register(new Object(), new byte[SESSION_BYTES]::clone);
    }

    static void neverCleaned() {
        Object owner = new Object();
        CLEANER.register(owner, new byte[SESSION_BYTES]::clone);
        CLEANED.add(owner);
    }

    /** Runs reflective calls and lambdas. For such code, the JVM generates classes in the first, the 16th and the 128th run. */
    static void reflection() throws ReflectiveOperationException {
        Method method = String.class.getMethod("length");
        int sum = 0;
        for (int i = 0; i < 40; i++) {
            sum += (Integer) method.invoke("text" + i + sum);
        }
        Map<String, Integer> counts = new HashMap<>();
        List.of("a", "b", "c").forEach(word -> counts.merge(word, 1, Integer::sum));
        String.format("%d %s", sum, counts);
    }

    /** Leaks objects that the thread running the test holds. The thread is a GC root while it lives. */
    static void leakToAThread() {
        OF_THREAD.get().add(new byte[SESSION_BYTES]);
    }

    /**
     * Leaks a thread local. Its value refers to the {@link ThreadLocal}, so the JVM never removes the entry of the
     * thread.
     */
    static void leakThreadLocals() {
        ThreadLocal<Object> local = new ThreadLocal<>();
        local.set(new Object[] {local, new byte[SESSION_BYTES]});
    }

    static void lazily() {
        if (lazy == null) {
            lazy = new byte[200_000];
        }
    }

    static void redeployAndKeep() throws ReflectiveOperationException, IOException {
        LOADED.add(deploy());
    }

    static void redeploy() throws ReflectiveOperationException, IOException {
        deploy();
    }

    /** Returns an instance of the service from a new class loader. */
    private static Object deploy() throws ReflectiveOperationException, IOException {
        return new Deployment().loadClass(Service.class.getName()).getDeclaredConstructor().newInstance();
    }

    /** A deployed service. */
    public static final class Service {
        static final byte[] CACHE = new byte[SESSION_BYTES];

        public Service() {}
    }

    /** A class loader that defines the service class itself. */
    static final class Deployment extends ClassLoader {
        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (!name.equals(Service.class.getName())) {
                return super.loadClass(name, resolve);
            }
            try (InputStream in = Programs.class.getResourceAsStream("Programs$Service.class")) {
                byte[] bytes = in.readAllBytes();
                return defineClass(name, bytes, 0, bytes.length);
            } catch (IOException e) {
                throw new ClassNotFoundException(name, e);
            }
        }
    }
}
