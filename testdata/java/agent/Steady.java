/** Steady N: keeps N objects, allocates three times as many and drops them, and waits. Does the same again for each line of input. */
public class Steady {
    static Object[] kept;
    static volatile Object sink;

    static class Kept {
        long a, b, c;
    }

    static class Dropped {
        long a, b, c;
    }

    static Object keep() { return new Kept(); }

    static Object drop() { return new Dropped(); }

    public static void main(String[] args) throws Exception {
        int n = Integer.parseInt(args[0]);
        kept = new Object[20 * n];
        int at = 0;
        for (int phase = 1; phase <= 20; phase++) {
            for (int i = 0; i < n; i++) {
                kept[at++] = keep();
                for (int j = 0; j < 3; j++) sink = drop();
            }
            sink = null;
            System.gc();
            Thread.sleep(200);
            System.out.println("READY " + phase);
            if (System.in.read() < 0) return;
        }
    }
}
