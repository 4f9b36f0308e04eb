import io.netty.buffer.ByteBuf;
import io.netty.buffer.PooledByteBufAllocator;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayDeque;
import java.util.Deque;

/**
 * Requests of a proxy hold direct buffers of a Netty pool: 50 at the first dump, 700 at the second, none at the
 * third.
 */
class Proxy {
    private static final int[] OPEN = {50, 700, 0};

    private final PooledByteBufAllocator buffers = new PooledByteBufAllocator(true, 0, 2, 8_192, 7);
    private final Deque<ByteBuf> open = new ArrayDeque<>();

    private void work(int phase) {
        for (int i = 0; i < 20_000; i++) {
            open.add(buffers.directBuffer(16_384).writeZero(16_384));
            if (open.size() > 500) {
                open.remove().release();
            }
        }
        while (open.size() > OPEN[phase - 1]) {
            open.remove().release();
        }
        while (open.size() < OPEN[phase - 1]) {
            open.add(buffers.directBuffer(16_384).writeZero(16_384));
        }
    }

    public static void main(String[] args) throws Exception {
        Proxy program = new Proxy();
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
