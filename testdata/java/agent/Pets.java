import java.util.ArrayList;

/** Pets N: two classes allocate the same objects, N times each: directly, and through a collection of the JDK. */
public class Pets {
    static class Owner {
        static Object buy() { return new byte[1_000]; }

        static Object list() { return new ArrayList<Object>(1_000); }
    }

    static class Other {
        static Object buy() { return new byte[1_000]; }

        static Object list() { return new ArrayList<Object>(1_000); }
    }

    public static void main(String[] args) throws Exception {
        int n = Integer.parseInt(args[0]);
        Object[] kept = new Object[4 * n];
        for (int i = 0; i < 4 * n; ) {
            kept[i++] = Owner.buy();
            kept[i++] = Owner.list();
            kept[i++] = Other.buy();
            kept[i++] = Other.list();
        }
        System.out.println("READY 1");
        System.in.read();
        System.out.println(kept.length);
    }
}
