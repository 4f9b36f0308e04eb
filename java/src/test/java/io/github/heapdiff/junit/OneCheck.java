package io.github.heapdiff.junit;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * {@code OneCheck WORK...}: the main program of a new JVM. Each WORK names a method of {@link Programs}. For each
 * method, runs a check and prints the result. If the method returns an object, the object must be collected. Otherwise
 * the heap must not grow.
 */
final class OneCheck {
    private OneCheck() {}

    public static void main(String[] works) throws Exception {
        for (String work : works) {
            Method method = Programs.class.getDeclaredMethod(work);
            System.out.println(work + ": " + outcome(method));
        }
    }

    private static String outcome(Method work) throws Exception {
        try {
            if (work.getReturnType() == void.class) {
                Heap.assertNoGrowth(() -> work.invoke(null));
            } else {
                HeapSnapshots.assertCollected(() -> work.invoke(null));
            }
            return "passed";
        } catch (HeapUndecidedException e) {
            return "undecided: " + e.getMessage();
        } catch (AssertionError e) {
            return "failed: " + e.getMessage();
        } catch (Throwable e) {
            throw new IllegalStateException(e);
        }
    }

    /** Starts a new JVM with these options, which checks {@code works}. Returns the output of the JVM. */
    static String in(List<String> options, Path folder, String... works) throws IOException, InterruptedException {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        String program = System.getProperty("heapdiff.program", "");
        command.addAll(List.of("-Xmx128m", "-Dheapdiff.program=" + program, "-cp", System.getProperty("java.class.path")));
        command.addAll(options);
        command.add(OneCheck.class.getName());
        command.addAll(List.of(works));
        Path output = Files.createTempFile(folder, "jvm", ".txt");
        Process jvm = new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(output.toFile()).start();
        try {
            assertTrue(jvm.waitFor(100, TimeUnit.SECONDS), "the JVM did not end in time");
        } finally {
            jvm.destroyForcibly();
        }
        try (InputStream in = Files.newInputStream(output)) {
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        }
    }
}
