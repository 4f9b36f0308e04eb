package io.github.heapdiff.junit;

import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.locks.ReentrantLock;
import org.junit.jupiter.api.function.Executable;
import org.opentest4j.TestAbortedException;

/** Assertions about what stays in the heap of this JVM. */
public final class Heap {
    /** Two checks at a time would see each other's objects. */
    private static final ReentrantLock ONE_AT_A_TIME = new ReentrantLock();

    private Heap() {}

    /** Fails when something in the heap grows with each round of the work; with {@link GrowthOptions#defaults()}. */
    public static void assertNoGrowth(Executable work) throws Throwable {
        assertNoGrowth(GrowthOptions.defaults(), work);
    }

    /**
     * Fails when something in the heap grows with each round of the work.
     *
     * @throws AssertionError if it does; the message has the holder, the path that keeps it alive, and its growth
     * @throws HeapUndecidedException if that cannot be told, unless the options say that the test is aborted
     * @throws Throwable what the work throws
     */
    public static void assertNoGrowth(GrowthOptions options, Executable work) throws Throwable {
        Objects.requireNonNull(work);
        if (ONE_AT_A_TIME.isHeldByCurrentThread()) {
            throw new IllegalStateException("the work of one check of the heap begins another one");
        }
        ONE_AT_A_TIME.lock();
        try {
            check(options, work);
        } catch (HeapUndecidedException undecided) {
            if (options.whenUndecided() == WhenUndecided.ABORT) {
                throw new TestAbortedException(undecided.getMessage(), undecided);
            }
            throw undecided;
        } finally {
            ONE_AT_A_TIME.unlock();
        }
    }

    /** Two steps of equal work, with a snapshot before, between and after them. */
    private static void check(GrowthOptions options, Executable work) throws Throwable {
        HeapdiffProgram program = HeapdiffProgram.find(options);
        try (HeapSnapshots snapshots = new HeapSnapshots(options.keepDumps())) {
            repeat(work, options.warmUp());
            snapshots.take();
            repeat(work, options.rounds());
            snapshots.take();
            // What did not grow in the first step did not grow in each: two snapshots can acquit, only three convict.
            Map<?, ?> step = program.compare(snapshots);
            if (Suspect.growingWithRounds(step, options).isEmpty() && !Suspect.mayAppear(step)) {
                return;
            }
            repeat(work, options.rounds());
            snapshots.take();
            List<Suspect> growing = Suspect.growingWithRounds(program.compare(snapshots), options);
            if (!growing.isEmpty()) {
                throw new AssertionError(GrowthMessage.of(growing, options, snapshots.keptIn()));
            }
        }
    }

    private static void repeat(Executable work, int rounds) throws Throwable {
        for (int round = 0; round < rounds; round++) {
            work.execute();
        }
    }
}
