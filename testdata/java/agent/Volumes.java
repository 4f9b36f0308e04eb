/** Allocates known numbers of objects and arrays, each kind in its own method, and keeps nothing. */
public class Volumes {
    static volatile Object sink;

    static class Small {
        long a, b;
    }

    static void objects(int n) {
        for (int i = 0; i < n; i++) sink = new Small();
    }

    static void ints1000(int n) {
        for (int i = 0; i < n; i++) sink = new int[1_000];
    }

    static void ints10000(int n) {
        for (int i = 0; i < n; i++) sink = new int[10_000];
    }

    static void ints100000(int n) {
        for (int i = 0; i < n; i++) sink = new int[100_000];
    }

    static void all(int part) {
        objects(8_000_000 / part);
        ints1000(60_000 / part);
        ints10000(6_000 / part);
        ints100000(3_000 / part);
    }

    public static void main(String[] args) throws Exception {
        int threads = Integer.parseInt(args[0]);
        Thread[] all = new Thread[threads];
        for (int t = 0; t < threads; t++) {
            all[t] = new Thread(() -> all(threads), "volume-" + t);
            all[t].start();
        }
        for (Thread t : all) t.join();
        System.out.println("READY 1");
        System.in.read();
    }
}
