import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/**
 * Creates 2,000 orders before each READY and keeps them for ever. A lambda books each order.
 *
 * Reads a line after each READY. "dump FILE" makes the JVM's diagnostic MXBean write a dump. "exhaust" creates orders until the heap is
 * full and the program fails. Any other line lets the program continue.
 */
public class Orders {
    static final List<Order> open = new ArrayList<>();
    static int taken;

    static final class Order {
        final int number;
        final long[] amounts;

        Order(int number) {
            this.number = number;
            this.amounts = new long[8];
        }
    }

    static void take(int count) {
        IntStream.range(0, count).forEach(i -> book(taken++));
    }

    static void book(int number) {
        open.add(new Order(number));
    }

    public static void main(String[] args) throws Exception {
        int phase = 0;
        while (true) {
            take(2_000);
            System.out.println("READY " + ++phase);
            StringBuilder line = new StringBuilder();
            for (int c = System.in.read(); c != '\n'; c = System.in.read()) {
                if (c < 0) {
                    return;
                }
                line.append((char) c);
            }
            String command = line.toString();
            if (command.startsWith("dump ")) {
                ManagementFactory.getPlatformMXBean(com.sun.management.HotSpotDiagnosticMXBean.class)
                        .dumpHeap(command.substring(5), true);
            }
            if (command.equals("exhaust")) {
                while (true) {
                    take(1_000);
                }
            }
        }
    }
}
