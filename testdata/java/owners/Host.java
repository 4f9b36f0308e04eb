import java.io.File;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.ArrayList;
import java.util.List;

/**
 * A program with 20 plugins, each in a class loader of its own. It writes a heap dump of itself.
 *
 * <p>Plugin {@code i} keeps {@code i * 1000} numbers of its own. Plugin {@code i} and the next one share
 * {@code i * 100} numbers. All plugins and the host share 5000 numbers. Each number has 8 bytes.
 *
 * <p>Arguments: the folder of the classes of the plugins, the file of the dump, and the growth of plugin 7.
 */
public class Host {
    static final List<Object> plugins = new ArrayList<>();
    static final long[] common = new long[5000];

    public static void main(String[] args) throws Exception {
        URL[] folder = {new File(args[0]).toURI().toURL()};
        long[] last = null;
        for (int i = 1; i <= 20; i++) {
            ClassLoader loader = new URLClassLoader("plugin-" + i, folder, Host.class.getClassLoader());
            Object plugin = loader.loadClass("Plugin").getDeclaredConstructor().newInstance();
            @SuppressWarnings("unchecked")
            List<Object> kept = (List<Object>) plugin;
            kept.add(new long[i * 1000 + (i == 7 ? Integer.parseInt(args[2]) : 0)]);
            kept.add(common);
            if (last != null) {
                kept.add(last);
            }
            last = new long[i * 100];
            if (i < 20) {
                kept.add(last);
            }
            plugins.add(plugin);
        }
        java.lang.management.ManagementFactory.getPlatformMXBean(com.sun.management.HotSpotDiagnosticMXBean.class)
                .dumpHeap(args[1], true);
    }
}
