//! Shapes. A shape is a 32-bit number that encodes an object's class and, for arrays, the length.

use std::ops::Range;

use crate::ids::{ClassIndex, NONE};
use crate::records::classes::Classes;
use crate::sizes::layout::Sizes;

/// If an array has fewer elements than this, its shape (a 32-bit code) contains its length.
const SHORT: u32 = 256;

/// Flag in shapes of instances with null references. These shapes exist only while a graph is built in which the
/// positions in an adjacency list must identify fields. The bits of such a shape are:
///
/// ```text
/// bit 31      bit 30     bits 29 to 17                         bits 16 to 0
/// 1 (MASKED)  DAMAGED    one bit for each null reference       number of the class
/// ```
const MASKED: u32 = 1 << 31;
const CLASS_BITS: u32 = 17;
/// Maximum number of reference fields of a class for which the shapes of instances can show null references (see
/// [`MASKED`]). Each reference field needs one bit.
const MASK_BITS: u32 = 13;
const DAMAGED: u32 = 1 << (CLASS_BITS + MASK_BITS);

/// Returns the shape without the bits that show which references are null (see [`MASKED`]).
#[inline(always)]
pub(crate) const fn plain(shape: u32) -> u32 {
    if shape & MASKED == 0 {
        shape
    } else {
        shape & ((1 << CLASS_BITS) - 1)
    }
}

/// True if the shapes of a class's instances can show which reference fields are null. The shape has a bit for each of
/// these fields (see [`MASKED`]), and the number of the class must fit in the other bits.
#[inline(always)]
pub(crate) const fn has_mask(class: u32, references: usize) -> bool {
    class < 1 << CLASS_BITS && references <= MASK_BITS as usize
}

/// Returns the shape of an instance: its class, and which of its reference fields are null (the bits set in `nulls`).
#[inline(always)]
pub(crate) const fn with_nulls(class: u32, nulls: u32) -> u32 {
    MASKED | nulls << CLASS_BITS | class
}

/// Returns the shape of a damaged object whose record is an array, although its class is not an array class.
pub(crate) const fn with_elements(class: u32) -> u32 {
    if class < 1 << CLASS_BITS {
        MASKED | DAMAGED | class
    } else {
        class
    }
}

/// Returns the shape of an instance with a truncated record: only its first `fields` reference fields are in the
/// record. `None` if `class` or `fields` is too large to be encoded.
pub(crate) fn truncated_shape(class: u32, fields: usize) -> Option<u32> {
    let fields = fields as u32 + 1;
    let has_room = class < 1 << CLASS_BITS && fields < 1 << MASK_BITS;
    has_room.then_some(MASKED | DAMAGED | fields << CLASS_BITS | class)
}

/// Shows which of an object's references its adjacency list contains. Decoded from the object's shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InRow {
    /// The values of all reference fields, except the fields whose bits are set in this number.
    FieldsBut(u32),
    /// Only the values of the first N reference fields, where N is this number.
    First(u32),
    /// Elements of an array. Only in damaged dumps: the object's record is an array, although its class is not an array
    /// class.
    Elements,
}

#[inline(always)]
pub(crate) const fn row_layout(shape: u32) -> InRow {
    if shape & MASKED == 0 {
        return InRow::FieldsBut(0);
    }
    let bits = (shape & !MASKED & !DAMAGED) >> CLASS_BITS;
    match (shape & DAMAGED != 0, bits) {
        (false, nulls) => InRow::FieldsBut(nulls),
        (true, 0) => InRow::Elements,
        (true, fields) => InRow::First(fields - 1),
    }
}

/// Decodes and encodes shapes, the numbers that encode an object's class and array length. Shapes are numbered in this
/// order: one shape for the instances of each class, one for the class object of each class, one for the flattened
/// values of each class, one for each array class and length below [`SHORT`], and one for each long array (see
/// `longs`), in file order.
#[derive(Debug, Default)]
pub(crate) struct Shapes {
    classes: u32,
    /// The shape of the first array in `longs`. All smaller shapes belong to other objects.
    long: u32,
    arrays: Vec<ClassIndex>,
    /// Class and length of each long array, that is, of each array with at least [`SHORT`] elements, and of each array
    /// of flattened values.
    pub(crate) longs: Vec<(u32, u32)>,
}

/// A decoded shape: the kind and class of an object, and the length of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Instance(ClassIndex),
    ClassObject(ClassIndex),
    /// A flattened value: an object whose bytes are part of the object that contains it.
    Flattened(ClassIndex),
    Array(ClassIndex, u32),
    /// An array whose elements are flattened values or null, in a dump with flattened values.
    ValueArray(ClassIndex, u32),
}

