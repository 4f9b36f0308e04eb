import java.util.Random;

/**
 * Keeper GROUPS OBJECTS KEEP SIZES: each of GROUPS threads allocates OBJECTS arrays: of 1,000 ints ("equal"), or of 16 bytes to 32 KB
 * ("mixed"). Each thread keeps the share KEEP of its arrays, evenly spread over time.
 */
public class Keeper {
    static final Object[][] kept = new Object[1024][];

    public static void main(String[] args) throws Exception {
        int groups = Integer.parseInt(args[0]);
        int objects = Integer.parseInt(args[1]);
        double keep = Double.parseDouble(args[2]);
        boolean mixed = args[3].equals("mixed");
        Thread[] threads = new Thread[groups];
        for (int g = 0; g < groups; g++) {
            int group = g;
            threads[g] = new Thread(() -> allocate(group, objects, keep, mixed), "group-" + g);
            threads[g].start();
        }
        for (Thread t : threads) t.join();
        System.gc();
        System.out.println("READY 1");
        System.in.read();
    }

    static void allocate(int group, int objects, double keep, boolean mixed) {
        Random random = new Random(group);
        Object[] mine = new Object[objects];
        kept[group] = mine;
        for (int i = 0; i < objects; i++) {
            Object o = mixed ? mixed(random) : equal();
            if ((int) (i * keep) != (int) ((i + 1) * keep)) mine[i] = o;
        }
    }

    static Object equal() { return new int[1_000]; }

    static Object mixed(Random random) { return new byte[16 << random.nextInt(12)]; }
}
