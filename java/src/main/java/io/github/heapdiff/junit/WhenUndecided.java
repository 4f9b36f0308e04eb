package io.github.heapdiff.junit;

/** The result of a test if the library cannot decide whether the heap grew. */
public enum WhenUndecided {
    /** The test fails. Otherwise a test without the heapdiff program would pass although it checked nothing. */
    FAIL,
    /** The test is aborted. JUnit reports it as skipped, with the reason. */
    ABORT
}
