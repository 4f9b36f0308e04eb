import io.smallrye.mutiny.Multi;
import java.io.BufferedReader;
import java.io.InputStreamReader;

/** Reads settings once into a Mutiny stream that replays them. Subscribes to it for each message. Mutiny keeps every subscription. */
class Settings {
    private static final int MESSAGES = 4_000;

    private final Multi<String> settings = Multi.createBy().replaying().upTo(1).ofMulti(Multi.createFrom().items("blue", "green"));
    private int letters;

    private void work() {
        for (int i = 0; i < MESSAGES; i++) {
            letters += settings.collect().first().await().indefinitely().length();
        }
    }

    public static void main(String[] args) throws Exception {
        Settings program = new Settings();
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
