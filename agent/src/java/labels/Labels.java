package heapdiff;

/**
 * Labels of threads, for the library heapdiff-labels. The agent implements the methods. A set of labels has a number; 0 is
 * the set without labels.
 */
public final class Labels {
    private Labels() {
    }

    /** Returns the labels of the current thread. */
    public static native int get(Thread current);

    /** Sets the labels of the current thread. */
    public static native void set(Thread current, int labels);

    /**
     * Returns the labels "outer" and "more" together. "more" contains pairs "key=value" between separators (U+001F). Returns
     * "outer" if the agent has no room for another set of labels.
     */
    public static native int add(int outer, String more);
}
