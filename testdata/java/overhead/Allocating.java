import java.lang.management.ManagementFactory;

/**
 * Allocates as fast as it can: arrays of different sizes, nodes of trees, boxed numbers. A ring buffer keeps some of the objects for a
 * while.
 *
 * <p>Reads commands from standard input: {@code N} runs N operations and prints {@code DONE N CPU BYTES}. CPU is the
 * processor time of the whole process in nanoseconds, including GC and agents. BYTES is the number of bytes that this thread
 * allocated.
 */
public class Allocating {
    static class Tree {
        Tree left, right;
        long weight;

        Tree(int depth) {
            weight = depth;
            if (depth > 0) {
                left = new Tree(depth - 1);
                right = new Tree(depth - 1);
            }
        }

        long sum() { return weight + (left == null ? 0 : left.sum() + right.sum()); }
    }

    static final Object[] ring = new Object[4096];
    static int at;
    static long checksum;

    static void keep(Object object) { ring[at++ & 4095] = object; }

    /** Allocates an array and fills it, as a usual program does. */
    static byte[] bytes(int length, int seed) {
        byte[] bytes = new byte[length];
        for (int i = 0; i < length; i++) bytes[i] = (byte) (seed ^ i * 31);
        return bytes;
    }

    /** One operation: some 6 KB in 170 objects. */
    static void operation(int seed) {
        Tree tree = new Tree(6);
        byte[] bytes = bytes(64 << (seed & 3), seed);
        Long[] boxes = new Long[32];
        for (int i = 0; i < boxes.length; i++) boxes[i] = 1000L + seed + i;
        if ((seed & 3) == 0) keep(tree);
        if ((seed & 7) == 0) keep(bytes);
        if ((seed & 15) == 0) keep(boxes);
        long sum = 0;
        for (byte b : bytes) sum = sum * 31 + b;
        for (Long box : boxes) sum += box;
        checksum += tree.sum() + sum;
    }

    public static void main(String[] args) throws Exception {
        var os = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        var threads = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        long self = Thread.currentThread().getId();
        var in = new java.io.BufferedReader(new java.io.InputStreamReader(System.in));
        System.out.println("READY 0");
        int seed = 0;
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            int count = Integer.parseInt(line.trim());
            long bytes = threads.getThreadAllocatedBytes(self);
            long before = os.getProcessCpuTime();
            for (int i = 0; i < count; i++) operation(seed++);
            long cpu = os.getProcessCpuTime() - before;
            System.out.println("DONE " + count + " " + cpu + " " + (threads.getThreadAllocatedBytes(self) - bytes));
        }
        if (checksum == 0) throw new AssertionError();
    }
}
