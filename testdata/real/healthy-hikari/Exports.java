import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;

/**
 * Reads large results with the 8 connections of a pool: 2 are in use at the first dump, 6 at the second, and 4 at the
 * third.
 */
class Exports {
    private static final int[] BUSY = {2, 6, 4};

    private final HikariDataSource connections;
    private final List<Connection> busy = new ArrayList<>();

    private Exports() throws Exception {
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl("jdbc:h2:mem:exports");
        config.setMaximumPoolSize(8);
        connections = new HikariDataSource(config);
        try (Connection connection = connections.getConnection(); Statement create = connection.createStatement()) {
            create.execute("create table orders(id int primary key, customer varchar)");
            create.execute("insert into orders select x, 'customer ' || x from system_range(1, 5000)");
        }
    }

    private void work(int phase) throws Exception {
        for (Connection connection : busy) {
            connection.close();
        }
        busy.clear();
        for (int round = 0; round < 100; round++) {
            try (Connection connection = connections.getConnection()) {
                read(connection, 5_000);
            }
        }
        for (int i = 0; i < BUSY[phase - 1]; i++) {
            Connection connection = connections.getConnection();
            read(connection, 2_500);
            busy.add(connection);
        }
    }

    private static void read(Connection connection, int rows) throws Exception {
        Statement statement = connection.createStatement();
        ResultSet orders = statement.executeQuery("select id, customer || ' of ' || id from orders");
        for (int i = 0; i < rows; i++) {
            orders.next();
        }
    }

    public static void main(String[] args) throws Exception {
        Exports program = new Exports();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (int phase = 1; phase <= 3; phase++) {
            program.work(phase);
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
        System.exit(0);
    }
}
