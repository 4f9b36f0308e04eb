package io.github.heapdiff.junit;

/** The process that writes the snapshots of the heap. */
public enum Forking {
    /**
     * If heapdiff's agent is in the JVM, a forked child writes the snapshots, and the JVM continues meanwhile. Without
     * the agent, or if no child can be forked, the JVM itself writes the snapshots.
     */
    AUTO,
    /**
     * A forked child always writes the snapshots. This needs heapdiff's agent, so the library loads it. If no child can be forked, the
     * result of the check is undecided.
     */
    ALWAYS,
    /** The JVM itself always writes the snapshots, and the program pauses meanwhile. The library does not load the agent. */
    NEVER
}
