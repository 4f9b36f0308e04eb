package io.github.heapdiff.junit;

import com.sun.management.HotSpotDiagnosticMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import javax.management.JMException;
import javax.management.ObjectName;

/** Functions that only HotSpot JVMs have. */
final class HotSpot {
    private static final String ANOTHER = "this JVM cannot dump its heap as HotSpot does (" + System.getProperty("java.vm.name")
            + "): the module jdk.management with com.sun.management.HotSpotDiagnosticMXBean is missing";

    private HotSpot() {}

    /** Runs a full GC, and then writes a dump of all reachable objects. */
    static void dump(Path file) {
        HotSpotDiagnosticMXBean bean = bean();
        try {
            bean.dumpHeap(file.toString(), true);
        } catch (IOException | RuntimeException e) {
            throw new HeapUndecidedException("the heap cannot be dumped to " + file + ": " + e, e);
        }
    }

    /** Saves the data of the running flight recordings. Returns false if nothing was saved. The path must not contain a quotation mark. */
    static boolean saveRecording(Path file) {
        String[] arguments = {"filename=\"" + file + "\""};
        try {
            // If no recording is running, this command fails. It does not start a recording.
            Object answer = ManagementFactory.getPlatformMBeanServer().invoke(
                    new ObjectName("com.sun.management:type=DiagnosticCommand"),
                    "jfrDump",
                    new Object[] {arguments},
                    new String[] {String[].class.getName()});
            return String.valueOf(answer).contains("Dumped recording");
        } catch (JMException | RuntimeException e) {
            // This JVM has no Flight Recorder.
            return false;
        }
    }

    /** Returns true if {@link System#gc()} runs a GC. */
    static boolean collectsWhenAsked() {
        return bean().getVMOption("DisableExplicitGC").getValue().equals("false");
    }

    /**
     * Returns true if heapdiff's agent is in this JVM. Always returns false on systems without {@code /proc/self/maps}.
     */
    static boolean hasAgent() {
        // Read the file as ISO 8859-1, which accepts all bytes, because a path can have any encoding.
        try (Stream<String> mapped = Files.lines(Path.of("/proc/self/maps"), StandardCharsets.ISO_8859_1)) {
            return mapped.anyMatch(line -> line.contains("heapdiff_agent"));
        } catch (IOException e) {
            return false;
        }
    }

    private static HotSpotDiagnosticMXBean bean() {
        HotSpotDiagnosticMXBean bean;
        try {
            bean = ManagementFactory.getPlatformMXBean(HotSpotDiagnosticMXBean.class);
        } catch (IllegalArgumentException | LinkageError e) {
            throw new HeapUndecidedException(ANOTHER, e);
        }
        if (bean == null) {
            throw new HeapUndecidedException(ANOTHER);
        }
        return bean;
    }
}
