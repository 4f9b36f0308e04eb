//! The class whose methods are called where a collection is used, `java/HeapdiffUsage.java`: its methods, and the class file
//! for a JVM.

use heapdiff_bytecode::Damage;

use crate::java;

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

/// Maximum number of collections that are watched, about.
const SLOTS: usize = 4096;
/// Number of places in which a collection may be.
const WINDOW: usize = 16;
/// All places of collections; one more is for collections without a place.
pub(crate) const PLACES: usize = SLOTS + WINDOW;

/// What differs from JVM to JVM.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Jvm {
    /// Offset of the first element of an array of `long`s, and of an array of references.
    pub(crate) longs: i32,
    pub(crate) objects: i32,
    /// Bytes of a reference.
    pub(crate) scale: i32,
    /// True if the JVM has `Reference.refersTo`.
    pub(crate) refers_to: bool,
    /// The name of the method of `Unsafe` that exchanges a reference.
    pub(crate) exchange: &'static str,
}

/// Returns the class file.
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
    fn the_class_has_the_same_constants() {
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
