import io.sentry.ITransaction;
import io.sentry.NoOpTransportFactory;
import io.sentry.Sentry;
import java.io.BufferedReader;
import java.io.InputStreamReader;

/** Traces searches with Sentry. Its collector keeps the measurements of each transaction after the transaction has finished. */
class Searches {
    private static final int SEARCHES = 3_000;

    private Searches() {
        Sentry.init(options -> {
            options.setDsn("http://key@127.0.0.1:9/1");
            options.setTransportFactory(NoOpTransportFactory.getInstance());
            options.setTracesSampleRate(1.0);
            options.setEnableUncaughtExceptionHandler(false);
            options.setEnableShutdownHook(false);
        });
    }

    private void work() {
        for (int i = 0; i < SEARCHES; i++) {
            ITransaction search = Sentry.startTransaction("search", "query");
            search.finish();
        }
    }

    public static void main(String[] args) throws Exception {
        Searches program = new Searches();
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
