package io.github.heapdiff.junit;

import java.util.List;

/** A stack that allocated an object, or other objects of its class. */
final class Allocation {
    private final List<?> frames;
    private final long samples;
    private final boolean exact;

    /**
     * @param frames the frames, innermost first
     * @param samples number of recorded objects of the class with this stack
     * @param exact true if the object itself was recorded
     */
    Allocation(List<?> frames, long samples, boolean exact) {
        this.frames = frames;
        this.samples = samples;
        this.exact = exact;
    }

    List<?> frames() {
        return frames;
    }

    long samples() {
        return samples;
    }

    boolean exact() {
        return exact;
    }
}
