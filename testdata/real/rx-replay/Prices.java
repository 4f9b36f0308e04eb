import java.io.BufferedReader;
import java.io.InputStreamReader;
import rx.subjects.ReplaySubject;

/** A bounded subject of RxJava 1 replays one price. Its subscriber refers to its first price, and so to all later ones. */
class Prices {
    private static final int PRICES = 20_000;

    private final ReplaySubject<long[]> last = ReplaySubject.createWithSize(1);
    private long sum;

    private Prices() {
        last.subscribe(price -> sum += price[0]);
    }

    private void work() {
        for (int i = 0; i < PRICES; i++) {
            last.onNext(new long[] {i, i, i, i});
        }
    }

    public static void main(String[] args) throws Exception {
        Prices program = new Prices();
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
