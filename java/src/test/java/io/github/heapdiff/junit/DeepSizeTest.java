package io.github.heapdiff.junit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.ref.SoftReference;
import java.lang.ref.WeakReference;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.opentest4j.TestAbortedException;

/** Tests {@link HeapSnapshots#deepSizeOf}. */
@Timeout(120)
class DeepSizeTest {
    /** Size in bytes of each byte array in these tests: the header and 1000 elements. */
    private static final long ARRAY = 16 + 1000;

    @TempDir
    Path folder;

    static final class Node {
        final byte[] kept = new byte[1000];
        transient byte[] cached = new byte[1000];
        byte[] plain = new byte[1000];
        Object other;
        Object shared = Thread.State.NEW;
    }

    @Test
    void eachObjectCountsOnce() {
        byte[] array = new byte[1000];
        assertEquals(ARRAY, HeapSnapshots.deepSizeOf(array));
        List<Object> list = new ArrayList<>(List.of(array));
        long one = HeapSnapshots.deepSizeOf(list);
        list.set(0, new Object[] {array, array, list});
        long two = HeapSnapshots.deepSizeOf(list);
        // The list also reaches the new array: a header, three references of 4 bytes, and 4 bytes of padding.
        assertEquals(one + 16 + 3 * 4 + 4, two);
    }

    @Test
    void fieldsAreLeftOut() {
        Node node = new Node();
        long all = HeapSnapshots.deepSizeOf(node);
        assertTrue(all > 3 * ARRAY, "" + all);
        assertEquals(all - ARRAY, HeapSnapshots.deepSizeOf(node, Skip.TRANSIENT));
        assertEquals(all - ARRAY, HeapSnapshots.deepSizeOf(node, Skip.FINAL) + enumConstant());
        long few = HeapSnapshots.deepSizeOf(node, Skip.FLYWEIGHTS, Skip.FINAL, Skip.TRANSIENT, Skip.TRANSIENT);
        assertEquals(all - 2 * ARRAY, few + HeapSnapshots.deepSizeOf(Thread.State.NEW));
    }

    /** Returns the bytes that {@link Thread.State#NEW} reaches only through final fields: the bytes of its name. */
    private static long enumConstant() {
        return HeapSnapshots.deepSizeOf(Thread.State.NEW) - HeapSnapshots.deepSizeOf(Thread.State.NEW, Skip.FINAL);
    }

    @Test
    void softReferencesAreFollowedAndWeakOnesAreNot() {
        byte[] array = new byte[1000];
        Object[] none = {new SoftReference<>(null), new WeakReference<>(null)};
        Object[] both = {new SoftReference<>(array), new WeakReference<>(new byte[1000])};
        long difference = HeapSnapshots.deepSizeOf(both) - HeapSnapshots.deepSizeOf(none);
        assertEquals(ARRAY, difference);
        assertEquals(1000, array.length);
    }

    @Test
    void theSizeEqualsThatOfTheCommand() throws Exception {
        Map<Integer, Object> map = new java.util.HashMap<>();
        for (int i = 0; i < 1000; i++) {
            map.put(i, new Node());
        }
        GrowthOptions keep = GrowthOptions.defaults().withKeepDumps(true);
        long size = HeapSnapshots.deepSizeOf(keep, map, Skip.FLYWEIGHTS);
        Path kept = newest();
        Path report = folder.resolve("report.json");
        Process command = new ProcessBuilder(
                        HeapdiffProgram.find(keep).file().toString(),
                        "sizeof",
                        kept.resolve("1.hprof").toString(),
                        DeepSize.class.getName() + ".measured",
                        "--skip-flyweights",
                        "--format",
                        "json",
                        "-o",
                        report.toString())
                .inheritIO()
                .start();
        assertTrue(command.waitFor(60, TimeUnit.SECONDS));
        assertTrue(Files.readString(report).contains("\"deep_bytes\": " + size), "" + size);
        try (Stream<Path> files = Files.list(kept)) {
            for (Path file : (Iterable<Path>) files::iterator) {
                Files.delete(file);
            }
        }
        Files.delete(kept);
    }

    /** Returns the newest folder with dumps of this JVM. */
    private static Path newest() throws Exception {
        String start = "heapdiff-junit-" + ProcessHandle.current().pid() + "-";
        try (Stream<Path> folders = Files.list(Path.of(System.getProperty("java.io.tmpdir")))) {
            return folders.filter(path -> path.getFileName().toString().startsWith(start))
                    .max((a, b) -> Long.compare(a.toFile().lastModified(), b.toFile().lastModified()))
                    .orElseThrow();
        }
    }

    @Test
    void withoutTheProgramThereIsNoSize() {
        GrowthOptions none = GrowthOptions.defaults().withProgram(folder.resolve("none"));
        assertThrows(HeapUndecidedException.class, () -> HeapSnapshots.deepSizeOf(none, this));
        GrowthOptions abort = none.withWhenUndecided(WhenUndecided.ABORT);
        assertThrows(TestAbortedException.class, () -> HeapSnapshots.deepSizeOf(abort, this));
        assertThrows(NullPointerException.class, () -> HeapSnapshots.deepSizeOf(null));
    }
}
