package java.lang;

import java.lang.ref.WeakReference;
import jdk.internal.misc.Unsafe;

/**
 * Counts how collections are used. Methods of JDK collections call this class. It is in java.lang, because every module
 * reads that package, and classes in that package may use Unsafe. An instance is a weak reference to one collection,
 * with the counters of this collection.
 *
 * This class calls no method that is rewritten or that an application may override. It allocates only in "begin", when
 * an element is put into a large collection: one instance for each watched collection, and one instance for all
 * collections for which TABLE has no room. If the size of a collection is unknown, its growth is counted approximately,
 * without a lock. This count only decides whether the collection is watched.
 */
public final class HeapdiffUsage extends WeakReference<Object> {
    // The agent replaces these constants when it defines the class.
    /** Offset of the first element of a long[]. */
    static final long LONGS = 0x4845_4150_0000_0000L;
    /** Offset of the first element of an array of references. */
    static final long OBJECTS = 0x4845_4150_0000_0001L;
    /** Size in bytes of a reference in an array. */
    static final long SCALE = 0x4845_4150_0000_0002L;
    /** 1 if Reference.refersTo exists (JDK 16 and later), else 0. */
    static final long REFERS_TO = 0x4845_4150_0000_0003L;

    // The following constants are also in the agent's code. A test compares the values.
    /** Approximate maximum number of watched collections; a power of two. */
    static final int SLOTS = 4096;
    /** Number of consecutive elements of TABLE in which a collection is searched for. */
    static final int WINDOW = 16;
    static final int PUT = 0;
    static final int REMOVED = 1;
    static final int READ = 2;
    /**
     * Number of longs in a stripe (the counters for some threads). PUT, REMOVED and READ are indexes of counters. The
     * method "mark" sets a time (at LAST), and pairs of a time and a number of puts (at MARK and BEFORE).
     */
    static final int STRIPE = 8;
    static final int LAST = 3;
    static final int MARK = 4;
    static final int BEFORE = 6;
    /**
     * Value of "size" in the instance that is shared by all collections for which TABLE has no room. CROWDED_LONGS is
     * the length of "counts" in this instance.
     */
    static final int CROWDED = -2;
    static final int CROWDED_LONGS = 16384;

    /** Minimum number of elements of a watched collection; a power of two. */
    static final int LARGE = 256;
    /**
     * Number of counters for each kind of use; a power of two. There are several counters for each kind, so that
     * threads write to different cache lines.
     */
    static final int STRIPES = 8;

    static final Unsafe UNSAFE = Unsafe.getUnsafe();
    static final long TID = UNSAFE.objectFieldOffset(Thread.class, "tid");
    /** All watched collections. The last element counts the collections for which TABLE had no room. */
    static final HeapdiffUsage[] TABLE = new HeapdiffUsage[SLOTS + WINDOW + 1];
    /**
     * Upper half: part of the hash of a collection. Lower half: the time when the collection was first seen, in units
     * of 1.024 seconds.
     */
    static final int[] SEEN = new int[1 << 16];
    /** For collections of unknown size: number of elements that the collection at the same index of SEEN has gained. */
    static final int[] GROWN = new int[1 << 16];
    static final boolean HAS_REFERS_TO = isSet(REFERS_TO);

    final long[] counts;
    final long since;
    final int size;

    HeapdiffUsage(Object collection, int size, int longs) {
        super(collection);
        this.counts = new long[longs];
        this.since = System.currentTimeMillis();
        this.size = size;
    }

    /**
     * Returns true if the value is not 0. The constant REFERS_TO is tested through this method. Otherwise javac would
     * know its value at compile time, and would drop a branch of "refers".
     */
    static boolean isSet(long value) {
        return value != 0;
    }

    boolean refers(Object collection) {
        return HAS_REFERS_TO ? refersTo(collection) : get() == collection;
    }

    public static void used(Object collection, int changes, int size, int n, int kind) {
        if ((changes & -LARGE) != 0) watched(collection, size, n, kind);
    }

    public static void used(Object collection, Object[] array, int n, int kind) {
        if (array != null && array.length >= LARGE) watched(collection, -1, n, kind);
    }

    public static void used(Object collection, Object[] array, long n) {
        if (n >= 0) used(collection, array, (int) n, PUT);
        else used(collection, array, (int) -n, REMOVED);
    }

    public static void used(Object collection, Object[] was, Object[] now) {
        if (was == null || now == null || ((was.length | now.length) & -LARGE) == 0) return;
        int n = now.length - was.length;
        if (n >= 0) watched(collection, was.length, n, PUT);
        else watched(collection, was.length, -n, REMOVED);
    }

    public static void used(int now, Object collection, int was, int changes) {
        if ((changes & -LARGE) == 0 || now == was) return;
        int n = now - was;
        if (n >= 0) watched(collection, was, n, PUT);
        else watched(collection, was, -n, REMOVED);
    }

    public static void used(Object collection, int n, int kind) {
        grown(collection, -1, n, kind);
    }

