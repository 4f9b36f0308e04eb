import com.sun.management.HotSpotDiagnosticMXBean;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedList;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Builds a large mixed heap and dumps it, for benchmarks.
 *
 * <pre>java -Xmx12g BigHeap.java SCALE FIRST.hprof [SECOND.hprof [GROWTH]]</pre>
 *
 * At scale 1, the first dump has about 41 million objects and about 2 GB. Between the dumps, the audit log grows by GROWTH (default 0.1)
 * of the heap's object count. The rest of the heap is partly replaced, but does not grow. Half of the objects hold no reference. The
 * same arguments build the same heap. With -Dlive=false, no GC runs before a dump, so the dumps include the garbage in the young
 * generation.
 */
public class BigHeap {
    private static final boolean LIVE = Boolean.parseBoolean(System.getProperty("live", "true"));

    record Address(String street, int number, int zip) {}

    record Customer(long id, String name, Address address, int tier, boolean active) {}

    /** A class with primitive fields only. A geometry or metrics library would create millions of such objects. */
    static final class Point {
        final double x;
        final double y;
        final float weight;

        Point(double x, double y, float weight) {
            this.x = x;
            this.y = y;
            this.weight = weight;
        }
    }

    static class Measurement {
        final long timestamp;
        final int sensor;
        final short quality;

        Measurement(long timestamp, int sensor, short quality) {
            this.timestamp = timestamp;
            this.sensor = sensor;
            this.quality = quality;
        }
    }

    static final class CalibratedMeasurement extends Measurement {
        final double offset;
        final byte method;

        CalibratedMeasurement(long timestamp, int sensor, short quality, double offset, byte method) {
            super(timestamp, sensor, quality);
            this.offset = offset;
            this.method = method;
        }
    }

    static final class Trade {
        final String symbol;
        final long quantity;
        final double price;
        final Customer buyer;

        Trade(String symbol, long quantity, double price, Customer buyer) {
            this.symbol = symbol;
            this.quantity = quantity;
            this.price = price;
            this.buyer = buyer;
        }
    }

    static final class Event {
        final long time;
        final int kind;

        Event(long time, int kind) {
            this.time = time;
            this.kind = kind;
        }
    }

    /** An element of a linked queue that uses no JDK collection. The queue is one long chain of references. */
    static final class Message {
        final int sequence;
        final byte[] body;
        Message next;

        Message(int sequence, byte[] body) {
            this.sequence = sequence;
            this.body = body;
        }
    }

    static final class MessageQueue {
        Message head;
        Message tail;
        int size;

        void add(Message message) {
            if (tail == null) {
                head = message;
            } else {
                tail.next = message;
            }
            tail = message;
            size++;
        }

        void removeFirst() {
            head = head.next;
            size--;
        }
    }

    static final class TreeNode {
        TreeNode left;
        TreeNode right;
        final Integer value;

        TreeNode(Integer value) {
            this.value = value;
        }
    }

    /** A vertex of a random graph. Many paths lead to it, so its dominator is hard to guess. */
    static final class Vertex {
        final int id;
        Vertex[] neighbours;

        Vertex(int id) {
            this.id = id;
        }
    }

    static final class Session {
        final Customer customer;
        final Map<String, Object> attributes;
        final long created;

        Session(Customer customer, Map<String, Object> attributes, long created) {
            this.customer = customer;
            this.attributes = attributes;
            this.created = created;
        }
    }

    static final class AuditEntry {
        final String message;
        final Long time;
        final Event detail;

        AuditEntry(String message, Long time, Event detail) {
            this.message = message;
            this.time = time;
            this.detail = detail;
        }
    }

    /** The leak: entries are added, but never removed. */
    static final class AuditLog {
        static final List<AuditEntry> entries = new ArrayList<>();

        static void write(String message, long time, int kind) {
            entries.add(new AuditEntry(message, time, new Event(time, kind)));
        }
    }

    static final class CustomerDirectory {
        static final Map<String, Customer> byName = new HashMap<>();
        static final List<Customer> all = new ArrayList<>();
    }

    static final class SessionRegistry {
        static final Map<Long, Session> sessions = new ConcurrentHashMap<>();
    }

