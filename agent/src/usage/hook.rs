//! The class whose methods are called where a collection is used, as bytes. In Java it would read
//!
//! ```java
//! package java.lang;                            // which every module reads, and which may use Unsafe
//! public final class HeapdiffUsage extends WeakReference {
//!     static final Unsafe UNSAFE = Unsafe.getUnsafe();
//!     static final long TID = UNSAFE.objectFieldOffset(Thread.class, "tid");
//!     static final HeapdiffUsage[] TABLE = new HeapdiffUsage[SLOTS + WINDOW + 1];
//!     static final int[] SEEN = new int[1 << 16];
//!     static final int[] GROWN = new int[1 << 16];
//!     final long[] counts;
//!     final long since = System.currentTimeMillis();
//!     final int size;
//!     HeapdiffUsage(Object collection, int size, int longs) { super(collection); this.counts = new long[longs]; this.size = size; }
//!
//!     public static void used(Object collection, int changes, int size, int n, int kind) {
//!         if ((changes & -LARGE) != 0) watched(collection, size, n, kind);
//!     }
//!     public static void used(Object collection, Object[] array, int n, int kind) {
//!         if (array != null && array.length >= LARGE) watched(collection, -1, n, kind);
//!     }
//!     public static void used(Object collection, Object[] array, long n) {
//!         if (n >= 0) used(collection, array, (int) n, PUT); else used(collection, array, (int) -n, REMOVED);
//!     }
//!     public static void used(Object collection, Object[] was, Object[] now) {
//!         if (was == null || now == null || ((was.length | now.length) & -LARGE) == 0) return;
//!         int n = now.length - was.length;
//!         if (n >= 0) watched(collection, was.length, n, PUT); else watched(collection, was.length, -n, REMOVED);
//!     }
//!     public static void used(int now, Object collection, int was, int changes) {
//!         if ((changes & -LARGE) == 0 || now == was) return;
//!         if (now > was) watched(collection, was, now - was, PUT); else watched(collection, was, was - now, REMOVED);
//!     }
//!     public static void used(Object collection, int n, int kind) { grown(collection, -1, n, kind); }
//!     public static void used(Object collection, long n) {
//!         if (n >= 0) used(collection, (int) n, PUT); else used(collection, (int) -n, REMOVED);
//!     }
//!     static void grown(Object collection, int size, int n, int kind) {
//!         ...                                       // as in watched, up to where it is not found
//!         if (kind == READ) return;
//!         int i = hash & 0xffff;
//!         if (((SEEN[i] ^ hash) & 0xffff0000) == 0) {
//!             int more = GROWN[i] = Math.max(GROWN[i] + (kind == PUT ? n : -n), 0);
//!             if (more < LARGE) return;
//!         }
//!         if (kind == PUT) begin(collection, size, n, hash);
//!     }
//!     static void watched(Object collection, int size, int n, int kind) {
//!         int hash = System.identityHashCode(collection);
//!         int i = hash & SLOTS - 1, end = i + WINDOW;
//!         do {
//!             HeapdiffUsage usage = TABLE[i];
//!             if (usage == null) break;
//!             if (usage.refersTo(collection)) { usage.count(n, kind); return; }
//!         } while (++i < end);
//!         if (kind == PUT && (size < 0 || size >= LARGE)) begin(collection, size, n, hash);
//!     }
//!     void count(int n, int kind) {
//!         int stripe = (int) UNSAFE.getLong(Thread.currentThread(), TID) & STRIPES - 1) * 8;
//!         long before = UNSAFE.getAndAddLong(counts, LONGS + (long) (stripe + kind) * 8, n);
//!         if (kind == PUT && ((int) before & 63) == 0) mark(stripe, before);
//!     }
//!     void mark(int stripe, long put) {
//!         long now = counts[stripe + LAST] = System.currentTimeMillis();
//!         if (now - since >= 2 * (counts[stripe + MARK] - since)) {
//!             counts[stripe + BEFORE] = counts[stripe + MARK];
//!             counts[stripe + BEFORE + 1] = counts[stripe + MARK + 1];
//!             counts[stripe + MARK] = now;
//!             counts[stripe + MARK + 1] = put;
//!         }
//!     }
//!     static void begin(Object collection, int size, int n, int hash) {
//!         int now = (int) (System.currentTimeMillis() >>> 10);
//!         int mine = hash & 0xffff0000 | now & 0xffff, seen = SEEN[hash & 0xffff];
//!         if (((seen ^ mine) & 0xffff0000) != 0) {  // of two that meet there one goes first
//!             if (seen >>> 16 < hash >>> 16 || (now - seen & 0xffff) >= 4) {
//!                 SEEN[hash & 0xffff] = mine;
//!                 GROWN[hash & 0xffff] = 0;
//!             }
//!             return;
//!         }
//!         if ((now - seen & 0xffff) < 2) return;    // most large collections live less than a second
//!         int i = hash & SLOTS - 1, end = i + WINDOW;
//!         HeapdiffUsage made = null;
//!         do {
//!             HeapdiffUsage usage = TABLE[i];
//!             if (usage == null || usage.refersTo(null)) {
//!                 if (made == null)
//!                     try { made = new HeapdiffUsage(collection, size, STRIPES * 8); } catch (Throwable full) { return; }
//!                 if (UNSAFE.compareAndSetReference(TABLE, OBJECTS + i * SCALE, usage, made)) {
//!                     made.count(n, PUT);
//!                     return;
//!                 }
//!                 usage = TABLE[i];
//!             }
//!             if (usage.refersTo(collection)) { usage.count(n, PUT); return; }
//!         } while (++i < end);
//!         crowded(hash);
//!     }
//!     static void crowded(int hash) {
//!         HeapdiffUsage all = TABLE[SLOTS + WINDOW];
//!         if (all == null)
//!             try { TABLE[SLOTS + WINDOW] = all = new HeapdiffUsage(null, CROWDED, CROWDED_LONGS); } catch (Throwable full) { return; }
//!         all.counts[(hash & CROWDED_LONGS * 64 - 1) >>> 6] |= 1L << hash;
//!     }
//! }
//! ```
//!
//! where names in capitals without a declaration are constants in the code. It calls nothing that is rewritten, and
//! no method that a program may override. It allocates only in `begin`, where something is added to a
//! large collection, once for each that is watched, and once for those that find no room. How much a collection has grown whose size is
//! not known is told roughly, without a lock: it decides only whether the collection is watched. Before JDK 16 `refersTo(o)` is `get() == o`.

