import java.util.ArrayList;
import java.util.List;

/**
 * Late CALM GROW: works evenly. After CALM milliseconds it begins to keep a kilobyte for each request. Prints "READY 1" at the start,
 * and "LEAK millis-since-1970" when the leak begins. After another GROW milliseconds it prints "READY 2" and waits for standard
 * input.
 */
public class Late {
    private static final List<byte[]> audit = new ArrayList<>();
    private static volatile Object sink;

    private static void request(boolean keep) {
        for (int i = 0; i < 40; i++) {
            sink = new byte[8192];
        }
        if (keep) {
            remember();
        }
    }

    private static void remember() {
        audit.add(new byte[1024]);
    }

    public static void main(String[] args) throws Exception {
        long start = System.currentTimeMillis();
        long leak = start + Long.parseLong(args[0]);
        long end = leak + Long.parseLong(args[1]);
        System.out.println("READY 1");
        boolean keeps = false;
        long collected = start;
        while (System.currentTimeMillis() < end) {
            long now = System.currentTimeMillis();
            if (!keeps && now >= leak) {
                keeps = true;
                System.out.println("LEAK " + now);
            }
            if (now - collected >= 900) {
                collected = now;
                System.gc();
            }
            for (int i = 0; i < 4; i++) {
                request(keeps);
            }
            Thread.sleep(5);
        }
        System.out.println("READY 2");
        System.in.read();
        System.out.println(audit.size());
    }
}
