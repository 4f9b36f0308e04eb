package io.github.heapdiff.junit;

import com.sun.management.HotSpotDiagnosticMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;

/** What only HotSpot JVMs can do and tell. */
final class HotSpot {
    private static final String ANOTHER = "this JVM cannot dump its heap as HotSpot does (" + System.getProperty("java.vm.name")
            + "): the module jdk.management with com.sun.management.HotSpotDiagnosticMXBean is missing";

    private HotSpot() {}

    /** Writes what is reachable, after a collection of the whole heap. */
    static void dump(Path file) {
        HotSpotDiagnosticMXBean bean = bean();
        try {
            bean.dumpHeap(file.toString(), true);
        } catch (IOException | RuntimeException e) {
            throw new HeapUndecidedException("the heap cannot be dumped to " + file + ": " + e, e);
        }
    }

    /** Whether {@link System#gc()} does what it says. */
    static boolean collectsWhenAsked() {
        return bean().getVMOption("DisableExplicitGC").getValue().equals("false");
    }

    /** Whether heapdiff's agent is in this JVM, as far as Linux tells. */
    static boolean hasAgent() {
        // Paths may be in any encoding.
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
