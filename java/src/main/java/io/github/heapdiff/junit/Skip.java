package io.github.heapdiff.junit;

/**
 * A kind of fields or values that {@link HeapSnapshots#deepSizeOf} leaves out. Each has an option of
 * {@code heapdiff sizeof}.
 */
public enum Skip {
    /** Values that the whole program shares: enum constants, string constants, and boxes that {@code valueOf} caches. */
    FLYWEIGHTS("--skip-flyweights"),
    /** Static fields, if the object is a {@link Class}. Static fields of other classes are never followed. */
    STATIC("--skip-static"),
    /** Final fields. The class files on the class path and in the JDK of this JVM show which fields are final. */
    FINAL("--skip-final"),
    /**
     * Transient fields. The class files on the class path and in the JDK of this JVM show which fields are transient.
     */
    TRANSIENT("--skip-transient");

    private final String option;

    Skip(String option) {
        this.option = option;
    }

    String option() {
        return option;
    }

    boolean needsClassPath() {
        return this == FINAL || this == TRANSIENT;
    }
}
