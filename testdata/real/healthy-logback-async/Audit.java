import ch.qos.logback.classic.AsyncAppender;
import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.LoggerContext;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.AppenderBase;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.Semaphore;
import org.slf4j.LoggerFactory;

/**
 * A slow Logback appender reads events from a queue with room for 20,000: 3,000 wait at first, then 14,000, then 8,000, each time other
 * events.
 */
class Audit {
    private static final int[] WAITING = {3_000, 14_000, 8_000};
    private static final int EVENTS = 30_000;

    private final Semaphore writable = new Semaphore(0);
    private final AsyncAppender queue = new AsyncAppender();
    private final Logger log;
    private int waiting;

    private Audit() {
        LoggerContext context = (LoggerContext) LoggerFactory.getILoggerFactory();
        context.reset();
        AppenderBase<ILoggingEvent> disk = new AppenderBase<>() {
            @Override
            protected void append(ILoggingEvent event) {
                writable.acquireUninterruptibly();
            }
        };
        disk.setContext(context);
        disk.start();
        queue.setContext(context);
        queue.setQueueSize(20_000);
        queue.setDiscardingThreshold(0);
        queue.addAppender(disk);
        queue.start();
        log = context.getLogger("audit");
        log.setLevel(Level.INFO);
        log.addAppender(queue);
    }

    private void work(int phase) throws InterruptedException {
        for (int i = 0; i < EVENTS; i++) {
            log.info("user {} reads document {}", i % 100, i);
            waiting++;
            while (waiting > WAITING[phase - 1]) {
                writable.release();
                waiting--;
            }
        }
        Thread.sleep(300);
    }

    public static void main(String[] args) throws Exception {
        Audit program = new Audit();
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
