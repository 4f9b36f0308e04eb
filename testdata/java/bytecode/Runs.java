import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * {@code FILE HITS}: loads generated classes in three forms: the original, the rewritten class and the reference. Calls every method, and
 * compares the results and exceptions, the lines of stack traces and the counts. HITS is the class file that counts.
 */
public class Runs {
    static final int[] ARGUMENTS = {0, 1, 2, 7, -3};
    static int wrong;

    /** The class that the generated test classes allocate and extend. */
    public static class Node {
        public long sum;

        public Node() {}

        public Node(int of) {
            if (of % 7 == 1) {
                throw new IllegalStateException("node");
            }
        }

        public Node(Object of) {}

        public Node(Object one, Object other) {}

        public Node(long of, Object one, double other) {}
    }

    public static int mix(int of, Object with) {
        return of * 31 + (with == null ? 0 : with instanceof Node ? 1 : 2);
    }

    /** Returns a hash of an exception's stack trace. */
    public static long told(Throwable thrown) {
        return trace(thrown).hashCode();
    }

    static String trace(Throwable thrown) {
        StringBuilder told = new StringBuilder(thrown.getClass().getName());
        for (StackTraceElement frame : thrown.getStackTrace()) {
            if (frame.getClassName().startsWith("Gen")) {
                told.append(' ').append(frame);
            }
        }
        return told.toString();
    }

    static final class Loader extends ClassLoader {
        final Map<String, byte[]> classes = new LinkedHashMap<>();

        Loader() {
            super(Runs.class.getClassLoader());
        }

        @Override
        protected Class<?> findClass(String name) throws ClassNotFoundException {
            byte[] bytes = classes.get(name);
            if (bytes == null) {
                throw new ClassNotFoundException(name);
            }
            return defineClass(name, bytes, 0, bytes.length);
        }

        long[] counted(String field) throws ReflectiveOperationException {
            return (long[]) loadClass("test.lang.Hits").getField(field).get(null);
        }
    }

    public static void main(String[] args) throws Exception {
        // The thread has a large stack, because one frame may have half a megabyte.
        Throwable[] failed = new Throwable[1];
        Thread thread = new Thread(null, () -> {
            try {
                run(Paths.get(args[0]), Paths.get(args[1]));
            } catch (Throwable e) {
                failed[0] = e;
            }
        }, "runs", 256L << 20);
        thread.start();
        thread.join();
        if (failed[0] != null) {
            throw new IllegalStateException(failed[0]);
        }
        System.out.println("READY 1");
    }

    static void run(Path file, Path hits) throws IOException, ReflectiveOperationException {
        Loader[] loaders = {new Loader(), new Loader(), new Loader()};
        try (DataInputStream in = new DataInputStream(new BufferedInputStream(Files.newInputStream(file)))) {
            while (true) {
                String name;
                try {
                    name = in.readUTF();
                } catch (EOFException e) {
                    break;
                }
                for (Loader loader : loaders) {
                    loader.classes.put(name, in.readNBytes(in.readInt()));
                }
            }
        }
        int methods = 0;
        int calls = 0;
        int thrown = 0;
        String[] names = loaders[0].classes.keySet().toArray(new String[0]);
        for (Loader loader : loaders) {
            loader.classes.put("test.lang.Hits", Files.readAllBytes(hits));
        }
        for (String name : names) {
            Class<?>[] classes = new Class<?>[loaders.length];
            try {
                for (int i = 0; i < loaders.length; i++) {
                    classes[i] = Class.forName(name, true, loaders[i]);
                }
            } catch (LinkageError e) {
                wrong(name + " " + e.toString().replace('\n', ' '));
                continue;
            }
            for (int number = 0; ; number++) {
                String[] told = null;
                for (int argument : ARGUMENTS) {
                    told = new String[loaders.length];
                    for (int i = 0; i < loaders.length; i++) {
                        told[i] = told(classes[i], number, argument);
                    }
                    if (told[0] == null) {
                        break;
                    }
                    calls++;
                    thrown += told[0].startsWith("thrown") ? 1 : 0;
                    if (!told[0].equals(told[1]) || !told[0].equals(told[2])) {
                        wrong(name + " " + number + "(" + argument + ") " + Arrays.toString(told));
                    }
                }
                if (told[0] == null) {
                    break;
                }
                methods++;
            }
        }
        long sites = 0;
        long objects = 0;
        for (String field : new String[] {"COUNTS", "ELEMENTS"}) {
            long[] ours = loaders[1].counted(field);
            long[] reference = loaders[2].counted(field);
            for (int site = 0; site < ours.length; site++) {
                if (ours[site] != reference[site]) {
                    wrong("site " + site + " " + field + " " + ours[site] + " not " + reference[site]);
                }
                if (field.equals("COUNTS") && ours[site] != 0) {
                    sites++;
                    objects += ours[site];
                }
            }
        }
        System.out.println("RAN " + methods + " " + calls + " " + thrown + " " + sites + " " + objects + " " + wrong);
    }

    static void wrong(String what) {
        wrong++;
        if (wrong <= 20) {
            System.out.println("WRONG " + what);
        }
    }

    /** Returns the result or exception of a call, or null if there is no such method. Number 0 is the constructor. */
    static String told(Class<?> type, int number, int argument) throws ReflectiveOperationException {
        try {
            if (number == 0) {
                return "made " + ((Node) type.getConstructor(int.class).newInstance(argument)).sum;
            }
            return "returned " + type.getMethod("m" + number, int.class).invoke(null, argument);
        } catch (NoSuchMethodException e) {
            return null;
        } catch (java.lang.reflect.InvocationTargetException e) {
            return "thrown " + trace(e.getCause());
        }
    }
}
