/**
 * "Aside N" keeps N objects. It allocates fifty times as many objects and drops them, and waits for a line of input. Then it requests two
 * GCs, and waits again.
 */
public class Aside {
    static Object[] kept;
    static volatile Object sink;

    static class Kept {
        long a, b, c, d, e, f, g, h, i, j;
    }

    static class Dropped {
        long a, b, c, d, e, f, g, h, i, j;
    }

    static Object keep() { return new Kept(); }

    static Object drop() { return new Dropped(); }

    public static void main(String[] args) throws Exception {
        int n = Integer.parseInt(args[0]);
        kept = new Object[n];
        for (int i = 0; i < n; i++) {
            kept[i] = keep();
            for (int j = 0; j < 50; j++) sink = drop();
        }
        sink = null;
        System.out.println("READY 1");
        System.in.read();
        System.gc();
        System.gc();
        Thread.sleep(700);
        System.out.println("READY 2");
        System.in.read();
    }
}
