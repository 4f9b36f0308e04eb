package io.github.heapdiff.junit;

/** The process that writes the snapshots of the heap. */
public enum Forking {
    /** A forked child, while the JVM continues, if heapdiff's agent is in the JVM. Otherwise the JVM itself. */
    AUTO,
    /** A forked child. The library loads the agent. If that is not possible, no decision is possible. */
    ALWAYS,
    /** The JVM itself, which stops meanwhile. The library loads no agent. */
    NEVER
}
