package io.github.heapdiff.junit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.opentest4j.TestAbortedException;

/** Tests checks that cannot decide whether the heap grows, and tests which files a check leaves behind. */
@Timeout(120)
class UndecidedTest {
    @TempDir
    Path folder;

    @BeforeEach
    void reset() {
        Programs.reset();
    }

    @Test
    void aMissingProgramFailsAndAbortsOnRequest() {
        GrowthOptions options = GrowthOptions.defaults().withProgram(folder.resolve("missing"));
        String message = undecided(options);
        assertTrue(message.startsWith("heapdiff was not found: "), message);
        GrowthOptions lenient = options.withWhenUndecided(WhenUndecided.ABORT);
        assertThrows(TestAbortedException.class, () -> Heap.assertNoGrowth(lenient, () -> {}));
    }

    @Test
    void theProgramIsFoundByVariableThenPath() throws IOException {
        Path file = program("exit 0");
        GrowthOptions unset = unset();
        HeapdiffProgram.find(unset, Map.of("HEAPDIFF", file.toString()));
        HeapdiffProgram.find(unset, Map.of("PATH", folder.toString()));
        assertThrows(HeapUndecidedException.class, () -> HeapdiffProgram.find(unset, Map.of("PATH", "/nowhere")));
        assertThrows(
                HeapUndecidedException.class,
                () -> HeapdiffProgram.find(unset, Map.of("HEAPDIFF", "/nowhere", "PATH", folder.toString())));
    }

    @Test
    void aBrokenProgramDecidesNothing() throws IOException {
        GrowthOptions options = GrowthOptions.defaults();
        assertEquals("heapdiff ended with 3: no memory", undecided(options.withProgram(program("echo no memory >&2; exit 3"))));
        assertTrue(undecided(options.withProgram(program("echo '['"))).contains("cannot be read"));
        assertTrue(undecided(options.withProgram(program("echo '{}'"))).contains("schema"));
        String damaged = "echo '{\"schema\": \"heapdiff.diff/1\", \"comparable\": false, \"warnings\": [\"cut off\"]}'";
        assertTrue(undecided(options.withProgram(program(damaged))).contains("cut off"));
        GrowthOptions hasty = options.withTimeout(Duration.ofMillis(300));
        assertTrue(undecided(hasty.withProgram(program("exec sleep 60"))).contains("longer than 300 ms"));
    }

    @Test
    void unsuitableJvmsAreReported() throws Exception {
        String folderless = OneCheck.in(List.of("-Djava.io.tmpdir=/nowhere"), folder, "closeSession");
        assertTrue(folderless.contains("undecided: cannot create a folder for heap dumps: "), folderless);
        // Without the module jdk.management, the library treats this JVM like a JVM that is not HotSpot.
        String another = OneCheck.in(List.of("--limit-modules", "java.management"), folder, "closeSession");
        assertTrue(another.contains("undecided: this JVM cannot dump its heap as HotSpot does"), another);
        String small = OneCheck.in(List.of("-Xmx64m"), folder, "closeSession", "leakSession");
        assertTrue(small.contains("closeSession: passed") && small.contains("leakSession: failed: the heap grows"), small);
    }

    @Test
    void dumpsAreAlwaysDeleted() throws Throwable {
        List<Path> before = dumps();
        Heap.assertNoGrowth(() -> {});
        assertThrows(AssertionError.class, () -> Heap.assertNoGrowth(Programs::leakSession));
        undecided(GrowthOptions.defaults().withProgram(program("exit 3")));
        assertEquals(before, dumps());
    }

    @Test
    void keptDumpsAreNamed() throws IOException {
        GrowthOptions keeping = GrowthOptions.defaults().withKeepDumps(true);
        String message =
                assertThrows(AssertionError.class, () -> Heap.assertNoGrowth(keeping, Programs::leakSession)).getMessage();
        String kept = message.substring(message.indexOf("the dumps are in ") + "the dumps are in ".length());
        Path in = Path.of(kept);
        try (Stream<Path> files = Files.list(in)) {
            List<Path> all = files.sorted().collect(Collectors.toList());
            assertEquals(3, all.stream().filter(file -> file.toString().endsWith(".hprof")).count());
            for (Path file : all) {
                Files.delete(file);
            }
        }
        Files.delete(in);
    }

    @Test
    void invalidJsonIsRefused() throws JsonReader.MalformedJsonException {
        assertEquals(
                Map.of("a", List.of(1L, -2L, "x\n\u00e9", true), "b", 1.5),
                new JsonReader(" {\"a\": [1, -2, \"x\\n\\u00e9\", true], \"b\": 1.5} ").read());
        for (String text : List.of("", "[", "{\"a\"}", "[1,]", "\"\\x\"", "\"\\u00g0\"", "nul", "1 2", "99999999999999999999",
                "[".repeat(100_000), "-")) {
            assertThrows(JsonReader.MalformedJsonException.class, () -> new JsonReader(text).read(), text);
        }
    }

    /** Returns the default options, without the heapdiff program that the other tests use. */
    private static GrowthOptions unset() {
        String set = System.clearProperty("heapdiff.program");
        try {
            return GrowthOptions.defaults();
        } finally {
            if (set != null) {
                System.setProperty("heapdiff.program", set);
            }
        }
    }

    private static String undecided(GrowthOptions options) {
        return assertThrows(HeapUndecidedException.class, () -> Heap.assertNoGrowth(options, () -> {})).getMessage();
    }

    /** Creates a script that replaces heapdiff. */
    private Path program(String line) throws IOException {
        Path file = folder.resolve("heapdiff");
        Files.writeString(file, "#!/bin/sh\n" + line + "\n");
        assertTrue(file.toFile().setExecutable(true));
        return file;
    }

    private static List<Path> dumps() throws IOException {
        String ours = "heapdiff-junit-" + ProcessHandle.current().pid() + "-";
        try (Stream<Path> files = Files.list(Path.of(System.getProperty("java.io.tmpdir")))) {
            return files.filter(file -> file.getFileName().toString().startsWith(ours)).sorted()
                    .collect(Collectors.toList());
        }
    }
}