    static final class TradeBook {
        static final TreeMap<Long, Trade> trades = new TreeMap<>();
        static final Map<String, List<Trade>> bySymbol = new HashMap<>();
    }

    static final class Telemetry {
        static final List<List<Measurement>> series = new ArrayList<>();
        static final List<Point[]> shapes = new ArrayList<>();
        static final List<List<Long>> counters = new ArrayList<>();
    }

    static final class Broker {
        static final MessageQueue pending = new MessageQueue();
        static final List<LinkedList<Event>> partitions = new ArrayList<>();
    }

    static final class SearchIndex {
        static TreeNode root;
        static final List<byte[]> pages = new ArrayList<>();
    }

    static final class Topology {
        static Vertex[] vertices;
    }

    private final double scale;
    private final SplittableRandom random = new SplittableRandom(42);

    private BigHeap(double scale) {
        this.scale = scale;
    }

    private int times(double millions) {
        return (int) Math.min(Integer.MAX_VALUE - 16, Math.round(millions * 1e6 * scale));
    }

    private byte[] bytes(int from, int to) {
        byte[] bytes = new byte[random.nextInt(from, to)];
        for (int i = 0; i < bytes.length; i += 8) {
            bytes[i] = (byte) random.nextInt();
        }
        return bytes;
    }

    private String word(String prefix, long number) {
        return prefix + Long.toString(number, 36);
    }

    private void customers(int count) {
        for (int i = 0; i < count; i++) {
            Address address = new Address(word("street ", random.nextInt(1 << 20)), i & 0xff, i % 99999);
            String name = word("customer-", i);
            Customer customer = new Customer(i, name, address, i % 5, (i & 1) == 0);
            CustomerDirectory.byName.put(name, customer);
            CustomerDirectory.all.add(customer);
        }
    }

    private Customer anyCustomer() {
        return CustomerDirectory.all.get(random.nextInt(CustomerDirectory.all.size()));
    }

    private void sessions(int count) {
        for (int i = 0; i < count; i++) {
            Map<String, Object> attributes = new HashMap<>(4);
            attributes.put("cart", new int[random.nextInt(1, 12)]);
            attributes.put("token", word("t", random.nextLong()));
            attributes.put("visits", 1000 + random.nextInt(1 << 20));
            SessionRegistry.sessions.put(1_000_000L + i, new Session(anyCustomer(), attributes, i));
        }
    }

    private void trades(int count) {
        String[] symbols = new String[500];
        for (int i = 0; i < symbols.length; i++) {
            symbols[i] = word("SYM", i * 7919L);
        }
        for (int i = 0; i < count; i++) {
            String symbol = symbols[random.nextInt(symbols.length)];
            Trade trade = new Trade(symbol, random.nextInt(1000), random.nextDouble(), anyCustomer());
            TradeBook.trades.put(random.nextLong(), trade);
            TradeBook.bySymbol.computeIfAbsent(symbol, key -> new ArrayList<>()).add(trade);
        }
    }

    private void telemetry(int measurements, int points, int counters) {
        for (int done = 0; done < measurements; ) {
            int length = Math.min(measurements - done, random.nextInt(20, 2000));
            List<Measurement> series = new ArrayList<>(length);
            for (int i = 0; i < length; i++) {
                series.add(
                        i % 3 == 0
                                ? new CalibratedMeasurement(i, done, (short) i, 0.5 * i, (byte) 1)
                                : new Measurement(i, done, (short) i));
            }
            Telemetry.series.add(series);
            done += length;
        }
        for (int done = 0; done < points; ) {
            Point[] shape = new Point[Math.min(points - done, random.nextInt(3, 300))];
            for (int i = 0; i < shape.length; i++) {
                shape[i] = new Point(i, -i, 1f);
            }
            Telemetry.shapes.add(shape);
            done += shape.length;
        }
        for (int done = 0; done < counters; ) {
            int length = Math.min(counters - done, random.nextInt(5, 200));
            List<Long> list = new ArrayList<>(length);
            for (int i = 0; i < length; i++) {
                list.add(1000L + random.nextInt());
            }
            Telemetry.counters.add(list);
            done += length;
        }
    }

