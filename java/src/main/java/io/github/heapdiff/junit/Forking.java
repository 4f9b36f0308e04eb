package io.github.heapdiff.junit;

/** The process that writes the snapshots of the heap. */
public enum Forking {
    /** A forked child, if heapdiff's agent is in the JVM. The JVM continues meanwhile. Without the agent, the JVM itself. */
    AUTO,
    /** A forked child. The library loads the agent. If it cannot, the result of the check is undecided. */
    ALWAYS,
    /** The JVM itself. The program stops meanwhile. The library loads no agent. */
    NEVER
}
