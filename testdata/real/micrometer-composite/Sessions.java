import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.composite.CompositeMeterRegistry;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.io.BufferedReader;
import java.io.InputStreamReader;

/** Adds a gauge for each session to Micrometer's composite registry, and removes it when the session ends. */
class Sessions {
    private static final int SESSIONS = 4_000;

    private final CompositeMeterRegistry registry = new CompositeMeterRegistry();
    private int next;

    private Sessions() {
        SimpleMeterRegistry metrics = new SimpleMeterRegistry();
        metrics.config().commonTags("application", "shop");
        registry.add(metrics);
    }

    private void work() {
        for (int i = 0; i < SESSIONS; i++) {
            Counter requests = registry.counter("requests", "session", "session " + ++next);
            requests.increment();
            registry.remove(requests);
        }
    }

    public static void main(String[] args) throws Exception {
        Sessions program = new Sessions();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (int phase = 1; phase <= Integer.getInteger("phases", 3); phase++) {
            program.work();
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
        System.exit(0);
    }
}