/// Flag in the length of an array of flattened values ([`Shape::ValueArray`]), in [`Shapes::longs`]. No array has 2^31
/// or more elements.
pub(crate) const OF_VALUES: u32 = 1 << 31;

impl Shapes {
    pub(crate) fn new(classes: &Classes) -> Self {
        let count = classes.len() as u32;
        let arrays = classes.arrays().to_vec();
        Self {
            classes: count,
            // If there are too many classes, the sum stops at the maximum of `u32`. Then `has_room` returns false.
            long: count
                .saturating_mul(3)
                .saturating_add((arrays.len() as u32).saturating_mul(SHORT)),
            arrays,
            longs: Vec::new(),
        }
    }

    /// True if there are enough shapes left for `longs` long arrays (see [`Shapes::longs`]). Each long array has its
    /// own shape.
    pub(crate) fn has_room(&self, longs: usize) -> bool {
        u64::from(self.long) + longs as u64 + 1 < u64::from(MASKED)
    }

    #[inline]
    pub(crate) const fn instance(&self, class: u32) -> u32 {
        class
    }

    #[inline]
    pub(crate) const fn class_object(&self, class: u32) -> u32 {
        self.classes + class
    }

    #[inline]
    pub(crate) const fn flattened(&self, class: u32) -> u32 {
        self.classes * 2 + class
    }

    /// Returns the shape (encoded class and length) of a short array. `None` for an array with at least [`SHORT`]
    /// elements.
    #[inline(always)]
    pub(crate) fn short_array(&self, array: u32, len: u32) -> Option<u32> {
        (len < SHORT).then(|| self.classes * 3 + array * SHORT + len)
    }

    /// Returns the shape of an array in `longs`. Each of these arrays has its own shape. `number` is the index of the
    /// array in `longs`.
    pub(crate) const fn long_array(&self, number: u32) -> u32 {
        self.long + number
    }

    pub(crate) const fn first_long(&self) -> u32 {
        self.long
    }

    /// Returns the shapes that objects of these classes may have. If one of the classes is an array class, the shapes
    /// of all long arrays are included.
    pub(crate) fn ranges_of(&self, classes: &[ClassIndex]) -> Vec<Range<u32>> {
        let mut ranges = Vec::new();
        for &class in classes {
            let flattened = self.flattened(class.0);
            ranges.extend([class.0..class.0 + 1, flattened..flattened + 1]);
            if let Some(at) = self.arrays.iter().position(|&c| c == class) {
                let first = self.classes * 3 + at as u32 * SHORT;
                ranges.extend([first..first + SHORT, self.long..MASKED]);
            }
        }
        ranges
    }

    #[inline]
    pub(crate) fn decode(&self, shape: u32) -> Shape {
        if shape < self.classes {
            Shape::Instance(ClassIndex(shape))
        } else if shape < self.classes * 2 {
            Shape::ClassObject(ClassIndex(shape - self.classes))
        } else if shape < self.classes * 3 {
            Shape::Flattened(ClassIndex(shape - self.classes * 2))
        } else if shape < self.long {
            let at = shape - self.classes * 3;
            Shape::Array(self.arrays[(at / SHORT) as usize], at % SHORT)
        } else {
            let (class, len) = self.longs[(shape - self.long) as usize];
            let class = ClassIndex(class);
            match len & OF_VALUES {
                0 => Shape::Array(class, len),
                _ => Shape::ValueArray(class, len & !OF_VALUES),
            }
        }
    }
}

/// Maximum number of entries in a table that is indexed by shape (encoded class and array length). The limit is needed
/// because a file can have any number of array classes, and each of them has [`SHORT`] shapes. If a shape is at or
/// above this limit, its value is computed for each call.
pub(crate) const IN_TABLES: u32 = 1 << 20;

/// The class and the shallow size of the objects with each shape (encoded class and array length). The table has at
/// most [`IN_TABLES`] entries.
#[derive(Debug)]
pub(crate) struct ShapeSizes {
    /// Indexed by shape, for the shapes below [`IN_TABLES`] that do not belong to long arrays (see [`Shapes::longs`]).
    /// Each entry is the class ([`NONE`] for class objects) and the size ([`u32::MAX`] if it does not fit in 32 bits).
    short: Vec<(u32, u32)>,
}

impl ShapeSizes {
    pub(crate) fn new(shapes: &Shapes, sizes: &Sizes) -> Self {
        let known = |shape| {
            let class = class_of(shapes, shape).map_or(NONE, |class| class.0);
            let size =
                u32::try_from(size_of_shape_object(shapes, sizes, shape)).unwrap_or(u32::MAX);
            (class, size)
        };
        Self {
            short: (0..shapes.first_long().min(IN_TABLES)).map(known).collect(),
        }
    }

