package io.github.heapdiff.junit;

/** What becomes of a test when it cannot be told whether the heap grew. */
public enum WhenUndecided {
    /** The test fails: a check that passes because its tool is missing checks nothing. */
    FAIL,
    /** The test is aborted, which JUnit reports as skipped, with the reason. */
    ABORT
}
