import java.util.ArrayList;
import java.util.List;

/**
 * Keeps orders until memory runs out. The argument is the number of kilobytes per second.
 *
 * <p>A thread measures for how long it did not run, and prints each new maximum.
 */
public class Dying {
    static final List<Order> orders = new ArrayList<>();
    static volatile Object garbage;

    static class Order {
        final byte[] data = new byte[400];
    }

    static Order book() {
        return new Order();
    }

    public static void main(String[] args) throws InterruptedException {
        Thread clock = new Thread(Dying::watch);
        clock.setDaemon(true);
        clock.start();
        double rate = Double.parseDouble(args[0]) * 1024;
        long begin = System.nanoTime();
        double done = 0;
        while (true) {
            double wanted = rate * (System.nanoTime() - begin) / 1e9;
            while (done < wanted) {
                orders.add(book());
                garbage = new byte[600];
                done += 432;
            }
            Thread.sleep(2);
        }
    }

    static void watch() {
        StringBuilder line = new StringBuilder(64);
        long longest = 20_000_000;
        long last = System.nanoTime();
        try {
            while (true) {
                Thread.sleep(1);
                long now = System.nanoTime();
                if (now - last > longest) {
                    longest = now - last;
                    line.setLength(0);
                    System.out.println(line.append("pause ").append(longest / 1_000_000));
                }
                last = now;
            }
        } catch (InterruptedException | OutOfMemoryError e) {
            return;
        }
    }
}
