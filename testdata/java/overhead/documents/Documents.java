import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Reads and writes documents with Jackson: in turn as beans, as trees and as maps.
 *
 * <p>Reads commands from standard input: {@code N} handles N documents and prints {@code DONE N CPU BYTES}. CPU is the
 * processor time of the whole process in nanoseconds, including GC and agents. BYTES is the number of bytes that this thread
 * allocated.
 */
public class Documents {
    public static class Line {
        public String article;
        public int count;
        public double price;
        public List<String> tags = new ArrayList<>();
        public Map<String, Long> stock = new LinkedHashMap<>();
    }

    public static class Order {
        public String customer;
        public boolean express;
        public List<Line> lines = new ArrayList<>();
    }

    static final ObjectMapper mapper = new ObjectMapper();
    static final byte[][] documents = new byte[64][];
    static long checksum;

    static void makeDocuments() throws Exception {
        for (int d = 0; d < documents.length; d++) {
            Order order = new Order();
            order.customer = "customer \"" + d + "\"";
            order.express = d % 2 == 0;
            for (int i = 0; i < 10 + d % 20; i++) {
                Line line = new Line();
                line.article = "article " + (d * 31 + i * 7) % 500;
                line.count = 1 + (d + i) % 9;
                line.price = i * 3 + 1.25;
                for (int t = 0; t < i % 4; t++) line.tags.add("tag " + t);
                for (int s = 0; s < i % 3; s++) line.stock.put("shop " + s, d * 1_000_000_000L + s);
                order.lines.add(line);
            }
            documents[d] = mapper.writeValueAsBytes(order);
        }
    }

    static byte[] operation(int seed) throws Exception {
        byte[] document = documents[seed & 63];
        switch (seed % 3) {
            case 0: {
                Order order = mapper.readValue(document, Order.class);
                for (Line line : order.lines) line.price *= line.count;
                return mapper.writeValueAsBytes(order);
            }
            case 1: {
                JsonNode tree = mapper.readTree(document);
                for (JsonNode line : tree.get("lines")) ((ObjectNode) line).put("sum", line.get("price").asDouble());
                return mapper.writeValueAsBytes(tree);
            }
            default: {
                Map<?, ?> map = mapper.readValue(document, Map.class);
                return mapper.writeValueAsBytes(map.get("lines"));
            }
        }
    }

    public static void main(String[] args) throws Exception {
        makeDocuments();
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
            for (int i = 0; i < count; i++) checksum += operation(seed++).length;
            long cpu = os.getProcessCpuTime() - before;
            System.out.println("DONE " + count + " " + cpu + " " + (threads.getThreadAllocatedBytes(self) - bytes));
        }
        if (checksum == 0) throw new AssertionError();
    }
}
