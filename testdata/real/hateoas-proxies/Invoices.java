import java.io.BufferedReader;
import java.io.InputStreamReader;
import org.springframework.hateoas.server.core.DummyInvocationUtils;

/** Leaks proxies: gets the address of each invoice from a proxy of the controller. Spring HATEOAS keeps one proxy for each invoice number. */
class Invoices {
    private static final int INVOICES = 2_000;

    /** The controller for requests of one invoice. */
    public static class Controller {
        public Object show() {
            return null;
        }
    }

    private int next;

    private void work() {
        for (int i = 0; i < INVOICES; i++) {
            DummyInvocationUtils.methodOn(Controller.class, "invoice " + ++next).show();
        }
    }

    public static void main(String[] args) throws Exception {
        Invoices program = new Invoices();
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
