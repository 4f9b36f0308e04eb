/**
 * Fills the heap completely, waits for a line of input, and frees all of it. With "step", frees a few bytes after the first line, and more
 * after each further line. With "churn", frees random amounts and fills the heap again at once.
 */
public class Full {
    static final byte[] LINE = new byte[16];
    static volatile Object sink;
    static Object[] filling;

    static class Link {
        Link next;
    }

    /** Fills the heap in large steps, then in small ones. Ends after 5 seconds, because Shenandoah at last runs a GC for nearly every step. */
    static void fill() {
        long end = System.nanoTime() + 5_000_000_000L;
        filling = new Object[1 << 14];
        int at = 0;
        for (int size = 64 << 10; size >= 1 << 10; size /= 64) {
            try {
                while (at < filling.length - 1 && System.nanoTime() < end) filling[at++] = new byte[size];
            } catch (OutOfMemoryError e) {
                at--;
            }
        }
        for (int times = 0; times < 2; times++) {
            try {
                while (System.nanoTime() < end) {
                    Link link = new Link();
                    link.next = (Link) filling[filling.length - 1];
                    filling[filling.length - 1] = link;
                }
            } catch (OutOfMemoryError e) {
                continue;
            }
        }
    }

    /** Sizes in bytes of the arrays that {@code step} frees one after the other. */
    static final int[] STEPS = {1 << 10, 8 << 10, 32 << 10, 96 << 10, 256 << 10, 1 << 20};

    static void step() throws Exception {
        byte[][] kept = new byte[STEPS.length][];
        for (int i = 0; i < STEPS.length; i++) kept[i] = new byte[STEPS[i]];
        fill();
        ready(2);
        for (int i = 0; i < STEPS.length; i++) {
            System.in.read();
            kept[i] = null;
            ready(3 + i);
        }
        System.in.read();
        filling = null;
        System.gc();
        ready(9);
        System.in.read();
    }

    static volatile boolean churning = true;

    /** Lets the heap be full for a moment, then frees some blocks, and so on. Allocates nothing but the objects that fill the heap. */
    static void churn() {
        byte[][] blocks = new byte[2048][];
        Link links = null;
        int seed = 1, at = 0;
        while (churning) {
            try {
                while (churning && at < blocks.length) blocks[at++] = new byte[32 << 10];
            } catch (OutOfMemoryError e) {
                at--;
            }
            try {
                while (churning) {
                    Link link = new Link();
                    link.next = links;
                    links = link;
                }
            } catch (OutOfMemoryError e) {
                links = null;
            }
            seed = seed * 1664525 + 1013904223;
            for (int drop = (seed >>> 16) % 24; drop > 0 && at > 0; drop--) blocks[--at] = null;
        }
    }

    /** Prints without allocating memory. */
    static void ready(int phase) {
        LINE[6] = (byte) ('0' + phase);
        System.out.write(LINE, 0, 8);
        System.out.flush();
    }

    public static void main(String[] args) throws Exception {
        byte[] text = "READY 0\n".getBytes();
        System.arraycopy(text, 0, LINE, 0, text.length);
        ready(1);
        System.in.read();
        if (args.length > 0 && args[0].equals("step")) {
            step();
            return;
        }
        if (args.length > 0) {
            Thread thread = new Thread(Full::churn);
            thread.start();
            ready(2);
            System.in.read();
            churning = false;
            thread.join();
            ready(3);
            System.in.read();
            return;
        }
        fill();
        ready(2);
        System.in.read();
        filling = null;
        System.gc();
        ready(3);
        System.in.read();
        int made = 0;
        try {
            while (made++ < 1_000_000) sink = new byte[100];
        } catch (OutOfMemoryError e) {
            // Print the free memory with the error. It shows whether the heap is full again, or whether the error has another cause.
            Runtime runtime = Runtime.getRuntime();
            System.err.println("array " + made + ", " + runtime.freeMemory() + " of " + runtime.totalMemory() + " free");
            throw e;
        }
        ready(4);
        System.in.read();
    }
}
