package io.github.heapdiff.junit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.ref.WeakReference;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;
import org.opentest4j.TestAbortedException;

/** Tests {@link HeapSnapshots#assertCollected}. */
@Timeout(120)
class CollectedTest {
    @TempDir
    Path folder;

    static final class Order {
        final int number = 7;
    }

    static final Map<Integer, Object> OPEN = new HashMap<>();

    @BeforeEach
    void reset() {
        Programs.reset();
        OPEN.clear();
    }

    @Test
    void collectedObjectsPass() throws Throwable {
        HeapSnapshots.assertCollected(Order::new);
        HeapSnapshots.assertCollected(new Order());
        HeapSnapshots.assertCollected(new WeakReference<>(new Order()));
        HeapSnapshots.assertCollected(() -> {
            Order order = new Order();
            OPEN.put(1, order);
            OPEN.remove(1);
            return order;
        });
    }

    @Test
    void thePathOfAnObjectIsInTheMessage() {
        OPEN.put(1, new Order());
        String message = assertThrows(AssertionError.class, () -> HeapSnapshots.assertCollected(OPEN.get(1))).getMessage();
        String order = Order.class.getName();
        String here = CollectedTest.class.getName();
        assertStartsWith(message, order + " was not collected in 6 GCs, because this path keeps it alive:");
        for (String part : List.of(
                "root      static " + here,
                "path      " + here + ".OPEN = java.util.HashMap",
                "java.util.HashMap.table = java.util.HashMap$Node[]",
                "java.util.HashMap$Node.value = " + order,
                "allocated unknown; to see the stack, start the JVM with -XX:StartFlightRecording:settings=profile")) {
            assertContains(message, part);
        }
        WeakReference<?> reference = new WeakReference<>(OPEN.get(1));
        assertEquals(message, assertThrows(AssertionError.class, () -> HeapSnapshots.assertCollected(reference)).getMessage());
        OPEN.clear();
        HeapSnapshots.assertCollected(reference);
    }

    @Test
    void aLocalVariableIsNamed() {
        Order order = new Order();
        String message = assertThrows(
                        AssertionError.class, () -> HeapSnapshots.assertCollected(new WeakReference<>(order)))
                .getMessage();
        assertContains(message, "in        " + CollectedTest.class.getName() + ".");
        assertContains(message, "(CollectedTest.java:");
        assertContains(message, "a lambda can create the object");
        assertEquals(7, order.number);
    }

    @Test
    void arraysAreNamedAsInJava() {
        String message = assertThrows(
                        AssertionError.class,
                        () -> HeapSnapshots.assertCollected(() -> {
                            Programs.leakSession();
                            return Programs.SESSIONS.get(0);
                        }))
                .getMessage();
        assertStartsWith(message, "byte[] was not collected");
        assertContains(message, "Programs.SESSIONS = java.util.ArrayList");
    }

    @Test
    void anObjectThatIsReleasedLaterPasses() throws Exception {
        OPEN.put(1, new Order());
        Thread later = new Thread(() -> {
            try {
                Thread.sleep(100);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            OPEN.clear();
        });
        later.start();
        HeapSnapshots.assertCollected(OPEN.get(1));
        later.join();
    }

    @Test
    void softlyReachableObjectsPass() throws Throwable {
        HeapSnapshots.assertCollected(() -> {
            Programs.softly();
            return ((java.lang.ref.SoftReference<?>) Programs.SOFT.get(0)).get();
        });
    }

    @Test
    void withoutTheProgramThereIsNoDecision() {
        OPEN.put(1, new Order());
        GrowthOptions none = GrowthOptions.defaults().withProgram(folder.resolve("none"));
        WeakReference<?> reference = new WeakReference<>(OPEN.get(1));
        assertThrows(HeapUndecidedException.class, () -> HeapSnapshots.assertCollected(none, reference));
        GrowthOptions abort = none.withWhenUndecided(WhenUndecided.ABORT);
        assertThrows(TestAbortedException.class, () -> HeapSnapshots.assertCollected(abort, reference));
        OPEN.clear();
        HeapSnapshots.assertCollected(none, reference);
    }

    @Test
    void exceptionsOfTheWorkAreRethrown() {
        IllegalStateException thrown = new IllegalStateException("the work");
        assertSame(thrown, assertThrows(IllegalStateException.class, () -> HeapSnapshots.assertCollected(() -> {
            throw thrown;
        })));
        assertThrows(NullPointerException.class, () -> HeapSnapshots.assertCollected(() -> null));
        assertThrows(
                IllegalStateException.class,
                () -> Heap.assertNoGrowth(() -> HeapSnapshots.assertCollected(new WeakReference<>(this))));
    }

    @Test
    void dumpsAreKeptOnRequest() throws Exception {
        OPEN.put(1, new Order());
        WeakReference<?> reference = new WeakReference<>(OPEN.get(1));
        GrowthOptions keep = GrowthOptions.defaults().withKeepDumps(true);
        String message = assertThrows(AssertionError.class, () -> HeapSnapshots.assertCollected(keep, reference)).getMessage();
        Path kept = Path.of(message.substring(message.indexOf("the dump is in ") + 15));
        assertTrue(Files.exists(kept.resolve("1.hprof")), message);
        try (var files = Files.list(kept)) {
            for (Path file : (Iterable<Path>) files::iterator) {
                Files.delete(file);
            }
        }
        Files.delete(kept);
    }

    @Test
    void flightRecorderNamesTheAllocatingStack() throws Exception {
        String said = OneCheck.in(List.of("-XX:StartFlightRecording:settings=profile"), folder, "closedSession", "openSession");
        assertContains(said, "closedSession: passed");
        assertContains(said, "openSession: failed: byte[] was not collected");
        assertContains(said, "allocated io.github.heapdiff.junit.Programs.openSession(line ");
        assertContains(said, "(probably: the stack of ");
    }

    @Test
    @EnabledOnOs(OS.LINUX)
    void theAgentNamesTheAllocatingStack() throws Exception {
        String said = OneCheck.in(List.of(ForkedTest.agent() + "=interval=0"), folder, "closedSession", "openSession");
        assertContains(said, "closedSession: passed");
        assertContains(said, "openSession: failed: byte[] was not collected");
        assertContains(said, "allocated io.github.heapdiff.junit.Programs.openSession(Programs.java:");
        assertFalse(said.contains("probably"), said);
    }

    private static void assertStartsWith(String message, String start) {
        assertTrue(message.startsWith(start), message);
    }

    private static void assertContains(String message, String part) {
        assertTrue(message.contains(part), () -> "`" + part + "` is not in:\n" + message);
    }
}
