import io.smallrye.mutiny.Uni;
import java.io.BufferedReader;
import java.io.InputStreamReader;

/** Memoizes the list of servers with Mutiny until the list changes. Mutiny keeps the first subscriber of each list. */
class Discovery {
    private static final int CHANGES = 3_000;

    private boolean changed;
    private final Uni<String[]> servers = Uni.createFrom().item(() -> new String[] {"a", "b"}).memoize().until(() -> changed);

    private void work() {
        for (int i = 0; i < CHANGES; i++) {
            long[] call = new long[40];
            changed = true;
            servers.subscribe().with(list -> call[0] += list.length);
            changed = false;
            servers.subscribe().with(list -> call[1] += list.length);
        }
    }

    public static void main(String[] args) throws Exception {
        Discovery program = new Discovery();
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
