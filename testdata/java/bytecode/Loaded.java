import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * {@code FILE JAR...}: loads and links each class of a file twice: the original by one loader, and the rewritten class by another. Both loaders
 * find all other classes in the jars. Prints the differences between the results. Also loads the versions of a class for later Java versions.
 */
public class Loaded {
    static final class Pair {
        final byte[] before;
        final byte[] after;

        Pair(byte[] before, byte[] after) {
            this.before = before;
            this.after = after;
        }
    }

    /** Looks first in the original or rewritten classes, and then in the JDK and the jars. */
    static final class Loader extends URLClassLoader {
        final Map<String, Pair> own;
        final boolean rewritten;

        Loader(Map<String, Pair> own, boolean rewritten, URL[] jars) {
            super(jars, Loaded.class.getClassLoader());
            this.own = own;
            this.rewritten = rewritten;
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            Pair pair = own.get(name);
            if (pair == null) {
                return super.loadClass(name, resolve);
            }
            synchronized (getClassLoadingLock(name)) {
                Class<?> known = findLoadedClass(name);
                if (known != null) {
                    return known;
                }
                byte[] bytes = rewritten ? pair.after : pair.before;
                return defineClass(name, bytes, 0, bytes.length);
            }
        }
    }

    static int linked;
    static int missing;
    static int refused;
    static int differ;

    public static void main(String[] args) throws Exception {
        URL[] jars = new URL[args.length - 1];
        for (int i = 1; i < args.length; i++) {
            jars[i - 1] = Paths.get(args[i]).toUri().toURL();
        }
        int feature = Runtime.version().feature();
        Map<Integer, Map<String, Pair>> all = read(Paths.get(args[0]));
        Map<String, Pair> classes = new HashMap<>();
        for (Map.Entry<Integer, Map<String, Pair>> version : all.entrySet()) {
            if (version.getKey() > feature) {
                continue;
            }
            classes = new HashMap<>(classes);
            classes.putAll(version.getValue());
            link(classes, new ArrayList<>(version.getValue().keySet()), jars);
        }
        System.out.println("LOADED " + linked + " " + missing + " " + refused + " " + differ);
        System.out.println("READY 1");
    }

    static Map<Integer, Map<String, Pair>> read(Path file) throws IOException {
        Map<Integer, Map<String, Pair>> all = new TreeMap<>();
        try (DataInputStream in = new DataInputStream(new BufferedInputStream(Files.newInputStream(file)))) {
            while (true) {
                int version;
                try {
                    version = in.readUnsignedByte();
                } catch (EOFException e) {
                    return all;
                }
                String name = in.readUTF().replace('/', '.');
                byte[] before = in.readNBytes(in.readInt());
                byte[] after = in.readNBytes(in.readInt());
                all.computeIfAbsent(version, v -> new TreeMap<>()).put(name, new Pair(before, after));
            }
        }
    }

    static void link(Map<String, Pair> classes, List<String> names, URL[] jars) throws IOException {
        try (Loader before = new Loader(classes, false, jars); Loader after = new Loader(classes, true, jars)) {
            for (String name : names) {
                Throwable was = linked(before, name);
                Throwable is = linked(after, name);
                if (was == null && is == null) {
                    linked++;
                } else if (was == null || is == null || was.getClass() != is.getClass()) {
                    differ++;
                    System.out.println("WRONG " + name + " was " + told(was) + " is " + told(is));
                } else if (was instanceof NoClassDefFoundError || was instanceof ClassNotFoundException) {
                    missing++;
                } else {
                    refused++;
                    System.out.println("REFUSED " + name + " " + told(was));
                }
            }
        }
    }

    static String told(Throwable thrown) {
        return thrown == null ? "linked" : thrown.toString().replace("\n", " ").replaceAll("@0x[0-9a-f]+", "");
    }

    /** Links a class by reading its methods, because the JVM first verifies the class. Returns the error, or null if there is none. */
    static Throwable linked(Loader loader, String name) {
        try {
            Class.forName(name, false, loader).getDeclaredMethods();
            return null;
        } catch (ReflectiveOperationException | LinkageError | SecurityException e) {
            return e;
        }
    }
}
