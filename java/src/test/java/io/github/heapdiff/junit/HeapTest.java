package io.github.heapdiff.junit;

import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;

/** Of each rule, work that fails and work that does not. */
@Timeout(120)
class HeapTest {
    @BeforeEach
    @AfterEach
    void reset() {
        Programs.reset();
    }

    @Test
    void whatIsAddedWithEachRoundFails() {
        String message = failure(Programs::leakSession);
        assertContains(message, "the heap grows with each round: io.github.heapdiff.junit.Programs.SESSIONS grew by ");
        assertContains(message, "bytes in 10 rounds");
        assertContains(message, "root      static io.github.heapdiff.junit.Programs");
        assertContains(message, "path      io.github.heapdiff.junit.Programs.SESSIONS");
        assertContains(message, "java.util.ArrayList.elementData");
        assertContains(message, "+10 objects");
    }

    @Test
    void aLeakThatOneStepIsTooShortForFails() {
        // 10 kB in a step, 20 kB in both.
        assertContains(failure(() -> Programs.SESSIONS.add(new byte[2000])), "+10 objects");
    }

    @Test
    void whatIsTakenOutAgainPasses() throws Throwable {
        Heap.assertNoGrowth(Programs::closeSession);
    }

    @Test
    void whatGrowsInOneStepOnlyPasses() throws Throwable {
        Heap.assertNoGrowth(Programs.once(7));
        Heap.assertNoGrowth(Programs.once(12));
    }

    @Test
    void lazyInitialisationPasses() throws Throwable {
        Heap.assertNoGrowth(GrowthOptions.defaults().withWarmUp(0), Programs::lazily);
        Heap.assertNoGrowth(GrowthOptions.defaults().withWarmUp(0), Programs::reflection);
    }

    @Test
    void aBufferThatIsLargerEachTimeFails() throws Throwable {
        assertContains(failure(Programs::growBuffer), "Programs.buffer");
        Heap.assertNoGrowth(Programs::renewBuffer);
    }

    @Test
    void aCacheThatFillsPassesAndOneWithoutAnEndFails() throws Throwable {
        Heap.assertNoGrowth(GrowthOptions.defaults().withWarmUp(0), Programs.randomKeys());
        Heap.assertNoGrowth(GrowthOptions.defaults().withWarmUp(0), Programs.leastRecentlyUsed());
        Programs.reset();
        assertContains(failure(Programs.newKeys()), "Programs.PRICES");
    }

    @Test
    void whatOnlySoftReferencesHoldPasses() throws Throwable {
        Heap.assertNoGrowth(Programs::softly);
    }

    @Test
    void whatACleanerHasStillToCleanPasses() throws Throwable {
        Heap.assertNoGrowth(Programs::cleanedOnce);
        assertContains(failure(Programs::neverCleaned), "+10 objects");
    }

    @Test
    void loadersThatStayFail() throws Throwable {
        String message = failure(Programs::redeployAndKeep);
        assertContains(message, "Programs.LOADED");
        assertContains(message, "loader");
        Programs.reset();
        Heap.assertNoGrowth(Programs::redeploy);
    }

    @Test
    void nothingOfTheLibrarysIsNamedAsHolder(@TempDir Path folder) throws Exception {
        // A JVM without those who run tests, which refer to threads as well.
        String said = OneCheck.in(List.of(), folder, "neverCleaned");
        assertContains(said, "neverCleaned: failed: the heap grows with each round: io.github.heapdiff.junit.Programs.CLEANER grew by");
    }

    @Test
    void whatThreadsKeepFails() {
        assertContains(failure(Programs::leakToAThread), "Programs.OF_THREAD grew by");
        assertContains(failure(Programs::leakThreadLocals), "java.lang.Thread.threadLocals grew by");
    }

    @Test
    void toleratedGrowthPasses() throws Throwable {
        GrowthOptions tolerant = GrowthOptions.defaults().withToleratedBytes(1 << 20);
        Heap.assertNoGrowth(tolerant, Programs::leakSession);
        Programs.reset();
        assertThrows(
                AssertionError.class, () -> Heap.assertNoGrowth(tolerant.withToleratedBytes(20_000), Programs::leakSession));
    }

    @Test
    void knownGrowthPasses(@TempDir Path folder) throws Throwable {
        Path rules = Files.writeString(folder.resolve("known.txt"), "holder io.github.heapdiff.junit.Programs.SESSIONS\n");
        Heap.assertNoGrowth(GrowthOptions.defaults().withIgnore(rules), Programs::leakSession);
    }

    @Test
    void whatTheWorkThrowsIsThrown() {
        IllegalStateException thrown = new IllegalStateException("the work");
        assertSame(thrown, assertThrows(IllegalStateException.class, () -> Heap.assertNoGrowth(() -> {
            throw thrown;
        })));
    }

    @Test
    void workRunsInRounds() throws Throwable {
        int[] rounds = {0};
        Heap.assertNoGrowth(GrowthOptions.defaults().withWarmUp(2).withRounds(3), () -> rounds[0]++);
        // The second step is left out where next to nothing grew in the first.
        assertTrue(rounds[0] == 5 || rounds[0] == 8, () -> rounds[0] + " rounds");
        assertThrows(IllegalArgumentException.class, () -> GrowthOptions.defaults().withRounds(0));
    }

    @Test
    void aCheckInACheckIsRefused() {
        assertThrows(IllegalStateException.class, () -> Heap.assertNoGrowth(() -> Heap.assertNoGrowth(() -> {})));
    }

    private static String failure(Executable work) {
        return assertThrows(AssertionError.class, () -> Heap.assertNoGrowth(work)).getMessage();
    }

    private static void assertContains(String message, String part) {
        assertTrue(message.contains(part), () -> "`" + part + "` is not in:\n" + message);
    }
}
