package io.github.heapdiff.junit;

/** The process that writes the snapshots of the heap. */
public enum Forking {
    /**
     * If heapdiff's agent is in the JVM, a forked child writes the snapshots, and the JVM continues meanwhile. Without the agent, the JVM
     * itself writes them.
     */
    AUTO,
    /**
     * A forked child always writes the snapshots. The library loads the agent. If that is impossible, the result of the check is undecided.
     */
    ALWAYS,
    /** The JVM itself always writes the snapshots, and the program pauses meanwhile. The library does not load the agent. */
    NEVER
}
