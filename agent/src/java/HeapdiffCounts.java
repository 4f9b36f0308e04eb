package java.lang;

import jdk.internal.misc.Unsafe;

/**
 * Counts allocations. Rewritten classes call the methods of this class before each allocation, and after calls that
 * return new objects. The class is in java.lang, because every module reads that package, and classes in that package
 * may use Unsafe.
 *
 * The methods allocate nothing, and call no method that is rewritten or that an application may override (such as
 * Thread.getId). An array with a negative length cannot be allocated and is not counted.
 *
 * Public methods, and the methods that they call for each object, have at most 35 bytes of bytecode, because the C1
 * compiler inlines only such methods. The slow paths are in separate methods (called "shared"). Reason: the C2 compiler
 * does not compile a call that never happens. If the code of a slow path were in its caller, C2 would keep a loop's
 * variables in memory.
 */
public final class HeapdiffCounts {
    // The agent replaces these constants when it defines the class.
    /** Address of the counters that threads share. */
    static final long START = 0x4845_4150_0000_0000L;
    /** Address of the table that contains the address of each thread's own counters. */
    static final long PLACES = 0x4845_4150_0000_0001L;
    /** Address of the hash tables that count the objects returned by calls. */
    static final long TABLES = 0x4845_4150_0000_0002L;
    /** Address of the counters for objects returned by calls, used if the hash tables at TABLES have no room. */
    static final long LOST = 0x4845_4150_0000_0003L;
    /**
     * Smallest offset of an array's first element, plus the alignment of objects, minus 1. This constant is used to
     * round up the size of an array.
     */
    static final long ROUND = 0x4845_4150_0000_0004L;
    /** The alignment of objects in bytes, as a negative number. */
    static final long ALIGNMENT = 0x4845_4150_0000_0005L;
    /**
     * Offset in a java.lang.Class of the hidden field with the address of the JVM's data about the class; 0 if unknown.
     */
    static final long KLASS = 0x4845_4150_0000_0006L;
    /** Codes of the array layouts. The last four bits of a site's number contain such a code. */
    static final int BYTES = 0x4845_0007;
    static final int SHORTS = 0x4845_0008;
    static final int INTS = 0x4845_0009;
    static final int LONGS = 0x4845_000a;
    static final int REFERENCES = 0x4845_000b;

    // The following constants are also in the agent's code. A test compares the values.
    static final int STRIPES = 16;
    static final long STRIPE_BYTES = 1_052_736;
    static final int THREAD_BITS = 20;
    static final int SITE_BITS = 16;
    static final int BITS = 14;
    static final int ENTRY_BITS = 5;
    static final long TABLE_BYTES = 528_448;

    /** Maximum number of entries that a lookup in a hash table examines. */
    static final int PROBES = 100;
    /** Multiplier of the hash function: the odd number nearest to 2^64 divided by the golden ratio. */
    static final long MIXER = 0x9e37_79b9_7f4a_7c15L;

    static final Unsafe UNSAFE = Unsafe.getUnsafe();
    static final long TID = UNSAFE.objectFieldOffset(Thread.class, "tid");
    /**
     * The value of KLASS. This field is not final, so that the JIT compilers do not treat the offset as a constant.
     */
    static long klass = KLASS;

    private HeapdiffCounts() {}

    /**
     * Returns the number of the running thread. For a virtual thread, returns the number of its carrier thread: since
     * JDK 19, the agent replaces the name currentThread by currentCarrierThread. A thread whose object is not
     * initialized yet has the number 0.
     */
    static long thread() {
        return UNSAFE.getLong(Thread.currentThread(), TID);
    }

    static long at(long address) {
        return UNSAFE.getLong(null, address);
    }

    /**
     * Returns the address of the counters that belong to this thread alone, or 0 if the thread has no such counters.
     */
    static long own(long thread) {
        return thread >>> THREAD_BITS == 0 ? at(PLACES + (thread << 3)) : 0;
    }

    /** Adds to a counter that no other thread writes. */
    static void plus(long cell, long n) {
        UNSAFE.putLong(null, cell, UNSAFE.getLong(null, cell) + n);
    }

