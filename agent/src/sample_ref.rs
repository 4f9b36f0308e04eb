//! The class `heapdiff.SampleRef`, as bytes. In Java it would read
//!
//! ```java
//! package heapdiff;
//! final class SampleRef extends java.lang.ref.PhantomReference {
//!     static int format; ...                        // all that heapdiff_sites lists
//!     long uid; long size; int site, type, thread, time, mark;
//!     SampleRef(Object referent, long uid, long size, int site, int type, int thread, int time, int slot, int mark) {
//!         super(referent, null);
//!         this.uid = uid; ... this.mark = mark;     // the mark last
//!     }
//!     static int sweep(Object[] chunk, Object[] dead, int[] places) {
//!         int k = 0;
//!         for (int i = 0; i < chunk.length; i++) {
//!             Reference r = (Reference) chunk[i];
//!             if (r != null && r.refersTo(null)) { dead[k] = r; places[k] = i; k++; chunk[i] = null; }
//!         }
//!         return k;
//!     }
//! }
//! ```
//!
//! `Reference.refersTo` came with JDK 16. Before that (and with `reaper=queue`) collected references
//! are taken from a queue, which costs the JVM's own reference handler some work for each; then there is
//!
//! ```java
//!     static ReferenceQueue queue = new ReferenceQueue();
//!     int slot;
//!     static int sweep(Object[] dead, int[] slots) {
//!         int k = 0;
//!         while (k < slots.length) {
//!             SampleRef r = (SampleRef) queue.poll();
//!             if (r == null) break;
//!             dead[k] = r; slots[k] = r.slot; k++;
//!         }
//!         return k;
//!     }
//! ```

use heapdiff_sites::{CLASS_INTERNAL as THIS, fields, statics};

use crate::classfile::{ClassFile, Code, STATIC};

pub(crate) const CONSTRUCTOR: &str = "(Ljava/lang/Object;JJIIIIII)V";
pub(crate) const SWEEP: &str = "sweep";
pub(crate) const SCAN: &str = "([Ljava/lang/Object;[Ljava/lang/Object;[I)I";
pub(crate) const DRAIN: &str = "([Ljava/lang/Object;[I)I";
pub(crate) const QUEUE: &str = "queue";

const REFERENCE: &str = "java/lang/ref/Reference";
const PHANTOM: &str = "java/lang/ref/PhantomReference";
pub(crate) const REFERENCE_QUEUE: &str = "java/lang/ref/ReferenceQueue";
pub(crate) const QUEUE_TYPE: &str = "Ljava/lang/ref/ReferenceQueue;";
const SLOT: &str = "slot";

/// Static fields and their types.
pub(crate) const STATICS: &[(&str, &str)] = &[
    (statics::FORMAT, "I"),
    (statics::STARTED, "J"),
    (statics::PID, "J"),
    (statics::STRATEGY, "I"),
    (statics::INTERVAL, "J"),
    (statics::RATE, "J"),
    (statics::FIRST_INTERVAL, "J"),
    (statics::FIRST_RATE, "J"),
    (statics::DEPTH, "I"),
    (statics::VERBOSITY, "I"),
    (statics::COUNTERS, "[J"),
    (statics::SAMPLES, "[Ljava/lang/Object;"),
    (statics::CLASSES, "[Ljava/lang/Object;"),
    (statics::BLOBS, "[Ljava/lang/Object;"),
    (statics::TOTALS, "[Ljava/lang/Object;"),
    (statics::CLASS_TOTALS, "[Ljava/lang/Object;"),
    (statics::ALLOCATED, "[Ljava/lang/Object;"),
    (statics::SITE_TYPES, "[Ljava/lang/Object;"),
    (statics::COUNTED, "[J"),
    (statics::COUNTED_SITES, "[Ljava/lang/Object;"),
    (statics::COUNTED_TOTALS, "[Ljava/lang/Object;"),
    (statics::USAGE, "[Ljava/lang/Object;"),
    (statics::RECENT, "[Ljava/lang/Object;"),
    (statics::RECENT_DIED, "[I"),
    (statics::RESERVOIR, "[Ljava/lang/Object;"),
    (statics::RESERVOIR_DIED, "[I"),
    (statics::DEAD, "[Ljava/lang/Object;"),
    (statics::PLACES, "[I"),
];

