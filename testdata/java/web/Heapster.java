import com.sun.net.httpserver.Filter;
import com.sun.net.httpserver.HttpContext;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * A small web service with a leak: its interceptor keeps a buffer for each request for ever.
 *
 * Listens on a free port of 127.0.0.1, prints LISTENING and the port, and ends with its standard input. Each request also allocates some
 * garbage, so that GCs run now and then.
 */
public class Heapster {
    /** Called for each request before its handler. */
    static final class Interceptor extends Filter {
        private static final List<byte[]> seen = new ArrayList<>();

        @Override
        public void doFilter(HttpExchange exchange, Chain chain) throws IOException {
            record();
            chain.doFilter(exchange);
        }

        private static synchronized void record() {
            seen.add(new byte[256 * 1024]);
        }

        @Override
        public String description() {
            return "records requests";
        }
    }

    static int page(HttpExchange exchange) throws IOException {
        int length = 0;
        for (int i = 0; i < 50_000; i++) {
            length += ("line " + i + ": " + exchange.getRequestMethod()).length();
        }
        byte[] body = ("length " + length + "\n").getBytes(StandardCharsets.UTF_8);
        exchange.sendResponseHeaders(200, body.length);
        exchange.getResponseBody().write(body);
        exchange.close();
        return body.length;
    }

    public static void main(String[] args) throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        HttpContext context = server.createContext("/", Heapster::page);
        context.getFilters().add(new Interceptor());
        server.start();
        System.out.println("LISTENING " + server.getAddress().getPort());
        while (System.in.read() >= 0) {
            // Wait until standard input ends.
        }
        server.stop(0);
        System.exit(0);
    }
}
