import io.vertx.core.Vertx;
import io.vertx.core.shareddata.LocalMap;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.CountDownLatch;

/**
 * Keeps the last 200 messages of each of 50 rooms in a shared map of Vert.x: half of them at first, then all, then other
 * ones.
 */
class Chat {
    private static final int ROOMS = 50;
    private static final int MESSAGES = 110;

    private final Vertx vertx = Vertx.vertx();
    private long next;

    private void work() throws InterruptedException {
        CountDownLatch sent = new CountDownLatch(ROOMS * MESSAGES);
        LocalMap<String, String> last = vertx.sharedData().getLocalMap("last messages");
        for (int i = 0; i < MESSAGES; i++) {
            for (int room = 0; room < ROOMS; room++) {
                String key = "room " + room + " message " + next % 200;
                String message = "message " + next + " to all who are in room " + room + " ".repeat(300);
                vertx.runOnContext(event -> {
                    last.put(key, message);
                    sent.countDown();
                });
            }
            next++;
        }
        sent.await();
    }

    public static void main(String[] args) throws Exception {
        Chat program = new Chat();
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
