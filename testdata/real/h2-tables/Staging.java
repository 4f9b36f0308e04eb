import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.Statement;

/** Creates, fills and drops tables of an in-memory H2 database. */
class Staging {
    private static final int TABLES = 400;

    private final Connection connection;

    private Staging() throws Exception {
        connection = DriverManager.getConnection("jdbc:h2:mem:staging");
    }

    private void work() throws Exception {
        for (int i = 0; i < TABLES; i++) {
            String table = "staging";
            try (Statement statement = connection.createStatement()) {
                statement.execute("create table " + table + "(id int primary key, account varchar, note varchar)");
                statement.execute("insert into " + table + " select x, 'account', 'note' from system_range(1, 20)");
                statement.execute("drop table " + table);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        Staging program = new Staging();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (int phase = 1; phase <= Integer.getInteger("phases", 3); phase++) {
            program.work();
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
        System.exit(0);
    }
}
