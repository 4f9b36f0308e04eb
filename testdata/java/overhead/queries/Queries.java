import java.lang.management.ManagementFactory;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.Statement;

/**
 * A shop's data in an in-memory H2 database. Each operation inserts an order, deletes an old one, updates an account, and reads the orders
 * of a customer with their sum. Some operations also run a query that must be parsed again.
 *
 * <p>Reads commands from standard input: {@code N} runs N operations and prints {@code DONE N CPU BYTES}. CPU is the
 * processor time of the whole process in nanoseconds, including GC and agents. BYTES is the number of bytes that this thread
 * allocated.
 */
public class Queries {
    static final int KEPT = 20_000;
    static final int ACCOUNTS = 1_000;
    static PreparedStatement insert, delete, raise, orders, sum;
    static Connection connection;
    static long checksum;

    static void prepare() throws Exception {
        connection = DriverManager.getConnection("jdbc:h2:mem:shop");
        connection.setAutoCommit(false);
        try (Statement create = connection.createStatement()) {
            create.execute("create table account(id int primary key, name varchar, paid bigint)");
            create.execute("create table orders(id int primary key, account int, article varchar, price int)");
            create.execute("create index by_account on orders(account)");
        }
        try (PreparedStatement account = connection.prepareStatement("insert into account values (?, ?, 0)")) {
            for (int i = 0; i < ACCOUNTS; i++) {
                account.setInt(1, i);
                account.setString(2, "customer " + i);
                account.executeUpdate();
            }
        }
        insert = connection.prepareStatement("insert into orders values (?, ?, ?, ?)");
        delete = connection.prepareStatement("delete from orders where id = ?");
        raise = connection.prepareStatement("update account set paid = paid + ? where id = ?");
        orders = connection.prepareStatement("select id, article, price from orders where account = ? order by price, id");
        sum = connection.prepareStatement(
            "select a.name, count(*), sum(o.price) from account a join orders o on o.account = a.id where a.id = ? group by a.name");
        for (int i = 0; i < KEPT; i++) put(i);
        connection.commit();
    }

    static void put(int id) throws Exception {
        insert.setInt(1, id);
        insert.setInt(2, id * 31 % ACCOUNTS);
        insert.setString(3, "article " + id % 500);
        insert.setInt(4, id * 7 % 1_000);
        insert.executeUpdate();
    }

    static void operation(int seed) throws Exception {
        int id = KEPT + seed;
        put(id);
        delete.setInt(1, seed);
        checksum += delete.executeUpdate();
        raise.setLong(1, id % 100);
        raise.setInt(2, id % ACCOUNTS);
        raise.executeUpdate();
        orders.setInt(1, id * 17 % ACCOUNTS);
        try (ResultSet found = orders.executeQuery()) {
            while (found.next()) checksum += found.getInt(1) + found.getString(2).length() + found.getInt(3);
        }
        if (seed % 4 == 0) {
            sum.setInt(1, id % ACCOUNTS);
            try (ResultSet found = sum.executeQuery()) {
                while (found.next()) checksum += found.getLong(3);
            }
        }
        if (seed % 16 == 0) {
            try (Statement asked = connection.createStatement();
                ResultSet found = asked.executeQuery("select max(price) from orders where id between " + id / 2 + " and " + id / 2 + " + 9")) {
                while (found.next()) checksum += found.getInt(1);
            }
        }
        connection.commit();
    }

    public static void main(String[] args) throws Exception {
        prepare();
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
