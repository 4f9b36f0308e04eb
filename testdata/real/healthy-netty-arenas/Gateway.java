import io.netty.buffer.ByteBuf;
import io.netty.buffer.PooledByteBufAllocator;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.SynchronousQueue;

/**
 * Worker threads share a Netty allocator with 4 arenas on the heap: 2 workers at first, then 3, then 4. All buffers are
 * released.
 */
class Gateway {
    private static final int[] WORKERS = {2, 3, 4};
    private static final int REQUESTS = 5_000;

    private final PooledByteBufAllocator buffers = new PooledByteBufAllocator(false, 4, 0, 8_192, 7);
    private final List<BlockingQueue<Integer>> workers = new ArrayList<>();
    private final BlockingQueue<Integer> done = new LinkedBlockingQueue<>();

    private void work(int phase) throws InterruptedException {
        while (workers.size() < WORKERS[phase - 1]) {
            BlockingQueue<Integer> requests = new SynchronousQueue<>();
            workers.add(requests);
            Thread worker = new Thread(() -> serve(requests), "worker " + workers.size());
            worker.setDaemon(true);
            worker.start();
        }
        for (BlockingQueue<Integer> worker : workers) {
            worker.put(REQUESTS);
        }
        for (BlockingQueue<Integer> worker : workers) {
            done.take();
        }
    }

    private void serve(BlockingQueue<Integer> requests) {
        try {
            while (true) {
                int count = requests.take();
                for (int i = 0; i < count; i++) {
                    ByteBuf head = buffers.heapBuffer(512);
                    ByteBuf body = buffers.heapBuffer(20_000 + i % 5 * 10_000);
                    body.writeZero(10_000);
                    head.release();
                    body.release();
                }
                done.put(count);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    public static void main(String[] args) throws Exception {
        Gateway program = new Gateway();
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
