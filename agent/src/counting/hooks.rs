//! The hooks: methods of a class (`java/HeapdiffCounts.java`) that rewritten code calls before allocations. This module
//! contains the names of these methods, and builds the class file for a JVM.

use heapdiff_bytecode::{Damage, Hooks};

use super::cells::{Cells, STRIPES};
use super::layout::{Layout, SMALLEST_BASE};
use super::returned;
use crate::java;

pub(crate) const THIS: &str = "java/lang/HeapdiffCounts";
/// Names of the hooks that rewritten code calls. If the JVM finds the method `object`, the class with the hooks exists.
pub(crate) const HOOKS: Hooks<'static> = Hooks {
    owner: THIS,
    object: "object",
    array: "array",
    level: "level",
};
/// The hook that receives an object which a call has returned.
pub(crate) const MADE: &str = "made";
/// The hook that receives an array of arrays which a call has returned.
pub(crate) const LEVELS: &str = "levels";
pub(crate) const OBJECT_TYPE: &str = "(I)V";

/// Returns the class file of the class with the hooks, for these counters and this array layout.
///
/// `klass` is the offset of a hidden field of `Class` objects. The field contains an address that serves as the class's
/// number. `carriers` is true if the JVM has a method that returns the carrier of a virtual thread.
pub(crate) fn bytes(
    layout: &Layout,
    cells: &Cells,
    klass: i64,
    carriers: bool,
) -> Result<Vec<u8>, Damage> {
    let tables = cells.returned.start();
    // `unwrap_or` is never needed: `Layout::elements` returns `None` only for names without a second character.
    let elements = |class: &str| layout.elements(class.as_bytes()).unwrap_or(0).into();
    let numbers = [
        cells.start(),
        cells.places(),
        tables,
        tables + STRIPES * returned::STRIPE_BYTES,
        SMALLEST_BASE + layout.alignment - 1,
        -layout.alignment,
        klass,
        elements("[B"),
        elements("[S"),
        elements("[I"),
        elements("[J"),
        elements("[Ljava/lang/Object;"),
    ];
    let carrier: &[_] = &[("currentThread", "currentCarrierThread")];
    java::counts(&numbers, if carriers { carrier } else { &[] })
}

#[cfg(test)]
mod tests {
    use super::super::cells::{STRIPE_BYTES, THREAD_BITS};
    use super::super::returned::{BITS, ENTRY_BITS, SITE_BITS};
    use super::*;

    #[test]
    fn the_java_class_has_the_same_constants() {
        java::tests::counts_define(&[
            ("STRIPES", STRIPES),
            ("STRIPE_BYTES", STRIPE_BYTES),
            ("THREAD_BITS", THREAD_BITS.into()),
            ("SITE_BITS", SITE_BITS.into()),
            ("BITS", BITS.into()),
            ("ENTRY_BITS", ENTRY_BITS.into()),
            ("TABLE_BYTES", returned::STRIPE_BYTES),
        ]);
    }
}
