import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Handles requests in a second thread, until that thread has allocated a given number of times as much as all other
 * threads together. Loaded with -javaagent, so that it runs beside any program.
 */
public final class Beside {
    private static final int MOST_RECENT = 200;

    private static final Map<Integer, List<String>> RECENT = new LinkedHashMap<>() {
        @Override
        protected boolean removeEldestEntry(Map.Entry<Integer, List<String>> eldest) {
            return size() > MOST_RECENT;
        }
    };

    private static Object sink;

    public static void premain(String times) {
        long factor = Long.parseLong(times);
        Thread thread = new Thread(() -> work(factor), "beside");
        thread.setDaemon(true);
        thread.start();
    }

    private static void work(long factor) {
        var threads = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        long self = Thread.currentThread().getId();
        try {
            for (int request = 0;;) {
                long all = 0;
                for (long bytes : threads.getThreadAllocatedBytes(threads.getAllThreadIds())) {
                    all += Math.max(0, bytes);
                }
                long own = threads.getThreadAllocatedBytes(self);
                if (own >= factor * (all - own)) {
                    Thread.sleep(2);
                    continue;
                }
                for (int end = request + 200; request < end; request++) {
                    handle(request);
                }
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private static void handle(int request) {
        List<String> words = parse("GET /orders/" + request + "?limit=" + request % 50);
        RECENT.put(request, words);
        page(request);
        totals(request);
        sink = render(words);
    }

    private static List<String> parse(String line) {
        List<String> words = new ArrayList<>();
        for (String word : line.split("[ /?]")) {
            words.add(word.trim());
        }
        return words;
    }

    private static void page(int request) {
        byte[] page = new byte[1024 + request % 3000];
        page[0] = (byte) request;
        sink = page;
    }

    private static void totals(int request) {
        Map<String, Long> totals = new java.util.HashMap<>();
        for (int i = 0; i < 20; i++) {
            totals.merge("customer" + i, (long) request * i, Long::sum);
        }
        sink = totals;
    }

    private static char[] render(List<String> words) {
        StringBuilder text = new StringBuilder();
        for (String word : words) {
            text.append('<').append(word).append('>');
        }
        return text.toString().toCharArray();
    }
}
