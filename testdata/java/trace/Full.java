/**
 * Full: keeps a full cache, in which each new entry of a kilobyte replaces the oldest one. Prints "READY 1" when the cache is full, and
 * continues until standard input ends or a minute is over.
 */
public class Full {
    private static final byte[][] recent = new byte[10_000][];
    private static volatile Object sink;

    private static byte[] load() {
        return new byte[1024];
    }

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < recent.length; i++) {
            recent[i] = load();
        }
        System.out.println("READY 1");
        long end = System.currentTimeMillis() + 60_000;
        long collected = 0;
        int oldest = 0;
        while (System.currentTimeMillis() < end && System.in.available() == 0) {
            if (System.currentTimeMillis() - collected >= 900) {
                collected = System.currentTimeMillis();
                System.gc();
            }
            for (int i = 0; i < 2; i++) {
                recent[oldest] = load();
                oldest = (oldest + 1) % recent.length;
            }
            for (int i = 0; i < 20; i++) {
                sink = new byte[8192];
            }
            Thread.sleep(5);
        }
    }
}
