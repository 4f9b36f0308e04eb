/** Fills the heap to the last bytes and holds it so until it is told to let go. */
public class Full {
    static final byte[] LINE = new byte[16];
    static volatile Object sink;
    static Object[] filling;

    static class Link {
        Link next;
    }

    /** In large steps first, then in smaller ones. Shenandoah collects for nearly every step at last, so time ends it too. */
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

    /** Prints without memory of its own. */
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
        fill();
        ready(2);
        System.in.read();
        filling = null;
        System.gc();
        ready(3);
        System.in.read();
        for (int i = 0; i < 1_000_000; i++) sink = new byte[100];
        ready(4);
        System.in.read();
    }
}
