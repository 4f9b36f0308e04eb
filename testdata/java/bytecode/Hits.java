package test.lang;

/** The counting methods that rewritten classes call. A test of the JDK's classes renames this class into java.lang, which every module reads. */
public final class Hits {
    private static final int SITES = 1 << 20;
    public static final long[] COUNTS = new long[SITES];
    public static final long[] ELEMENTS = new long[SITES];

    private Hits() {}

    public static void object(int site) {
        COUNTS[site]++;
    }

    public static void array(int length, int site) {
        COUNTS[site]++;
        ELEMENTS[site] += length;
    }

    public static long level(long count, int length, int site) {
        COUNTS[site] += count;
        ELEMENTS[site] += count * length;
        return count * length;
    }

    /** Counts an object that a called method returned. */
    public static void returned(Object of, int site) {
        COUNTS[site]++;
    }
}
