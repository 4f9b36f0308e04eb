package io.github.heapdiff.junit;

/** Who writes the snapshots of the heap. */
public enum Forking {
    /** A forked child of the JVM, while the JVM goes on, where heapdiff's agent is in the JVM; else the JVM itself. */
    AUTO,
    /** A forked child. The agent is loaded for it; where that is not possible it cannot be told whether the heap grew. */
    ALWAYS,
    /** The JVM itself, which stands still meanwhile. No agent is loaded. */
    NEVER
}
