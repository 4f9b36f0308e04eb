import io.micrometer.core.instrument.Timer;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.TimeUnit;

/**
 * Records percentiles with 30 Micrometer timers with fixed tags: 20 timers are used in the first phase, and all since the
 * second.
 */
class Endpoints {
    private static final int ENDPOINTS = 30;
    private static final int REQUESTS = 20_000;

    private final SimpleMeterRegistry registry = new SimpleMeterRegistry();
    private int requests;

    private void work() {
        for (int i = 0; i < REQUESTS; i++) {
            int endpoint = requests++ / 1_000 % ENDPOINTS;
            Timer.builder("requests")
                    .tag("endpoint", "endpoint " + endpoint)
                    .publishPercentiles(0.5, 0.99)
                    .register(registry)
                    .record(i % 500 + 1, TimeUnit.MILLISECONDS);
        }
    }

    public static void main(String[] args) throws Exception {
        Endpoints program = new Endpoints();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (int phase = 1; phase <= 3; phase++) {
            program.work();
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
        System.exit(0);
    }
}
