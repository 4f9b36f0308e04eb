import io.github.heapdiff.labels.LabelScope;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.Arrays;

/** ScopeCost ROUNDS: prints the CPU time of a scope with two labels, in nanoseconds, as the median over the rounds. */
public class ScopeCost {
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    private static final int SCOPES = 1_000_000;
    private static final int WARM_UP = 5;
    private static volatile Object sink;

    private static long scopes() {
        long start = THREADS.getCurrentThreadCpuTime();
        for (int i = 0; i < SCOPES; i++) {
            String tenant = i % 3 == 0 ? "acme" : "globex";
            try (LabelScope scope = LabelScope.open("tenant", tenant, "route", "POST /book")) {
                sink = scope;
            }
        }
        return (THREADS.getCurrentThreadCpuTime() - start) / SCOPES;
    }

    public static void main(String[] args) {
        int rounds = Integer.parseInt(args[0]);
        for (int i = 0; i < WARM_UP; i++) scopes();
        long[] times = new long[rounds];
        for (int i = 0; i < rounds; i++) times[i] = scopes();
        Arrays.sort(times);
        System.out.println(times[rounds / 2]);
    }
}
