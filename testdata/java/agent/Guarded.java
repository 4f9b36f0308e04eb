import java.util.ArrayList;
import java.util.List;

/** Keeps every order until memory runs out, and ends with the OutOfMemoryError. */
public class Guarded {
    static final List<Order> orders = new ArrayList<>();
    static volatile Object sink;

    static class Order {
        final byte[] data = new byte[200];
    }

    static Order book() {
        return new Order();
    }

    public static void main(String[] args) {
        for (int i = 0; ; i++) {
            orders.add(book());
            sink = new byte[500];
        }
    }
}
