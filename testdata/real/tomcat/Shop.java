import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import jakarta.servlet.http.HttpSession;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.apache.catalina.Context;
import org.apache.catalina.startup.Tomcat;

/**
 * Runs an embedded Tomcat whose sessions never expire. Each request without a cookie begins a new session, which holds a
 * basket.
 */
class Shop {
    private static final int REQUESTS = 4_000;

    /** The basket of a visitor. */
    static final class Basket {
        final List<String> items = new ArrayList<>();
        final long[] prices = new long[32];
    }

    static final class BasketServlet extends HttpServlet {
        @Override
        protected void doGet(HttpServletRequest request, HttpServletResponse response)
                throws IOException {
            HttpSession session = request.getSession(true);
            session.setMaxInactiveInterval(-1);
            Basket basket = (Basket) session.getAttribute("basket");
            if (basket == null) {
                basket = new Basket();
                session.setAttribute("basket", basket);
            }
            basket.items.add("article " + request.getParameter("id"));
            response.getWriter().println(basket.items.size());
        }
    }

    private static void work(HttpClient client, URI shop) throws Exception {
        for (int i = 0; i < REQUESTS; i++) {
            HttpRequest request = HttpRequest.newBuilder(shop.resolve("/?id=" + i)).build();
            HttpResponse<String> answer = client.send(request, HttpResponse.BodyHandlers.ofString());
            if (answer.statusCode() != 200) {
                throw new IllegalStateException("status " + answer.statusCode());
            }
        }
    }

    public static void main(String[] args) throws Exception {
        Path folder = Files.createTempDirectory("shop");
        Tomcat tomcat = new Tomcat();
        tomcat.setBaseDir(folder.toString());
        tomcat.setHostname("localhost");
        tomcat.setPort(0);
        tomcat.getConnector().setProperty("address", InetAddress.getLoopbackAddress().getHostAddress());
        Context context = tomcat.addContext("", folder.toString());
        Tomcat.addServlet(context, "basket", new BasketServlet());
        context.addServletMappingDecoded("/*", "basket");
        tomcat.start();
        URI shop = URI.create("http://127.0.0.1:" + tomcat.getConnector().getLocalPort() + "/");
        HttpClient client = HttpClient.newHttpClient();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (int phase = 1; phase <= Integer.getInteger("phases", 3); phase++) {
            work(client, shop);
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
        tomcat.stop();
        System.exit(0);
    }
}
