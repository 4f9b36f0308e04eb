import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;

/**
 * Two maps that grow alike: one is never asked for what it holds, the other is. And one of which is removed what came before. Each phase but
 * the first takes nine seconds.
 */
public final class Twins {
    static final Map<Integer, byte[]> forgotten = new HashMap<>();
    static final Map<Integer, byte[]> remembered = new HashMap<>();
    static final Map<Integer, byte[]> passing = new HashMap<>();
    static volatile Object sink;
    private static int next;

    private static void step() {
        for (int i = 0; i < 4; i++) {
            int key = next++;
            forgotten.put(key, new byte[200]);
            remembered.put(key, new byte[200]);
            passing.put(key, new byte[200]);
            if (key > 1000 && key % 8 != 0) {
                passing.remove(key - 1000);
            }
            for (int look = 0; look < 3; look++) {
                sink = remembered.get(ThreadLocalRandom.current().nextInt(next));
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        for (int i = 0; i < 500; i++) {
            step();
        }
        for (int phase = 1; ; phase++) {
            System.out.println("READY " + phase);
            if (System.in.read() < 0) {
                return;
            }
            long end = System.nanoTime() + 9_000_000_000L;
            while (System.nanoTime() < end) {
                step();
                Thread.sleep(2);
            }
        }
    }
}