    /// Returns an object's shallow size in bytes.
    #[inline(always)]
    pub(crate) fn of(&self, shapes: &Shapes, sizes: &Sizes, shape: u32) -> u64 {
        match self.short.get(shape as usize) {
            Some(&(_, size)) if size != u32::MAX => u64::from(size),
            _ => size_of_shape_object(shapes, sizes, shape),
        }
    }

    /// Returns an object's class (`None` for class objects) and its shallow size in bytes.
    #[inline(always)]
    pub(crate) fn class_and_size(
        &self,
        shapes: &Shapes,
        sizes: &Sizes,
        shape: u32,
    ) -> (Option<ClassIndex>, u64) {
        match self.short.get(shape as usize) {
            Some(&(class, size)) if size != u32::MAX => {
                let class = (class != NONE).then_some(ClassIndex(class));
                (class, u64::from(size))
            }
            _ => (
                class_of(shapes, shape),
                size_of_shape_object(shapes, sizes, shape),
            ),
        }
    }
}

fn class_of(shapes: &Shapes, shape: u32) -> Option<ClassIndex> {
    match shapes.decode(shape) {
        Shape::Instance(class)
        | Shape::Flattened(class)
        | Shape::Array(class, _)
        | Shape::ValueArray(class, _) => Some(class),
        Shape::ClassObject(_) => None,
    }
}

fn size_of_shape_object(shapes: &Shapes, sizes: &Sizes, shape: u32) -> u64 {
    match shapes.decode(shape) {
        Shape::Instance(class) => sizes.instance(class),
        Shape::ClassObject(class) => sizes.class_object(class),
        Shape::Flattened(_) => 0,
        Shape::Array(class, len) => sizes.array(class, len),
        Shape::ValueArray(class, len) => sizes.value_array(class, len),
    }
}

/// The class object of each shape (encoded class and array length). All objects with the shape refer to this class
/// object. The table contains only classes that their instances might keep alive.
#[derive(Debug)]
pub(crate) struct ShapeClasses {
    /// Indexed by shape, for the shapes below [`IN_TABLES`] that do not belong to long arrays (see [`Shapes::longs`]).
    /// Each entry is the class object, or [`NONE`] if objects with this shape cannot keep their class alive.
    short: Vec<u32>,
    /// For each class, true if the instances of the class might keep its class object alive.
    counts: Vec<bool>,
}

impl ShapeClasses {
    /// Creates the table. `counts` returns true for a class if the class's instances might keep its class object alive.
    pub(crate) fn new(shapes: &Shapes, counts: impl Fn(ClassIndex) -> bool) -> Self {
        let counts: Vec<bool> = (0..shapes.classes).map(|c| counts(ClassIndex(c))).collect();
        let known = |shape| class_referred_to(shapes, &counts, shape);
        Self {
            short: (0..shapes.first_long().min(IN_TABLES)).map(known).collect(),
            counts,
        }
    }

    #[inline(always)]
    pub(crate) fn of(&self, shapes: &Shapes, shape: u32) -> u32 {
        match self.short.get(shape as usize) {
            Some(&class) => class,
            None => class_referred_to(shapes, &self.counts, shape),
        }
    }
}

fn class_referred_to(shapes: &Shapes, counts: &[bool], shape: u32) -> u32 {
    match class_of(shapes, shape) {
        Some(class) if counts[class.index()] => class.0,
        _ => NONE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_beyond_the_tables_have_their_classes() {
        let arrays = 2 * IN_TABLES / SHORT;
        let shapes = Shapes {
            classes: 3,
            long: 9 + arrays * SHORT,
            arrays: (0..arrays).map(|at| ClassIndex(1 + at % 2)).collect(),
            longs: vec![(1, 1000), (2, 1000)],
        };
        let of = ShapeClasses::new(&shapes, |class| class.0 < 2);
        assert_eq!(of.short.len(), IN_TABLES as usize);
        let class = |shape| of.of(&shapes, shape);
        let expected = [0, 1, NONE, NONE, NONE, NONE, 0, 1, NONE];
        assert_eq!((0..9).map(class).collect::<Vec<_>>(), expected);
        for array in [0, 1, arrays - 2, arrays - 1] {
            let shape = shapes.short_array(array, 7).unwrap();
            assert_eq!(class(shape), [1, NONE][array as usize % 2]);
        }
        assert_eq!([0, 1].map(|n| class(shapes.long_array(n))), [1, NONE]);
    }
}
