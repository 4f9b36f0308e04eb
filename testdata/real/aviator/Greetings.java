import com.googlecode.aviator.AviatorEvaluator;
import com.googlecode.aviator.Expression;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;

/** Runs one Aviator expression for each customer. The expression keeps the parts of each text that it ever created. */
class Greetings {
    private static final int CUSTOMERS = 8_000;

    private final Expression greeting = AviatorEvaluator.compile("string.replace_first('Welcome, NAME!', 'NAME', name)");
    private int next;
    private int letters;

    private void work() {
        for (int i = 0; i < CUSTOMERS; i++) {
            Map<String, Object> customer = new HashMap<>();
            customer.put("name", "customer " + ++next);
            letters += greeting.execute(customer).toString().length();
        }
    }

    public static void main(String[] args) throws Exception {
        Greetings program = new Greetings();
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
