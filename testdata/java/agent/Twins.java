import java.util.ArrayList;
import java.util.HashMap;
import java.util.Hashtable;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.ThreadLocalRandom;

/**
 * Two maps grow in the same way: one is never read, the other is read often. A third map also loses old entries, and some collections of
 * other kinds grow. Each phase but the first takes nine seconds. Argument: the number of additional large lists.
 */
public final class Twins {
    static final Map<Integer, byte[]> forgotten = new HashMap<>();
    static final Map<Integer, byte[]> remembered = new HashMap<>();
    static final Map<Integer, byte[]> passing = new HashMap<>();
    static final Queue<byte[]> queued = new ConcurrentLinkedQueue<>();
    static final Map<Integer, byte[]> tabled = new Hashtable<>();
    static final Map<Integer, byte[]> sorted = new ConcurrentSkipListMap<>();
    private static final List<List<Integer>> crowd = new ArrayList<>();
    static volatile Object sink;
    private static int next;

    private static void step() {
        for (int i = 0; i < 4; i++) {
            int key = next++;
            forgotten.put(key, new byte[200]);
            remembered.put(key, new byte[200]);
            passing.put(key, new byte[200]);
            queued.add(new byte[200]);
            tabled.put(key, new byte[200]);
            sorted.put(key, new byte[200]);
            sink = sorted.get(key);
            if (key > 1000 && key % 8 != 0) {
                passing.remove(key - 1000);
            }
            for (int look = 0; look < 3; look++) {
                sink = remembered.get(ThreadLocalRandom.current().nextInt(next));
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        for (int i = Integer.parseInt(arguments.length == 0 ? "0" : arguments[0]); i > 0; i--) {
            List<Integer> list = new ArrayList<>();
            for (int element = 0; element < 300; element++) {
                list.add(element);
            }
            crowd.add(list);
        }
        for (int i = 0; i < 500; i++) {
            step();
        }
        for (int phase = 1; ; phase++) {
            System.out.println("READY " + phase);
            if (System.in.read() < 0) {
                return;
            }
            long end = System.nanoTime() + 9_000_000_000L;
            long next = System.nanoTime();
            while (System.nanoTime() < end) {
                if (System.nanoTime() > next) {
                    crowd.forEach(list -> list.add(7));
                    next = System.nanoTime() + 1_100_000_000L;
                }
                step();
                Thread.sleep(2);
            }
        }
    }
}
