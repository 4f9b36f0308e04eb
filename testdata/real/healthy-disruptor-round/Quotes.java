import com.lmax.disruptor.RingBuffer;
import com.lmax.disruptor.dsl.Disruptor;
import com.lmax.disruptor.util.DaemonThreadFactory;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.atomic.AtomicLong;

/**
 * A ring buffer of the Disruptor has 8,192 slots, and each slot keeps its last quote. In the second phase the ring is full, and slots are
 * overwritten.
 */
class Quotes {
    private static final int QUOTES = 6_000;

    static final class Slot {
        String symbol;
        long[] prices;
    }

    private final Disruptor<Slot> disruptor = new Disruptor<>(Slot::new, 8_192, DaemonThreadFactory.INSTANCE);
    private final AtomicLong handled = new AtomicLong();
    private long published;

    private Quotes() {
        disruptor.handleEventsWith((slot, sequence, endOfBatch) -> handled.incrementAndGet());
        disruptor.start();
    }

    private void work() throws InterruptedException {
        RingBuffer<Slot> ring = disruptor.getRingBuffer();
        for (int i = 0; i < QUOTES; i++) {
            ring.publishEvent((slot, sequence) -> {
                slot.symbol = "symbol " + sequence;
                slot.prices = new long[20];
            });
            published++;
        }
        while (handled.get() < published) {
            Thread.sleep(10);
        }
    }

    public static void main(String[] args) throws Exception {
        Quotes program = new Quotes();
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
