import java.io.BufferedReader;
import java.io.InputStreamReader;
import org.apache.dubbo.common.utils.LFUCache;

/** Reads one rate often from a cache of Dubbo. The cache keeps an empty queue for each read count that it ever had. */
class Rates {
    private static final int READS = 10_000;

    private final LFUCache<String, Double> rates = new LFUCache<>(100, 0.75f);
    private double sum;

    private Rates() {
        rates.put("EUR", 1.1);
    }

    private void work() {
        for (int i = 0; i < READS; i++) {
            sum += rates.get("EUR");
        }
    }

    public static void main(String[] args) throws Exception {
        Rates program = new Rates();
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
