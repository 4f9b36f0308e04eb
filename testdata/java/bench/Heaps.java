import com.sun.management.HotSpotDiagnosticMXBean;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentSkipListMap;

/**
 * Builds a heap with one kind of content, for benchmarks in addition to BigHeap, whose content is mixed.
 *
 * <pre>java -Xmx12g Heaps.java database|linked|small SCALE FIRST.hprof SECOND.hprof</pre>
 *
 * At scale 1, the first dump has about 40 million objects. Before the second dump, a tenth is added. The database needs H2 on the class
 * path.
 */
public class Heaps {
    private static final SplittableRandom RANDOM = new SplittableRandom(42);

    /** A heap that grows by units: thousands of rows, thousands of rounds, or hundreds of sessions. */
    private interface Heap {
        void add(int units) throws Exception;
    }

    /** One table of an in-memory database, as in a service with an embedded database. */
    private static final class Database implements Heap {
        private final Connection connection;
        private int rows;

        Database() throws Exception {
            connection = DriverManager.getConnection("jdbc:h2:mem:bank");
            try (Statement create = connection.createStatement()) {
                create.execute(
                        "create table transfer(id int primary key, account varchar, note varchar,"
                                + " amount decimal(20, 2), booked timestamp)");
                create.execute("create index of_account on transfer(account)");
            }
        }

        @Override
        public void add(int units) throws Exception {
            String sql = "insert into transfer values (?, ?, ?, ?, timestamp '2026-01-01 00:00:00')";
            try (PreparedStatement insert = connection.prepareStatement(sql)) {
                for (int end = rows + units * 1000; rows < end; rows++) {
                    insert.setInt(1, rows);
                    insert.setString(2, "account " + rows % 50_000);
                    insert.setString(3, "transfer number " + rows);
                    insert.setBigDecimal(4, java.math.BigDecimal.valueOf(RANDOM.nextInt(1_000_000), 2));
                    insert.executeUpdate();
                }
            }
        }
    }

    /** Doubly and singly linked lists, trees with references to parents, and linked collections of the JDK. */
    private static final class Linked implements Heap {
        static final class Link {
            Link before;
            Link after;
            Object content;
        }

        static final class Node {
            Node parent;
            Node left;
            Node right;
            final long key;

            Node(long key, Node parent) {
                this.key = key;
                this.parent = parent;
            }
        }

        static final class Step {
            final int number;
            Step next;

            Step(int number) {
                this.number = number;
            }
        }

        static Link first;
        static Link last;
        static Node root;
        static Step start;
        static Step end;
        static final List<LinkedList<Integer>> queues = new ArrayList<>();
        static final TreeMap<Long, Integer> sorted = new TreeMap<>();
        static final ConcurrentSkipListMap<Long, Integer> skipping = new ConcurrentSkipListMap<>();

        private static void link(Object content) {
            Link added = new Link();
            added.content = content;
            added.before = last;
            if (last == null) {
                first = added;
            } else {
                last.after = added;
            }
            last = added;
        }

        private static void insert(long key) {
            if (root == null) {
                root = new Node(key, null);
                return;
            }
            Node at = root;
            while (true) {
                Node next = key < at.key ? at.left : at.right;
                if (next == null) {
                    Node added = new Node(key, at);
                    if (key < at.key) {
                        at.left = added;
                    } else {
                        at.right = added;
                    }
                    return;
                }
                at = next;
            }
        }

        @Override
        public void add(int units) {
            for (int i = 0; i < units; i++) {
                LinkedList<Integer> queue = new LinkedList<>();
                for (int j = 0; j < 1000; j++) {
                    link(new int[2]);
                    insert(RANDOM.nextLong());
                    Step step = new Step(j);
                    if (end == null) {
                        start = step;
                    } else {
                        end.next = step;
                    }
                    end = step;
                    queue.add(1000 + j);
                    sorted.put(RANDOM.nextLong(), 1000 + j);
                    if (j % 4 == 0) {
                        skipping.put(RANDOM.nextLong(), 1000 + j);
                    }
                }
                queues.add(queue);
            }
        }
    }

    /** Requests and sessions as in a server: small maps, short strings, boxes. */
    private static final class Small implements Heap {
        static final class Session {
            final String id;
            final Map<String, Object> attributes = new HashMap<>();
            final List<Request> requests = new ArrayList<>();

            Session(String id) {
                this.id = id;
            }
        }

        static final class Request {
            final String path;
            final Map<String, String> headers;
            final Optional<String> user;
            final long[] times;

            Request(String path, Map<String, String> headers, Optional<String> user, long[] times) {
                this.path = path;
                this.headers = headers;
                this.user = user;
                this.times = times;
            }
        }

        static final Map<String, Session> sessions = new HashMap<>();
        static final String[] NAMES = {"Host", "Accept", "Cookie", "User-Agent", "Referer", "X-Request-Id"};

        private static String word(String prefix) {
            return prefix + Long.toString(RANDOM.nextLong() >>> 30, 36);
        }

        @Override
        public void add(int units) {
            for (int i = 0; i < units * 100; i++) {
                Session session = new Session(word("s"));
                session.attributes.put("cart", new ArrayList<>(List.of(word("item"), word("item"))));
                session.attributes.put("visits", 1000 + i);
                session.attributes.put("since", new java.util.Date(i));
                for (int j = RANDOM.nextInt(1, 5); j > 0; j--) {
                    Map<String, String> headers = new HashMap<>();
                    for (int k = RANDOM.nextInt(2, NAMES.length); k > 0; k--) {
                        headers.put(NAMES[k], word("v"));
                    }
                    session.requests.add(
                            new Request(word("/shop/"), headers, Optional.of(session.id), new long[3]));
                }
                sessions.put(session.id, session);
            }
        }
    }

    private static void dump(String file) throws Exception {
        Files.deleteIfExists(Path.of(file));
        ManagementFactory.getPlatformMXBean(HotSpotDiagnosticMXBean.class).dumpHeap(file, true);
        System.out.printf("%s: %d bytes%n", file, Files.size(Path.of(file)));
        System.out.flush();
    }

    public static void main(String[] args) throws Exception {
        double scale = Double.parseDouble(args[1]);
        // The number of units (see Heap) that together have about 40 million objects.
        Heap heap;
        double units;
        switch (args[0]) {
            case "database":
                heap = new Database();
                units = 2500;
                break;
            case "linked":
                heap = new Linked();
                units = 3700;
                break;
            case "small":
                heap = new Small();
                units = 6000;
                break;
            default:
                throw new IllegalArgumentException(args[0]);
        }
        heap.add((int) Math.ceil(units * scale));
        dump(args[2]);
        heap.add((int) Math.ceil(units * scale / 10));
        dump(args[3]);
        // Use the heap here, so that its objects stay alive until now.
        System.out.println(heap);
    }
}
