import java.lang.instrument.ClassDefinition;
import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.nio.charset.StandardCharsets;
import java.security.ProtectionDomain;

/**
 * Redefined N: is also the agent that {@code -javaagent} loads. For each line of input it first changes the class {@code One}, and then calls {@code
 * One.make} N times. {@code redefine} gives {@code One} the body of {@code Two}. {@code transform} lets a transformer of the program change a text
 * in {@code One}. {@code retransform} makes the JVM retransform {@code One} again. Prints {@code READY}, the results of the calls, and the text.
 */
public class Redefined {
    static volatile Object sink;
    static Instrumentation instrumentation;

    static class One {
        static Object make(int i) {
            return new byte[i % 10];
        }

        static String text() { return "plain"; }
    }

    static class Two {
        static Object make(int i) {
            Object first = new Two();

            return new Object[] {first, new long[i % 7]};
        }

        static String text() { return "plain"; }
    }

    public static void premain(String args, Instrumentation given) { instrumentation = given; }

    /** Returns the bytes with one text replaced by another one of the same length. */
    static byte[] with(byte[] bytes, String from, String to) {
        String text = new String(bytes, StandardCharsets.ISO_8859_1);
        return text.replace(from, to).getBytes(StandardCharsets.ISO_8859_1);
    }

    static void redefine() throws Exception {
        byte[] two;
        try (var in = Redefined.class.getResourceAsStream("Redefined$Two.class")) {
            two = in.readAllBytes();
        }
        instrumentation.redefineClasses(new ClassDefinition(One.class, with(two, "Redefined$Two", "Redefined$One")));
    }

    static void transform() {
        instrumentation.addTransformer(new ClassFileTransformer() {
            @Override
            public byte[] transform(ClassLoader loader, String name, Class<?> of, ProtectionDomain domain, byte[] bytes) {
                return "Redefined$One".equals(name) ? with(bytes, "plain", "other") : null;
            }
        }, true);
    }

    static void work(int n) {
        for (int i = 0; i < n; i++) sink = One.make(i);
    }

    public static void main(String[] args) throws Exception {
        int n = Integer.parseInt(args[0]);
        var in = new java.io.BufferedReader(new java.io.InputStreamReader(System.in));
        work(n);
        // The first call allocates the constant. It must not happen later, because a sample of it would show the line of the constant.
        One.text();
        System.out.println("READY");
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            if (line.equals("redefine")) redefine();
            if (line.equals("transform")) transform();
            if (line.equals("retransform")) instrumentation.retransformClasses(One.class);
            work(n);
            System.out.println("READY " + sink.getClass().getSimpleName() + " " + One.text());
        }
    }
}
