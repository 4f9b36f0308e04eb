import io.sentry.ITransaction;
import io.sentry.Sentry;
import io.sentry.SpanStatus;
import java.io.BufferedReader;
import java.io.InputStreamReader;

/** Traces failing payments with Sentry. The weak map from exceptions to spans has values that refer to their keys. */
class Payments {
    private static final int PAYMENTS = 3_000;

    private Payments() {
        Sentry.init(options -> {
            options.setDsn("http://key@127.0.0.1:9/1");
            options.setTracesSampleRate(0.0);
            options.setEnableUncaughtExceptionHandler(false);
            options.setEnableShutdownHook(false);
        });
    }

    private void work() {
        for (int i = 0; i < PAYMENTS; i++) {
            ITransaction payment = Sentry.startTransaction("payment", "pay");
            payment.setThrowable(new IllegalStateException("no funds"));
            payment.finish(SpanStatus.INTERNAL_ERROR);
        }
    }

    public static void main(String[] args) throws Exception {
        Payments program = new Payments();
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
