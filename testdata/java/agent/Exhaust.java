/** Fills the heap until memory runs out, drops the objects, and continues. */
public class Exhaust {
    static Filling filling;
    static volatile Object sink;

    static class Filling {
        Filling next;
        byte[] body;
    }

    static void fill() {
        while (true) {
            Filling f = new Filling();
            f.body = new byte[100];
            f.next = filling;
            filling = f;
        }
    }

    public static void main(String[] args) throws Exception {
        try {
            fill();
        } catch (OutOfMemoryError e) {
            filling = null;
        }
        System.gc();
        System.out.println("READY 1");
        System.in.read();
        for (int i = 0; i < 100_000; i++) sink = new byte[100];
        System.out.println("READY 2");
        System.in.read();
    }
}
