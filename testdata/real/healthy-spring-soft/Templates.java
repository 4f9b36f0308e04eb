import java.io.BufferedReader;
import java.io.InputStreamReader;
import org.springframework.util.ConcurrentReferenceHashMap;

/** Keeps templates in Spring's map of soft references. There is enough memory, so no reference is cleared, and each phase adds templates. */
class Templates {
    private static final int TEMPLATES = 8_000;

    static final class Template {
        final String source;
        final int[] offsets = new int[60];

        Template(String source) {
            this.source = source;
        }
    }

    private final ConcurrentReferenceHashMap<String, Template> templates = new ConcurrentReferenceHashMap<>();
    private int next;

    private void work() {
        for (int i = 0; i < TEMPLATES; i++) {
            String name = "template " + ++next;
            templates.put(name, new Template("source of " + name));
        }
    }

    public static void main(String[] args) throws Exception {
        Templates program = new Templates();
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