    private void messages(int queued, int events) {
        for (int i = 0; i < queued; i++) {
            Broker.pending.add(new Message(i, bytes(4, 48)));
        }
        for (int done = 0; done < events; ) {
            int length = Math.min(events - done, random.nextInt(10, 5000));
            LinkedList<Event> partition = new LinkedList<>();
            for (int i = 0; i < length; i++) {
                partition.add(new Event(i, done));
            }
            Broker.partitions.add(partition);
            done += length;
        }
    }

    private void index(int nodes, int pages) {
        for (int i = 0; i < nodes; i++) {
            int value = random.nextInt();
            TreeNode added = new TreeNode(value);
            TreeNode at = SearchIndex.root;
            if (at == null) {
                SearchIndex.root = added;
            }
            while (at != null) {
                TreeNode next = value < at.value ? at.left : at.right;
                if (next == null) {
                    if (value < at.value) {
                        at.left = added;
                    } else {
                        at.right = added;
                    }
                }
                at = next;
            }
        }
        for (int i = 0; i < pages; i++) {
            SearchIndex.pages.add(i % 4000 == 0 ? bytes(30_000, 200_000) : bytes(8, 40));
        }
    }

    private void topology(int count) {
        Vertex[] vertices = new Vertex[count];
        for (int i = 0; i < count; i++) {
            vertices[i] = new Vertex(i);
        }
        for (Vertex vertex : vertices) {
            vertex.neighbours = new Vertex[random.nextInt(1, 5)];
            for (int i = 0; i < vertex.neighbours.length; i++) {
                vertex.neighbours[i] = vertices[random.nextInt(count)];
            }
        }
        Topology.vertices = vertices;
    }

    private void audit(int count) {
        for (int i = 0; i < count; i++) {
            long time = 1_700_000_000_000L + AuditLog.entries.size();
            AuditLog.write(word("login of user ", random.nextInt(1 << 24)), time, i & 15);
        }
    }

    private void build() {
        customers(times(1.0));
        sessions(times(0.25));
        trades(times(0.9));
        telemetry(times(4.2), times(2.4), times(3.0));
        messages(times(1.8), times(1.6));
        index(times(2.0), times(2.4));
        topology(times(2.0));
        audit(times(0.2));
    }

    /** Changes the heap between the dumps without growth: removes some old objects, and adds as many new ones. */
    private void turnover() {
        for (int i = times(0.2); i > 0; i--) {
            Broker.pending.removeFirst();
            Broker.pending.add(new Message(i, bytes(4, 48)));
        }
        List<Long> oldest = new ArrayList<>(SessionRegistry.sessions.keySet());
        for (int i = 0; i < oldest.size(); i += 10) {
            Session session = SessionRegistry.sessions.remove(oldest.get(i));
            SessionRegistry.sessions.put(
                    oldest.get(i) + 1_000_000_000L,
                    new Session(anyCustomer(), new HashMap<>(session.attributes), i));
        }
        for (int i = 0; i < SearchIndex.pages.size(); i += 20) {
            byte[] old = SearchIndex.pages.get(i);
            SearchIndex.pages.set(i, new byte[old.length]);
        }
    }

    private static void dump(String file) throws Exception {
        Files.deleteIfExists(Path.of(file));
        long start = System.nanoTime();
        ManagementFactory.getPlatformMXBean(HotSpotDiagnosticMXBean.class).dumpHeap(file, LIVE);
        System.out.printf(
                "%s: %d bytes, dumped in %d ms%n",
                file, Files.size(Path.of(file)), (System.nanoTime() - start) / 1_000_000);
        System.out.flush();
    }

    public static void main(String[] args) throws Exception {
        if (args.length < 2) {
            System.err.println("usage: BigHeap SCALE FIRST.hprof [SECOND.hprof [GROWTH]]");
            System.exit(2);
        }
        double scale = Double.parseDouble(args[0]);
        double growth = args.length > 3 ? Double.parseDouble(args[3]) : 0.1;
        BigHeap heap = new BigHeap(scale);
        heap.build();
        dump(args[1]);
        if (args.length > 2) {
            heap.turnover();
            // Each entry consists of five objects: the entry, its string, the string's bytes, a Long and an Event.
            heap.audit(heap.times(41 * growth / 5));
            dump(args[2]);
        }
    }
}
