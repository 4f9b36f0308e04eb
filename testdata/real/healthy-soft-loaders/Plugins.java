import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Modifier;
import java.util.Map;
import net.bytebuddy.ByteBuddy;
import net.bytebuddy.dynamic.loading.ClassLoadingStrategy;
import org.springframework.util.ConcurrentReferenceHashMap;

/**
 * Generates plug-ins with Byte Buddy, each with its own class loader. Only the soft references of a Spring map hold
 * them.
 */
class Plugins {
    private static final int PLUGINS = 150;

    private final Map<String, Class<?>> plugins = new ConcurrentReferenceHashMap<>();
    private int next;

    private void work() {
        for (int i = 0; i < PLUGINS; i++) {
            String name = "com.acme.Plugin" + ++next;
            Class<?> plugin = new ByteBuddy()
                    .subclass(Object.class)
                    .name(name)
                    .defineField("rows", long[].class, Modifier.STATIC)
                    .make()
                    .load(Plugins.class.getClassLoader(), ClassLoadingStrategy.Default.WRAPPER)
                    .getLoaded();
            plugins.put(name, plugin);
        }
    }

    public static void main(String[] args) throws Exception {
        Plugins program = new Plugins();
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
