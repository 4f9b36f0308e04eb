package io.github.heapdiff.junit;

/** The result of a test if the library cannot decide, as described at {@link HeapUndecidedException}. */
public enum WhenUndecided {
    /**
     * Fails the test. This prevents a test from passing without a check, for example if the heapdiff program is
     * missing.
     */
    FAIL,
    /** Aborts the test. JUnit reports it as skipped, with the reason. */
    ABORT
}
