import java.io.BufferedReader;
import java.io.InputStreamReader;
import org.jooq.DSLContext;
import org.jooq.Field;
import org.jooq.Record1;
import org.jooq.Result;
import org.jooq.SQLDialect;
import org.jooq.impl.DSL;
import org.jooq.tools.jdbc.MockConnection;
import org.jooq.tools.jdbc.MockResult;

/** Calls a database function with a number. jOOQ keeps a mapper for each number, because the call with its number is the key. */
class Fines {
    private static final int CALLS = 4_000;

    /** The result of a call. */
    static class Fine {
        public Long fine;
    }

    private final DSLContext database;
    private final Field<Long> column = DSL.field(DSL.name("fine"), Long.class);
    private long next;
    private long sum;

    private Fines() {
        DSLContext results = DSL.using(SQLDialect.H2);
        database = DSL.using(new MockConnection(call -> {
            Result<Record1<Long>> result = results.newResult(column);
            result.add(results.newRecord(column).values(7L));
            return new MockResult[] {new MockResult(1, result)};
        }), SQLDialect.H2);
    }

    private void work() {
        for (int i = 0; i < CALLS; i++) {
            sum += database.select(DSL.function("fine", Long.class, DSL.val(++next))).fetchOneInto(Fine.class).fine;
        }
    }

    public static void main(String[] args) throws Exception {
        Fines program = new Fines();
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
