import java.io.BufferedReader;
import java.io.InputStreamReader;
import org.springframework.hateoas.Link;

/** Creates a Spring HATEOAS link for each order. The library keeps a template for each address that it ever saw. */
class Orders {
    private static final int ORDERS = 10_000;

    private int next;
    private int letters;

    private void work() {
        for (int i = 0; i < ORDERS; i++) {
            Link link = new Link("https://shop.example/orders/" + ++next);
            letters += link.getHref().length();
        }
    }

    public static void main(String[] args) throws Exception {
        Orders program = new Orders();
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
