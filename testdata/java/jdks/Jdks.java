import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * The program of the matrix of JDKs. Its list grows with each line that the program reads. After the line
 * "busy", two threads allocate. With preview features of JDK
 * 28, fields and arrays of LocalDate, Integer and Optional are flattened. Compiles on JDK 8.
 */
public class Jdks {
    static final class Entry {
        final LocalDate day;
        final Integer number;
        final Optional<byte[]> data;

        Entry(int i) {
            day = LocalDate.of(2000, 1, 1 + i % 28);
            number = 100_000 + i;
            data = Optional.of(new byte[48]);
        }
    }

    static final List<Entry> leaked = new ArrayList<>();
    static final Integer[] numbers = new Integer[12_000];
    static final Map<Integer, Long> boxed = new HashMap<>();
    static volatile Object sink;
    static volatile boolean busy;

    static void grow() {
        for (int i = 0; i < 20_000; i++) {
            leaked.add(new Entry(leaked.size()));
        }
    }

    static void work() {
        Map<Object, Object> own = new HashMap<>();
        for (int i = 0; ; i++) {
            if (!busy) {
                try {
                    Thread.sleep(1);
                } catch (InterruptedException e) {
                    return;
                }
                continue;
            }
            own.put(i % 500, "value " + i);
            sink = new Entry(i % 1000);
        }
    }

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < numbers.length; i++) {
            numbers[i] = 200_000 + i;
            boxed.put(300_000 + i, (long) i);
        }
        for (int i = 0; i < 2; i++) {
            Thread worker = new Thread(Jdks::work, "worker " + i);
            worker.setDaemon(true);
            worker.start();
        }
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        int phase = 0;
        for (String line = ""; line != null; line = lines.readLine()) {
            if (line.equals("busy")) {
                busy = true;
            } else {
                grow();
                System.out.println("READY " + phase++);
                System.out.flush();
            }
        }
    }
}
