package io.github.heapdiff.junit;

/** What {@link HeapSnapshots#deepSizeOf} leaves out. The options are those of {@code heapdiff sizeof}. */
public enum Skip {
    /** Values that the whole program shares: enum constants, string constants, and boxes that {@code valueOf} caches. */
    FLYWEIGHTS("--skip-flyweights"),
    /** Static fields, if the object is a {@link Class}. Static fields of other classes are never followed. */
    STATIC("--skip-static"),
    /** Final fields. Their modifiers come from the class path of this JVM. */
    FINAL("--skip-final"),
    /** Transient fields. Their modifiers come from the class path of this JVM. */
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
