import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ThreadLocalRandom;

/**
 * Service MEGABYTES BUSY: keeps about MEGABYTES of small objects, whose number is constant. Answers requests on a port of the loopback
 * address: one line for each request. BUSY threads send requests all the time. Prints READY and the port, and ends with its standard
 * input.
 */
public class Service {
    /** An entry and the objects that it refers to: four objects of about 192 bytes in total. */
    static final class Entry {
        final int id;
        String name;
        long[] values = new long[8];
        Entry other;

        Entry(int id) {
            this.id = id;
            name = named(id, 0);
        }
    }

    static Entry[] kept;

    static String named(int id, int version) {
        return "an entry of the service, " + id + ", version " + version % 10;
    }

    /** Reads some entries and changes some. */
    static long request(int number) {
        ThreadLocalRandom random = ThreadLocalRandom.current();
        StringBuilder text = new StringBuilder();
        long sum = number;
        for (int i = 0; i < 20; i++) {
            Entry entry = kept[random.nextInt(kept.length)];
            sum += entry.values[i % 8]++;
            text.append(entry.name, 0, 8);
            if (i % 5 == 0) entry.name = named(entry.id, number);
            if (i % 10 == 0) entry.other = kept[random.nextInt(kept.length)];
        }
        return sum + text.length();
    }

    static void answer(Socket socket) {
        try (Socket open = socket) {
            open.setTcpNoDelay(true);
            BufferedReader in = new BufferedReader(new InputStreamReader(open.getInputStream(), StandardCharsets.US_ASCII));
            OutputStream out = open.getOutputStream();
            for (String line; (line = in.readLine()) != null; ) {
                String answer = request(Integer.parseInt(line)) + "\n";
                out.write(answer.getBytes(StandardCharsets.US_ASCII));
                out.flush();
            }
        } catch (java.io.IOException e) {
            // The client is gone.
        }
    }

    static void start(Runnable work) {
        Thread thread = new Thread(work);
        thread.setDaemon(true);
        thread.start();
    }

    public static void main(String[] args) throws Exception {
        kept = new Entry[(int) (Long.parseLong(args[0]) * 1_000_000 / 192)];
        for (int i = 0; i < kept.length; i++) kept[i] = new Entry(i);
        for (int i = 0; i < Integer.parseInt(args[1]); i++) {
            start(() -> {
                for (int n = 0; ; n = (n + 1) & 0xfffff) {
                    if (request(n) == 0) System.out.println("never");
                    if (n % 100 == 0) Thread.yield();
                }
            });
        }
        ServerSocket server = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        start(() -> {
            while (true) {
                try {
                    Socket socket = server.accept();
                    start(() -> answer(socket));
                } catch (java.io.IOException e) {
                    return;
                }
            }
        });
        System.out.println("READY " + kept.length + " " + server.getLocalPort());
        while (System.in.read() >= 0) { }
    }
}
