package heapdiff;

import java.lang.ref.PhantomReference;
import java.lang.ref.ReferenceQueue;

/**
 * One sample: a reference to the sampled object, with its allocation site. The agent sets all static fields. The crate
 * heapdiff-sites documents the content of these fields.
 *
 * This class is for JDKs before 16, which lack Reference.refersTo, and for the option reaper=queue. With the queue, the
 * JVM's reference handler has some work for each collected object.
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
    static ReferenceQueue<Object> queue;

    long uid;
    long size;
    int site;
    int type;
    int thread;
    int time;
    int mark;
    int slot;

    SampleRef(Object referent, long uid, long size, int site, int type, int thread, int time, int slot, int mark) {
        super(referent, queue);
        this.uid = uid;
        this.size = size;
        this.site = site;
        this.type = type;
        this.thread = thread;
        this.time = time;
        this.slot = slot;
        // Set this field last: it shows that the other fields are set.
        this.mark = mark;
    }

    /** Removes from the queue the references to garbage-collected objects. Returns the number of these references. */
    static int sweep(Object[] dead, int[] slots) {
        int k = 0;
        while (k < slots.length) {
            SampleRef reference = (SampleRef) queue.poll();
            if (reference == null) break;
            dead[k] = reference;
            slots[k] = reference.slot;
            k++;
        }
        return k;
    }
}
