//! The class whose methods are called before allocations, as bytes. In Java it would read
//!
//! ```java
//! package java.lang;                            // which every module reads, and which may use Unsafe
//! public final class HeapdiffCounts {
//!     static final Unsafe UNSAFE = Unsafe.getUnsafe();
//!     static final long TID = UNSAFE.objectFieldOffset(Thread.class, "tid");
//!     static long cell(int site) {
//!         long stripe = UNSAFE.getLong(Thread.currentThread(), TID) & STRIPES - 1;
//!         return START + stripe * STRIPE_BYTES + (site & -16);
//!     }
//!     static long size(int length, int site) {
//!         return ((long) length << (site & 3)) + (site & 12) + SMALLEST + ALIGNMENT - 1 & -ALIGNMENT;
//!     }
//!     public static void object(int site) { UNSAFE.getAndAddLong(null, cell(site), 1); }
//!     public static void array(int length, int site) {
//!         if (length < 0) return;
//!         long cell = cell(site);
//!         UNSAFE.getAndAddLong(null, cell, 1);
//!         UNSAFE.getAndAddLong(null, cell + 8, size(length, site));
//!     }
//!     public static long level(long count, int length, int site) {
//!         if (length < 0) return 0;
//!         long cell = cell(site);
//!         UNSAFE.getAndAddLong(null, cell, count);
//!         UNSAFE.getAndAddLong(null, cell + 8, count * size(length, site));
//!         return count * length;
//!     }
//! }
//! ```
//!
//! where names in capitals without a declaration are constants in the code. It allocates nothing, calls nothing that is rewritten,
//! and no method that a program may override (`Thread.getId`). An array that cannot be, of a negative length, is not
//! counted.

use heapdiff_bytecode::Hooks;

use super::cells::{CELL, STRIPE_BYTES, STRIPES};
use super::layout::{Layout, SMALLEST_BASE};
use crate::classfile::{ClassFile, Code, FINAL, PUBLIC, STATIC};

pub(crate) const THIS: &str = "java/lang/HeapdiffCounts";
/// Methods that the rewriting has called, and one that tells whether the class is there.
pub(crate) const HOOKS: Hooks<'static> = Hooks {
    owner: THIS,
    object: "object",
    array: "array",
    level: "level",
};
pub(crate) const OBJECT_TYPE: &str = "(I)V";
pub(crate) const UNSAFE: &str = "jdk/internal/misc/Unsafe";

const OBJECT: &str = "java/lang/Object";
const THREAD: &str = "java/lang/Thread";
const UNSAFE_TYPE: &str = "Ljdk/internal/misc/Unsafe;";

mod op {
    pub(super) const ACONST_NULL: u8 = 0x01;
    pub(super) const ICONST_3: u8 = 0x06;
    pub(super) const LCONST_0: u8 = 0x09;
    pub(super) const LCONST_1: u8 = 0x0a;
    pub(super) const BIPUSH: u8 = 0x10;
    pub(super) const LDC_W: u8 = 0x13;
    pub(super) const LDC2_W: u8 = 0x14;
    pub(super) const ILOAD_0: u8 = 0x1a;
    pub(super) const ILOAD_1: u8 = 0x1b;
    pub(super) const ILOAD_2: u8 = 0x1c;
    pub(super) const ILOAD_3: u8 = 0x1d;
    pub(super) const LLOAD: u8 = 0x16;
    pub(super) const LLOAD_0: u8 = 0x1e;
    pub(super) const LSTORE: u8 = 0x37;
    pub(super) const POP2: u8 = 0x58;
    pub(super) const DUP: u8 = 0x59;
    pub(super) const LADD: u8 = 0x61;
    pub(super) const LMUL: u8 = 0x69;
    pub(super) const LSHL: u8 = 0x79;
    pub(super) const IAND: u8 = 0x7e;
    pub(super) const LAND: u8 = 0x7f;
    pub(super) const I2L: u8 = 0x85;
    pub(super) const IFLT: u8 = 0x9b;
    pub(super) const LRETURN: u8 = 0xad;
    pub(super) const RETURN: u8 = 0xb1;
    pub(super) const GETSTATIC: u8 = 0xb2;
    pub(super) const PUTSTATIC: u8 = 0xb3;
    pub(super) const INVOKEVIRTUAL: u8 = 0xb6;
    pub(super) const INVOKESTATIC: u8 = 0xb8;
}

/// Code of the class that is put together.
struct Hook<'c> {
    class: &'c mut ClassFile,
    code: Code,
}