/// How the agent finds out which objects were collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reaper {
    /// By `Reference.refersTo(null)`.
    Scan,
    /// By a reference queue.
    Queue,
}

mod op {
    pub(super) const ACONST_NULL: u8 = 0x01;
    pub(super) const ICONST_0: u8 = 0x03;
    pub(super) const ILOAD: u8 = 0x15;
    pub(super) const LLOAD: u8 = 0x16;
    pub(super) const ALOAD: u8 = 0x19;
    pub(super) const ILOAD_2: u8 = 0x1c;
    pub(super) const ILOAD_3: u8 = 0x1d;
    pub(super) const ALOAD_0: u8 = 0x2a;
    pub(super) const ALOAD_1: u8 = 0x2b;
    pub(super) const ALOAD_2: u8 = 0x2c;
    pub(super) const AALOAD: u8 = 0x32;
    pub(super) const ISTORE: u8 = 0x36;
    pub(super) const ASTORE: u8 = 0x3a;
    pub(super) const ISTORE_2: u8 = 0x3d;
    pub(super) const ISTORE_3: u8 = 0x3e;
    pub(super) const ASTORE_3: u8 = 0x4e;
    pub(super) const ALOAD_3: u8 = 0x2d;
    pub(super) const IASTORE: u8 = 0x4f;
    pub(super) const AASTORE: u8 = 0x53;
    pub(super) const IINC: u8 = 0x84;
    pub(super) const IFEQ: u8 = 0x99;
    pub(super) const IF_ICMPGE: u8 = 0xa2;
    pub(super) const GOTO: u8 = 0xa7;
    pub(super) const IRETURN: u8 = 0xac;
    pub(super) const RETURN: u8 = 0xb1;
    pub(super) const GETSTATIC: u8 = 0xb2;
    pub(super) const GETFIELD: u8 = 0xb4;
    pub(super) const PUTFIELD: u8 = 0xb5;
    pub(super) const INVOKEVIRTUAL: u8 = 0xb6;
    pub(super) const INVOKESPECIAL: u8 = 0xb7;
    pub(super) const ARRAYLENGTH: u8 = 0xbe;
    pub(super) const CHECKCAST: u8 = 0xc0;
    pub(super) const IFNULL: u8 = 0xc6;
}

/// The class file.
pub(crate) fn bytes(reaper: Reaper) -> Vec<u8> {
    let mut class = ClassFile::new(0, THIS, PHANTOM);
    for (name, descriptor) in STATICS {
        class.field(STATIC, name, descriptor);
    }
    for name in [fields::UID, fields::SIZE] {
        class.field(0, name, "J");
    }
    let ints = [
        fields::SITE,
        fields::TYPE,
        fields::THREAD,
        fields::TIME,
        fields::MARK,
    ];
    for name in ints {
        class.field(0, name, "I");
    }
    if reaper == Reaper::Queue {
        class.field(0, SLOT, "I");
        class.field(STATIC, QUEUE, QUEUE_TYPE);
    }
    constructor(&mut class, reaper);
    match reaper {
        Reaper::Scan => scan(&mut class),
        Reaper::Queue => drain(&mut class),
    }
    class.finish()
}

