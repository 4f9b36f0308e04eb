/** Litter N: allocates N objects, twenty in each millisecond, and keeps one in ten. Does not request a GC. */
public class Litter {
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
        Object[] kept = new Object[n / 10];
        for (int i = 0; i < n; i++) {
            if (i % 10 == 0) kept[i / 10] = keep();
            else sink = drop();
            if (i % 20 == 19) Thread.sleep(1);
        }
        System.out.println("READY 1");
        System.in.read();
        sink = kept;
    }
}
