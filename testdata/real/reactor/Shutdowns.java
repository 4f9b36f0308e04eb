import java.io.BufferedReader;
import java.io.InputStreamReader;
import reactor.core.Disposable;
import reactor.core.publisher.Sinks;

/** Each request subscribes to a Reactor sink that signals the shutdown, and cancels the subscription when it is done. */
class Shutdowns {
    private static final int REQUESTS = 5_000;

    private final Sinks.One<Boolean> shutdown = Sinks.one();

    private void work() {
        for (int i = 0; i < REQUESTS; i++) {
            long[] request = new long[20];
            Disposable waiting = shutdown.asMono().subscribe(signal -> request[0]++);
            waiting.dispose();
        }
    }

    public static void main(String[] args) throws Exception {
        Shutdowns program = new Shutdowns();
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
