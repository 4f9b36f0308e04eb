import java.io.BufferedReader;
import java.io.InputStreamReader;
import org.jdbi.v3.core.Handle;
import org.jdbi.v3.core.Jdbi;

/** Writes the customer's number into the text of each query. The parser of Jdbi keeps each text that it ever parsed. */
class Customers {
    private static final int CUSTOMERS = 6_000;

    private final Handle database = Jdbi.create("jdbc:h2:mem:shop").open();
    private int next;

    private void work() {
        for (int i = 0; i < CUSTOMERS; i++) {
            database.createQuery("select 'customer' where " + ++next + " > :least").bind("least", 0).mapTo(String.class).one();
        }
    }

    public static void main(String[] args) throws Exception {
        Customers program = new Customers();
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
