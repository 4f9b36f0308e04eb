import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.UnaryOperator;
import java.util.stream.Collectors;

/**
 * A service that processes orders: it parses a document into maps, lists and strings, checks it, updates the customers' accounts, computes
 * sums, searches the catalogue for a similar article, and writes a signed answer. A chain of handlers makes its stacks deep, as in frameworks.
 *
 * <p>Reads commands from standard input: {@code N} handles N requests and prints {@code DONE N CPU BYTES}. CPU is the
 * processor time of the whole process in nanoseconds, including GC and agents. BYTES is the number of bytes that this thread
 * allocated.
 */
public class Orders {
    /** Parses documents with objects, arrays, strings, numbers and words. */
    static final class Parser {
        private final String text;
        private int at;

        Parser(String text) { this.text = text; }

        Object value() {
            blanks();
            switch (text.charAt(at)) {
                case '{': return object();
                case '[': return array();
                case '"': return string();
                case 't': at += 4; return Boolean.TRUE;
                case 'f': at += 5; return Boolean.FALSE;
                case 'n': at += 4; return null;
                default: return number();
            }
        }

        private Map<String, Object> object() {
            Map<String, Object> map = new LinkedHashMap<>();
            at++;
            while (more('}')) {
                String key = string();
                blanks();
                at++;
                map.put(key, value());
            }
            return map;
        }

        private List<Object> array() {
            List<Object> list = new ArrayList<>();
            at++;
            while (more(']')) list.add(value());
            return list;
        }

        private boolean more(char end) {
            blanks();
            if (text.charAt(at) == ',') {
                at++;
                blanks();
            }
            if (text.charAt(at) != end) return true;
            at++;
            return false;
        }

        private String string() {
            int from = ++at;
            boolean escaped = false;
            while (text.charAt(at) != '"') {
                if (text.charAt(at) == '\\') {
                    escaped = true;
                    at++;
                }
                at++;
            }
            String raw = text.substring(from, at++);
            return escaped ? raw.replace("\\\"", "\"").replace("\\\\", "\\") : raw;
        }

        private Number number() {
            int from = at;
            while (at < text.length() && "+-.eE0123456789".indexOf(text.charAt(at)) >= 0) at++;
            String number = text.substring(from, at);
            return number.indexOf('.') < 0 ? (Number) Long.valueOf(number) : (Number) Double.valueOf(number);
        }

        private void blanks() {
            while (at < text.length() && text.charAt(at) <= ' ') at++;
        }
    }

    static void write(StringBuilder out, Object value) {
        if (value instanceof Map) {
            char separator = '{';
            for (Map.Entry<?, ?> entry : ((Map<?, ?>) value).entrySet()) {
                out.append(separator).append('"').append(entry.getKey()).append("\":");
                write(out, entry.getValue());
                separator = ',';
            }
            out.append(separator == '{' ? "{}" : "}");
        } else if (value instanceof List) {
            char separator = '[';
            for (Object element : (List<?>) value) {
                out.append(separator);
                write(out, element);
                separator = ',';
            }
            out.append(separator == '[' ? "[]" : "]");
        } else if (value instanceof String) {
            out.append('"').append(((String) value).replace("\"", "\\\"")).append('"');
        } else {
            out.append(value);
        }
    }

    static final class Account {
        final Map<String, Long> bought = new HashMap<>();
        double paid;
    }

    /** The accounts of the 2,000 most recent customers. */
    static final Map<String, Account> accounts = new LinkedHashMap<>(16, 0.75f, true) {
        @Override
        protected boolean removeEldestEntry(Map.Entry<String, Account> eldest) { return size() > 2_000; }
    };

    static final String[] documents = new String[64];

