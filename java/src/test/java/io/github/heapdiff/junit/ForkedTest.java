package io.github.heapdiff.junit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/** Tests snapshots by forked children, and the fallback if no child can be forked. */
@Timeout(120)
@EnabledOnOs(OS.LINUX)
class ForkedTest {
    private static final GrowthOptions FORKED = GrowthOptions.defaults().withForking(Forking.ALWAYS);

    @TempDir
    Path folder;

    @BeforeEach
    void reset() {
        Programs.reset();
    }

    @Test
    void leaksAreFoundInForkedSnapshots() throws IOException {
        GrowthOptions watched = FORKED.withProgram(watched(""));
        String message = growth(watched);
        assertTrue(message.contains("Programs.SESSIONS grew by") && message.contains("+10 objects"), message);
        assertEquals(
                List.of("dump", "dump", "diff", "dump", "summarize", "dump", "summarize", "dump", "summarize", "dump", "summarize",
                        "dump", "diff", "diff"),
                asked());
    }

    @Test
    void unreachableObjectsAndObjectsThatWaitForACleanerPass() throws Throwable {
        Heap.assertNoGrowth(FORKED, Programs::closeSession);
        Heap.assertNoGrowth(FORKED, Programs::cleanedOnce);
        Heap.assertNoGrowth(FORKED, Programs::softly);
        Heap.assertNoGrowth(FORKED, Programs::weakly);
        Heap.assertNoGrowth(FORKED, Programs::redeploy);
    }

    @Test
    void theJvmWritesTheDumpIfForkingFails() throws Exception {
        Path first = watched("[ $1 = dump ] && echo no room >&2 && exit 3");
        String said = OneCheck.in(List.of(agent(), "-Dheapdiff.program=" + first), folder, "leakSession", "closeSession");
        assertTrue(said.contains("leakSession: failed: the heap grows") && said.contains("closeSession: passed"), said);
        // After a failed attempt to fork a child, the library does not try again in this JVM.
        assertEquals("dump", asked().get(0));
        assertEquals(1, asked().stream().filter("dump"::equals).count());
        String why = assertThrows(HeapUndecidedException.class, () -> Heap.assertNoGrowth(FORKED.withProgram(first), () -> {}))
                .getMessage();
        assertEquals("no forked child could write the heap dump: heapdiff dump --fork ended with 3: no room", why);
    }

    @Test
    void snapshotsOfTwoKindsAreNotCompared() throws Exception {
        Path third = watched("[ $1 = dump ] && [ $(grep -c dump log.txt) = 3 ] && exit 3");
        String said = OneCheck.in(List.of(agent(), "-Dheapdiff.program=" + third), folder, "leakSession");
        assertTrue(said.contains("leakSession: failed: the heap grows") && said.contains("+10 objects"), said);
        // The first comparison uses two forked dumps. The third fork fails, and then the library compares only dumps that the JVM wrote.
        assertEquals(
                List.of("dump", "dump", "diff", "dump", "diff", "summarize", "summarize", "summarize", "summarize", "diff", "diff"),
                asked());
        List<String> lines = Files.readAllLines(folder.resolve("log.txt"));
        assertTrue(lines.get(4).contains("1.hprof") && !lines.get(4).contains("3.hprof"), lines.get(4));
    }

    @Test
    void theJvmWritesTheDumpIfExplicitGcIsDisabled() throws Exception {
        List<String> options = List.of(agent(), "-XX:+DisableExplicitGC");
        String said = OneCheck.in(options, folder, "cleanedOnce", "closeSession", "leakSession");
        assertTrue(said.contains("cleanedOnce: passed") && said.contains("closeSession: passed"), said);
        assertTrue(said.contains("leakSession: failed: the heap grows"), said);
        String forced = OneCheck.in(List.of("-XX:+DisableExplicitGC", "-Dheapdiff.fork=always"), folder, "cleanedOnce");
        assertTrue(forced.contains("cleanedOnce: undecided: no forked child could write the heap dump: explicit GC is disabled"), forced);
    }

    @Test
    void anAgentIsUsedOnlyIfItIsLoaded() throws Exception {
        String program = "-Dheapdiff.program=" + watched("");
        assertEquals("closeSession: passed", OneCheck.in(List.of(program), folder, "closeSession").strip());
        String never = OneCheck.in(List.of(agent(), "-Dheapdiff.fork=never", program), folder, "closeSession");
        assertTrue(never.contains("closeSession: passed"), never);
        assertEquals(List.of("diff", "diff"), asked());
        String with = OneCheck.in(List.of(agent(), program), folder, "closeSession");
        assertTrue(with.contains("closeSession: passed"), with);
        assertEquals(List.of("diff", "diff", "dump", "dump", "diff"), asked());
    }

    private static String growth(GrowthOptions options) {
        return assertThrows(AssertionError.class, () -> Heap.assertNoGrowth(options, Programs::leakSession)).getMessage();
    }

    /** Returns the option that starts a JVM with the agent. */
    static String agent() throws IOException {
        Process program =
                new ProcessBuilder(HeapdiffProgram.find(GrowthOptions.defaults()).file().toString(), "agent").start();
        return "-agentpath:" + new String(program.getInputStream().readAllBytes(), StandardCharsets.UTF_8).strip();
    }

    /** Creates a script that logs its arguments, runs {@code first}, and then runs heapdiff. */
    private Path watched(String first) throws IOException {
        String program = HeapdiffProgram.find(GrowthOptions.defaults()).file().toString();
        Path file = folder.resolve("watched");
        Files.writeString(file, String.format(
                "#!/bin/sh%ncd '%s'%necho \"$@\" >> log.txt%n%s%nexec '%s' \"$@\"%n", folder, first, program));
        assertTrue(file.toFile().setExecutable(true));
        return file;
    }

    /** Returns the heapdiff commands that ran, in order. */
    private List<String> asked() throws IOException {
        return Files.readAllLines(folder.resolve("log.txt")).stream()
                .map(line -> line.split(" ")[0])
                .collect(Collectors.toList());
    }
}
