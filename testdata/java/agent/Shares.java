import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.function.Supplier;

/**
 * Keeps objects of six sizes, and prints how many bytes each place in the code allocated. Each size has two large places: one
 * allocates 30 % of the size's objects, and the other the rest. 64 small places keep 48 kB to 1.6 MB each. They use the same classes
 * and sizes as the large places and as each other. Between the kept objects, the program allocates garbage of all sizes, so that GCs
 * run.
 *
 * Arguments: a seed, and the mebibytes that the two large places of each size keep before each READY. Before the first READY, all places
 * keep a quarter. The program reads a line after each READY.
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

    static Object rare00() { return new byte[48]; }
    static Object rare01() { return new char[312]; }
    static Object rare02() { return new byte[4080]; }
    static Object rare03() { return new byte[9_984]; }
    static Object rare04() { return new byte[39_984]; }
    static Object rare05() { return new byte[199_984]; }
    static Object rare06() { return new long[2_498]; }
    static Object rare07() { return new int[100]; }
    static Object rare08() { return new byte[48]; }
    static Object rare09() { return new char[312]; }
    static Object rare10() { return new byte[4080]; }
    static Object rare11() { return new byte[9_984]; }
    static Object rare12() { return new byte[39_984]; }
    static Object rare13() { return new byte[199_984]; }
    static Object rare14() { return new long[2_498]; }
    static Object rare15() { return new int[100]; }
    static Object rare16() { return new byte[48]; }
    static Object rare17() { return new char[312]; }
    static Object rare18() { return new byte[4080]; }
    static Object rare19() { return new byte[9_984]; }
    static Object rare20() { return new byte[39_984]; }
    static Object rare21() { return new byte[199_984]; }
    static Object rare22() { return new long[2_498]; }
    static Object rare23() { return new int[100]; }
    static Object rare24() { return new byte[48]; }
    static Object rare25() { return new char[312]; }
    static Object rare26() { return new byte[4080]; }
    static Object rare27() { return new byte[9_984]; }
    static Object rare28() { return new byte[39_984]; }
    static Object rare29() { return new byte[199_984]; }
    static Object rare30() { return new long[2_498]; }
    static Object rare31() { return new int[100]; }
    static Object rare32() { return new byte[48]; }
    static Object rare33() { return new char[312]; }
    static Object rare34() { return new byte[4080]; }
    static Object rare35() { return new byte[9_984]; }
    static Object rare36() { return new byte[39_984]; }
    static Object rare37() { return new byte[199_984]; }
    static Object rare38() { return new long[2_498]; }
    static Object rare39() { return new int[100]; }
    static Object rare40() { return new byte[48]; }
    static Object rare41() { return new char[312]; }
    static Object rare42() { return new byte[4080]; }
    static Object rare43() { return new byte[9_984]; }
    static Object rare44() { return new byte[39_984]; }
    static Object rare45() { return new byte[199_984]; }
    static Object rare46() { return new long[2_498]; }
    static Object rare47() { return new int[100]; }
    static Object rare48() { return new byte[48]; }
    static Object rare49() { return new char[312]; }
    static Object rare50() { return new byte[4080]; }
    static Object rare51() { return new byte[9_984]; }
    static Object rare52() { return new byte[39_984]; }
    static Object rare53() { return new byte[199_984]; }
    static Object rare54() { return new long[2_498]; }
    static Object rare55() { return new int[100]; }
    static Object rare56() { return new byte[48]; }
    static Object rare57() { return new char[312]; }
    static Object rare58() { return new byte[4080]; }
    static Object rare59() { return new byte[9_984]; }
    static Object rare60() { return new byte[39_984]; }
    static Object rare61() { return new byte[199_984]; }
    static Object rare62() { return new long[2_498]; }
    static Object rare63() { return new int[100]; }

    static final List<Supplier<Object>> RARE = List.of(
        Shares::rare00, Shares::rare01, Shares::rare02, Shares::rare03, Shares::rare04, Shares::rare05,
        Shares::rare06, Shares::rare07, Shares::rare08, Shares::rare09, Shares::rare10, Shares::rare11,
        Shares::rare12, Shares::rare13, Shares::rare14, Shares::rare15, Shares::rare16, Shares::rare17,
        Shares::rare18, Shares::rare19, Shares::rare20, Shares::rare21, Shares::rare22, Shares::rare23,
        Shares::rare24, Shares::rare25, Shares::rare26, Shares::rare27, Shares::rare28, Shares::rare29,
        Shares::rare30, Shares::rare31, Shares::rare32, Shares::rare33, Shares::rare34, Shares::rare35,
        Shares::rare36, Shares::rare37, Shares::rare38, Shares::rare39, Shares::rare40, Shares::rare41,
        Shares::rare42, Shares::rare43, Shares::rare44, Shares::rare45, Shares::rare46, Shares::rare47,
        Shares::rare48, Shares::rare49, Shares::rare50, Shares::rare51, Shares::rare52, Shares::rare53,
        Shares::rare54, Shares::rare55, Shares::rare56, Shares::rare57, Shares::rare58, Shares::rare59,
        Shares::rare60, Shares::rare61, Shares::rare62, Shares::rare63);
    static final int[] RARE_SIZES = {64, 640, 4096, 10_000, 40_000, 200_000, 20_000, 416};
    static final List<List<Object>> keptRare = new ArrayList<>();
    static final long[] rareBytes = new long[RARE.size()];

    /** Allocates and keeps objects at each of the 64 small places. The order of the places is random. */
    static void keepRare(SplittableRandom random, double part) {
        int[] left = new int[RARE.size()];
        int all = 0;
        for (int place = 0; place < left.length; place++) {
            double bytes = part * 48e3 * Math.pow(1.6e6 / 48e3, (place * 37 % 64) / 63.0);
            left[place] = (int) Math.round(bytes / RARE_SIZES[place % 8]);
            all += left[place];
        }
        while (all > 0) {
            int place = random.nextInt(left.length);
            int slice = Math.max(1, 20_000 / RARE_SIZES[place % 8]);
            for (; slice > 0 && left[place] > 0; slice--) {
                keptRare.get(place).add(RARE.get(place).get());
                rareBytes[place] += RARE_SIZES[place % 8];
                left[place]--;
                all--;
            }
            garbage = new char[random.nextInt(8_000)];
        }
    }

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
        // Alternate between the sizes after some kilobytes, so that all sizes end at about the same time.
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
        for (int place = 0; place < RARE.size(); place++) {
            keptRare.add(new ArrayList<>());
        }
        for (int phase = 1; ; phase++) {
            keep(random, phase == 1 ? each / 4 : each);
            keepRare(random, phase == 1 ? 0.25 : 1.0);
            for (int size = 0; size < SIZES.length; size++) {
                System.out.println("few" + SIZES[size] + " " + bytes[size][0]);
                System.out.println("many" + SIZES[size] + " " + bytes[size][1]);
            }
            for (int place = 0; place < rareBytes.length; place++) {
                System.out.printf("rare%02d %d%n", place, rareBytes[place]);
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
