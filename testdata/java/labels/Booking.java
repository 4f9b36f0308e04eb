import io.github.heapdiff.labels.LabelScope;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/**
 * A service for two tenants with two routes. Each phase handles 1,000 requests. The service forgets to remove bookings, nearly all
 * of them of one tenant. Prints a line "BOOKINGS number tenant" for each tenant with the bookings since the first phase.
 */
public class Booking {
    static final List<Object> bookings = new ArrayList<>();
    static final List<Object> rooms = new ArrayList<>();
    static final Map<String, Integer> kept = new TreeMap<>();

    static final class Ticket {
        final long[] seats = new long[20];
    }

    static final class Room {
        final long[] beds = new long[20];
    }

    static void handle(int number) {
        String tenant = number % 2 == 0 ? "acme" : "globex";
        String route = number % 4 < 2 ? "POST /book" : "GET /rooms";
        try (LabelScope scope = LabelScope.open("tenant", tenant, "route", route)) {
            if (route.startsWith("POST")) {
                book(tenant, number);
            } else {
                show();
            }
        }
    }

    static void book(String tenant, int number) {
        Ticket ticket = new Ticket();
        boolean forgets = tenant.equals("acme") || number % 40 == 1;
        synchronized (bookings) {
            if (forgets) {
                bookings.add(ticket);
                kept.merge(tenant, 1, Integer::sum);
            }
        }
    }

    static void show() {
        Room room = new Room();
        synchronized (rooms) {
            rooms.add(room);
            if (rooms.size() > 500) rooms.remove(0);
        }
    }

    public static void main(String[] args) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(4);
        for (int phase = 1; ; phase++) {
            List<Runnable> requests = new ArrayList<>();
            for (int i = 0; i < 1000; i++) {
                int number = i;
                requests.add(() -> handle(number));
            }
            for (var done : pool.invokeAll(requests.stream().map(Executors::callable).toList())) done.get();
            requests.clear();
            if (phase == 1) kept.clear();
            kept.forEach((tenant, number) -> System.out.println("BOOKINGS " + number + " " + tenant));
            System.gc();
            TimeUnit.MILLISECONDS.sleep(1500);
            System.out.println("READY " + phase);
            if (System.in.read() < 0) break;
        }
        pool.shutdown();
    }
}
