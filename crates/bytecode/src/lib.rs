//! Calls inserted into class files before every allocation.
//!
//! [`rewrite()`] takes a class file and returns one in which each `new`, `newarray`, `anewarray` and `multianewarray` that
//! [`Sites`] gives a number is preceded by a call of [`Hooks`]. All else that the program can see stays: branches,
//! switches, exception ranges, frames, line numbers, variables and type annotations move with the code.
//!
//! # What is called
//!
//! | instruction | call before it | stack |
//! |---|---|---|
//! | `new` | `object(site)`, `(I)V` | no more than before |
//! | `newarray`, `anewarray`, `multianewarray` of one size | `array(length, site)`, `(II)V` | two more |
//! | `multianewarray` of k sizes | `level(count, length, site)`, `(JII)J`, k times | at most two more, and k locals |
//!
//! `multianewarray` makes arrays of k classes, so it is k sites, the outermost first: `new int[3][5]` is one `int[][]` of
//! length 3 and three `int[]` of length 5. `level` is told how many arrays of a length there are to be and returns how many elements these
//! have together, `count * length`: the count of the next level. One method serves any number of sizes, and objects and
//! bytes of each class are exact.
//!
//! What calls return that allocate without bytecode is told after them, where [`Sites::told`] wants it: `object(site)`, `array(length,
//! site)`, or a method of the hooks' own with what was returned, `(Ljava/lang/Object;I)V`; the stack gets two more. No jump leads
//! there, and what is not initialised yet is given to nobody.
//!
//! Else a call comes before the allocation. So what is counted is what was asked for: an allocation that fails (no memory, a
//! class that cannot be initialised) is counted too, and lengths may be negative. An exception that a hook throws is
//! thrown on the line of the site, into the handlers that are there.
//!
//! [`enter()`] inserts calls where methods are entered, and [`within()`] before they set fields and after they have called others: what is
//! pushed for these is told by their caller.
//!
//! [`fill()`] replaces constants of a compiled class by values that are known only when the class is defined.
//!
//! # What is left alone
//!
//! A class that cannot be read to its end is an [`Error`], and stays as it is. A method is left as it is, to the byte, and is
//! [`LeftAlone`] with the reason, where with the inserted code, the method would be longer than 65,535 bytes, a branch would no longer fit into 16 bits, the
//! stack, the locals or the constant pool would get too large, or something in it is not understood. `jsr` and `ret` are moved like other
//! branches: return addresses are made as the program runs. Class files of any version are read, those without frames too; a
//! constant, an instruction or a frame of a kind that was not there in version 69 (Java 25) is not understood.
//!
//! Attributes of `Code` that the specification does not describe may hold offsets of instructions (`CharacterRangeTable` does). They
//! are dropped from methods that are rewritten, each told in [`Rewritten::dropped`].
//!
//! # Bounds
//!
//! A class file is not trusted. No input makes this panic, recurse, or take time or memory out of proportion to
//! its size. What is returned borrows its names from the file.
//!
//! # Why a reader of our own
//!
//! Of the crates for class files `class-rs` (0.5.0) panics at tags and instructions that it does not know and allocates by lengths in the file;
//! `ristretto_classfile` (0.31.0) needs Rust 1.95; `cafebabe` (0.9.0) and `classfile-parser` (0.3.8) only read. `noak` (0.7.0), which reads class files for
//! `--classpath`, reads well, but writes only classes that it makes from nothing, with a pool of its own: every
//! index of every attribute, known or not, would have to be translated. Here the constant pool only grows at its end and all but `Code` is
//! copied as it is, so what has to be read is little: where things are.

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

/// Fuzzing: a class file with these bytes. What comes out is a class file again, in which as many sites are found.
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
