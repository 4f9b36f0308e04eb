package io.github.heapdiff.junit;

import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.Semaphore;
import org.junit.jupiter.api.function.Executable;
import org.opentest4j.TestAbortedException;

/** Assertions about what stays in the heap of this JVM. */
public final class Heap {
    /**
     * Two checks at a time would see each other's objects. No lock that refers to its owner: all that a thread leads to would seem to be
     * held here.
     */
    private static final Semaphore ONE_AT_A_TIME = new Semaphore(1);

    /** The number of the thread that checks; 0 is no thread's. */
    private static volatile long checking;

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
        long current = Thread.currentThread().getId();
        if (checking == current) {
            throw new IllegalStateException("the work of one check of the heap begins another one");
        }
        ONE_AT_A_TIME.acquireUninterruptibly();
        checking = current;
        try {
            check(options, work);
        } catch (HeapUndecidedException undecided) {
            if (options.whenUndecided() == WhenUndecided.ABORT) {
                throw new TestAbortedException(undecided.getMessage(), undecided);
            }
            throw undecided;
        } finally {
            checking = 0;
            ONE_AT_A_TIME.release();
        }
    }

    /** Two steps of equal work, with a snapshot before, between and after them. */
    private static void check(GrowthOptions options, Executable work) throws Throwable {
        HeapdiffProgram program = HeapdiffProgram.find(options);
        try (HeapSnapshots snapshots = new HeapSnapshots(options)) {
            repeat(work, options.warmUp());
            snapshots.take(program);
            while (snapshots.dumps().size() < 3) {
                repeat(work, options.rounds());
                snapshots.take(program);
                // What did not grow in the first step did not grow in each: two snapshots can acquit, only three convict.
                if (snapshots.dumps().size() == 2 && !mayGrow(program.compare(snapshots), options)) {
                    return;
                }
            }
            List<Suspect> growing = Suspect.growingWithRounds(program.compare(snapshots), options);
            if (!growing.isEmpty()) {
                throw new AssertionError(GrowthMessage.of(growing, options, snapshots.keptIn()));
            }
        }
    }

    private static boolean mayGrow(Map<?, ?> step, GrowthOptions options) {
        return Suspect.mayAppear(step) || !Suspect.growingWithRounds(step, options).isEmpty();
    }

    private static void repeat(Executable work, int rounds) throws Throwable {
        for (int round = 0; round < rounds; round++) {
            work.execute();
        }
    }
}
