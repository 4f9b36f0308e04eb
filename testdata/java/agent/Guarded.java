import java.util.ArrayList;
import java.util.List;

/** With -Dwaits=true, waits for its input to end. Then keeps every order until memory runs out, and ends with the OutOfMemoryError. */
public class Guarded {
    static final List<Order> orders = new ArrayList<>();
    static volatile Object sink;

    static class Order {
        final byte[] data = new byte[200];
    }

    static Order book() {
        return new Order();
    }

    public static void main(String[] args) throws java.io.IOException {
        if (Boolean.getBoolean("waits")) {
            System.out.println("READY 1");
            System.in.read();
        }
        for (int i = 0; ; i++) {
            orders.add(book());
            sink = new byte[500];
        }
    }
}