    /** Returns the address of those counters of a site that several threads share. */
    static long cell(int site, long thread) {
        return (thread & STRIPES - 1) * STRIPE_BYTES + START + (site & -16);
    }

    /** Returns the size of an array in bytes. */
    static long size(int length, int site) {
        return ((long) length << (site & 3)) + (site & 12) + ROUND & ALIGNMENT;
    }

    public static void object(int site) {
        long thread = thread(), own = own(thread);
        if (own != 0) {
            plus(own + (site & -16), 1);
            return;
        }
        shared(site, thread);
    }

    static void shared(int site, long thread) {
        UNSAFE.getAndAddLong(null, cell(site, thread), 1);
    }

    public static void array(int length, int site) {
        long thread = thread(), own = own(thread);
        if (own != 0) {
            array(own, length, site);
            return;
        }
        shared(length, site, thread);
    }

    static void array(long cell, int length, int site) {
        if (length < 0) return;
        cell += site & -16;
        plus(cell, 1);
        plus(cell + 8, size(length, site));
    }

    static void shared(int length, int site, long thread) {
        if (length < 0) return;
        long cell = cell(site, thread);
        UNSAFE.getAndAddLong(null, cell, 1);
        UNSAFE.getAndAddLong(null, cell + 8, size(length, site));
    }

    /**
     * Hook for a multi-dimensional array. Counts the arrays of one level, and returns the total number of their
     * elements.
     */
    public static long level(long count, int length, int site) {
        if (length < 0) return 0;
        long cell = cell(site, thread());
        UNSAFE.getAndAddLong(null, cell, count);
        UNSAFE.getAndAddLong(null, cell + 8, count * size(length, site));
        return count * length;
    }

    /** Hook that rewritten code calls after a method has returned an object. Counts the returned object. */
    public static void made(Object made, int site) {
        if (made != null) add(made, 1, site);
    }

    /** Hook for a call that returned a multi-dimensional array. Counts the arrays of all levels. */
    public static void levels(Object made, int site) {
        long count = 1;
        while (made != null) {
            add(made, count, site);
            if (!(made instanceof Object[])) return;
            Object[] array = (Object[]) made;
            if (array.length == 0) return;
            count *= array.length;
            made = array[0];
        }
    }

    static void add(Object made, long count, int site) {
        long entry = entry(site, number(made.getClass()));
        UNSAFE.getAndAddLong(null, entry, count);
        long size = sizeOf(made);
        if (size != 0) UNSAFE.getAndAddLong(null, entry + 8, count * size);
    }

    /** Returns the size of an array in bytes; 0 for other objects. */
    static long sizeOf(Object made) {
        if (made instanceof Object[]) return size(((Object[]) made).length, REFERENCES);
        if (made instanceof byte[]) return size(((byte[]) made).length, BYTES);
        if (made instanceof char[]) return size(((char[]) made).length, SHORTS);
        if (made instanceof int[]) return size(((int[]) made).length, INTS);
        if (made instanceof long[]) return size(((long[]) made).length, LONGS);
        if (made instanceof double[]) return size(((double[]) made).length, LONGS);
        if (made instanceof float[]) return size(((float[]) made).length, INTS);
        if (made instanceof short[]) return size(((short[]) made).length, SHORTS);
        if (made instanceof boolean[]) return size(((boolean[]) made).length, BYTES);
        return 0;
    }

    /** Returns the number that identifies a class in the hash tables. */
    static long number(Class<?> type) {
        return UNSAFE.getLong(type, klass) >>> 3;
    }

    /** Returns the address of the counters for a site and a class of returned objects. */
    static long entry(int site, long number) {
        long key = number << SITE_BITS | site >> 4;
        long table = (thread() & STRIPES - 1) * TABLE_BYTES + TABLES;
        long i = key * MIXER >>> 64 - BITS;
        for (int left = PROBES; left != 0; left--) {
            long place = table + (i << ENTRY_BITS);
            long known = UNSAFE.getLong(null, place);
            if (known == 0) {
                UNSAFE.compareAndSetLong(null, place, 0, key);
                known = UNSAFE.getLongVolatile(null, place);
            }
            if (known == key) return place + 8;
            i = i + 1 & (1 << BITS) - 1;
        }
        return LOST;
    }
}
