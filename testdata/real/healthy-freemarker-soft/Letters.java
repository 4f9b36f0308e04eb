import freemarker.cache.TemplateLoader;
import freemarker.template.Configuration;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.Reader;
import java.io.StringReader;
import java.io.StringWriter;
import java.util.Map;

/**
 * Creates letters as templates of FreeMarker, which keeps them by soft references. There is enough memory, so no reference is cleared, and
 * each phase adds templates.
 */
class Letters {
    private static final int LETTERS = 400;

    static final class Source implements TemplateLoader {
        @Override
        public Object findTemplateSource(String name) {
            return name.contains("_") ? null : name;
        }

        @Override
        public long getLastModified(Object source) {
            return 1;
        }

        @Override
        public Reader getReader(Object source, String encoding) {
            return new StringReader("Dear ${name},<#if due>please pay</#if> ".repeat(20) + source);
        }

        @Override
        public void closeTemplateSource(Object source) {}
    }

    private final Configuration templates = new Configuration(Configuration.VERSION_2_3_34);
    private int next;

    private Letters() {
        templates.setTemplateLoader(new Source());
    }

    private void work() throws Exception {
        for (int i = 0; i < LETTERS; i++) {
            templates.getTemplate("letter " + ++next).process(Map.of("name", "Ada", "due", true), new StringWriter());
        }
    }

    public static void main(String[] args) throws Exception {
        Letters program = new Letters();
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
