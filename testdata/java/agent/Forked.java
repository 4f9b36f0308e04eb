import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Forked N: keeps N objects with fields of every type, declared in several classes and interfaces. Also keeps arrays of every type,
 * statics, and a thread with an object in a local variable. Then waits, and does the same again for each line of input.
 */
public class Forked {
    static final List<Object> kept = new ArrayList<>();
    static final Map<String, int[]> map = new HashMap<>();
    static final String constant = "a string constant of a class of the application's loader";
    static boolean yes = true;
    static byte small = -7;
    static char letter = 'x';
    static short little = -300;
    static int number = 70_000;
    static long large = 0x1122334455667788L;
    static float part = 1.5f;
    static double ratio = -2.25;
    static Object nothing;

    interface Named {
        Object LOCK = new Object();
        int FIRST = Integer.parseInt("1");
    }

    interface Other extends Named {
        Object MORE = new Object();
    }

    static class Base implements Named {
        static Object ofBase = new Object();
        byte b = -1;
        long id;
        String name;
        Object same = this;

        Base(long id) {
            this.id = id;
            name = "name " + id;
        }
    }

    static class Middle extends Base implements Other {
        static int ofMiddle = 5;
        boolean z = true;
        char c = 'c';
        Object none;

        Middle(long id) { super(id); }
    }

    static class Leaf extends Middle {
        short s = -3;
        int i;
        float f = 0.5f;
        double d;
        Object[] parts;
        Object lock = LOCK;

        Leaf(int id) {
            super(id);
            i = -id;
            d = id / 4.0;
            parts = new Object[] {name, null, this, null};
        }
    }

    static class Held {
        long x = 42;
    }

    static void hold(Held held) {
        synchronized (held) {
            try {
                held.wait();
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
            if (held.x == 0) System.out.println(held);
        }
    }

    public static void main(String[] args) throws Exception {
        int n = Integer.parseInt(args[0]);
        for (int i = 0; i < n; i++) {
            kept.add(new Leaf(i));
            if (i % 10 == 0) map.put("key " + i, new int[] {i, -i});
        }
        Object[] arrays = {
            new boolean[] {true, false}, new byte[] {1, -1}, new char[] {'a', '\u20ac'}, new short[] {-2}, new int[0],
            new long[] {Long.MIN_VALUE, 3}, new float[] {1.25f}, new double[] {1.0, Double.NaN}, new Object[0],
            new int[][] {{1}, null, {2, 3}}, new Object[300_000], new long[200_000], new String[] {null, constant},
        };
        for (Object array : arrays) kept.add(array);
        Runnable plain = () -> System.out.println("plain");
        kept.add(plain);
        Thread thread = new Thread(() -> hold(new Held()), "holder");
        thread.setDaemon(true);
        thread.start();
        while (thread.getState() != Thread.State.WAITING) Thread.sleep(1);
        for (int phase = 1; phase <= 100; phase++) {
            System.gc();
            System.out.println("READY " + phase);
            if (System.in.read() < 0) return;
        }
    }
}