use heapdiff_sites::usage::{self, Kind, fields};

use crate::classfile::{Body, ClassFile, FINAL, PUBLIC, STATIC, op};

pub(crate) const THIS: &str = "java/lang/HeapdiffUsage";
/// Called with the collection, how often it was changed, its size, how many elements, and what is done to them.
pub(crate) const BY_CHANGES: [&str; 3] = [THIS, "used", "(Ljava/lang/Object;IIII)V"];
/// Called with the collection, its array, how many elements, and what is done to them.
pub(crate) const BY_ARRAY: [&str; 3] = [THIS, "used", "(Ljava/lang/Object;[Ljava/lang/Object;II)V"];
/// Called with the collection, its array, and how many elements come; where they go it is negative.
pub(crate) const BY_DIFFERENCE: [&str; 3] =
    [THIS, "used", "(Ljava/lang/Object;[Ljava/lang/Object;J)V"];
/// Called with the collection, its array, and the one that takes its place.
pub(crate) const BY_ARRAYS: [&str; 3] = [
    THIS,
    "used",
    "(Ljava/lang/Object;[Ljava/lang/Object;[Ljava/lang/Object;)V",
];
/// Called with the size that a collection is going to have, the collection, the size that it has, and how often it was changed.
pub(crate) const BY_SIZES: [&str; 3] = [THIS, "used", "(ILjava/lang/Object;II)V"];
/// Called with a collection whose size is not known, how many elements, and what is done to them.
pub(crate) const BY_NUMBER: [&str; 3] = [THIS, "used", "(Ljava/lang/Object;II)V"];
/// Called with a collection whose size is not known, and how many elements come; where they go it is negative.
pub(crate) const BY_LONG: [&str; 3] = [THIS, "used", "(Ljava/lang/Object;J)V"];
/// All of these.
pub(crate) const ALL: [[&str; 3]; 7] = [
    BY_CHANGES,
    BY_ARRAY,
    BY_DIFFERENCE,
    BY_ARRAYS,
    BY_SIZES,
    BY_NUMBER,
    BY_LONG,
];
/// The static field with what is watched.
pub(crate) const TABLE: (&str, &str) = ("TABLE", "[Ljava/lang/HeapdiffUsage;");

