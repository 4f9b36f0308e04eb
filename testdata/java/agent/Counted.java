import java.lang.reflect.Array;
import java.lang.reflect.Constructor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedList;
import java.util.TreeMap;
import java.util.function.Supplier;

/**
 * Counted THREADS N [plain|virtual|only-virtual]: for each line of input, THREADS threads (none, half or all of them virtual) each allocate
 * N times in every way that bytecode has. In addition, three collections of the JDK grow by N.
 */
public class Counted {
    static volatile Object sink;
    static Object[] kept;
    static boolean virtual, onlyVirtual;

    static class Small {
        int x;

        Small(Object... more) {}
    }

    static class Pair {
        final Object a, b;
        long c;

        Pair(Object a, Object b) {
            this.a = a;
            this.b = b;
        }
    }

    static class Removed {
        final int v;

        Removed(int v) { this.v = v; }
    }

    static class Kept {
        byte a;
        long b;
    }

    static class Failing {
        static { if (true) throw new IllegalStateException(); }
    }

    static final int[] PATTERN = new int[9];
    static final Constructor<Made> CONSTRUCTOR = constructor();

    static class Made {}

    static class Shape implements Cloneable {
        int x;

        Object copy() {
            try {
                return clone();
            } catch (CloneNotSupportedException e) {
                throw new IllegalStateException(e);
            }
        }
    }

    /** Overrides {@code clone} only to call the method of {@code Object} that Shape calls directly. */
    static class Circle extends Shape {
        @Override
        public Object clone() throws CloneNotSupportedException { return super.clone(); }
    }

    /** Overrides {@code clone} with a method that allocates nothing. */
    static class Single extends Shape {
        @Override
        public Object clone() { return this; }
    }

    static final Shape SHAPE = new Shape(), CIRCLE = new Circle(), SINGLE = new Single();
    static final Object[] KEPTS = new Kept[3];
    static final String[] TEXTS = new String[2];

