//! The class whose methods are called before allocations, as bytes. In Java it would read
//!
//! ```java
//! package java.lang;                            // which every module reads, and which may use Unsafe
//! public final class HeapdiffCounts {
//!     static final Unsafe UNSAFE = Unsafe.getUnsafe();
//!     static final long TID = UNSAFE.objectFieldOffset(Thread.class, "tid");
//!     static long thread() { return UNSAFE.getLong(Thread.currentCarrierThread(), TID); }
//!     static long own(long thread) {               // where the counters of this thread alone begin, or 0
//!         return thread >>> THREAD_BITS == 0 ? UNSAFE.getLong(null, PLACES + (thread << 3)) : 0;
//!     }
//!     static void plus(long cell, long n) { UNSAFE.putLong(null, cell, UNSAFE.getLong(null, cell) + n); }
//!     static long cell(int site, long thread) {    // one that others raise, too
//!         return START + (thread & STRIPES - 1) * STRIPE_BYTES + (site & -16);
//!     }
//!     static long size(int length, int site) {
//!         return ((long) length << (site & 3)) + (site & 12) + SMALLEST + ALIGNMENT - 1 & -ALIGNMENT;
//!     }
//!     public static void object(int site) {
//!         long thread = thread(), own = own(thread);
//!         if (own != 0) plus(own + (site & -16), 1);
//!         else shared(site, thread);
//!     }
//!     static void shared(int site, long thread) { UNSAFE.getAndAddLong(null, cell(site, thread), 1); }
//!     public static void array(int length, int site) {
//!         long thread = thread(), own = own(thread);
//!         if (own != 0) array(own + (site & -16), length, site);
//!         else shared(length, site, thread);
//!     }
//!     static void array(long cell, int length, int site) {
//!         if (length < 0) return;
//!         plus(cell, 1);
//!         plus(cell + 8, size(length, site));
//!     }
//!     static void shared(int length, int site, long thread) {
//!         if (length < 0) return;
//!         long cell = cell(site, thread);
//!         UNSAFE.getAndAddLong(null, cell, 1);
//!         UNSAFE.getAndAddLong(null, cell + 8, size(length, site));
//!     }
//!     public static long level(long count, int length, int site) {
//!         if (length < 0) return 0;
//!         long cell = cell(site, thread());
//!         UNSAFE.getAndAddLong(null, cell, count);
//!         UNSAFE.getAndAddLong(null, cell + 8, count * size(length, site));
//!         return count * length;
//!     }
//!     public static void made(Object made, int site) { if (made != null) add(made, 1, site); }
//!     public static void levels(Object made, int site) {            // arrays of arrays, which a call has made
//!         long count = 1;
//!         while (made != null) {
//!             add(made, count, site);
//!             if (!(made instanceof Object[])) return;
//!             Object[] array = (Object[]) made;
//!             if (array.length == 0) return;
//!             count *= array.length;
//!             made = array[0];
//!         }
//!     }
//!     static void add(Object made, long count, int site) {
//!         long entry = entry(site, number(made.getClass()));
//!         UNSAFE.getAndAddLong(null, entry, count);
//!         long size = sizeOf(made);
//!         if (size != 0) UNSAFE.getAndAddLong(null, entry + 8, count * size);
//!     }
//!     static long sizeOf(Object made) {                             // 0 for what is no array
//!         if (made instanceof Object[]) return size(((Object[]) made).length, REFERENCES);
//!         if (made instanceof byte[]) return size(((byte[]) made).length, BYTES);
//!         ...
//!         return 0;
//!     }
//!     static long klass = KLASS_OFFSET;                             // no constant, so that compilers know nothing of it
//!     static long number(Class type) { return UNSAFE.getLong(type, klass) >>> 3; }
//!     static long entry(int site, long number) {
//!         long key = number << SITE_BITS | site >> 4;
//!         long table = TABLES + stripe * TABLE_BYTES, i = key * MIXER >>> 64 - BITS;
//!         for (int left = PROBES; left != 0; left--) {
//!             long place = table + (i << ENTRY_BITS), known = UNSAFE.getLong(null, place);
//!             if (known == 0) {
//!                 UNSAFE.compareAndSetLong(null, place, 0, key);
//!                 known = UNSAFE.getLongVolatile(null, place);
//!             }
//!             if (known == key) return place + 8;
//!             i = i + 1 & ENTRIES - 1;
//!         }
//!         return LOST;
//!     }
//! }
//! ```
//!
//! where names in capitals without a declaration are constants in the code. It allocates nothing, calls nothing that is rewritten,
//! and no method that a program may override (`Thread.getId`). A thread has no number yet, 0, while its object is made; before JDK 19
//! `currentThread` tells the one that runs. `getClass` is the JVM's own. An array that cannot be, of a negative length, is not
//! counted.

