package io.github.heapdiff.junit;

import java.util.Objects;
import java.util.concurrent.Semaphore;
import org.junit.jupiter.api.function.Executable;
import org.opentest4j.TestAbortedException;

/** Assertions about the growth of this JVM's heap. {@link HeapSnapshots} has assertions about single objects. */
public final class Heap {
    /**
     * Lets only one check run at a time, because each of two parallel checks would see the other's objects. This is a semaphore and not a
     * lock, because a lock refers to its owner thread: reports would show the lock as a holder of all objects that the thread reaches.
     */
    private static final Semaphore ONE_AT_A_TIME = new Semaphore(1);

    /** The id of the thread that runs a check, or 0. */
    private static volatile long checking;

    private Heap() {}

    /** Like {@link #assertNoGrowth(GrowthOptions, Executable)}, with {@link GrowthOptions#defaults()}. */
    public static void assertNoGrowth(Executable work) throws Throwable {
        assertNoGrowth(GrowthOptions.defaults(), work);
    }

    /**
     * Repeats the work in rounds, and fails if the content of one holder grows in at least half of the measured rounds.
     * The holder is the field whose content grows. {@link GrowthOptions#withMinGrowingShare} sets another minimum.
     *
     * @throws AssertionError if the heap grows; the message contains the holder, its path from a GC root, and its
     *     growth
     * @throws HeapUndecidedException if no decision is possible and the options have {@link WhenUndecided#FAIL}
     * @throws Throwable if {@code work} throws it
     */
    public static void assertNoGrowth(GrowthOptions options, Executable work) throws Throwable {
        Objects.requireNonNull(work);
        exclusively(options, "Heap.assertNoGrowth", () -> GrowthCheck.run(options, work));
    }

    /**
     * Runs a check while no other check runs. If the check cannot decide whether the test passes and the options have
     * {@link WhenUndecided#ABORT}, aborts the test.
     */
    static <X extends Throwable> void exclusively(GrowthOptions options, String name, Check<X> check) throws X {
        long current = Thread.currentThread().getId();
        if (checking == current) {
            throw new IllegalStateException(name + " cannot be called inside the work of Heap.assertNoGrowth");
        }
        ONE_AT_A_TIME.acquireUninterruptibly();
        checking = current;
        try {
            check.run();
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

    /** A check that can throw {@code X}. */
    interface Check<X extends Throwable> {
        void run() throws X;
    }
}
