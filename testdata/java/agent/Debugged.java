import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;

/**
 * For each line of input: throws an exception at every allocation, and prints {@code TRACE} with the lines of the stack trace. Then runs
 * {@link #stops}, where a debugger reads variables, and prints {@code READY n}.
 */
public class Debugged {
    static Object sink;

    static class Pair {
        final Object a;
        final Object b;

        Pair(Object a, Object b) {
            this.a = a;
            this.b = b;
            if (a == null) {
                throw new IllegalStateException("pair");
            }
        }
    }

    static class Below extends Pair {
        Below(int of) {
            super(of > 0 ? new int[of] : null,
                    new Pair(new Object(),
                            new byte[of - 1]));
        }
    }

    static class Failing {
        static final Object NONE = new Pair(
                null, null);
    }

    static Object negative(int length) {
        Object first = new Object();
        return length == 3
                ? first
                : new Pair(
                        new int[length],
                        new String[length - 1]);
    }

    static Object levels(int one, int two) {
        int[] before = new int[one];
        return new long[one]
                [two]
                [before.length];
    }

    static Object caught(int length) {
        try {
            return new Below(length);
        } catch (IllegalStateException e) {
            throw new IllegalArgumentException(
                    new String("caught"), e);
        } finally {
            sink = new Object[length];
        }
    }

    static Object switched(String of) {
        switch (of) {
            case "a": return new Pair(of, new int[of.length()]);
            case "b":
                sink = new Object();
                throw new UnsupportedOperationException(of + new Object[2].length);
            default:
                return new Below(
                        of.length() - 3);
        }
    }

    static Object lambda(int of) {
        Supplier<Object> supplier = () -> {
            Object o = new Object();
            return new Pair(of == 0 ? null : o,
                    new char[of - 1]);
        };
        return supplier.get();
    }

    static void trace(Supplier<Object> of) {
        try {
            of.get();
            System.out.println("TRACE none");
        } catch (Throwable e) {
            for (Throwable at = e; at != null; at = at.getCause()) {
                StringBuilder told = new StringBuilder("TRACE " + at.getClass().getName());
                for (StackTraceElement frame : at.getStackTrace()) {
                    told.append(' ').append(frame.getMethodName()).append(':').append(frame.getLineNumber());
                }
                System.out.println(told);
            }
        }
    }

    static void traces() {
        for (int i = -1; i < 5; i++) {
            int of = i;
            trace(() -> negative(of));
            trace(() -> levels(of, 1));
            trace(() -> levels(1, of));
            trace(() -> caught(of));
            trace(() -> lambda(of));
        }
        trace(() -> switched("a"));
        trace(() -> switched("b"));
        trace(() -> switched("cc"));
        trace(() -> switched("dddd"));
        trace(() -> new Pair(
                null,
                new Object()));
        trace(() -> Failing.NONE);
    }

    /** A debugger stops at each line of this method. */
    static long stops(int size, String text) {
        long sum = size;
        double half = size / 2.0;
        int[] numbers = new int[size];
        for (int i = 0; i < size; i++) {
            Object each = new Object[i];
            numbers[i] = ((Object[]) each).length + i;
            sum += numbers[i];
        }
        {
            String inner = new String(text);
            char first = inner.charAt(0);
            sum += first;
        }
        List<Object> list = new ArrayList<>();
        try {
            byte small = 3;
            list.add(new Pair(text.isEmpty() ? null : text, new long[2][small]));
            short never = (short) new int[-size].length;
            sum += never;
        } catch (NegativeArraySizeException e) {
            String message = new String("caught");
            sum += message.length();
        }
        float last = new float[] {1, 2}[1];
        boolean done = list.size() == 1;
        return sum + (long) half + (done ? 1 : 0) + (long) last;
    }

    public static void main(String[] args) throws Exception {
        // Run this once before READY, because an exception from the initialization of a class is thrown only once.
        traces();
        System.out.println("READY 1");
        for (int phase = 2; System.in.read() >= 0; phase++) {
            traces();
            System.out.println("SUM " + stops(3, "text"));
            System.out.println("READY " + phase);
        }
    }
}