use heapdiff_bytecode::Hooks;

use super::cells::{CELL, Cells, STRIPE_BYTES, STRIPES, THREAD_BITS};
use super::layout::{Layout, SMALLEST_BASE};
use super::returned::{self, BITS, ENTRY_BITS, PROBES, SITE_BITS};
use crate::classfile::{Body, ClassFile, FINAL, PUBLIC, STATIC, op};

pub(crate) const THIS: &str = "java/lang/HeapdiffCounts";
/// Methods that the rewriting has called, and one that tells whether the class is there.
pub(crate) const HOOKS: Hooks<'static> = Hooks {
    owner: THIS,
    object: "object",
    array: "array",
    level: "level",
};
/// Given what a call returned.
pub(crate) const MADE: &str = "made";
/// Given an array of arrays that a call returned.
pub(crate) const LEVELS: &str = "levels";
pub(crate) const OBJECT_TYPE: &str = "(I)V";
const RETURNED_TYPE: &str = "(Ljava/lang/Object;I)V";
pub(crate) const UNSAFE: &str = "jdk/internal/misc/Unsafe";

const OBJECT: &str = "java/lang/Object";
const OBJECTS: &str = "[Ljava/lang/Object;";
const THREAD: &str = "java/lang/Thread";
/// Where a class's number is in its object.
const KLASS: (&str, &str) = ("klass", "J");
/// An odd number whose bits look like chance: the golden ratio's.
const MIXER: i64 = 0x9e37_79b9_7f4a_7c15_u64.cast_signed();
const UNSAFE_TYPE: &str = "Ljdk/internal/misc/Unsafe;";

impl Body<'_> {
    /// Before an address and what is added there.
    fn add(&mut self) -> &mut Self {
        self.field(op::GETSTATIC, ("UNSAFE", UNSAFE_TYPE))
            .op(&[op::ACONST_NULL])
    }

    fn unsafely(&mut self, name: &str, descriptor: &str) -> &mut Self {
        self.call(op::INVOKEVIRTUAL, (UNSAFE, name, descriptor))
    }

    /// The address of the stripe that the thread whose number is on the stack shares with others.
    fn stripe(&mut self, start: i64, bytes: i64) -> &mut Self {
        self.long(STRIPES - 1)
            .op(&[op::LAND])
            .long(bytes)
            .op(&[op::LMUL])
            .long(start)
            .op(&[op::LADD])
    }

    /// Adds where a site's counters are to the address of its stripe; the site's number is in an `int` variable.
    fn site(&mut self, load: u8) -> &mut Self {
        self.op(&[load, op::BIPUSH, 0xf0, op::IAND, op::I2L, op::LADD])
    }

    /// The own stripe of the thread that runs, whose number an instruction stores.
    fn own_stripe(&mut self, store: u8) -> &mut Self {
        self.own(op::INVOKESTATIC, NUMBER)
            .op(&[op::DUP2, store])
            .own(op::INVOKESTATIC, OWN)
    }

    fn added(&mut self) -> &mut Self {
        let named = (UNSAFE, "getAndAddLong", "(Ljava/lang/Object;JJ)J");
        self.call(op::INVOKEVIRTUAL, named).op(&[op::POP2])
    }
}

const GET: &str = "(Ljava/lang/Object;J)J";
/// The number of the thread that runs.
const NUMBER: (&str, &str) = ("thread", "()J");
/// The own stripe of a thread, or 0.
const OWN: (&str, &str) = ("own", "(J)J");
/// Adds to a counter that only one thread adds to.
const PLUS: (&str, &str) = ("plus", "(JJ)V");