impl Hook<'_> {
    fn op(&mut self, bytes: &[u8]) -> &mut Self {
        self.code.op(bytes);
        self
    }

    fn long(&mut self, value: i64) -> &mut Self {
        let constant = self.class.pool.long(value);
        self.code.with(op::LDC2_W, constant);
        self
    }

    fn field(&mut self, opcode: u8, (name, descriptor): (&str, &str)) -> &mut Self {
        let field = self.class.pool.field(THIS, name, descriptor);
        self.code.with(opcode, field);
        self
    }

    fn call(&mut self, opcode: u8, (class, name, descriptor): (&str, &str, &str)) -> &mut Self {
        let method = self.class.pool.method(class, name, descriptor);
        self.code.with(opcode, method);
        self
    }

    /// Calls a method of this class.
    fn own(&mut self, name: &str, descriptor: &str) -> &mut Self {
        self.call(op::INVOKESTATIC, (THIS, name, descriptor))
    }

    /// Before an address and what is added there.
    fn add(&mut self) -> &mut Self {
        self.field(op::GETSTATIC, ("UNSAFE", UNSAFE_TYPE))
            .op(&[op::ACONST_NULL])
    }

    fn added(&mut self) -> &mut Self {
        let named = (UNSAFE, "getAndAddLong", "(Ljava/lang/Object;JJ)J");
        self.call(op::INVOKEVIRTUAL, named).op(&[op::POP2])
    }
}

/// The class file, for counters and arrays that are so.
pub(crate) fn bytes(layout: &Layout, start: i64) -> Vec<u8> {
    let mut class = ClassFile::new(PUBLIC, THIS, OBJECT);
    class.field(STATIC | FINAL, "UNSAFE", UNSAFE_TYPE);
    class.field(STATIC | FINAL, "TID", "J");
    let mut method = |access: u16, named, sizes, write: &dyn Fn(&mut Hook<'_>)| {
        let mut hook = Hook {
            class: &mut class,
            code: Code::default(),
        };
        write(&mut hook);
        let code = hook.code;
        class.method(STATIC | access, named, sizes, code);
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
            .op(&[op::RETURN]);
    });
    let cell = ("cell", "(I)J");
    method(0, cell, (6, 1), &|hook| {
        hook.field(op::GETSTATIC, ("UNSAFE", UNSAFE_TYPE))
            .call(
                op::INVOKESTATIC,
                (THREAD, "currentThread", "()Ljava/lang/Thread;"),
            )
            .field(op::GETSTATIC, ("TID", "J"))
            .call(
                op::INVOKEVIRTUAL,
                (UNSAFE, "getLong", "(Ljava/lang/Object;J)J"),
            )
            .long(STRIPES - 1)
            .op(&[op::LAND])
            .long(STRIPE_BYTES)
            .op(&[op::LMUL])
            .long(start)
            .op(&[op::LADD, op::ILOAD_0, op::BIPUSH, 0xf0, op::IAND])
            .op(&[op::I2L, op::LADD, op::LRETURN]);
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
    method(PUBLIC, (HOOKS.object, OBJECT_TYPE), (6, 1), &|hook| {
        hook.add()
            .op(&[op::ILOAD_0])
            .own(cell.0, cell.1)
            .op(&[op::LCONST_1])
            .added()
            .op(&[op::RETURN]);
    });
    method(PUBLIC, (HOOKS.array, "(II)V"), (8, 4), &|hook| {
        let end = hook.code.label();
        hook.op(&[op::ILOAD_0]).code.jump(op::IFLT, end);
        hook.op(&[op::ILOAD_1])
            .own(cell.0, cell.1)
            .op(&[op::LSTORE, 2])
            .add()
            .op(&[op::LLOAD, 2, op::LCONST_1])
            .added()
            .add()
            .op(&[op::LLOAD, 2])
            .long(CELL)
            .op(&[op::LADD, op::ILOAD_0, op::ILOAD_1])
            .own(size.0, size.1)
            .added();
        hook.code.place(end).op(&[op::RETURN]);
    });
    method(PUBLIC, (HOOKS.level, "(JII)J"), (8, 6), &|hook| {
        let none = hook.code.label();
        hook.op(&[op::ILOAD_2]).code.jump(op::IFLT, none);
        hook.op(&[op::ILOAD_3])
            .own(cell.0, cell.1)
            .op(&[op::LSTORE, 4])
            .add()
            .op(&[op::LLOAD, 4, op::LLOAD_0])
            .added()
            .add()
            .op(&[op::LLOAD, 4])
            .long(CELL)
            .op(&[op::LADD, op::LLOAD_0, op::ILOAD_2, op::ILOAD_3])
            .own(size.0, size.1)
            .op(&[op::LMUL])
            .added()
            .op(&[op::LLOAD_0, op::ILOAD_2, op::I2L, op::LMUL, op::LRETURN]);
        hook.code.place(none).op(&[op::LCONST_0, op::LRETURN]);
    });
    class.finish()
}
