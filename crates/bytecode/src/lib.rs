//! Inserts calls into class files before every allocation.
//!
//! [`rewrite()`] takes a class file and returns a new one. In the new class file, a hook of [`Hooks`] is called before
//! each `new`, `newarray`, `anewarray` and `multianewarray` to which [`Sites`] gives a number. The program cannot
//! observe any other change: branches, switches, exception ranges, frames, line numbers, variables and type annotations
//! move with the code.
//!
//! # Inserted calls
//!
//! | instruction | call before it | additional stack |
//! |---|---|---|
//! | `new` | `object(site)`, `(I)V` | none |
//! | `newarray`, `anewarray`, `multianewarray` of one dimension | `array(length, site)`, `(II)V` | two slots |
//! | `multianewarray` of k dimensions | `level(count, length, site)`, `(JII)J`, k times | at most two slots; k locals |
//!
//! A `multianewarray` creates arrays of k classes, so it has k sites. The first site is that of the outermost arrays.
//! For example, `new int[3][5]` creates one `int[][]` of length 3 and three `int[]` of length 5.
//!
//! `level` receives the number of arrays of one level and their length. It returns `count * length`, which is the
//! number of arrays of the next level. One method serves any number of dimensions, and the objects and bytes of each
//! class are exact.
//!
//! Some calls allocate, although the caller has no allocation bytecode. If [`Sites::hook_after`] requests it, a hook is
//! called after such a call. The hook is `object(site)`, `array(length, site)`, or another method of the hook class
//! with the descriptor `(Ljava/lang/Object;I)V`, which receives the returned reference. This takes two more stack
//! slots. No jump leads to the inserted code, and no uninitialised object is passed to a hook.
//!
//! All other hooks run before the allocation, so they count attempts. An allocation that fails (out of memory, a class
//! that cannot be initialised) is counted too, and lengths may be negative. If a hook throws an exception, the
//! exception has the line of the site and reaches the method's own handlers.
//!
//! [`enter()`] inserts calls at method entries. [`within()`] inserts calls before instructions that set fields and
//! after calls. For both functions, the caller describes how the inserted code pushes the arguments.
//!
//! [`fill()`] replaces constants of a compiled class by values that are known only when the class is defined.
//!
//! # Unchanged code
//!
//! A class that cannot be read to its end is an [`Error`]. A method stays unchanged, byte for byte, and is reported as
//! [`LeftAlone`] with the reason, if one of these is true:
//!
//! - With the inserted code, the method would be longer than 65,535 bytes.
//! - A branch distance would no longer fit into 16 bits.
//! - The stack, the locals or the constant pool would get too large.
//! - A part of the method cannot be read.
//!
//! `jsr` and `ret` are moved like other branches, because return addresses are computed at run time. Class files of any
//! version are read, also those without frames. The newest supported version is 69 (Java 25): if a later version adds a
//! kind of constant, instruction or frame, this kind cannot be read.
//!
//! Attributes of `Code` outside the specification may hold offsets of instructions, as `CharacterRangeTable` does.
//! These attributes are dropped from methods that are rewritten, and [`Rewritten::dropped`] lists them.
//!
//! # Bounds
//!
//! Class files are untrusted. No input makes this crate panic or recurse. Time and memory are proportional to the size
//! of the input. The returned names are borrowed from the file.
//!
//! # Why this crate has its own reader
//!
//! Other crates for class files do not fit:
//!
//! - `class-rs` (0.5.0) panics at unknown tags and instructions, and allocates by lengths in the file.
//! - `ristretto_classfile` (0.31.0) needs Rust 1.95.
//! - `cafebabe` (0.9.0) and `classfile-parser` (0.3.8) only read.
//! - `noak` (0.7.0), which reads class files for `--classpath`, reads well. But it writes only new classes with a new
//!   constant pool, so every index in every attribute, known or unknown, would have to be translated.
//!
//! In this crate, the constant pool only grows at its end, and everything except `Code` is copied unchanged. So only
//! the positions of the parts must be read.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod calls;
mod class;
mod code;
mod cursor;
mod entry;
mod error;
mod fill;
mod frames;
mod insert;
mod longer;
mod moved;
mod pool;
mod rewrite;
mod site;
mod tables;
#[cfg(test)]
mod tests;
mod within;

pub use calls::{Call, Invoke, Told};
pub use entry::{Entered, Entry, Push, enter};
pub use error::{Damage, Error, Fault, Reason};
pub use fill::{INT_PLACEHOLDER, LONG_PLACEHOLDER, fill};
pub use rewrite::{Counted, Dropped, Hooks, LeftAlone, Rewritten, Sites, rewrite};
pub use site::{ClassName, Kind, Name, Site};
pub use within::{Does, Step, within};

/// Fuzz entry point: rewrites a class file. It must be possible to rewrite the result again, and the first rewrite must
/// not damage a method.
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub fn fuzz(bytes: &[u8]) {
    struct All(i32);
    impl Sites for All {
        fn number(&mut self, _: Name<'_>, _: &Site<'_>) -> Option<i32> {
            self.0 = self.0.wrapping_mul(5).wrapping_add(1);
            (self.0 % 7 != 0).then_some(self.0)
        }
    }
    let hooks = Hooks {
        owner: "a/Hooks",
        object: "object",
        array: "array",
        level: "level",
    };
    let Ok(first) = rewrite(bytes, &hooks, &mut All(0)) else {
        return;
    };
    let Some(new) = first.bytes else {
        assert!(first.sites.is_empty());
        return;
    };
    let told = bytes.escape_ascii();
    let second = rewrite(&new, &hooks, &mut All(0));
    let second = second.unwrap_or_else(|error| panic!("{error} for {told}"));
    let fresh = second.left_alone.iter().find(|left| {
        let damaged = matches!(left.reason, Reason::Damaged(_));
        damaged
            && !first
                .left_alone
                .iter()
                .any(|l| l.reason == left.reason || l.method == left.method)
    });
    assert!(fresh.is_none(), "{fresh:?} for {told}");
}
