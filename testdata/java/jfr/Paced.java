import java.lang.classfile.ClassFile;
import java.lang.classfile.ClassHierarchyResolver;
import java.lang.classfile.ClassTransform;
import java.lang.classfile.CodeBuilder;
import java.lang.classfile.CodeElement;
import java.lang.classfile.CodeTransform;
import java.lang.constant.ClassDesc;
import java.lang.constant.ConstantDescs;
import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.ProtectionDomain;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/**
 * Spreads the work of the classes in com.acme evenly over a given time. Loaded with -javaagent. With the argument
 * count=FILE, it writes the number of method calls to a file when the JVM ends. With the argument CALLS:SECONDS, each
 * method waits at its start until its turn. Needs JDK 24 or later, which has an API for class files.
 */
public final class Paced {
    /** A method that is less than this early does not wait. */
    private static final long SHORT_NANOS = 2_000_000;

    private static final AtomicLong CALLS = new AtomicLong();

    private static long start;
    private static double nanosPerCall;

    public static void premain(String options, Instrumentation instrumentation) {
        if (options.startsWith("count=")) {
            Path file = Path.of(options.substring("count=".length()));
            Runtime.getRuntime().addShutdownHook(new Thread(() -> write(file)));
        } else {
            String[] values = options.split(":");
            nanosPerCall = Double.parseDouble(values[1]) * 1e9 / Math.max(1, Long.parseLong(values[0]));
        }
        start = System.nanoTime();
        instrumentation.addTransformer(new Turns());
    }

    private static void write(Path file) {
        try {
            Files.writeString(file, Long.toString(CALLS.get()));
        } catch (java.io.IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
    }

    /** Called at the start of each method of the program. */
    public static void turn() {
        long call = CALLS.incrementAndGet();
        long early = start + (long) (call * nanosPerCall) - System.nanoTime();
        if (nanosPerCall > 0 && early > SHORT_NANOS) {
            LockSupport.parkNanos(early);
        }
    }

    private static final class Turns implements ClassFileTransformer {
        @Override
        public byte[] transform(
                ClassLoader loader, String name, Class<?> redefined, ProtectionDomain domain, byte[] bytes) {
            if (loader != ClassLoader.getSystemClassLoader() || name == null || !name.startsWith("com/acme/")) {
                return null;
            }
            // The default resolver would load classes while they are being loaded.
            ClassHierarchyResolver resolver = ClassHierarchyResolver.ofResourceParsing(loader);
            ClassFile file = ClassFile.of(ClassFile.ClassHierarchyResolverOption.of(resolver));
            return file.transformClass(file.parse(bytes), ClassTransform.transformingMethodBodies(new AtStart()));
        }
    }

    private static final class AtStart implements CodeTransform {
        @Override
        public void atStart(CodeBuilder code) {
            code.invokestatic(ClassDesc.of("Paced"), "turn", ConstantDescs.MTD_void);
        }

        @Override
        public void accept(CodeBuilder code, CodeElement element) {
            code.with(element);
        }
    }
}
