import com.google.common.cache.Cache;
import com.google.common.cache.CacheBuilder;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;

/** Caches reports in Guava up to a total weight. The cache is full at each dump, each time with other reports. */
class Reports {
    private static final int REPORTS = 12_000;

    private final Cache<String, List<String>> reports = CacheBuilder.newBuilder()
            .concurrencyLevel(1)
            .maximumWeight(60_000)
            .weigher((String name, List<String> lines) -> lines.size())
            .build();
    private long next;

    private void work(int phase) {
        for (int i = 0; i < REPORTS; i++) {
            List<String> lines = new ArrayList<>();
            for (int line = 0; line < 6 + i % 5 + 2 * phase; line++) {
                lines.add("report " + next + " line " + line);
            }
            reports.put("report " + ++next, lines);
        }
    }

    public static void main(String[] args) throws Exception {
        Reports program = new Reports();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (int phase = 1; phase <= 3; phase++) {
            program.work(phase);
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
        System.exit(0);
    }
}
