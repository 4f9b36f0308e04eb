import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import reactor.core.publisher.Sinks;

/** A Reactor sink replays only the elements of a short time, but it keeps all elements that it ever received. */
class Ticks {
    private static final int TICKS = 10_000;

    private final Sinks.Many<long[]> ticks = Sinks.many().replay().limit(Duration.ZERO);

    private void work() {
        for (int i = 0; i < TICKS; i++) {
            ticks.tryEmitNext(new long[8]);
        }
    }

    public static void main(String[] args) throws Exception {
        Ticks program = new Ticks();
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
