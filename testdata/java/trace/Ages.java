import com.sun.management.GarbageCollectionNotificationInfo;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import javax.management.NotificationEmitter;
import javax.management.openmbean.CompositeData;

/**
 * Ages ROUNDS: runs one GC for each letter of ROUNDS, Y for a young and F for a full GC. Before each GC, it allocates objects of
 * several classes, and drops those whose time is over. Each GC is confirmed by the notification of its bean. At the end, the
 * program prints the number of its GCs in a line "GCs number", and the GCs that each object survived in lines
 * "class live|freed full young number".
 */
public class Ages {
    private static final int NUMBER = 20;
    /** An array, because loops over it allocate nothing: the trace stores a limited number of freed objects. */
    private static final GarbageCollectorMXBean[] BEANS =
            ManagementFactory.getGarbageCollectorMXBeans().toArray(new GarbageCollectorMXBean[0]);
    private static final BlockingQueue<String> gcs = new LinkedBlockingQueue<>();
    private static final List<Batch> batches = new ArrayList<>();
    private static volatile Object sink;

    /** Dropped before the next GC. */
    static final class Temporary {}

    /** Dropped after one GC. */
    static final class Brief {}

    /** Dropped after three GCs. */
    static final class Longer {}

    /** Never dropped. */
    static final class Leaked {}

    /** Objects of one class that were allocated before the same GC. */
    static final class Batch {
        final String name;
        final int round;
        final int dropped;
        Object[] objects = new Object[NUMBER];

        Batch(String name, int round, int lifetime) {
            this.name = name;
            this.round = round;
            this.dropped = lifetime < 0 ? Integer.MAX_VALUE : round + lifetime;
        }
    }

    private static void add(int round) {
        Batch temporary = new Batch("Temporary", round, 0);
        Batch brief = new Batch("Brief", round, 1);
        Batch longer = new Batch("Longer", round, 3);
        Batch leaked = new Batch("Leaked", round, -1);
        for (int i = 0; i < NUMBER; i++) {
            temporary.objects[i] = new Temporary();
            brief.objects[i] = new Brief();
            longer.objects[i] = new Longer();
            leaked.objects[i] = new Leaked();
        }
        batches.addAll(List.of(temporary, brief, longer, leaked));
    }

    /** Returns the number of GCs since the start of the JVM. */
    private static long collections() {
        long all = 0;
        for (GarbageCollectorMXBean bean : BEANS) {
            all += bean.getCollectionCount();
        }
        return all;
    }

    /** Returns the next GC: Y or F. */
    private static char next(long milliseconds) throws InterruptedException {
        String gc = gcs.poll(milliseconds, TimeUnit.MILLISECONDS);
        return gc == null ? ' ' : gc.contains("minor") ? 'Y' : 'F';
    }

    private static void collect(char kind) throws InterruptedException {
        if (kind == 'F') {
            System.gc();
        } else {
            // The notification may be late, so the count of the beans decides when to stop.
            long before = collections();
            while (collections() == before) {
                sink = new byte[64 << 10];
            }
        }
        char seen = next(10_000);
        // Give the agent time to find the dead samples.
        Thread.sleep(500);
        if (seen != kind || !gcs.isEmpty()) {
            throw new IllegalStateException("expected " + kind + ", not " + seen + " " + gcs);
        }
    }

    private static int count(String rounds, char kind, int from, int to) {
        int count = 0;
        for (int round = from; round < to; round++) {
            count += rounds.charAt(round) == kind ? 1 : 0;
        }
        return count;
    }

    public static void main(String[] args) throws Exception {
        String rounds = args[0];
        for (GarbageCollectorMXBean bean : BEANS) {
            ((NotificationEmitter) bean).addNotificationListener((notification, handback) -> {
                CompositeData data = (CompositeData) notification.getUserData();
                gcs.add(GarbageCollectionNotificationInfo.from(data).getGcAction());
            }, null, null);
        }
        collect('F');
        for (int round = 0; round < rounds.length(); round++) {
            add(round);
            for (Batch batch : batches) {
                if (batch.dropped <= round) {
                    batch.objects = null;
                }
            }
            collect(rounds.charAt(round));
        }
        System.out.println("GCs " + collections());
        for (Batch batch : batches) {
            // A full GC moves objects to the old generation, and only another full GC frees them there.
            int freed = batch.dropped;
            while (freed < rounds.length() && rounds.charAt(freed) == 'Y' && count(rounds, 'F', batch.round, freed) > 0) {
                freed++;
            }
            boolean live = freed >= rounds.length();
            int end = Math.min(freed, rounds.length());
            System.out.println(String.format(Locale.ROOT, "%s %s %d %d %d", batch.name, live ? "live" : "freed",
                    count(rounds, 'F', batch.round, end), count(rounds, 'Y', batch.round, end), NUMBER));
        }
    }
}
