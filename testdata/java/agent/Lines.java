import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;

/**
 * Lines N: allocates N times, starts a thread that waits, prints {@code READY} and waits. Does the same again for each line of input. In the stack
 * of a {@code byte[]}, the source line of each frame ends with a comment that names the method. Calls follow allocations in the code, because
 * counting inserts bytecode at allocations and so moves the calls. With a second argument, the program allocates while it waits the first time.
 */
public class Lines {
    static final List<Object> kept = new ArrayList<>();
    static final Map<Object, Object> mapped = new HashMap<>();
    static int sum;

    static void leaf(int n) {
        Object own = new Object();
        sum += own.hashCode();
        kept.add(new byte[n % 100]); // leaf
    }

    static void mid(int n) {
        Object object = new Object();
        Object array = new int[n % 3];
        String text = new String("text");
        leaf(n); // mid
        sum += object.hashCode() + array.hashCode();
        sum += text.length();
        mapped.put(new Object(), new ArrayList<>(List.of(text)));
        sum++;
    }

    static void outer(int n) {
        Object boxed = new Object[n % 5];
        mid(n); // outer
        sum += boxed.hashCode();
        sum++;
    }

    static void waits() {
        Object object = new Object();
        Object array = new long[2];
        while (object != array) {
            LockSupport.park(array); // waits
            sum++;
        }
    }

    static void runs() throws Exception {
        Object object = new Object();
        // Continues until many objects are alive, because otherwise a dump soon after `clear` would have few samples.
        while (System.in.available() == 0 || kept.size() < 10_000) {
            for (int i = 0; i < 100; i++) {
                Object array = new int[i];
                outer(i); // runs
                sum += array.hashCode();
            }
            if (kept.size() > 20_000) {
                kept.clear();
                mapped.clear();
            }
        }
        sum += object.hashCode();
    }

    public static void main(String[] args) throws Exception {
        int n = Integer.parseInt(args[0]);
        for (int phase = 1; phase <= 20; phase++) {
            Object first = new Object();
            Object second = new Object[phase];
            for (int i = 0; i < n; i++) {
                outer(i); // main
                sum++;
            }
            sum += first.hashCode() + second.hashCode();
            Thread thread = new Thread(Lines::waits, "waits");
            thread.setDaemon(true);
            thread.start();
            while (thread.getState() != Thread.State.WAITING) Thread.sleep(1);
            System.out.println("READY " + phase);
            if (args.length > 1 && phase == 1) runs();
            if (System.in.read() < 0) return; // reads
            sum++;
        }
    }
}
