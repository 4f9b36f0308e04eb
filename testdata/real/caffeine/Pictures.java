import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import java.io.BufferedReader;
import java.io.InputStreamReader;

/** Caches pictures in Caffeine with weak values. Nothing else holds the pictures. */
class Pictures {
    private static final int PICTURES = 15_000;

    private final Cache<Long, Object> pictures = Caffeine.newBuilder().executor(Runnable::run).weakValues().build();
    private long next;

    private void work() throws InterruptedException {
        for (int i = 0; i < PICTURES; i++) {
            pictures.put(++next, new byte[16]);
        }
        System.gc();
        Thread.sleep(300);
        pictures.put(++next, new byte[16]);
    }

    public static void main(String[] args) throws Exception {
        Pictures program = new Pictures();
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