    static Constructor<Made> constructor() {
        try {
            return Made.class.getDeclaredConstructor();
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    static final class Point {
        final int x, y;

        Point(int x, int y) {
            this.x = x;
            this.y = y;
        }
    }

    interface Work {
        void run(int i);
    }

    static void object(int i) { sink = new Small((Object[]) null); }

    static void bytes(int i) { sink = new byte[i % 100]; }

    static void chars(int i) { sink = new char[i % 9]; }

    static void ints(int i) { sink = new int[i % 7]; }

    static void longs(int i) { sink = new long[i % 5]; }

    static void references(int i) { sink = new Kept[i % 11]; }

    static void twoSizes(int i) { sink = new int[2][i % 3]; }

    static void threeOfFour(int i) { sink = new Kept[2][3][4][]; }

    static void removed(int i) { if (new Removed(i).v < 0) sink = null; }

    static void point(int i) { sink = new Point(i, i); }

    static void nested(int i) { sink = new Pair(i % 2 == 0 ? new Small(i, "b") : null, new byte[1]); }

    static void negative(int i) {
        try {
            sink = new byte[-1 - i];
        } catch (NegativeArraySizeException e) {
            sink = null;
        }
    }

    static void negativeLevel(int i) {
        try {
            sink = new short[2][-1];
        } catch (NegativeArraySizeException e) {
            sink = null;
        }
    }

    // These methods allocate without an allocating instruction in their own bytecode.
    static void cloned(int i) { sink = PATTERN.clone(); }

    static void clonedObjects(int i) { sink = i % 2 == 0 ? TEXTS.clone() : KEPTS.clone(); }

    static void clonedShapes(int i) {
        sink = SHAPE.copy();
        sink = CIRCLE.copy();
        sink = SINGLE.copy();
    }

    static void copies(int i) {
        sink = Arrays.copyOf(PATTERN, i % 5);
        sink = Arrays.copyOfRange(PATTERN, 1, 3);
        sink = Arrays.copyOf(KEPTS, 5);
        sink = Arrays.copyOf(KEPTS, 2, Object[].class);
        sink = Arrays.copyOfRange(TEXTS, 1, 2);
    }

    static void badCopies(int i) {
        try {
            sink = Arrays.copyOf(PATTERN, -1 - i);
        } catch (NegativeArraySizeException e) {
            sink = null;
        }
        int[] none = i < 0 ? PATTERN : null;
        try {
            sink = none.clone();
        } catch (NullPointerException e) {
            sink = null;
        }
    }

    static void levels(int i) {
        sink = Array.newInstance(Kept.class, 2, 3);
        sink = Array.newInstance(long[].class, 4, 0);
        sink = Array.newInstance(short.class, i % 3);
        sink = Array.newInstance(Made.class, new int[] {0, 7});
    }

    static void texts(int i) {
        sink = "a" + i + "b";
        sink = "" + PATTERN;
        sink = TEXTS[0] + 'c';
        sink = "" + i;
        sink = "" + (i > 0);
    }

    static void reflected(int i) {
        try {
            sink = CONSTRUCTOR.newInstance((Object[]) null);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    static void reflectedArray(int i) { sink = Array.newInstance(Kept.class, 3); }

    static void lambda(int i) {
        Supplier<Object> lambda = () -> i;
        sink = lambda;
    }

    static int branches(int i) {
        switch (i % 4) {
            case 0: sink = new Small((Object[]) null); break;
            case 1: sink = new byte[8]; break;
            default:
                for (int k = 0; k < 2; k++) {
                    try {
                        sink = new Kept();
                        if (k == 1) throw new Error(null, null, false, false) {};
                    } catch (Error e) {
                        return k;
                    } finally {
                        sink = null;
                    }
                }
        }
        return 0;
    }

    static final Work[] WORK = {
        Counted::object, Counted::bytes, Counted::chars, Counted::ints, Counted::longs, Counted::references,
        Counted::twoSizes, Counted::threeOfFour, Counted::removed, Counted::point, Counted::nested,
        Counted::negative, Counted::negativeLevel, Counted::branches,
        Counted::cloned, Counted::clonedObjects, Counted::clonedShapes, Counted::copies, Counted::badCopies, Counted::levels,
        Counted::texts,
        Counted::reflected, Counted::reflectedArray, Counted::lambda,
    };

    static Object keep() { return new Kept(); }

    static void collect(int n) {
        LinkedList<Integer> list = new LinkedList<>();
        TreeMap<Integer, Object> map = new TreeMap<>();
        ArrayList<Object> grown = new ArrayList<>();
        for (int i = 0; i < n; i++) {
            grown.add(list);
            list.add(i);
            map.put(i, list);
        }
        sink = list.toArray();
        sink = grown;
        sink = map;
    }

    static void work(int n) {
        for (int i = 0; i < n; i++) for (Work work : WORK) work.run(i);
    }

    static Thread thread(Runnable run, int i) throws Exception {
        if (onlyVirtual || i % 2 == 1 && virtual) {
            return (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, run);
        }
        Thread thread = new Thread(run);
        thread.start();
        return thread;
    }

    static void all(int threads, Runnable run) throws Exception {
        Thread[] all = new Thread[threads];
        for (int i = 0; i < threads; i++) all[i] = thread(run, i);
        for (Thread thread : all) thread.join();
    }

    public static void main(String[] args) throws Exception {
        int threads = Integer.parseInt(args[0]);
        int n = Integer.parseInt(args[1]);
        virtual = args.length > 2 && args[2].equals("virtual");
        onlyVirtual = args.length > 2 && args[2].equals("only-virtual");
        Runnable run = () -> work(n);
        for (int phase = 1; phase <= 2000; phase++) {
            System.out.println("READY " + phase);
            if (System.in.read() < 0) return;
            // These calls come from a method that was already running when counting began.
            kept = new Object[n];
            for (int i = 0; i < n; i++) kept[i] = keep();
            all(threads, run);
            collect(n);
        }
    }
}
