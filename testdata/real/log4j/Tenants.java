import java.io.BufferedReader;
import java.io.InputStreamReader;
import org.apache.logging.log4j.Logger;
import org.apache.logging.log4j.core.LoggerContext;

/** Creates a short-lived Log4j logger with a new name for each request, like a library that has a logger for each instance. */
class Tenants {
    private static final int REQUESTS = 6_000;

    private final LoggerContext context = new LoggerContext("requests");
    private int next;

    private void work() throws InterruptedException {
        for (int i = 0; i < REQUESTS; i++) {
            Logger logger = context.getLogger("com.acme.request.number" + ++next);
            logger.debug("begins");
        }
        System.gc();
        Thread.sleep(300);
        context.getLogger("com.acme.phase");
    }

    public static void main(String[] args) throws Exception {
        Tenants program = new Tenants();
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