fn constructor(class: &mut ClassFile, reaper: Reaper) {
    let pool = &mut class.pool;
    let mut code = Code::default();
    code.op(&[op::ALOAD_0, op::ALOAD_1]);
    match reaper {
        Reaper::Scan => code.op(&[op::ACONST_NULL]),
        Reaper::Queue => code.with(op::GETSTATIC, pool.field(THIS, QUEUE, QUEUE_TYPE)),
    };
    let init = "(Ljava/lang/Object;Ljava/lang/ref/ReferenceQueue;)V";
    code.with(op::INVOKESPECIAL, pool.method(PHANTOM, "<init>", init));
    let mut put = |opcode: u8, local: u8, name: &str, descriptor: &str| {
        let field = pool.field(THIS, name, descriptor);
        code.op(&[op::ALOAD_0, opcode, local])
            .with(op::PUTFIELD, field);
    };
    put(op::LLOAD, 2, fields::UID, "J");
    put(op::LLOAD, 4, fields::SIZE, "J");
    put(op::ILOAD, 6, fields::SITE, "I");
    put(op::ILOAD, 7, fields::TYPE, "I");
    put(op::ILOAD, 8, fields::THREAD, "I");
    put(op::ILOAD, 9, fields::TIME, "I");
    if reaper == Reaper::Queue {
        put(op::ILOAD, 10, SLOT, "I");
    }
    put(op::ILOAD, 11, fields::MARK, "I");
    code.op(&[op::RETURN]);
    class.method(0, ("<init>", CONSTRUCTOR), (3, 12), code);
}

fn scan(class: &mut ClassFile) {
    let reference = class.pool.class(REFERENCE);
    let refers_to = class
        .pool
        .method(REFERENCE, "refersTo", "(Ljava/lang/Object;)Z");
    let mut code = Code::default();
    let (again, next, end) = (code.label(), code.label(), code.label());
    // Locals: 3 is k, 4 is i, 5 is r.
    code.op(&[op::ICONST_0, op::ISTORE_3, op::ICONST_0, op::ISTORE, 4])
        .place(again)
        .op(&[op::ILOAD, 4, op::ALOAD_0, op::ARRAYLENGTH])
        .jump(op::IF_ICMPGE, end)
        .op(&[op::ALOAD_0, op::ILOAD, 4, op::AALOAD])
        .with(op::CHECKCAST, reference)
        .op(&[op::ASTORE, 5, op::ALOAD, 5])
        .jump(op::IFNULL, next)
        .op(&[op::ALOAD, 5, op::ACONST_NULL])
        .with(op::INVOKEVIRTUAL, refers_to)
        .jump(op::IFEQ, next)
        .op(&[op::ALOAD_1, op::ILOAD_3, op::ALOAD, 5, op::AASTORE])
        .op(&[op::ALOAD_2, op::ILOAD_3, op::ILOAD, 4, op::IASTORE])
        .op(&[op::IINC, 3, 1])
        .op(&[op::ALOAD_0, op::ILOAD, 4, op::ACONST_NULL, op::AASTORE])
        .place(next)
        .op(&[op::IINC, 4, 1])
        .jump(op::GOTO, again)
        .place(end)
        .op(&[op::ILOAD_3, op::IRETURN]);
    class.method(STATIC, (SWEEP, SCAN), (3, 6), code);
}

fn drain(class: &mut ClassFile) {
    let pool = &mut class.pool;
    let this = pool.class(THIS);
    let queue = pool.field(THIS, QUEUE, QUEUE_TYPE);
    let slot = pool.field(THIS, SLOT, "I");
    let poll = pool.method(REFERENCE_QUEUE, "poll", "()Ljava/lang/ref/Reference;");
    let mut code = Code::default();
    let (again, end) = (code.label(), code.label());
    // Locals: 2 is k, 3 is r.
    code.op(&[op::ICONST_0, op::ISTORE_2])
        .place(again)
        .op(&[op::ILOAD_2, op::ALOAD_1, op::ARRAYLENGTH])
        .jump(op::IF_ICMPGE, end)
        .with(op::GETSTATIC, queue)
        .with(op::INVOKEVIRTUAL, poll)
        .with(op::CHECKCAST, this)
        .op(&[op::ASTORE_3, op::ALOAD_3])
        .jump(op::IFNULL, end)
        .op(&[op::ALOAD_0, op::ILOAD_2, op::ALOAD_3, op::AASTORE])
        .op(&[op::ALOAD_1, op::ILOAD_2, op::ALOAD_3])
        .with(op::GETFIELD, slot)
        .op(&[op::IASTORE, op::IINC, 2, 1])
        .jump(op::GOTO, again)
        .place(end)
        .op(&[op::ILOAD_2, op::IRETURN]);
    class.method(STATIC, (SWEEP, DRAIN), (3, 4), code);
}