/// Collections are watched from so many elements on; a power of two.
const LARGE: i64 = 256;
/// Collections that are watched at most, about; a power of two.
const SLOTS: i64 = 4096;
/// Places in which one may be.
const WINDOW: i64 = 16;
/// All places of collections; behind them is one with those that found none.
pub(crate) const PLACES: usize = (SLOTS + WINDOW) as usize;
/// Counters of each kind, so that threads do not get into each other's way; a power of two.
const STRIPES: i64 = 8;

const UNSAFE: &str = "jdk/internal/misc/Unsafe";
const UNSAFE_TYPE: &str = "Ljdk/internal/misc/Unsafe;";
const WEAK: &str = "java/lang/ref/WeakReference";
const REFERENCE: &str = "java/lang/ref/Reference";
const THREAD: &str = "java/lang/Thread";
const SYSTEM: &str = "java/lang/System";

const WATCHED: (&str, &str) = ("watched", "(Ljava/lang/Object;III)V");
const COUNT: (&str, &str) = ("count", "(II)V");
const MARK: (&str, &str) = ("mark", "(IJ)V");
const BEGIN: (&str, &str) = ("begin", "(Ljava/lang/Object;III)V");
const GREW: (&str, &str) = ("grown", "(Ljava/lang/Object;III)V");
const NO_ROOM: (&str, &str) = ("crowded", "(I)V");
const NEW: &str = "(Ljava/lang/Object;II)V";

/// What differs from JVM to JVM.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Jvm {
    /// Where the first element of an array of `long`s is, and of one of references.
    pub(crate) longs: i32,
    pub(crate) objects: i32,
    /// Bytes of a reference.
    pub(crate) scale: i32,
    /// `Reference.refersTo` is there.
    pub(crate) refers_to: bool,
    /// How `Unsafe` calls the exchange of a reference.
    pub(crate) exchange: &'static str,
}

const INTS: u8 = 10;
const LONGS: u8 = 11;

impl Body<'_> {
    /// An `int` from a `long` constant.
    fn int(&mut self, value: i64) -> &mut Self {
        self.long(value).op(&[op::L2I])
    }

    fn get(&mut self, field: (&str, &str)) -> &mut Self {
        self.field(op::GETSTATIC, field)
    }

    fn set(&mut self, field: (&str, &str)) -> &mut Self {
        self.field(op::PUTSTATIC, field)
    }

    /// Goes to `label` unless the reference on the stack refers to what `object` loads.
    fn unless_refers(&mut self, jvm: Jvm, object: &[u8], label: usize) -> &mut Self {
        match jvm.refers_to {
            true => {
                let named = (REFERENCE, "refersTo", "(Ljava/lang/Object;)Z");
                self.op(object).call(op::INVOKEVIRTUAL, named);
                self.jump(op::IFEQ, label)
            }
            false => {
                let named = (REFERENCE, "get", "()Ljava/lang/Object;");
                self.call(op::INVOKEVIRTUAL, named).op(object);
                self.jump(op::IF_ACMPNE, label)
            }
        }
    }

    /// Counts for a collection that is watched, and returns; goes to `unknown` for others. Variables: the collection, its size, how
    /// many, what; hash, place, end, usage.
    fn counted_if_watched(&mut self, jvm: Jvm, unknown: usize) -> &mut Self {
        let [again, next] = [(); 2].map(|()| self.code.label());
        let hash_code = (SYSTEM, "identityHashCode", "(Ljava/lang/Object;)I");
        self.op(&[op::ALOAD, 0])
            .call(op::INVOKESTATIC, hash_code)
            .op(&[op::ISTORE, 4])
            .window(4, 5, 6)
            .place(again)
            .get(TABLE)
            .op(&[op::ILOAD, 5, op::AALOAD, op::DUP, op::ASTORE, 7])
            .jump(op::IFNULL, unknown)
            .op(&[op::ALOAD, 7])
            .unless_refers(jvm, &[op::ALOAD, 0], next)
            .op(&[op::ALOAD, 7, op::ILOAD, 2, op::ILOAD, 3])
            .own(op::INVOKEVIRTUAL, COUNT)
            .op(&[op::RETURN])
            .place(next)
            .op(&[op::IINC, 5, 1, op::ILOAD, 5, op::ILOAD, 6])
            .jump(op::IF_ICMPLT, again)
    }

    /// The first place of a hash into one variable, and where its places end into another.
    fn window(&mut self, hash: u8, first: u8, end: u8) -> &mut Self {
        self.op(&[op::ILOAD, hash])
            .int(SLOTS - 1)
            .op(&[op::IAND, op::DUP, op::ISTORE, first])
            .op(&[op::BIPUSH, WINDOW as u8, op::IADD, op::ISTORE, end])
    }
}