/// The class file, for counters and arrays that are so. `carriers` says whether the JVM tells threads that carry virtual ones.
pub(crate) fn bytes(layout: &Layout, cells: &Cells, klass: i64, carriers: bool) -> Vec<u8> {
    let mut class = ClassFile::new(PUBLIC, THIS, OBJECT);
    class.field(STATIC | FINAL, "UNSAFE", UNSAFE_TYPE);
    class.field(STATIC | FINAL, "TID", "J");
    class.field(STATIC, KLASS.0, KLASS.1);
    let mut method = |access: u16, named, sizes, write: &dyn Fn(&mut Body<'_>)| {
        class.write(STATIC | access, named, sizes, write);
    };
    method(0, ("<clinit>", "()V"), (4, 0), &|hook| {
        let (thread, tid) = (hook.class.pool.class(THREAD), hook.class.pool.string("tid"));
        let offset = "(Ljava/lang/Class;Ljava/lang/String;)J";
        hook.call(
            op::INVOKESTATIC,
            (UNSAFE, "getUnsafe", "()Ljdk/internal/misc/Unsafe;"),
        )
        .op(&[op::DUP])
        .field(op::PUTSTATIC, ("UNSAFE", UNSAFE_TYPE));
        hook.code.with(op::LDC_W, thread).with(op::LDC_W, tid);
        hook.call(op::INVOKEVIRTUAL, (UNSAFE, "objectFieldOffset", offset))
            .field(op::PUTSTATIC, ("TID", "J"))
            .long(klass)
            .field(op::PUTSTATIC, KLASS)
            .op(&[op::RETURN]);
    });
    of_threads(cells, carriers, &mut method);
    let cell = ("cell", "(IJ)J");
    method(0, cell, (6, 3), &|hook| {
        hook.op(&[op::LLOAD_1])
            .stripe(cells.start(), STRIPE_BYTES)
            .site(op::ILOAD_0)
            .op(&[op::LRETURN]);
    });
    let size = ("size", "(II)J");
    method(0, size, (5, 2), &|hook| {
        hook.op(&[op::ILOAD_0, op::I2L])
            .op(&[op::ILOAD_1, op::ICONST_3, op::IAND, op::LSHL])
            .op(&[op::ILOAD_1, op::BIPUSH, 12, op::IAND, op::I2L, op::LADD])
            .long(SMALLEST_BASE + layout.alignment - 1)
            .op(&[op::LADD])
            .long(-layout.alignment)
            .op(&[op::LAND, op::LRETURN]);
    });
    let shared = ("shared", "(IJ)V");
    method(0, shared, (8, 3), &|hook| {
        hook.add()
            .op(&[op::ILOAD_0, op::LLOAD_1])
            .own(op::INVOKESTATIC, cell)
            .op(&[op::LCONST_1])
            .added()
            .op(&[op::RETURN]);
    });
    method(PUBLIC, (HOOKS.object, OBJECT_TYPE), (6, 3), &|hook| {
        let others = hook.code.label();
        hook.own_stripe(op::LSTORE_1)
            .op(&[op::DUP2, op::LCONST_0, op::LCMP])
            .jump(op::IFEQ, others)
            .site(op::ILOAD_0)
            .op(&[op::LCONST_1])
            .own(op::INVOKESTATIC, PLUS)
            .op(&[op::RETURN])
            .place(others)
            .op(&[op::POP2, op::ILOAD_0, op::LLOAD_1])
            .own(op::INVOKESTATIC, shared)
            .op(&[op::RETURN]);
    });
    let (here, shared) = (("array", "(JII)V"), ("shared", "(IIJ)V"));
    method(0, here, (7, 4), &|hook| {
        let end = hook.code.label();
        hook.op(&[op::ILOAD_2])
            .jump(op::IFLT, end)
            .op(&[op::LLOAD_0, op::LCONST_1])
            .own(op::INVOKESTATIC, PLUS)
            .op(&[op::LLOAD_0])
            .long(CELL)
            .op(&[op::LADD, op::ILOAD_2, op::ILOAD_3])
            .own(op::INVOKESTATIC, size)
            .own(op::INVOKESTATIC, PLUS)
            .place(end)
            .op(&[op::RETURN]);
    });
    method(0, shared, (8, 6), &|hook| {
        let end = hook.code.label();
        hook.op(&[op::ILOAD_0])
            .jump(op::IFLT, end)
            .op(&[op::ILOAD_1, op::LLOAD_2])
            .own(op::INVOKESTATIC, cell)
            .op(&[op::LSTORE, 4])
            .add()
            .op(&[op::LLOAD, 4, op::LCONST_1])
            .added()
            .add()
            .op(&[op::LLOAD, 4])
            .long(CELL)
            .op(&[op::LADD, op::ILOAD_0, op::ILOAD_1])
            .own(op::INVOKESTATIC, size)
            .added()
            .place(end)
            .op(&[op::RETURN]);
    });
    method(PUBLIC, (HOOKS.array, "(II)V"), (6, 4), &|hook| {
        let others = hook.code.label();
        hook.own_stripe(op::LSTORE_2)
            .op(&[op::DUP2, op::LCONST_0, op::LCMP])
            .jump(op::IFEQ, others)
            .site(op::ILOAD_1)
            .op(&[op::ILOAD_0, op::ILOAD_1])
            .own(op::INVOKESTATIC, here)
            .op(&[op::RETURN])
            .place(others)
            .op(&[op::POP2, op::ILOAD_0, op::ILOAD_1, op::LLOAD_2])
            .own(op::INVOKESTATIC, shared)
            .op(&[op::RETURN]);
    });
    method(PUBLIC, (HOOKS.level, "(JII)J"), (8, 6), &|hook| {
        let none = hook.code.label();
        hook.op(&[op::ILOAD_2]).code.jump(op::IFLT, none);
        hook.op(&[op::ILOAD_3])
            .own(op::INVOKESTATIC, NUMBER)
            .own(op::INVOKESTATIC, cell)
            .op(&[op::LSTORE, 4])
            .add()
            .op(&[op::LLOAD, 4, op::LLOAD_0])
            .added()
            .add()
            .op(&[op::LLOAD, 4])
            .long(CELL)
            .op(&[op::LADD, op::LLOAD_0, op::ILOAD_2, op::ILOAD_3])
            .own(op::INVOKESTATIC, size)
            .op(&[op::LMUL])
            .added()
            .op(&[op::LLOAD_0, op::ILOAD_2, op::I2L, op::LMUL, op::LRETURN]);
        hook.code.place(none).op(&[op::LCONST_0, op::LRETURN]);
    });
    of_returned(layout, cells, &mut method);
    class.finish()
}

