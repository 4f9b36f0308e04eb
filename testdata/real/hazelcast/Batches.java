import com.hazelcast.config.Config;
import com.hazelcast.core.Hazelcast;
import com.hazelcast.core.HazelcastInstance;
import com.hazelcast.core.IMap;
import java.io.BufferedReader;
import java.io.InputStreamReader;

/** Creates a Hazelcast map for each batch, and destroys it when the batch is done. One member, on the loopback interface. */
class Batches {
    private static final int BATCHES = 500;

    private final HazelcastInstance member;
    private int next;

    private Batches() {
        System.setProperty("hazelcast.local.localAddress", "127.0.0.1");
        Config config = new Config();
        config.setProperty("hazelcast.logging.type", "none");
        config.setProperty("hazelcast.phone.home.enabled", "false");
        config.setProperty("hazelcast.version.check.enabled", "false");
        config.setProperty("hazelcast.partition.count", "11");
        config.getNetworkConfig().getJoin().getMulticastConfig().setEnabled(false);
        config.getNetworkConfig().getInterfaces().setEnabled(true).addInterface("127.0.0.1");
        member = Hazelcast.newHazelcastInstance(config);
    }

    private void work() {
        for (int i = 0; i < BATCHES; i++) {
            IMap<Integer, String> batch = member.getMap("batch " + ++next);
            batch.put(1, "row");
            // A put returns before it is complete. Its remaining work would create the map's container again after destroy(). A partition
            // runs its operations in order, so size() waits for the put.
            batch.size();
            batch.getLocalMapStats();
            batch.destroy();
        }
    }

    public static void main(String[] args) throws Exception {
        Batches program = new Batches();
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
