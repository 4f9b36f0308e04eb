import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.function.IntUnaryOperator;

/**
 * Measures the time of a call of a collection in nanoseconds, as the median of eleven rounds. Large collections live for some seconds
 * before the measurement, so that the agent watches them if an option requests this.
 */
public final class Uses {
    private static final int TIMES = 4_000_000;
    static volatile int sink;

    private static void measure(String name, IntUnaryOperator call) {
        double[] rounds = new double[11];
        int sum = 0;
        for (int round = -4; round < rounds.length; round++) {
            long start = System.nanoTime();
            for (int i = 0; i < TIMES; i++) {
                sum += call.applyAsInt(i);
            }
            double each = (System.nanoTime() - start) / (double) TIMES;
            if (round >= 0) {
                rounds[round] = each;
            }
        }
        sink = sum;
        java.util.Arrays.sort(rounds);
        System.out.printf("%s\t%.2f%n", name, rounds[5]);
    }

    private static Map<Integer, Integer> filled(Map<Integer, Integer> map, int size) {
        for (int i = 0; i < size; i++) {
            map.put(i, i);
        }
        return map;
    }

    public static void main(String[] arguments) throws Exception {
        Map<Integer, Integer> small = filled(new HashMap<>(), 100);
        Map<Integer, Integer> large = filled(new HashMap<>(), 1000);
        Map<Integer, Integer> shared = filled(new ConcurrentHashMap<>(), 1000);
        List<Integer> few = new ArrayList<>(small.values());
        List<Integer> list = new ArrayList<>();
        list.addAll(large.values());
        ArrayDeque<Integer> queue = new ArrayDeque<>(large.keySet());
        for (int i = 0; i < 5; i++) {
            Thread.sleep(1100);
            large.put(1000 + i, i);
            shared.put(1000 + i, i);
            queue.add(i);
            for (int j = 0; j < 300; j++) {
                list.add(i);
            }
        }
        measure("small HashMap.get", i -> small.get(i & 63));
        measure("large HashMap.get", i -> large.get(i & 511));
        measure("large HashMap.put and remove", i -> {
            large.put(5000, i);
            return large.remove(5000);
        });
        measure("large ConcurrentHashMap.get", i -> shared.get(i & 511));
        measure("small ArrayList.get", i -> few.get(i & 63));
        measure("large ArrayList.get", i -> list.get(i & 511));
        measure("large ArrayDeque.add and poll", i -> {
            queue.add(i);
            return queue.poll();
        });
        measure("HashMap with 20 entries, new", i -> {
            if (i % 20 != 0) {
                return 0;
            }
            return filled(new HashMap<>(), 20).size();
        });
        measure("ArrayList with 1,000 elements, new", i -> {
            if (i % 1000 != 0) {
                return 0;
            }
            List<Integer> made = new ArrayList<>();
            for (int j = 0; j < 1000; j++) {
                made.add(j);
            }
            return made.size();
        });
        int threads = Runtime.getRuntime().availableProcessors();
        CountDownLatch done = new CountDownLatch(threads);
        long start = System.nanoTime();
        for (int t = 0; t < threads; t++) {
            new Thread(() -> {
                int sum = 0;
                for (int i = 0; i < 10 * TIMES; i++) {
                    sum += shared.get(i & 511);
                }
                sink = sum;
                done.countDown();
            }).start();
        }
        done.await();
        System.out.printf("large ConcurrentHashMap.get, one thread per core\t%.2f%n", (System.nanoTime() - start) / (10.0 * TIMES));
    }
}