/// The methods that tell threads apart. Those that are called for each object have at most 35 bytes, which the JVM's first compiler
/// still puts in their callers' code. What a thread without a stripe of its own does is a call: the second compiler leaves it out
/// where there is none, and would otherwise keep a loop's variables in memory.
fn of_threads(cells: &Cells, carriers: bool, method: &mut Method<'_>) {
    let at = ("at", "(J)J");
    method(0, NUMBER, (4, 0), &|hook| {
        let current = match carriers {
            true => "currentCarrierThread",
            false => "currentThread",
        };
        hook.field(op::GETSTATIC, ("UNSAFE", UNSAFE_TYPE))
            .call(op::INVOKESTATIC, (THREAD, current, "()Ljava/lang/Thread;"))
            .field(op::GETSTATIC, ("TID", "J"))
            .unsafely("getLong", GET)
            .op(&[op::LRETURN]);
    });
    method(0, at, (4, 2), &|hook| {
        hook.add()
            .op(&[op::LLOAD_0])
            .unsafely("getLong", GET)
            .op(&[op::LRETURN]);
    });
    method(0, OWN, (4, 2), &|hook| {
        let none = hook.code.label();
        hook.op(&[op::LLOAD_0, op::BIPUSH, THREAD_BITS, op::LUSHR])
            .op(&[op::LCONST_0, op::LCMP])
            .jump(op::IFNE, none)
            .op(&[op::LLOAD_0, op::ICONST_3, op::LSHL])
            .long(cells.places())
            .op(&[op::LADD])
            .own(op::INVOKESTATIC, at)
            .op(&[op::LRETURN])
            .place(none)
            .op(&[op::LCONST_0, op::LRETURN]);
    });
    method(0, PLUS, (8, 4), &|hook| {
        hook.add()
            .op(&[op::LLOAD_0])
            .add()
            .op(&[op::LLOAD_0])
            .unsafely("getLong", GET)
            .op(&[op::LLOAD_2, op::LADD])
            .unsafely("putLong", "(Ljava/lang/Object;JJ)V")
            .op(&[op::RETURN]);
    });
}

