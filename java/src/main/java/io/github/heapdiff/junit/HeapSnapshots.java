package io.github.heapdiff.junit;

import java.lang.ref.WeakReference;
import java.util.Objects;
import org.junit.jupiter.api.function.ThrowingSupplier;

/**
 * Assertions that single objects are garbage-collected, and measurements of deep sizes. For a deep size or the message
 * of a failed assertion, the library takes a heap dump of this JVM.
 */
public final class HeapSnapshots {
    private HeapSnapshots() {}

    /**
     * Fails if an object stays reachable. Create the object inside the lambda, so that no local variable of the test
     * keeps the object alive:
     *
     * <pre>{@code
     * HeapSnapshots.assertCollected(() -> {
     *     Order order = orders.open();
     *     orders.close(order);
     *     return order;
     * });
     * }</pre>
     *
     * @param work creates and returns the object
     * @throws AssertionError if the object stays reachable; the message contains the path that keeps the object alive,
     *     and, if the agent or Flight Recorder recorded allocations, the stack that allocated the object or other
     *     objects of its class
     * @throws HeapUndecidedException if no decision is possible and the options have {@link WhenUndecided#FAIL}
     * @throws Throwable if {@code work} throws it
     */
    public static void assertCollected(ThrowingSupplier<?> work) throws Throwable {
        assertCollected(GrowthOptions.defaults(), work);
    }

    /**
     * Like {@link #assertCollected(ThrowingSupplier)}, with options. Only the options program, keepDumps, forking,
     * whenUndecided and timeout have an effect.
     */
    public static void assertCollected(GrowthOptions options, ThrowingSupplier<?> work) throws Throwable {
        assertCollected(options, result(work));
    }

    /**
     * Fails if the object that {@code reference} refers to stays reachable. Passes if the reference is already cleared.
     */
    public static void assertCollected(WeakReference<?> reference) {
        assertCollected(GrowthOptions.defaults(), reference);
    }

    /**
     * Like {@link #assertCollected(WeakReference)}, with options. Only the options program, keepDumps, forking,
     * whenUndecided and timeout have an effect.
     */
    public static void assertCollected(GrowthOptions options, WeakReference<?> reference) {
        Objects.requireNonNull(reference);
        Heap.exclusively(options, "HeapSnapshots.assertCollected", () -> CollectedCheck.run(options, reference));
    }

    /**
     * Fails if {@code object} stays reachable.
     *
     * <p>The caller must not hold the object in a local variable, because the variable can keep the object alive until
     * the caller returns. Pass the result of a call directly, as in {@code assertCollected(cache.get(1))}.
     */
    public static void assertCollected(Object object) {
        WeakReference<?> reference = new WeakReference<>(Objects.requireNonNull(object));
        // From here on, this method's parameter does not keep the object alive.
        object = null;
        assertCollected(reference);
    }

    /**
     * Returns the deep size of {@code object} in bytes: its own size and the sizes of all objects that it reaches, each
     * counted once. {@code heapdiff sizeof} prints the same deep size for a dump of the same moment. Soft references
     * are followed, weak references are not.
     *
     * <p>A measurement takes a heap dump of this JVM, so its cost depends on the size of the whole heap.
     *
     * @param skipped the kinds of fields and values to leave out
     * @throws HeapUndecidedException if the size cannot be measured, for example because no dump can be written, and
     *     the options have {@link WhenUndecided#FAIL}
     */
    public static long deepSizeOf(Object object, Skip... skipped) {
        return deepSizeOf(GrowthOptions.defaults(), object, skipped);
    }

    /**
     * Like {@link #deepSizeOf(Object, Skip...)}, with options. Only the options program, keepDumps, forking,
     * whenUndecided and timeout have an effect.
     */
    public static long deepSizeOf(GrowthOptions options, Object object, Skip... skipped) {
        Objects.requireNonNull(object);
        long[] bytes = new long[1];
        Heap.exclusively(options, "HeapSnapshots.deepSizeOf", () -> bytes[0] = DeepSize.of(options, object, skipped));
        return bytes[0];
    }

    private static WeakReference<?> result(ThrowingSupplier<?> work) throws Throwable {
        return new WeakReference<>(Objects.requireNonNull(work.get(), "the work returned null instead of the object"));
    }
}