    public static void used(Object collection, long n) {
        if (n >= 0) used(collection, (int) n, PUT);
        else used(collection, (int) -n, REMOVED);
    }

    /**
     * Counts a use of a collection if the collection is watched. If the collection is not watched, and the use puts
     * elements into a large collection, this method may start to watch the collection.
     */
    static void watched(Object collection, int size, int n, int kind) {
        int hash = System.identityHashCode(collection);
        int i = hash & SLOTS - 1, end = i + WINDOW;
        do {
            HeapdiffUsage usage = TABLE[i];
            if (usage == null) break;
            if (usage.refers(collection)) {
                usage.count(n, kind);
                return;
            }
        } while (++i < end);
        if (kind == PUT && (size < 0 || size >= LARGE)) begin(collection, size, n, hash);
    }

    /**
     * Counts a use of a collection of unknown size if the collection is watched. May start to watch the collection.
     */
    static void grown(Object collection, int size, int n, int kind) {
        int hash = System.identityHashCode(collection);
        int i = hash & SLOTS - 1, end = i + WINDOW;
        do {
            HeapdiffUsage usage = TABLE[i];
            if (usage == null) break;
            if (usage.refers(collection)) {
                usage.count(n, kind);
                return;
            }
        } while (++i < end);
        if (kind == READ) return;
        int at = hash & 0xffff;
        if (((SEEN[at] ^ hash) & 0xffff0000) == 0) {
            int more = Math.max(GROWN[at] + (kind == PUT ? n : -n), 0);
            GROWN[at] = more;
            if (more < LARGE) return;
        }
        if (kind == PUT) begin(collection, size, n, hash);
    }

    void count(int n, int kind) {
        int stripe = ((int) UNSAFE.getLong(Thread.currentThread(), TID) & STRIPES - 1) * STRIPE;
        long before = UNSAFE.getAndAddLong(counts, (long) (stripe + kind) * 8 + LONGS, n);
        if (kind == PUT && ((int) before & 63) == 0) mark(stripe, before);
    }

    /**
     * Stores the time of a put. A mark consists of a time and the number of puts until that time. Whenever the age of
     * this instance has doubled since the last mark, this method sets a new mark. The last two marks are kept.
     */
    void mark(int stripe, long put) {
        long now = System.currentTimeMillis();
        long[] counts = this.counts;
        counts[stripe + LAST] = now;
        if (now - since >= 2 * (counts[stripe + MARK] - since)) {
            counts[stripe + BEFORE] = counts[stripe + MARK];
            counts[stripe + BEFORE + 1] = counts[stripe + MARK + 1];
            counts[stripe + MARK] = now;
            counts[stripe + MARK + 1] = put;
        }
    }

    /**
     * Starts to watch a collection if it was first seen at least a second ago. Most large collections do not live as
     * long as a second.
     */
    static void begin(Object collection, int size, int n, int hash) {
        int now = (int) (System.currentTimeMillis() >>> 10);
        int mine = hash & 0xffff0000 | now & 0xffff, seen = SEEN[hash & 0xffff];
        if (((seen ^ mine) & 0xffff0000) != 0) {
            // If two collections share an entry of SEEN, the collection with the larger hash takes the entry. The other
            // collection takes the entry only if the entry is older than four seconds.
            if (seen >>> 16 < hash >>> 16 || (now - seen & 0xffff) >= 4) {
                SEEN[hash & 0xffff] = mine;
                GROWN[hash & 0xffff] = 0;
            }
            return;
        }
        if ((now - seen & 0xffff) < 2) return;
        int i = hash & SLOTS - 1, end = i + WINDOW;
        HeapdiffUsage made = null;
        do {
            HeapdiffUsage usage = TABLE[i];
            if (usage == null || usage.refers(null)) {
                if (made == null) {
                    try {
                        made = new HeapdiffUsage(collection, size, STRIPES * STRIPE);
                    } catch (Throwable full) {
                        return;
                    }
                }
                // Before JDK 12, the agent replaces the name compareAndSetReference by compareAndSetObject.
                if (UNSAFE.compareAndSetReference(TABLE, i * SCALE + OBJECTS, usage, made)) {
                    made.count(n, PUT);
                    return;
                }
                usage = TABLE[i];
            }
            if (usage.refers(collection)) {
                usage.count(n, PUT);
                return;
            }
        } while (++i < end);
        crowded(hash);
    }

    /**
     * Counts a collection for which TABLE has no room: sets a bit in a bitmap. The collection's hash selects the bit.
     */
    static void crowded(int hash) {
        HeapdiffUsage all = TABLE[SLOTS + WINDOW];
        if (all == null) {
            try {
                all = new HeapdiffUsage(null, CROWDED, CROWDED_LONGS);
            } catch (Throwable full) {
                return;
            }
            TABLE[SLOTS + WINDOW] = all;
        }
        all.counts[(hash & CROWDED_LONGS * 64 - 1) >>> 6] |= 1L << hash;
    }
}
