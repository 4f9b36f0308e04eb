import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;

/**
 * Keeps objects of six sizes, each allocated at two places of which one allocates 30 in 100, and says how many bytes
 * each place allocated. Between them it allocates garbage of all sizes, so that collections happen in the midst.
 *
 * Arguments: a seed, and the mebibytes of each size that are kept before each READY. Before the first it keeps a
 * quarter of that. Reads a line after each READY.
 */
public class Shares {
    static final int[] SIZES = {24, 128, 640, 4096, 40_000, 200_000};
    static final List<Object[]> kept24 = new ArrayList<>();
    static final List<Object[]> kept128 = new ArrayList<>();
    static final List<Object[]> kept640 = new ArrayList<>();
    static final List<Object[]> kept4096 = new ArrayList<>();
    static final List<Object[]> kept40000 = new ArrayList<>();
    static final List<Object[]> kept200000 = new ArrayList<>();
    static final long[][] bytes = new long[SIZES.length][2];
    static Object garbage;

    static final class Small {
        long value;
    }

    static Object few24() { return new Small(); }
    static Object many24() { return new Small(); }
    static Object few128() { return new byte[112]; }
    static Object many128() { return new byte[112]; }
    static Object few640() { return new byte[624]; }
    static Object many640() { return new byte[624]; }
    static Object few4096() { return new byte[4080]; }
    static Object many4096() { return new byte[4080]; }
    static Object few40000() { return new byte[39_984]; }
    static Object many40000() { return new byte[39_984]; }
    static Object few200000() { return new byte[199_984]; }
    static Object many200000() { return new byte[199_984]; }

    static Object one(int size, boolean few) {
        switch (size) {
            case 0: return few ? few24() : many24();
            case 1: return few ? few128() : many128();
            case 2: return few ? few640() : many640();
            case 3: return few ? few4096() : many4096();
            case 4: return few ? few40000() : many40000();
            default: return few ? few200000() : many200000();
        }
    }

    static List<Object[]> list(int size) {
        switch (size) {
            case 0: return kept24;
            case 1: return kept128;
            case 2: return kept640;
            case 3: return kept4096;
            case 4: return kept40000;
            default: return kept200000;
        }
    }

    static void keep(SplittableRandom random, long each) {
        Object[][] into = new Object[SIZES.length][];
        int[] next = new int[SIZES.length];
        for (int size = 0; size < SIZES.length; size++) {
            into[size] = new Object[(int) (each / SIZES[size])];
            list(size).add(into[size]);
        }
        // Sizes come in slices of some kilobytes, so that all end at about the same time.
        for (boolean more = true; more; ) {
            more = false;
            for (int size = 0; size < SIZES.length; size++) {
                int slice = Math.max(1, (int) (random.nextInt(400_000) / SIZES[size]));
                for (; slice > 0 && next[size] < into[size].length; slice--) {
                    boolean few = random.nextInt(100) < 30;
                    into[size][next[size]++] = one(size, few);
                    bytes[size][few ? 0 : 1] += SIZES[size];
                }
                more |= next[size] < into[size].length;
                for (int waste = 0; waste < 40; waste++) {
                    garbage = new char[random.nextInt(8_000)];
                }
            }
        }
    }

    public static void main(String[] args) throws Exception {
        SplittableRandom random = new SplittableRandom(Long.parseLong(args[0]));
        long each = Long.parseLong(args[1]) << 20;
        for (int phase = 1; ; phase++) {
            keep(random, phase == 1 ? each / 4 : each);
            for (int size = 0; size < SIZES.length; size++) {
                System.out.println("few" + SIZES[size] + " " + bytes[size][0]);
                System.out.println("many" + SIZES[size] + " " + bytes[size][1]);
            }
            System.out.println("READY " + phase);
            for (int c = System.in.read(); c != '\n'; c = System.in.read()) {
                if (c < 0) {
                    return;
                }
            }
        }
    }
}