/// The methods for what calls return.
fn of_returned(layout: &Layout, cells: &Cells, method: &mut Method<'_>) {
    let number = ("number", "(Ljava/lang/Class;)J");
    method(0, number, (4, 1), &|hook| {
        hook.field(op::GETSTATIC, ("UNSAFE", UNSAFE_TYPE))
            .op(&[op::ALOAD_0])
            .field(op::GETSTATIC, KLASS)
            .unsafely("getLong", GET)
            .op(&[op::ICONST_3, op::LUSHR, op::LRETURN]);
    });
    let entry = ("entry", "(IJ)J");
    let tables = cells.returned.start();
    // Locals behind the two that are given.
    const KEY: u8 = 3;
    const TABLE: u8 = 5;
    const I: u8 = 7;
    const LEFT: u8 = 9;
    const PLACE: u8 = 10;
    const KNOWN: u8 = 12;
    method(0, entry, (8, 14), &|hook| {
        let (again, known, next) = (hook.code.label(), hook.code.label(), hook.code.label());
        let mixed = 64_u32.saturating_sub(BITS).to_be_bytes()[3];
        hook.op(&[op::LLOAD_1, op::BIPUSH, SITE_BITS, op::LSHL])
            .op(&[op::ILOAD_0, op::ICONST_4, op::ISHR, op::I2L, op::LOR])
            .op(&[op::LSTORE, KEY])
            .own(op::INVOKESTATIC, NUMBER)
            .stripe(tables, returned::STRIPE_BYTES)
            .op(&[op::LSTORE, TABLE, op::LLOAD, KEY])
            .long(MIXER)
            .op(&[op::LMUL, op::BIPUSH, mixed, op::LUSHR, op::LSTORE, I])
            .op(&[op::BIPUSH, PROBES, op::ISTORE, LEFT]);
        hook.code.place(again);
        hook.op(&[op::LLOAD, TABLE, op::LLOAD, I, op::BIPUSH, ENTRY_BITS])
            .op(&[op::LSHL, op::LADD, op::LSTORE, PLACE])
            .add()
            .op(&[op::LLOAD, PLACE])
            .unsafely("getLong", GET)
            .op(&[op::LSTORE, KNOWN, op::LLOAD, KNOWN, op::LCONST_0, op::LCMP])
            .code
            .jump(op::IFNE, known);
        hook.add()
            .op(&[op::LLOAD, PLACE, op::LCONST_0, op::LLOAD, KEY])
            .unsafely("compareAndSetLong", "(Ljava/lang/Object;JJJ)Z")
            .op(&[op::POP])
            .add()
            .op(&[op::LLOAD, PLACE])
            .unsafely("getLongVolatile", GET)
            .op(&[op::LSTORE, KNOWN]);
        hook.code.place(known);
        hook.op(&[op::LLOAD, KNOWN, op::LLOAD, KEY, op::LCMP])
            .code
            .jump(op::IFNE, next);
        hook.op(&[op::LLOAD, PLACE])
            .long(CELL)
            .op(&[op::LADD, op::LRETURN]);
        hook.code.place(next);
        hook.op(&[op::LLOAD, I, op::LCONST_1, op::LADD])
            .long((1 << BITS) - 1)
            .op(&[
                op::LAND,
                op::LSTORE,
                I,
                op::IINC,
                LEFT,
                0xff,
                op::ILOAD,
                LEFT,
            ])
            .code
            .jump(op::IFNE, again);
        hook.long(tables + STRIPES * returned::STRIPE_BYTES)
            .op(&[op::LRETURN]);
    });
    let size_of = ("sizeOf", "(Ljava/lang/Object;)J");
    method(0, size_of, (3, 1), &|hook| {
        for class in [OBJECTS, "[B", "[C", "[I", "[J", "[D", "[F", "[S", "[Z"] {
            // An array of which the layout is not known has no size here.
            let Some(Ok(elements)) = layout.elements(class.as_bytes()).map(u8::try_from) else {
                continue;
            };
            let next = hook.code.label();
            hook.op(&[op::ALOAD_0])
                .with_class(op::INSTANCEOF, class)
                .code
                .jump(op::IFEQ, next);
            hook.op(&[op::ALOAD_0])
                .with_class(op::CHECKCAST, class)
                .op(&[op::ARRAYLENGTH, op::BIPUSH, elements])
                .own(op::INVOKESTATIC, ("size", "(II)J"))
                .op(&[op::LRETURN]);
            hook.code.place(next);
        }
        hook.op(&[op::LCONST_0, op::LRETURN]);
    });
    let add = ("add", "(Ljava/lang/Object;JI)V");
    method(0, add, (10, 8), &|hook| {
        let end = hook.code.label();
        let class_of = (OBJECT, "getClass", "()Ljava/lang/Class;");
        hook.op(&[op::ILOAD_3, op::ALOAD_0])
            .call(op::INVOKEVIRTUAL, class_of)
            .own(op::INVOKESTATIC, number)
            .own(op::INVOKESTATIC, entry)
            .op(&[op::LSTORE, 4])
            .add()
            .op(&[op::LLOAD, 4, op::LLOAD_1])
            .added()
            .op(&[op::ALOAD_0])
            .own(op::INVOKESTATIC, size_of)
            .op(&[op::LSTORE, 6, op::LLOAD, 6, op::LCONST_0, op::LCMP])
            .code
            .jump(op::IFEQ, end);
        hook.add()
            .op(&[op::LLOAD, 4])
            .long(CELL)
            .op(&[op::LADD, op::LLOAD_1, op::LLOAD, 6, op::LMUL])
            .added();
        hook.code.place(end).op(&[op::RETURN]);
    });
    method(PUBLIC, (MADE, RETURNED_TYPE), (4, 2), &|hook| {
        let end = hook.code.label();
        hook.op(&[op::ALOAD_0]).code.jump(op::IFNULL, end);
        hook.op(&[op::ALOAD_0, op::LCONST_1, op::ILOAD_1])
            .own(op::INVOKESTATIC, add);
        hook.code.place(end).op(&[op::RETURN]);
    });
    method(PUBLIC, (LEVELS, RETURNED_TYPE), (4, 5), &|hook| {
        let (again, end) = (hook.code.label(), hook.code.label());
        hook.op(&[op::LCONST_1, op::LSTORE_2]).code.place(again);
        hook.op(&[op::ALOAD_0]).code.jump(op::IFNULL, end);
        hook.op(&[op::ALOAD_0, op::LLOAD_2, op::ILOAD_1])
            .own(op::INVOKESTATIC, add)
            .op(&[op::ALOAD_0])
            .with_class(op::INSTANCEOF, OBJECTS)
            .code
            .jump(op::IFEQ, end);
        hook.op(&[op::ALOAD_0])
            .with_class(op::CHECKCAST, OBJECTS)
            .op(&[op::ASTORE, 4, op::ALOAD, 4, op::ARRAYLENGTH])
            .code
            .jump(op::IFEQ, end);
        hook.op(&[op::LLOAD_2, op::ALOAD, 4, op::ARRAYLENGTH, op::I2L])
            .op(&[op::LMUL, op::LSTORE_2, op::ALOAD, 4, op::ICONST_0])
            .op(&[op::AALOAD, op::ASTORE_0])
            .code
            .jump(op::GOTO, again);
        hook.code.place(end).op(&[op::RETURN]);
    });
}

/// Writes a method: its access, its name and type, the depth of its stack and the number of its locals, its code.
type Method<'m> =
    dyn FnMut(u16, (&'static str, &'static str), (u16, u16), &dyn Fn(&mut Body<'_>)) + 'm;
