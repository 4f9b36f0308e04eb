import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;

/**
 * Loads a class many times, each time with a class loader of its own, lets it allocate, and drops it, so that the JVM
 * unloads it. The first classes are kept. The argument is the number of classes.
 */
public class Unloaded {
    /** The class that is loaded many times. */
    public static class Body {
        public static Object allocate() {
            return new byte[2_000];
        }
    }

    static final class Loader extends ClassLoader {
        Loader() {
            super(Unloaded.class.getClassLoader());
        }

        Class<?> define(byte[] bytes) {
            return defineClass("Unloaded$Body", bytes, 0, bytes.length);
        }
    }

    static final int KEPT = 100;
    static final List<Object> kept = new ArrayList<>();

    static byte[] body() throws Exception {
        try (InputStream in = Unloaded.class.getResourceAsStream("Unloaded$Body.class")) {
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            byte[] part = new byte[4096];
            for (int n = in.read(part); n >= 0; n = in.read(part)) {
                out.write(part, 0, n);
            }
            return out.toByteArray();
        }
    }

    public static void main(String[] args) throws Exception {
        int classes = Integer.parseInt(args[0]);
        byte[] bytes = body();
        for (int i = 0; i < classes; i++) {
            Method method = new Loader().define(bytes).getMethod("allocate");
            Object made = method.invoke(null);
            if (i < KEPT) {
                kept.add(made);
            }
            if (i % 5_000 == 4_999) {
                System.gc();
            }
        }
        System.out.println("READY 0");
        System.out.flush();
        while (System.in.read() >= 0) {
        }
    }
}
