import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import java.io.BufferedReader;
import java.io.InputStreamReader;

/**
 * Caches map tiles of different sizes up to a total weight, without a leak. At the first dump, the cache is half full.
 * At the second dump it is full. At the third dump, half of its content has been replaced.
 */
class Tiles {
    private static final int TILES = 5_000;

    private final Cache<Long, byte[]> tiles = Caffeine.newBuilder()
            .executor(Runnable::run)
            .maximumWeight(8_000_000)
            .weigher((Long id, byte[] tile) -> tile.length)
            .build();
    private long next;

    private void work() {
        for (int i = 0; i < TILES; i++) {
            tiles.put(++next, new byte[200 + i % 7 * 200]);
        }
        tiles.cleanUp();
    }

    public static void main(String[] args) throws Exception {
        Tiles program = new Tiles();
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
