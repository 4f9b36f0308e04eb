import java.util.ArrayList;
import java.util.List;

/**
 * Keeps points that two methods allocate. One of the methods also allocates many points in a loop from which they do not escape, so the JIT
 * compiler removes their allocation: the code runs, but allocates nothing.
 *
 * Prints the kept bytes of each method, then READY, and ends with its input.
 */
public class Escape {
    static final List<Point> kept = new ArrayList<>();
    static final int KEPT = 60_000;

    static final class Point {
        final long x;
        final long y;

        Point(long x, long y) {
            this.x = x;
            this.y = y;
        }
    }

    static Point mostlyRemoved(long i) { return new Point(i, -i); }
    static Point allKept(long i) { return new Point(-i, i); }

    static long removed(long n) {
        long sum = 0;
        for (long i = 0; i < n; i++) {
            Point point = mostlyRemoved(i);
            sum += point.x ^ point.y;
        }
        return sum;
    }

    public static void main(String[] args) throws Exception {
        long sum = 0;
        for (int round = 0; round < 200; round++) {
            sum += removed(20_000);
            for (int i = 0; i < KEPT / 200; i++) {
                kept.add(mostlyRemoved(i));
                kept.add(allKept(i));
            }
        }
        // A point has 32 bytes: a header of 12 bytes and two longs, aligned.
        System.out.println("mostlyRemoved " + 32L * KEPT);
        System.out.println("allKept " + 32L * KEPT);
        System.out.println("READY 1");
        while (System.in.read() >= 0) { }
        System.out.println(sum);
    }
}