    static void makeDocuments() {
        for (int d = 0; d < documents.length; d++) {
            StringBuilder out = new StringBuilder("{ \"note\": \"say \\\"hello\\\"\", \"express\": true, \"lines\": [");
            for (int line = 0; line < 10 + d % 20; line++) {
                out.append(line == 0 ? "" : ", ").append("{\"article\": \"article ").append((d * 31 + line * 7) % 500)
                    .append("\", \"count\": ").append(1 + (d + line) % 9)
                    .append(", \"price\": ").append(line * 3 + 1).append(".25, \"tags\": [\"a").append(d % 5)
                    .append("\", \"b").append(line % 7).append("\", null]}");
            }
            documents[d] = out.append("]}").toString();
        }
    }

    @SuppressWarnings("unchecked")
    static Map<String, Object> handle(Map<String, Object> request) {
        Map<String, Object> order = (Map<String, Object>) new Parser((String) request.get("body")).value();
        List<Map<String, Object>> lines = (List<Map<String, Object>>) (List<?>) (List<Object>) order.get("lines");
        Account account = accounts.computeIfAbsent((String) request.get("customer"), name -> new Account());
        Map<String, Double> totals = new TreeMap<>();
        for (Map<String, Object> line : lines) {
            long count = ((Number) line.get("count")).longValue();
            double price = ((Number) line.get("price")).doubleValue();
            account.bought.merge((String) line.get("article"), count, Long::sum);
            for (Object tag : (List<Object>) line.get("tags")) {
                if (tag != null) totals.merge((String) tag, count * price, Double::sum);
            }
            account.paid += count * price;
        }
        double[] basket = new double[FEATURES];
        for (Map<String, Object> line : lines) {
            double[] features = catalogue[Math.floorMod(line.get("article").hashCode(), catalogue.length)];
            for (int f = 0; f < FEATURES; f++) basket[f] += features[f];
        }
        List<Object> dearest = lines.stream()
            .filter(line -> line.get("article") != null)
            .sorted(Comparator.comparing((Map<String, Object> line) -> ((Number) line.get("price")).doubleValue()).reversed())
            .limit(5)
            .map(line -> String.format("%s x %d", line.get("article"), ((Number) line.get("count")).longValue()))
            .collect(Collectors.toList());
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("customer", request.get("customer"));
        answer.put("paid", account.paid);
        answer.put("totals", totals);
        answer.put("dearest", dearest);
        answer.put("more", "article " + mostLike(basket));
        return answer;
    }

    static final int FEATURES = 12;
    static final double[][] catalogue = new double[3_000][FEATURES];

    /** Returns the article of the catalogue that is most similar to the articles in the basket. */
    static int mostLike(double[] basket) {
        int best = 0;
        double most = -1;
        for (int article = 0; article < catalogue.length; article++) {
            double[] features = catalogue[article];
            double sum = 0;
            for (int f = 0; f < FEATURES; f++) sum += basket[f] * features[f];
            if (sum > most) {
                most = sum;
                best = article;
            }
        }
        return best;
    }

    /** Returns a handler that calls the next handler. The last one does the work. */
    static UnaryOperator<Map<String, Object>> handler(int number, UnaryOperator<Map<String, Object>> next) {
        return request -> {
            request.put("handler", number);
            Map<String, Object> answer = next.apply(request);
            answer.put("handlers", number);
            return answer;
        };
    }

    static UnaryOperator<Map<String, Object>> chain;
    static long checksum;

    static void operation(int seed) {
        Map<String, Object> request = new HashMap<>();
        request.put("customer", "customer " + (seed * 7919L & 0x7fff));
        request.put("body", documents[seed & 63]);
        StringBuilder out = new StringBuilder();
        write(out, chain.apply(request));
        byte[] answer = out.toString().getBytes(StandardCharsets.UTF_8);
        checksum += sha256.digest(answer)[0] + answer.length;
    }

    static final MessageDigest sha256 = sha256();

    static MessageDigest sha256() {
        try {
            return MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException e) {
            throw new AssertionError(e);
        }
    }

    public static void main(String[] args) throws Exception {
        makeDocuments();
        java.util.Random random = new java.util.Random(7);
        for (double[] features : catalogue) for (int f = 0; f < FEATURES; f++) features[f] = random.nextDouble();
        chain = Orders::handle;
        for (int i = 0; i < 25; i++) chain = handler(i, chain);
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
