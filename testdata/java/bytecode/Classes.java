import java.io.BufferedOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.URI;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * {@code write FILE}: writes all classes of the JDK's runtime image to a file, each as module, name and bytes. {@code link FILE}:
 * loads and links the classes whose names are the lines of a file. Prints the errors, and how many allocations were counted
 * meanwhile.
 */
public class Classes {
    public static void main(String[] args) throws Exception {
        if (args[0].equals("write")) {
            write(Paths.get(args[1]));
        } else {
            link(Paths.get(args[1]));
        }
        System.out.println("READY 1");
    }

    static void write(Path file) throws IOException {
        Path modules = FileSystems.getFileSystem(URI.create("jrt:/")).getPath("/modules");
        List<Path> classes;
        try (Stream<Path> all = Files.walk(modules)) {
            classes = all.filter(path -> path.toString().endsWith(".class")).sorted().collect(Collectors.toList());
        }
        try (DataOutputStream out = new DataOutputStream(new BufferedOutputStream(Files.newOutputStream(file)))) {
            for (Path path : classes) {
                byte[] bytes = Files.readAllBytes(path);
                out.writeUTF(path.getName(1).toString());
                out.writeUTF(path.subpath(2, path.getNameCount()).toString());
                out.writeInt(bytes.length);
                out.write(bytes);
            }
        }
    }

    static void link(Path file) throws Exception {
        int linked = 0;
        int missing = 0;
        for (String name : Files.readAllLines(file)) {
            try {
                Class<?> c = Class.forName(name, false, ClassLoader.getSystemClassLoader());
                // The JVM verifies a class when it links the class, and this call links it.
                c.getDeclaredMethods();
                linked++;
            } catch (VerifyError | ClassFormatError | IncompatibleClassChangeError e) {
                System.out.println("WRONG " + name + " " + e.toString().replace('\n', ' '));
            } catch (ClassNotFoundException | NoClassDefFoundError e) {
                missing++;
            }
        }
        long hits = 0;
        try {
            for (long count : (long[]) Class.forName("java.lang.Hits").getField("COUNTS").get(null)) {
                hits += count;
            }
        } catch (ClassNotFoundException e) {
            // The class Hits exists only if the classes were rewritten.
        }
        System.out.println("LINKED " + linked + " " + missing + " " + hits);
    }
}
