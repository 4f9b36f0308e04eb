package io.github.heapdiff.junit;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.function.Executable;

/**
 * {@code Soak RUNS [MEGABYTES]}: runs RUNS assertions in one JVM. MEGABYTES (default 0) is the size of additional live
 * objects. Exits with 1 if a result is wrong.
 */
final class Soak {
    private static final int BALLAST_OBJECT_BYTES = 1000;

    /** Number of runs between two lines of output. */
    private static final int PROGRESS = 100;

    /**
     * Number of pairs of checks: one with few rounds, and one with many. The time of a round follows from the
     * difference between the two times.
     */
    private static final int ROUND_RUNS = 3;

    private static final int FEW_ROUNDS = 5;
    private static final int MANY_ROUNDS = 25;

    private static Object ballast;

    private Soak() {}

    public static void main(String[] arguments) throws Throwable {
        int runs = Integer.parseInt(arguments[0]);
        ballast = ballast(arguments.length > 1 ? Integer.parseInt(arguments[1]) : 0);
        Map<String, Executable> clean = new TreeMap<>(Map.of(
                "sessions that close", Programs::closeSession,
                "a cleaner's objects", Programs::cleanedOnce,
                "soft references", Programs::softly,
                "reflection", Programs::reflection,
                "lazy", Programs::lazily,
                "a bounded cache", Programs.leastRecentlyUsed(),
                "redeployment", Programs::redeploy,
                "weak references", Programs::weakly));
        Map<String, Executable> leaking = new TreeMap<>(Map.of(
                "sessions", Programs::leakSession,
                "a cache without a limit", Programs.newKeys(),
                "loaders", Programs::redeployAndKeep));
        List<Long> passed = new ArrayList<>();
        List<Long> failed = new ArrayList<>();
        int wrong = 0;
        for (int run = 0; run < runs; run++) {
            // One run in five leaks.
            boolean leaks = run % 5 == 4;
            List<Map.Entry<String, Executable>> kind = new ArrayList<>((leaks ? leaking : clean).entrySet());
            Map.Entry<String, Executable> chosen = kind.get((leaks ? run / 5 : run - run / 5) % kind.size());
            Programs.reset();
            long begin = System.nanoTime();
            String message = outcome(chosen.getValue());
            (leaks ? failed : passed).add((System.nanoTime() - begin) / 1_000_000);
            if (leaks == message.isEmpty()) {
                wrong++;
                System.out.printf("run %d, %s: %s%n", run, chosen.getKey(), leaks ? "passed" : message);
            }
            if ((run + 1) % PROGRESS == 0) {
                System.out.printf("%d runs, %d of them with a wrong result%n", run + 1, wrong);
            }
        }
        System.out.printf("%d assertions on JDK %s, %d of them with a wrong result%n", runs, System.getProperty("java.version"), wrong);
        times("that passed", passed);
        times("that failed", failed);
        times("measured rounds", measuredRounds());
        if (ballast == null || wrong > 0) {
            System.exit(1);
        }
    }

    private static String outcome(Executable work) throws Throwable {
        try {
            Heap.assertNoGrowth(work);
            return "";
        } catch (AssertionError e) {
            return e.getMessage();
        }
    }

    /**
     * Returns estimates of the time that one measured round takes, in milliseconds. For each estimate, runs a check with few rounds and a
     * check with many. Divides the difference between their times by the difference between their numbers of rounds.
     */
    private static List<Long> measuredRounds() throws Throwable {
        List<Long> millis = new ArrayList<>();
        for (int run = 0; run < ROUND_RUNS; run++) {
            long few = leakMillis(GrowthOptions.defaults().withRounds(FEW_ROUNDS));
            long many = leakMillis(GrowthOptions.defaults().withRounds(MANY_ROUNDS));
            millis.add((many - few) / (MANY_ROUNDS - FEW_ROUNDS));
        }
        return millis;
    }

    private static long leakMillis(GrowthOptions options) throws Throwable {
        Programs.reset();
        long begin = System.nanoTime();
        try {
            Heap.assertNoGrowth(options, Programs::leakSession);
        } catch (AssertionError e) {
            return (System.nanoTime() - begin) / 1_000_000;
        }
        throw new IllegalStateException("a leak passed");
    }

    private static Object ballast(int megabytes) {
        List<byte[]> objects = new ArrayList<>();
        for (int i = 0; i < megabytes * 1000; i++) {
            objects.add(new byte[BALLAST_OBJECT_BYTES]);
        }
        return objects;
    }

    private static void times(String which, List<Long> millis) {
        if (!millis.isEmpty()) {
            Collections.sort(millis);
            System.out.printf(
                    "  %d %s: median %d ms, longest %d ms%n",
                    millis.size(), which, millis.get(millis.size() / 2), millis.get(millis.size() - 1));
        }
    }
}
