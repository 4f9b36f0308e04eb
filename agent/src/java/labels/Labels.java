package heapdiff;

/**
 * Labels of threads, for the library heapdiff-labels. The agent implements the methods of this class. Each set of
 * labels has an id. The id of the set without labels is 0.
 */
public final class Labels {
    private Labels() {
    }

    /** Returns the id of the current thread's set of labels. */
    public static native int get(Thread current);

    /** Sets the labels of the current thread. "labels" is the id of the set of labels. */
    public static native void set(Thread current, int labels);

    /**
     * Returns the id of the set that has the labels of the set "outer" and the labels in "more". "more" contains pairs
     * "key=value" between separators (U+001F). Returns "outer" if the agent has no room for another set of labels.
     */
    public static native int add(int outer, String more);
}
