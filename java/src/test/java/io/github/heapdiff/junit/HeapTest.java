package io.github.heapdiff.junit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;

/** Tests each rule of a growth check with code that must fail the check, and with code that must pass it. */
@Timeout(120)
class HeapTest {
    private static final GrowthOptions TEN_ROUNDS = GrowthOptions.defaults().withRounds(10).withWarmUp(0);

    @BeforeEach
    @AfterEach
    void reset() {
        Programs.reset();
    }

    @Test
    void growthInEachRoundFails() {
        String message = failure(Programs::leakSession);
        assertContains(message, "the heap grows with each round: io.github.heapdiff.junit.Programs.SESSIONS grew by ");
        assertContains(message, "bytes in 10 rounds");
        assertContains(message, "root      static io.github.heapdiff.junit.Programs");
        assertContains(message, "path      io.github.heapdiff.junit.Programs.SESSIONS");
        assertContains(message, "java.util.ArrayList.elementData");
        assertContains(message, "+10 objects");
    }

    @Test
    void aSmallLeakFailsAfterTheSecondStep() {
        // The work leaks 10 kB in one step, and 20 kB in both steps together.
        assertContains(failure(() -> Programs.SESSIONS.add(new byte[2000])), "+10 objects");
    }

    @Test
    void removedObjectsPass() throws Throwable {
        Heap.assertNoGrowth(Programs::closeSession);
    }

    @Test
    void growthInOneStepOnlyPasses() throws Throwable {
        Heap.assertNoGrowth(Programs.at(7));
        Heap.assertNoGrowth(Programs.at(12));
    }

    @Test
    void growthInMostRoundsFails() {
        String message = failure(TEN_ROUNDS, Programs.someOf(9, 10));
        assertContains(message, "the heap grows in 9 of 10 measured rounds: io.github.heapdiff.junit.Programs.PRICES grew by ");
        assertContains(message, "+18 objects");
        Programs.reset();
        assertContains(failure(TEN_ROUNDS, Programs.someOf(4, 5)), "rounds    grew in 8 of 10 measured rounds");
        Programs.reset();
        assertContains(failure(TEN_ROUNDS, Programs.someOf(1, 2)), "rounds    grew in 5 of 10 measured rounds");
        Programs.reset();
        assertContains(failure(TEN_ROUNDS, Programs.slowQueue()), "rounds    grew in 5 of 10 measured rounds");
    }

    @Test
    void aSmallerShareFailsOnlyOnRequest() throws Throwable {
        Heap.assertNoGrowth(TEN_ROUNDS, Programs.someOf(2, 5));
        Programs.reset();
        assertContains(failure(TEN_ROUNDS.withMinGrowingShare(0.4), Programs.someOf(2, 5)), "grew in 4 of 10 measured rounds");
        Programs.reset();
        Heap.assertNoGrowth(TEN_ROUNDS.withMinGrowingShare(1), Programs.someOf(9, 10));
        for (double share : new double[] {0, -0.1, 1.1, Double.NaN}) {
            assertThrows(IllegalArgumentException.class, () -> TEN_ROUNDS.withMinGrowingShare(share));
        }
    }

    @Test
    void growthInOneRoundOfEachStepPasses() throws Throwable {
        Heap.assertNoGrowth(Programs.at(7, 12));
        Programs.reset();
        Heap.assertNoGrowth(Programs.loadClassesAt(7, 12));
        Programs.reset();
        Heap.assertNoGrowth(Programs.pool());
    }

    @Test
    void loadedClassesPass() throws Throwable {
        Heap.assertNoGrowth(Programs.loadClassesAt(7));
        Programs.reset();
        Heap.assertNoGrowth(Programs.loadClassesAt(12));
    }

    /**
     * The second check starts with the same keys as the first check. So the first rounds of the second check do not
     * make the map grow.
     */
    @Test
    void aLeakThatAnEarlierCheckWarmedUpFails() throws Throwable {
        assertContains(failure(TEN_ROUNDS, Programs.newKeys()), "Programs.PRICES grew by");
        assertContains(failure(Programs.newKeys()), "Programs.PRICES grew by");
        assertContains(failure(Programs.someOf(4, 5)), "Programs.PRICES grew by");
        Heap.assertNoGrowth(Programs.leastRecentlyUsed());
    }

    @Test
    void aCheckThatPassesPrintsGrowthAboveNoise() throws Throwable {
        String fewRounds = printed(TEN_ROUNDS, Programs.someOf(2, 5));
        assertContains(fewRounds, "heapdiff: the test passes, but io.github.heapdiff.junit.Programs.PRICES grew by ");
        assertContains(fewRounds, "bytes in 20 rounds: it grew in only 4 of 10 measured rounds, but minGrowingShare is 0.5");
        Programs.reset();
        String tolerated = printed(GrowthOptions.defaults().withToleratedBytes(1 << 20), Programs::leakSession);
        assertContains(tolerated, "Programs.SESSIONS grew by 100,160 bytes in 10 rounds: the growth is at most toleratedBytes (1,048,576)");
        Programs.reset();
        assertEquals("", printed(GrowthOptions.defaults(), Programs::closeSession));
    }

