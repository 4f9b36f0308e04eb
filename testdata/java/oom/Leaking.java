import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/**
 * A program that keeps more and more bytes until OutOfMemoryError, or whose kept bytes are bounded.
 *
 * <p>Arguments: the shape, kilobytes per second, the maximum number of seconds, and a seed. When the heap is full, the
 * program prints the time.
 */
public class Leaking {
    static final List<byte[]> kept = new ArrayList<>();
    static final List<byte[]> other = new ArrayList<>();
    static final List<byte[]> cache = new ArrayList<>();
    static final ArrayDeque<byte[]> sessions = new ArrayDeque<>();
    static long blackhole;

    public static void main(String[] args) throws InterruptedException {
        String shape = args[0];
        double rate = Double.parseDouble(args[1]) * 1024;
        double most = Double.parseDouble(args[2]);
        Random random = new Random(Long.parseLong(args[3]));
        long begin = System.nanoTime();
        double wanted = 0;
        double done = 0;
        double last = 0;
        try {
            while (last < most) {
                double now = (System.nanoTime() - begin) / 1e9;
                wanted += rate * factor(shape, now, random) * (now - last);
                last = now;
                while (done < wanted) {
                    byte[] bytes = new byte[512 + random.nextInt(4096)];
                    (shape.equals("two") && random.nextInt(3) == 0 ? other : kept).add(bytes);
                    done += bytes.length;
                }
                bounded(shape, now, random);
                // Sessions live long enough to get into the old generation, so the heap needs full GCs.
                for (int i = 0; i < 40; i++) {
                    sessions.add(new byte[2048 + random.nextInt(4096)]);
                    if (sessions.size() > 1200) {
                        sessions.remove();
                    }
                }
                for (int i = 0; i < 200; i++) {
                    blackhole += new byte[1024].length;
                }
                Thread.sleep(5);
            }
            System.out.println("end " + System.currentTimeMillis());
        } catch (OutOfMemoryError e) {
            long time = System.currentTimeMillis();
            kept.clear();
            other.clear();
            cache.clear();
            sessions.clear();
            System.out.println("oom " + time);
        }
    }

    /** Returns the part of the rate with which the kept bytes grow at a time in seconds. */
    static double factor(String shape, double now, Random random) {
        switch (shape) {
            case "linear":
            case "two":
            case "noisy":
                return 1;
            case "steps":
                return now % 1.5 < 0.3 ? 5 : 0;
            case "accelerating":
                return 0.8 + now / 60;
            case "random":
                return 2 * random.nextDouble();
            default:
                return 0;
        }
    }

    /** Changes the part of the heap whose size is bounded. */
    static void bounded(String shape, double now, Random random) {
        switch (shape) {
            case "noisy":
            case "sawtooth":
                if (cache.size() > 3000) {
                    cache.clear();
                }
                for (int i = 0; i < 8; i++) {
                    cache.add(new byte[1024 + random.nextInt(2048)]);
                }
                break;
            case "cache":
                for (int i = 0; i < 20; i++) {
                    byte[] page = new byte[2048 + random.nextInt(2048)];
                    if (cache.size() < 8000) {
                        cache.add(page);
                    } else {
                        cache.set(random.nextInt(cache.size()), page);
                    }
                }
                break;
            case "warm-up":
                if (cache.size() < 9000 * (1 - Math.exp(-now / 2))) {
                    for (int i = 0; i < 20; i++) {
                        cache.add(new byte[2048]);
                    }
                }
                break;
            default:
                break;
        }
    }
}
