package io.github.heapdiff.junit;

import java.lang.ref.WeakReference;
import java.util.Objects;
import org.junit.jupiter.api.function.ThrowingSupplier;

/** Assertions about single objects, and their deep sizes. Both are computed from a heap dump of this JVM. */
public final class HeapSnapshots {
    private HeapSnapshots() {}

    /**
     * Fails if an object stays reachable. The lambda creates the object, so no local variable of the test keeps the object alive:
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
     * @throws AssertionError if the object stays reachable; the message has the path that keeps the object alive, and its allocating stack if
     *     the agent or Flight Recorder recorded the stack
     * @throws HeapUndecidedException if no decision is possible and the options do not abort the test
     * @throws Throwable if {@code work} throws it
     */
    public static void assertCollected(ThrowingSupplier<?> work) throws Throwable {
        assertCollected(GrowthOptions.defaults(), work);
    }

    /** Like {@link #assertCollected(ThrowingSupplier)}, with options. Options about rounds and growth have no effect. */
    public static void assertCollected(GrowthOptions options, ThrowingSupplier<?> work) throws Throwable {
        assertCollected(options, result(work));
    }

    /** Like {@link #assertCollected(ThrowingSupplier)}, for the object that a reference refers to. A cleared reference passes. */
    public static void assertCollected(WeakReference<?> reference) {
        assertCollected(GrowthOptions.defaults(), reference);
    }

    /** Like {@link #assertCollected(WeakReference)}, with options. Options about rounds and growth have no effect. */
    public static void assertCollected(GrowthOptions options, WeakReference<?> reference) {
        Objects.requireNonNull(reference);
        Heap.exclusively(options, "HeapSnapshots.assertCollected", () -> CollectedCheck.run(options, reference));
    }

    /**
     * Like {@link #assertCollected(ThrowingSupplier)}, for an object.
     *
     * <p>No local variable of the caller may hold the object, because a local variable keeps its object alive until its method ends. Use
     * this method for the result of a call, such as {@code assertCollected(cache.get(1))}.
     */
    public static void assertCollected(Object object) {
        WeakReference<?> reference = new WeakReference<>(Objects.requireNonNull(object));
        // From here on, this method's parameter does not keep the object alive.
        object = null;
        assertCollected(reference);
    }

    /**
     * Returns the bytes of an object and of all objects that it reaches, each counted once. The result is the deep size that {@code heapdiff sizeof}
     * prints for a dump of the same moment. Soft references are followed, weak references are not.
     *
     * <p>A measurement takes a heap dump of this JVM, so its cost depends on the size of the whole heap.
     *
     * @param skipped what to leave out
     * @throws HeapUndecidedException if no dump can be written or read, and the options do not abort the test
     */
    public static long deepSizeOf(Object object, Skip... skipped) {
        return deepSizeOf(GrowthOptions.defaults(), object, skipped);
    }

    /** Like {@link #deepSizeOf(Object, Skip...)}, with options. Options about rounds and growth have no effect. */
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