    /**
     * If a step has more than MOST_MEASURED rounds, only the last MOST_MEASURED rounds of the second step are measured.
     */
    @Test
    void manyRoundsAreNotAllMeasured() {
        GrowthOptions many = GrowthOptions.defaults().withWarmUp(0).withRounds(2 * GrowthCheck.MOST_MEASURED);
        assertContains(failure(many, Programs.someOf(3, 4)), "rounds    grew in 37 of 50 measured rounds");
    }

    @Test
    void lazyInitialisationPasses() throws Throwable {
        Heap.assertNoGrowth(GrowthOptions.defaults().withWarmUp(0), Programs::lazily);
        Heap.assertNoGrowth(GrowthOptions.defaults().withWarmUp(0), Programs::reflection);
    }

    @Test
    void aGrowingBufferFails() throws Throwable {
        assertContains(failure(Programs::growBuffer), "Programs.buffer");
        Heap.assertNoGrowth(Programs::renewBuffer);
    }

    @Test
    void aFillingCachePassesAndAnUnboundedOneFails() throws Throwable {
        Heap.assertNoGrowth(GrowthOptions.defaults().withWarmUp(0), Programs.randomKeys());
        Heap.assertNoGrowth(GrowthOptions.defaults().withWarmUp(0), Programs.leastRecentlyUsed());
        Programs.reset();
        assertContains(failure(Programs.newKeys()), "Programs.PRICES");
    }

    @Test
    void softlyReachableObjectsPass() throws Throwable {
        Heap.assertNoGrowth(Programs::softly);
    }

    @Test
    void objectsThatWaitForACleanerPass() throws Throwable {
        Heap.assertNoGrowth(Programs::cleanedOnce);
        assertContains(failure(Programs::neverCleaned), "+10 objects");
    }

    @Test
    void leakedClassLoadersFail() throws Throwable {
        String message = failure(Programs::redeployAndKeep);
        assertContains(message, "Programs.LOADED");
        assertContains(message, "loader");
        Programs.reset();
        Heap.assertNoGrowth(Programs::redeploy);
    }

    @Test
    void theLibraryIsNeverNamedAsHolder(@TempDir Path folder) throws Exception {
        // The check runs in a JVM without a test runner, because a test runner refers to threads and could be named as
        // the holder.
        String said = OneCheck.in(List.of(), folder, "neverCleaned");
        assertContains(said, "neverCleaned: failed: the heap grows with each round: io.github.heapdiff.junit.Programs.CLEANER grew by");
    }

    @Test
    void objectsKeptByThreadsFail() {
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
    void exceptionsOfTheWorkAreRethrown() {
        IllegalStateException thrown = new IllegalStateException("the work");
        assertSame(thrown, assertThrows(IllegalStateException.class, () -> Heap.assertNoGrowth(() -> {
            throw thrown;
        })));
    }

    @Test
    void workRunsInRounds() throws Throwable {
        int[] rounds = {0};
        Heap.assertNoGrowth(GrowthOptions.defaults().withWarmUp(2).withRounds(3), () -> rounds[0]++);
        // The second step is skipped if almost nothing grew in the first step.
        assertTrue(rounds[0] == 5 || rounds[0] == 8, () -> rounds[0] + " rounds");
        assertThrows(IllegalArgumentException.class, () -> GrowthOptions.defaults().withRounds(0));
    }

    @Test
    void aCheckInACheckIsRefused() {
        assertThrows(IllegalStateException.class, () -> Heap.assertNoGrowth(() -> Heap.assertNoGrowth(() -> {})));
    }

    private static String failure(Executable work) {
        return failure(GrowthOptions.defaults(), work);
    }

    private static String failure(GrowthOptions options, Executable work) {
        return assertThrows(AssertionError.class, () -> Heap.assertNoGrowth(options, work)).getMessage();
    }

    /** Returns the output of a check that passes. */
    private static String printed(GrowthOptions options, Executable work) throws Throwable {
        PrintStream before = System.out;
        ByteArrayOutputStream output = new ByteArrayOutputStream();
        System.setOut(new PrintStream(output, true, StandardCharsets.UTF_8));
        try {
            Heap.assertNoGrowth(options, work);
        } finally {
            System.setOut(before);
        }
        return output.toString(StandardCharsets.UTF_8);
    }

    private static void assertContains(String message, String part) {
        assertTrue(message.contains(part), () -> "`" + part + "` is not in:\n" + message);
    }
}
