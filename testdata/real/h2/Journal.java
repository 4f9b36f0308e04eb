import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.Statement;

/** Adds rows to an in-memory table, and never deletes any. */
class Journal {
    private static final int ROWS = 20_000;

    private static void work(Connection connection, int phase) throws Exception {
        String sql = "insert into journal(id, account, note) values (?, ?, ?)";
        try (PreparedStatement insert = connection.prepareStatement(sql)) {
            for (int i = 0; i < ROWS; i++) {
                insert.setInt(1, phase * ROWS + i);
                insert.setString(2, "account " + i % 1_000);
                insert.setString(3, "transfer number " + i);
                insert.executeUpdate();
            }
        }
    }

    public static void main(String[] args) throws Exception {
        Connection connection = DriverManager.getConnection("jdbc:h2:mem:bank");
        try (Statement create = connection.createStatement()) {
            create.execute("create table journal(id int primary key, account varchar, note varchar)");
        }
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (int phase = 1; phase <= Integer.getInteger("phases", 3); phase++) {
            work(connection, phase);
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}
