import java.util.ArrayList;
import java.util.List;

/** Leaks in equal steps, and runs a GC after each step, while JFR records the program. */
public class Recorded {
    private static final List<byte[]> KEPT = new ArrayList<>();
    private static final byte[][] CACHE = new byte[20][];
    private static Object sink;

    public static void main(String[] args) throws InterruptedException {
        int steps = args.length > 0 ? Integer.parseInt(args[0]) : 12;
        for (int i = 0; i < CACHE.length; i++) {
            fill(i);
        }
        for (int step = 0; step < steps; step++) {
            for (int i = 0; i < 300; i++) {
                leak();
                for (int j = 0; j < 30; j++) {
                    churn(j);
                }
            }
            System.gc();
            Thread.sleep(60);
        }
        System.out.println("KEPT " + KEPT.size());
    }

    private static void leak() {
        KEPT.add(new byte[3000]);
    }

    private static void fill(int i) {
        CACHE[i] = new byte[3000];
    }

    private static void churn(int j) {
        sink = new int[100 + j];
    }
}
