package io.github.heapdiff.junit;

/** The result of a test if the library cannot decide whether the heap grew. */
public enum WhenUndecided {
    /** Fails the test, so that a test cannot pass unchecked, for example because the heapdiff program is missing. */
    FAIL,
    /** Aborts the test. JUnit reports it as skipped, with the reason. */
    ABORT
}
