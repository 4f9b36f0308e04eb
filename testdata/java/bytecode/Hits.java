package test.lang;

/** What rewritten classes call. A test that rewrites the JDK's classes renames it into java.lang, which every module reads. */
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

    /** After a call. */
    public static void returned(Object of, int site) {
        COUNTS[site]++;
    }
}
