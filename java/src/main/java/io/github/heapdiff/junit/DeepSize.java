package io.github.heapdiff.junit;

import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** One measurement of an object's deep size, in a heap dump of this JVM. */
final class DeepSize {
    /**
     * The object to measure. heapdiff finds the object in the dump by this field. Only one measurement runs at a time.
     */
    private static volatile Object measured;

    /** The argument with which {@code heapdiff sizeof} finds the object: the field {@link #measured}. */
    private static final String SELECTOR = DeepSize.class.getName() + ".measured";

    private DeepSize() {}

    static long of(GrowthOptions options, Object object, Skip... skipped) {
        HeapdiffProgram program = HeapdiffProgram.find(options);
        try (SnapshotFolder snapshots = new SnapshotFolder(options)) {
            measured = object;
            Path dump = snapshots.dump(program);
            Map<?, ?> report = program.report("sizeof", dump, arguments(skipped));
            Object bytes = ((Map<?, ?>) report.get("set")).get("deep_bytes");
            if (bytes instanceof Long) {
                return (Long) bytes;
            }
            throw new HeapUndecidedException("the report of heapdiff sizeof has no deep size");
        } finally {
            measured = null;
        }
    }

    private static String[] arguments(Skip... skipped) {
        List<String> arguments = new ArrayList<>(List.of(SELECTOR, "--top", "0"));
        new LinkedHashSet<>(Arrays.asList(skipped)).forEach(skip -> arguments.add(skip.option()));
        if (Arrays.stream(skipped).anyMatch(Skip::needsClassPath)) {
            arguments.addAll(List.of("--classpath", classPath()));
        }
        return arguments.toArray(new String[0]);
    }

    /** Returns the files and folders of the class path that exist, and the folder of the JDK. */
    private static String classPath() {
        Stream<String> given = Arrays.stream(System.getProperty("java.class.path").split(File.pathSeparator))
                .filter(path -> !path.isEmpty() && Files.exists(Path.of(path)));
        return Stream.concat(given, Stream.of(System.getProperty("java.home"))).collect(Collectors.joining(File.pathSeparator));
    }
}
