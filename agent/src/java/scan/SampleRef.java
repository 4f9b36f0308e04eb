package heapdiff;

import java.lang.ref.PhantomReference;
import java.lang.ref.Reference;

/**
 * One sample: a reference to the sampled object, with its allocation site. The agent sets all static fields. The crate
 * heapdiff-sites documents the content of these fields.
 *
 * This class is for JDK 16 and later, which have Reference.refersTo. The class in queue/ is for earlier JDKs.
 */
final class SampleRef extends PhantomReference<Object> {
    static int format;
    static long started;
    static long pid;
    static int strategy;
    static long interval;
    static long rate;
    static long firstInterval;
    static long firstRate;
    static int depth;
    static int verbosity;
    static long[] counters;
    static Object[] samples;
    static Object[] classes;
    static Object[] blobs;
    static Object[] totals;
    static Object[] classTotals;
    static Object[] allocated;
    static Object[] siteTypes;
    static long[] counted;
    static Object[] countedSites;
    static Object[] countedTotals;
    static Object[] usage;
    static Object[] recent;
    static int[] recentDied;
    static Object[] reservoir;
    static int[] reservoirDied;
    static Object[] dead;
    static int[] places;

    long uid;
    long size;
    int site;
    int type;
    int thread;
    int time;
    int mark;

    SampleRef(Object referent, long uid, long size, int site, int type, int thread, int time, int slot, int mark) {
        super(referent, null);
        this.uid = uid;
        this.size = size;
        this.site = site;
        this.type = type;
        this.thread = thread;
        this.time = time;
        // Set this field last: it shows that the other fields are set.
        this.mark = mark;
    }

    /**
     * Removes each reference from "chunk" whose object was garbage-collected. Stores these references in "dead", and
     * their former indexes in "places". Returns the number of these references.
     */
    static int sweep(Object[] chunk, Object[] dead, int[] places) {
        int k = 0;
        for (int i = 0; i < chunk.length; i++) {
            Reference<?> reference = (Reference<?>) chunk[i];
            if (reference != null && reference.refersTo(null)) {
                dead[k] = reference;
                places[k] = i;
                k++;
                chunk[i] = null;
            }
        }
        return k;
    }
}
