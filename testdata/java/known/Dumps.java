import com.sun.management.HotSpotDiagnosticMXBean;
import java.lang.management.ManagementFactory;

/** Runs a loop that leaks, with a heap dump before and after it. */
final class Dumps {
    private Dumps() {}

    interface Work {
        void run(int number) throws Exception;
    }

    /** Runs the work {@code count} times before the first dump of a comparison, and nine times as often before the second. */
    static void around(String[] args, int count, Work work) throws Exception {
        for (int i = 0; i < count; i++) {
            work.run(i);
        }
        dump(args[0]);
        for (int i = count; i < 10 * count; i++) {
            work.run(i);
        }
        dump(args[1]);
        System.exit(0);
    }

    private static void dump(String file) throws Exception {
        System.gc();
        ManagementFactory.getPlatformMXBean(HotSpotDiagnosticMXBean.class).dumpHeap(file, true);
    }
}
