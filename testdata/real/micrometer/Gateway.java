import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.io.BufferedReader;
import java.io.InputStreamReader;

/** Counts requests by their whole path, including the user's number, so a metric's tag has an unlimited number of values. */
class Gateway {
    private static final int REQUESTS = 5_000;

    private final MeterRegistry registry = new SimpleMeterRegistry();
    private int user;

    private void handle(String path) {
        registry.counter("http.requests", "uri", path).increment();
    }

    private void work() {
        for (int i = 0; i < REQUESTS; i++) {
            handle("/users/" + user++ + "/orders");
        }
    }

    public static void main(String[] args) throws Exception {
        Gateway gateway = new Gateway();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (int phase = 1; phase <= Integer.getInteger("phases", 3); phase++) {
            gateway.work();
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}
