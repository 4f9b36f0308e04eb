import java.lang.management.ManagementFactory;

/**
 * Threads THREADS one|own: allocates small objects in THREADS threads, all at one allocation site, or each thread at its own site.
 *
 * <p>Reads commands from standard input: {@code N} divides N operations of a hundred objects each among the threads, and prints {@code DONE
 * N CPU BYTES}. CPU is the processor time of the whole process in nanoseconds, including GC and agents. BYTES is the number of bytes that
 * the threads allocated.
 */
public class Threads {
    static final class Node {
        final Node next;
        long value;

        Node(Node next, long value) {
            this.next = next;
            this.value = value;
        }
    }

    static final int EACH = 100;

    static Node one(Node next, long i) { return new Node(next, i); }

    static Node site(int own, Node next, long i) {
        switch (own) {
            case 0: return new Node(next, i);
            case 1: return new Node(next, i + 1);
            case 2: return new Node(next, i + 2);
            case 3: return new Node(next, i + 3);
            case 4: return new Node(next, i + 4);
            case 5: return new Node(next, i + 5);
            case 6: return new Node(next, i + 6);
            default: return new Node(next, i + 7);
        }
    }

    static long operation(int own) {
        Node list = null;
        for (int i = 0; i < EACH; i++) list = own < 0 ? one(list, i) : site(own, list, i);
        long sum = 0;
        for (Node at = list; at != null; at = at.next) sum += at.value;
        return sum;
    }

    static volatile long checksum;

    public static void main(String[] args) throws Exception {
        int threads = Integer.parseInt(args[0]);
        boolean isOne = args[1].equals("one");
        var os = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        var mx = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        var in = new java.io.BufferedReader(new java.io.InputStreamReader(System.in));
        System.out.println("READY 0");
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            int count = Integer.parseInt(line.trim());
            long[] bytes = new long[threads];
            Thread[] all = new Thread[threads];
            long before = os.getProcessCpuTime();
            for (int t = 0; t < threads; t++) {
                int thread = t;
                int own = isOne ? -1 : t % 8;
                all[t] = new Thread(() -> {
                    long self = Thread.currentThread().getId();
                    long start = mx.getThreadAllocatedBytes(self);
                    long sum = 0;
                    for (int i = 0; i < count / threads; i++) sum += operation(own);
                    checksum += sum;
                    bytes[thread] = mx.getThreadAllocatedBytes(self) - start;
                });
                all[t].start();
            }
            long sum = 0;
            for (int t = 0; t < threads; t++) {
                all[t].join();
                sum += bytes[t];
            }
            long cpu = os.getProcessCpuTime() - before;
            System.out.println("DONE " + count + " " + cpu + " " + sum);
        }
    }
}
