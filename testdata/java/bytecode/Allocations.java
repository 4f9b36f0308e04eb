import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;

/**
 * Allocates in every way that has a bytecode instruction. Prints the expected numbers: {@code EXPECT method class count elements}. If
 * allocations were counted, also prints the counts: {@code HIT site count elements}. All other lines are the same with and without
 * counting. If an argument names a class, runs that class instead.
 */
public class Allocations {
    static final int ROUNDS = 1000;
    static Object kept;

    static class Node {
        final Object value;
        final Node next;

        Node(Object value, Node next) {
            this.value = value;
            this.next = next;
        }
    }

    static class Failing {
        Failing(Object value) {
            if (value != null) {
                throw new IllegalStateException("failing");
            }
        }
    }

    static void objects() {
        for (int i = 0; i < ROUNDS; i++) {
            kept = new Node(null, null);
        }
    }

    static void nested() {
        kept = new Node(new Node(kept == null ? new Node(null, null) : null, null), new Node(null, null));
    }

    static void conditional(int i) {
        // Creates stack map frames with uninitialized objects on the stack.
        kept = new Node(i % 2 == 0 ? new Node(null, null) : i % 3 == 0 ? "three" : new int[i], i > 5 ? null : new Node(null, null));
    }

    static void primitives() {
        for (int i = 0; i < 10; i++) {
            kept = new boolean[i];
            kept = new char[2 * i];
            kept = new float[i];
            kept = new double[i];
            kept = new byte[i];
            kept = new short[i];
            kept = new int[3 * i];
            kept = new long[i];
        }
    }

    static void references() {
        for (int i = 0; i < 10; i++) {
            kept = new String[i];
            kept = new int[i][];
        }
    }

    static void levels() {
        kept = new int[3][5];
        kept = new String[2][3][4][];
        kept = new long[4][0][7];
        kept = new byte[2][2][2][2][2];
    }

    static int switches(int of) {
        int sum = 0;
        switch (of) {
            case 0: kept = new Node(null, null); sum += 1;
            case 1: kept = new Node(null, null); sum += 2;
            case 2: kept = new Node(null, null); break;
            default: sum = -1;
        }
        switch (of * 1000) {
            case -1000: sum++; break;
            case 0: kept = new Node(null, null); break;
            case 100000: sum--; break;
            default: kept = new Object[sum + 10];
        }
        return sum;
    }

    static int caught() {
        int caught = 0;
        for (int i = 0; i < 10; i++) {
            try {
                kept = new Failing(i % 2 == 0 ? null : "x");
            } catch (IllegalStateException e) {
                StackTraceElement top = e.getStackTrace()[1];
                caught += top.getLineNumber();
            } finally {
                kept = new Node(null, null);
            }
            try {
                kept = new int[i - 5];
            } catch (NegativeArraySizeException e) {
                caught += e.getStackTrace()[0].getLineNumber();
            }
        }
        return caught;
    }

    static void lambdas() {
        Supplier<Object> maker = () -> new Node("lambda", null);
        Supplier<Object> reference = Object::new;
        List<Object> all = new ArrayList<>();
        for (int i = 0; i < 7; i++) {
            all.add(maker.get());
            all.add(reference.get());
        }
        kept = all;
    }

    static void expect(String method, String type, long count, long elements) {
        System.out.println("EXPECT " + method + " " + type + " " + count + " " + elements);
    }

    public static void main(String[] args) throws Exception {
        if (args.length > 0) {
            Class.forName(args[0]).getMethod("main", String[].class).invoke(null, (Object) new String[0]);
            tell();
            System.out.println("READY 1");
            return;
        }
        objects();
        expect("objects", "Allocations$Node", ROUNDS, 0);
        kept = null;
        nested();
        nested();
        expect("nested", "Allocations$Node", 7, 0);
        for (int i = 0; i < 12; i++) {
            conditional(i);
        }
        // Of the 12 calls, each creates an outer node, 6 calls (i is even) another node, and 6 calls (i is at most 5) another one.
        expect("conditional", "Allocations$Node", 24, 0);
        expect("conditional", "[I", 4, 1 + 5 + 7 + 11);
        primitives();
        for (String type : new String[] {"[Z", "[F", "[D", "[B", "[S", "[J"}) {
            expect("primitives", type, 10, 45);
        }
        expect("primitives", "[C", 10, 90);
        expect("primitives", "[I", 10, 135);
        references();
        expect("references", "[Ljava/lang/String;", 10, 45);
        expect("references", "[[I", 10, 45);
        levels();
        expect("levels", "[[I", 1, 3);
        expect("levels", "[I", 3, 15);
        expect("levels", "[[[[Ljava/lang/String;", 1, 2);
        expect("levels", "[[[Ljava/lang/String;", 2, 6);
        expect("levels", "[[Ljava/lang/String;", 6, 24);
        expect("levels", "[[[J", 1, 4);
        expect("levels", "[[J", 4, 0);
        expect("levels", "[J", 0, 0);
        expect("levels", "[[[[[B", 1, 2);
        expect("levels", "[B", 16, 32);
        for (int i = -1; i < 5; i++) {
            System.out.println("switches " + switches(i));
        }
        expect("switches", "Allocations$Node", 7, 0);
        expect("switches", "[Ljava/lang/Object;", 4, 12 + 10 + 9 + 9);
        System.out.println("caught " + caught());
        expect("caught", "Allocations$Failing", 10, 0);
        expect("caught", "Allocations$Node", 10, 0);
        // The counts contain the requested lengths, also those of allocations that then failed.
        expect("caught", "[I", 10, -5);
        lambdas();
        expect("lambda$lambdas$0", "Allocations$Node", 7, 0);
        try {
            kept = new Failing(new Node(null, null));
        } catch (IllegalStateException e) {
            for (StackTraceElement frame : e.getStackTrace()) {
                System.out.println("frame " + frame);
            }
        }
        tell();
        System.out.println("READY 1");
    }

    static void tell() throws Exception {
        long[] counts;
        long[] elements;
        try {
            Class<?> hits = Class.forName("test.lang.Hits");
            counts = (long[]) hits.getField("COUNTS").get(null);
            elements = (long[]) hits.getField("ELEMENTS").get(null);
        } catch (ClassNotFoundException e) {
            return;
        }
        counts = counts.clone();
        elements = elements.clone();
        for (int site = 0; site < counts.length; site++) {
            if (counts[site] != 0 || elements[site] != 0) {
                System.out.println("HIT " + site + " " + counts[site] + " " + elements[site]);
            }
        }
    }
}
