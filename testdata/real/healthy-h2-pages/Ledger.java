import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.Statement;
import java.util.Random;

/** Reads random rows of an H2 table in a file, through a page cache of 4 MiB. The cache is full, and its pages are replaced. */
class Ledger {
    private static final int READS = 1_500;

    private final Connection connection;
    private final Random random = new Random(7);

    private Ledger() throws Exception {
        Path folder = Files.createTempDirectory("ledger");
        String url = "jdbc:h2:" + folder.resolve("ledger") + ";CACHE_SIZE=4096";
        try (Connection first = DriverManager.getConnection(url); Statement create = first.createStatement()) {
            create.execute("create table ledger(id int primary key, note varchar)");
            create.execute("insert into ledger select x, repeat('note ' || x, 20) from system_range(1, 60000)");
        }
        connection = DriverManager.getConnection(url);
    }

    private void work() throws Exception {
        try (PreparedStatement select = connection.prepareStatement("select note from ledger where id = ?")) {
            for (int i = 0; i < READS; i++) {
                select.setInt(1, 1 + random.nextInt(60_000));
                try (ResultSet rows = select.executeQuery()) {
                    rows.next();
                }
            }
        }
    }

    public static void main(String[] args) throws Exception {
        Ledger program = new Ledger();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (int phase = 1; phase <= 3; phase++) {
            program.work();
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
        System.exit(0);
    }
}
