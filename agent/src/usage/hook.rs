//! The class with the hooks for uses of collections (`java/HeapdiffUsage.java`): the names of its methods, and its
//! class file for a JVM.

use heapdiff_bytecode::Damage;

use crate::java;

pub(crate) const THIS: &str = "java/lang/HeapdiffUsage";
/// The hook `used(collection, modification count, size, number of elements, kind of use)`.
pub(crate) const BY_CHANGES: [&str; 3] = [THIS, "used", "(Ljava/lang/Object;IIII)V"];
/// The hook `used(collection, its array, number of elements, kind of use)`.
pub(crate) const BY_ARRAY: [&str; 3] = [THIS, "used", "(Ljava/lang/Object;[Ljava/lang/Object;II)V"];
/// The hook `used(collection, its array, number of elements put)`. The number is negative if elements are removed.
pub(crate) const BY_DIFFERENCE: [&str; 3] =
    [THIS, "used", "(Ljava/lang/Object;[Ljava/lang/Object;J)V"];
/// The hook `used(collection, its old array, its new array)`.
pub(crate) const BY_ARRAYS: [&str; 3] = [
    THIS,
    "used",
    "(Ljava/lang/Object;[Ljava/lang/Object;[Ljava/lang/Object;)V",
];
/// The hook `used(new size, collection, current size, modification count)`.
pub(crate) const BY_SIZES: [&str; 3] = [THIS, "used", "(ILjava/lang/Object;II)V"];
/// The hook `used(collection, number of elements, kind of use)`, for collections of unknown size.
pub(crate) const BY_NUMBER: [&str; 3] = [THIS, "used", "(Ljava/lang/Object;II)V"];
/// The hook `used(collection, number of elements put)`, for collections of unknown size. The number is negative if
/// elements are removed.
pub(crate) const BY_LONG: [&str; 3] = [THIS, "used", "(Ljava/lang/Object;J)V"];
/// All hooks.
pub(crate) const ALL: [[&str; 3]; 7] = [
    BY_CHANGES,
    BY_ARRAY,
    BY_DIFFERENCE,
    BY_ARRAYS,
    BY_SIZES,
    BY_NUMBER,
    BY_LONG,
];
/// The static field with the watched collections: name and type.
pub(crate) const TABLE: (&str, &str) = ("TABLE", "[Ljava/lang/HeapdiffUsage;");

/// Approximate maximum number of watched collections.
const SLOTS: usize = 4096;
/// Number of consecutive elements of the table in which the hook searches for a collection. The collection's hash
/// determines the first of these elements.
const WINDOW: usize = 16;
/// Number of elements of the table for single collections. One more element follows. Its counters are a bitmap of the
/// collections for which the table had no room.
pub(crate) const PLACES: usize = SLOTS + WINDOW;

/// Values that differ between JVMs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Jvm {
    /// Offset of the first element in a `long[]`, and in an array of references.
    pub(crate) longs: i32,
    pub(crate) objects: i32,
    /// Size of a reference in an array, in bytes.
    pub(crate) scale: i32,
    /// True if the JVM has `Reference.refersTo`.
    pub(crate) refers_to: bool,
    /// Name of `Unsafe`'s compare-and-set method for references.
    pub(crate) exchange: &'static str,
}

/// Returns the class file of the class with the hooks, for this JVM.
pub(crate) fn bytes(jvm: Jvm) -> Result<Vec<u8>, Damage> {
    let numbers = [
        jvm.longs.into(),
        jvm.objects.into(),
        jvm.scale.into(),
        jvm.refers_to.into(),
    ];
    java::usage(&numbers, &[("compareAndSetReference", jvm.exchange)])
}

#[cfg(test)]
mod tests {
    use heapdiff_sites::usage::{BEFORE, CROWDED, CROWDED_LONGS, Kind, LAST, MARK, STRIPE};

    use super::*;

    #[test]
    fn the_java_class_has_the_same_constants() {
        java::tests::usage_defines(&[
            ("SLOTS", SLOTS as i64),
            ("WINDOW", WINDOW as i64),
            ("PUT", Kind::Put.code().into()),
            ("REMOVED", Kind::Removed.code().into()),
            ("READ", Kind::Read.code().into()),
            ("STRIPE", STRIPE as i64),
            ("LAST", LAST as i64),
            ("MARK", MARK as i64),
            ("BEFORE", BEFORE as i64),
            ("CROWDED", CROWDED.into()),
            ("CROWDED_LONGS", CROWDED_LONGS.into()),
        ]);
    }
}