/// The class file.
pub(crate) fn bytes(jvm: Jvm) -> Vec<u8> {
    const UNSAFE_FIELD: (&str, &str) = ("UNSAFE", UNSAFE_TYPE);
    const TID: (&str, &str) = ("TID", "J");
    const SEEN: (&str, &str) = ("SEEN", "[I");
    const GROWN: (&str, &str) = ("GROWN", "[I");
    const COUNTS: (&str, &str) = (fields::COUNTS, "[J");
    const SINCE: (&str, &str) = (fields::SINCE, "J");
    const SIZE: (&str, &str) = (fields::SIZE, "I");
    const NOW: (&str, &str, &str) = (SYSTEM, "currentTimeMillis", "()J");
    let put = i64::from(Kind::Put.code());
    let mut class = ClassFile::new(PUBLIC, THIS, WEAK);
    for (name, descriptor) in [UNSAFE_FIELD, TID, TABLE, SEEN, GROWN] {
        class.field(STATIC | FINAL, name, descriptor);
    }
    for (name, descriptor) in [COUNTS, SINCE, SIZE] {
        class.field(FINAL, name, descriptor);
    }
    let mut method = |access: u16, named, sizes, write: &dyn Fn(&mut Body<'_>)| {
        class.write(access, named, sizes, write);
    };
    method(STATIC, ("<clinit>", "()V"), (4, 0), &|body| {
        let (thread, tid) = (body.class.pool.class(THREAD), body.class.pool.string("tid"));
        let offset = "(Ljava/lang/Class;Ljava/lang/String;)J";
        let unsafe_of = (UNSAFE, "getUnsafe", "()Ljdk/internal/misc/Unsafe;");
        body.call(op::INVOKESTATIC, unsafe_of)
            .op(&[op::DUP])
            .set(UNSAFE_FIELD);
        body.code.with(op::LDC_W, thread).with(op::LDC_W, tid);
        body.call(op::INVOKEVIRTUAL, (UNSAFE, "objectFieldOffset", offset))
            .set(TID)
            .int(PLACES as i64 + 1)
            .with_class(op::ANEWARRAY, THIS)
            .set(TABLE)
            .int(1 << 16)
            .op(&[op::NEWARRAY, INTS])
            .set(SEEN)
            .int(1 << 16)
            .op(&[op::NEWARRAY, INTS])
            .set(GROWN)
            .op(&[op::RETURN]);
    });
    method(0, ("<init>", NEW), (3, 4), &|body| {
        let init = (WEAK, "<init>", "(Ljava/lang/Object;)V");
        body.op(&[op::ALOAD, 0, op::ALOAD, 1])
            .call(op::INVOKESPECIAL, init)
            .op(&[op::ALOAD, 0, op::ILOAD, 3, op::NEWARRAY, LONGS])
            .field(op::PUTFIELD, COUNTS)
            .op(&[op::ALOAD, 0])
            .call(op::INVOKESTATIC, NOW)
            .field(op::PUTFIELD, SINCE)
            .op(&[op::ALOAD, 0, op::ILOAD, 2])
            .field(op::PUTFIELD, SIZE)
            .op(&[op::RETURN]);
    });
    let hook = |[_, name, descriptor]: [&'static str; 3]| (name, descriptor);
    method(PUBLIC | STATIC, hook(BY_CHANGES), (4, 5), &|body| {
        let end = body.code.label();
        body.op(&[op::ILOAD, 1])
            .int(-LARGE)
            .op(&[op::IAND])
            .jump(op::IFEQ, end)
            .op(&[op::ALOAD, 0, op::ILOAD, 2, op::ILOAD, 3, op::ILOAD, 4])
            .own(op::INVOKESTATIC, WATCHED)
            .place(end)
            .op(&[op::RETURN]);
    });
    method(PUBLIC | STATIC, hook(BY_ARRAY), (4, 4), &|body| {
        let end = body.code.label();
        body.op(&[op::ALOAD, 1])
            .jump(op::IFNULL, end)
            .op(&[op::ALOAD, 1, op::ARRAYLENGTH])
            .int(LARGE)
            .jump(op::IF_ICMPLT, end)
            .op(&[op::ALOAD, 0, op::ICONST_M1, op::ILOAD, 2, op::ILOAD, 3])
            .own(op::INVOKESTATIC, WATCHED)
            .place(end)
            .op(&[op::RETURN]);
    });
    method(PUBLIC | STATIC, hook(BY_DIFFERENCE), (5, 4), &|body| {
        let removed = body.code.label();
        body.op(&[op::LLOAD, 2, op::LCONST_0, op::LCMP])
            .jump(op::IFLT, removed)
            .op(&[op::ALOAD, 0, op::ALOAD, 1, op::LLOAD, 2, op::L2I])
            .int(put)
            .own(op::INVOKESTATIC, hook(BY_ARRAY))
            .op(&[op::RETURN])
            .place(removed)
            .op(&[op::ALOAD, 0, op::ALOAD, 1, op::LLOAD, 2, op::LNEG, op::L2I])
            .int(Kind::Removed.code().into())
            .own(op::INVOKESTATIC, hook(BY_ARRAY))
            .op(&[op::RETURN]);
    });
    method(PUBLIC | STATIC, hook(BY_ARRAYS), (5, 4), &|body| {
        let [end, removed] = [(); 2].map(|()| body.code.label());
        let length = |of: u8| [op::ALOAD, of, op::ARRAYLENGTH];
        body.op(&[op::ALOAD, 1])
            .jump(op::IFNULL, end)
            .op(&[op::ALOAD, 2])
            .jump(op::IFNULL, end)
            .op(&length(1))
            .op(&length(2))
            .op(&[op::IOR])
            .int(-LARGE)
            .op(&[op::IAND])
            .jump(op::IFEQ, end)
            .op(&length(2))
            .op(&length(1))
            .op(&[op::ISUB, op::DUP, op::ISTORE, 3])
            .jump(op::IFLT, removed)
            .op(&[op::ALOAD, 0])
            .op(&length(1))
            .op(&[op::ILOAD, 3])
            .int(put)
            .own(op::INVOKESTATIC, WATCHED)
            .op(&[op::RETURN])
            .place(removed)
            .op(&[op::ALOAD, 0])
            .op(&length(1))
            .op(&[op::ILOAD, 3, op::INEG])
            .int(Kind::Removed.code().into())
            .own(op::INVOKESTATIC, WATCHED)
            .place(end)
            .op(&[op::RETURN]);
    });
    method(PUBLIC | STATIC, hook(BY_SIZES), (5, 5), &|body| {
        let [end, removed] = [(); 2].map(|()| body.code.label());
        body.op(&[op::ILOAD, 3])
            .int(-LARGE)
            .op(&[op::IAND])
            .jump(op::IFEQ, end)
            .op(&[op::ILOAD, 0, op::ILOAD, 2, op::ISUB])
            .op(&[op::DUP, op::ISTORE, 4])
            .jump(op::IFEQ, end)
            .op(&[op::ILOAD, 4])
            .jump(op::IFLT, removed)
            .op(&[op::ALOAD, 1, op::ILOAD, 2, op::ILOAD, 4])
            .int(put)
            .own(op::INVOKESTATIC, WATCHED)
            .op(&[op::RETURN])
            .place(removed)
            .op(&[op::ALOAD, 1, op::ILOAD, 2, op::ILOAD, 4, op::INEG])
            .int(Kind::Removed.code().into())
            .own(op::INVOKESTATIC, WATCHED)
            .place(end)
            .op(&[op::RETURN]);
    });
    method(PUBLIC | STATIC, hook(BY_NUMBER), (4, 3), &|body| {
        body.op(&[op::ALOAD, 0, op::ICONST_M1, op::ILOAD, 1, op::ILOAD, 2])
            .own(op::INVOKESTATIC, GREW)
            .op(&[op::RETURN]);
    });
    method(PUBLIC | STATIC, hook(BY_LONG), (5, 3), &|body| {
        let removed = body.code.label();
        body.op(&[op::LLOAD, 1, op::LCONST_0, op::LCMP])
            .jump(op::IFLT, removed)
            .op(&[op::ALOAD, 0, op::LLOAD, 1, op::L2I])
            .int(put)
            .own(op::INVOKESTATIC, hook(BY_NUMBER))
            .op(&[op::RETURN])
            .place(removed)
            .op(&[op::ALOAD, 0, op::LLOAD, 1, op::LNEG, op::L2I])
            .int(Kind::Removed.code().into())
            .own(op::INVOKESTATIC, hook(BY_NUMBER))
            .op(&[op::RETURN]);
    });
    // Variables: the collection, its size, how many, what; hash, place, end, usage.
    method(STATIC, WATCHED, (4, 8), &|body| {
        let [unknown, begin, end] = [(); 3].map(|()| body.code.label());
        body.counted_if_watched(jvm, unknown)
            .place(unknown)
            .op(&[op::ILOAD, 3])
            .int(put)
            .op(&[op::ISUB])
            .jump(op::IFNE, end)
            .op(&[op::ILOAD, 1])
            .jump(op::IFLT, begin)
            .op(&[op::ILOAD, 1])
            .int(LARGE)
            .jump(op::IF_ICMPLT, end)
            .place(begin)
            .op(&[op::ALOAD, 0, op::ILOAD, 1, op::ILOAD, 2, op::ILOAD, 4])
            .own(op::INVOKESTATIC, BEGIN)
            .place(end)
            .op(&[op::RETURN]);
    });
    // Variables as there; the place where it was seen, how much it has grown.
    method(STATIC, GREW, (4, 8), &|body| {
        let [unknown, came, other, end] = [(); 4].map(|()| body.code.label());
        body.counted_if_watched(jvm, unknown)
            .place(unknown)
            .op(&[op::ILOAD, 3])
            .int(Kind::Read.code().into())
            .op(&[op::ISUB])
            .jump(op::IFEQ, end)
            .op(&[op::ILOAD, 4])
            .int(65_535)
            .op(&[op::IAND, op::ISTORE, 5])
            .get(SEEN)
            .op(&[op::ILOAD, 5, op::IALOAD, op::ILOAD, 4, op::IXOR])
            .int(-65_536)
            .op(&[op::IAND])
            .jump(op::IFNE, other)
            .op(&[op::ILOAD, 2, op::ISTORE, 6, op::ILOAD, 3])
            .int(put)
            .op(&[op::ISUB])
            .jump(op::IFEQ, came)
            .op(&[op::ILOAD, 2, op::INEG, op::ISTORE, 6])
            .place(came)
            .get(GROWN)
            .op(&[op::ILOAD, 5])
            .get(GROWN)
            .op(&[op::ILOAD, 5, op::IALOAD, op::ILOAD, 6, op::IADD])
            .op(&[op::ICONST_0])
            .call(op::INVOKESTATIC, ("java/lang/Math", "max", "(II)I"))
            .op(&[op::DUP, op::ISTORE, 6, op::IASTORE, op::ILOAD, 6])
            .int(LARGE)
            .jump(op::IF_ICMPLT, end)
            .place(other)
            .op(&[op::ILOAD, 3])
            .int(put)
            .op(&[op::ISUB])
            .jump(op::IFNE, end)
            .op(&[op::ALOAD, 0, op::ILOAD, 1, op::ILOAD, 2, op::ILOAD, 4])
            .own(op::INVOKESTATIC, BEGIN)
            .place(end)
            .op(&[op::RETURN]);
    });
    // Variables: this, how many, what; where the stripe begins, what it had.
    method(0, COUNT, (9, 6), &|body| {
        let get = (UNSAFE, "getLong", "(Ljava/lang/Object;J)J");
        let add = (UNSAFE, "getAndAddLong", "(Ljava/lang/Object;JJ)J");
        let thread = (THREAD, "currentThread", "()Ljava/lang/Thread;");
        let end = body.code.label();
        body.get(UNSAFE_FIELD)
            .call(op::INVOKESTATIC, thread)
            .get(TID)
            .call(op::INVOKEVIRTUAL, get)
            .op(&[op::L2I])
            .int(STRIPES - 1)
            .op(&[op::IAND])
            .int(usage::STRIPE as i64)
            .op(&[op::IMUL, op::ISTORE, 3])
            .get(UNSAFE_FIELD)
            .op(&[op::ALOAD, 0])
            .field(op::GETFIELD, COUNTS)
            .op(&[op::ILOAD, 3, op::ILOAD, 2, op::IADD, op::I2L])
            .long(8)
            .op(&[op::LMUL])
            .long(jvm.longs.into())
            .op(&[op::LADD, op::ILOAD, 1, op::I2L])
            .call(op::INVOKEVIRTUAL, add)
            .op(&[op::LSTORE, 4, op::ILOAD, 2])
            .int(put)
            .op(&[op::ISUB])
            .jump(op::IFNE, end)
            .op(&[op::LLOAD, 4, op::L2I, op::BIPUSH, 63, op::IAND])
            .jump(op::IFNE, end)
            .op(&[op::ALOAD, 0, op::ILOAD, 3, op::LLOAD, 4])
            .own(op::INVOKEVIRTUAL, MARK)
            .place(end)
            .op(&[op::RETURN]);
    });
    // Variables: this, where the stripe begins, how many were put; the time, the counts.
    method(0, MARK, (8, 7), &|body| {
        let end = body.code.label();
        let at = |place: usize| {
            [
                op::ALOAD,
                6,
                op::ILOAD,
                1,
                op::BIPUSH,
                place as u8,
                op::IADD,
            ]
        };
        body.call(op::INVOKESTATIC, NOW)
            .op(&[op::LSTORE, 4, op::ALOAD, 0])
            .field(op::GETFIELD, COUNTS)
            .op(&[op::ASTORE, 6])
            .op(&at(usage::LAST))
            .op(&[op::LLOAD, 4, op::LASTORE])
            .op(&[op::LLOAD, 4, op::ALOAD, 0])
            .field(op::GETFIELD, SINCE)
            .op(&[op::LSUB])
            .op(&at(usage::MARK))
            .op(&[op::LALOAD, op::ALOAD, 0])
            .field(op::GETFIELD, SINCE)
            .op(&[op::LSUB])
            .long(2)
            .op(&[op::LMUL, op::LCMP])
            .jump(op::IFLT, end);
        for (to, from) in [
            (usage::BEFORE, usage::MARK),
            (usage::BEFORE + 1, usage::MARK + 1),
        ] {
            body.op(&at(to))
                .op(&at(from))
                .op(&[op::LALOAD, op::LASTORE]);
        }
        body.op(&at(usage::MARK))
            .op(&[op::LLOAD, 4, op::LASTORE])
            .op(&at(usage::MARK + 1))
            .op(&[op::LLOAD, 2, op::LASTORE])
            .place(end)
            .op(&[op::RETURN]);
    });
    // Variables: the collection, its size, how many, its hash; now, mine, seen, place, end, made, usage.
    method(STATIC, BEGIN, (9, 11), &|body| {
        let [late, old, again, free, taken, next, known] = [(); 7].map(|()| body.code.label());
        let [made, from, to, full, first] = [(); 5].map(|()| body.code.label());
        let exchange = "(Ljava/lang/Object;JLjava/lang/Object;Ljava/lang/Object;)Z";
        body.call(op::INVOKESTATIC, NOW)
            .op(&[op::BIPUSH, 10, op::LUSHR, op::L2I, op::ISTORE, 4])
            .op(&[op::ILOAD, 3])
            .int(-65_536)
            .op(&[op::IAND, op::ILOAD, 4])
            .int(65_535)
            .op(&[op::IAND, op::IOR, op::ISTORE, 5])
            .get(SEEN)
            .op(&[op::ILOAD, 3])
            .int(65_535)
            .op(&[op::IAND, op::IALOAD, op::DUP, op::ISTORE, 6])
            .op(&[op::ILOAD, 5, op::IXOR])
            .int(-65_536)
            .op(&[op::IAND])
            .jump(op::IFEQ, old)
            .op(&[op::ILOAD, 6, op::BIPUSH, 16, op::IUSHR])
            .op(&[op::ILOAD, 3, op::BIPUSH, 16, op::IUSHR])
            .jump(op::IF_ICMPLT, first)
            .op(&[op::ILOAD, 4, op::ILOAD, 6, op::ISUB])
            .int(65_535)
            .op(&[op::IAND, op::BIPUSH, 4])
            .jump(op::IF_ICMPLT, late)
            .place(first)
            .get(SEEN)
            .op(&[op::ILOAD, 3])
            .int(65_535)
            .op(&[op::IAND, op::ILOAD, 5, op::IASTORE])
            .get(GROWN)
            .op(&[op::ILOAD, 3])
            .int(65_535)
            .op(&[op::IAND, op::ICONST_0, op::IASTORE, op::RETURN])
            .place(old)
            .op(&[op::ILOAD, 4, op::ILOAD, 6, op::ISUB])
            .int(65_535)
            .op(&[op::IAND, op::ICONST_2])
            .jump(op::IF_ICMPLT, late)
            .window(3, 7, 8)
            .op(&[op::ACONST_NULL, op::ASTORE, 9])
            .place(again)
            .get(TABLE)
            .op(&[op::ILOAD, 7, op::AALOAD, op::DUP, op::ASTORE, 10])
            .jump(op::IFNULL, free)
            .op(&[op::ALOAD, 10])
            .unless_refers(jvm, &[op::ACONST_NULL], taken)
            .place(free)
            .op(&[op::ALOAD, 9])
            .jump(op::IFNONNULL, made)
            .place(from)
            .with_class(op::NEW, THIS)
            .op(&[op::DUP, op::ALOAD, 0, op::ILOAD, 1])
            .int(STRIPES * usage::STRIPE as i64)
            .own(op::INVOKESPECIAL, ("<init>", NEW))
            .op(&[op::ASTORE, 9])
            .place(to)
            .place(made)
            .get(UNSAFE_FIELD)
            .get(TABLE)
            .op(&[op::ILOAD, 7, op::I2L])
            .long(jvm.scale.into())
            .op(&[op::LMUL])
            .long(jvm.objects.into())
            .op(&[op::LADD, op::ALOAD, 10, op::ALOAD, 9])
            .call(op::INVOKEVIRTUAL, (UNSAFE, jvm.exchange, exchange))
            .jump(op::IFEQ, known)
            .op(&[op::ALOAD, 9, op::ILOAD, 2])
            .int(put)
            .own(op::INVOKEVIRTUAL, COUNT)
            .op(&[op::RETURN])
            .place(known)
            .get(TABLE)
            .op(&[op::ILOAD, 7, op::AALOAD, op::ASTORE, 10])
            .place(taken)
            .op(&[op::ALOAD, 10])
            .unless_refers(jvm, &[op::ALOAD, 0], next)
            .op(&[op::ALOAD, 10, op::ILOAD, 2])
            .int(put)
            .own(op::INVOKEVIRTUAL, COUNT)
            .op(&[op::RETURN])
            .place(next)
            .op(&[op::IINC, 7, 1, op::ILOAD, 7, op::ILOAD, 8])
            .jump(op::IF_ICMPLT, again)
            .op(&[op::ILOAD, 3])
            .own(op::INVOKESTATIC, NO_ROOM)
            .place(late)
            .op(&[op::RETURN])
            .place(full)
            .op(&[op::POP, op::RETURN]);
        body.code.handle(from, to, full);
    });
    // Variables: the hash; those without room, their bits, where the bit is.
    method(STATIC, NO_ROOM, (7, 4), &|body| {
        let [from, to, full, there] = [(); 4].map(|()| body.code.label());
        let bits = i64::from(usage::CROWDED_LONGS) * 64;
        body.get(TABLE)
            .int(PLACES as i64)
            .op(&[op::AALOAD, op::DUP, op::ASTORE, 1])
            .jump(op::IFNONNULL, there)
            .place(from)
            .with_class(op::NEW, THIS)
            .op(&[op::DUP, op::ACONST_NULL])
            .int(usage::CROWDED.into())
            .int(usage::CROWDED_LONGS.into())
            .own(op::INVOKESPECIAL, ("<init>", NEW))
            .op(&[op::ASTORE, 1])
            .place(to)
            .get(TABLE)
            .int(PLACES as i64)
            .op(&[op::ALOAD, 1, op::AASTORE])
            .place(there)
            .op(&[op::ALOAD, 1])
            .field(op::GETFIELD, COUNTS)
            .op(&[op::ASTORE, 2, op::ILOAD, 0])
            .int(bits - 1)
            .op(&[op::IAND, op::BIPUSH, 6, op::IUSHR, op::ISTORE, 3])
            .op(&[op::ALOAD, 2, op::ILOAD, 3])
            .op(&[op::ALOAD, 2, op::ILOAD, 3, op::LALOAD])
            .op(&[op::LCONST_1, op::ILOAD, 0, op::LSHL, op::LOR])
            .op(&[op::LASTORE, op::RETURN])
            .place(full)
            .op(&[op::POP, op::RETURN]);
        body.code.handle(from, to, full);
    });
    class.finish()
}
