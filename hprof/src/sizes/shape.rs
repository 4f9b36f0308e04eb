//! An object's class and, for arrays, its length, in 32 bits.

use std::ops::Range;

use crate::ids::{ClassIndex, NONE};
use crate::records::classes::Classes;
use crate::sizes::layout::Sizes;

/// Lengths below this are coded in the shape itself.
const SHORT: u32 = 256;

/// Decodes and encodes shapes: first one for instances of each class, then one for the class object
/// of each class, then one for each array class and length below [`SHORT`], then one for each
/// longer array, numbered in file order.
#[derive(Debug, Default)]
pub(crate) struct Shapes {
    classes: u32,
    /// The first shape of a long array.
    long: u32,
    arrays: Vec<ClassIndex>,
    /// Class and length of each longer array.
    pub(crate) longs: Vec<(u32, u32)>,
}

/// The meaning of a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Instance(ClassIndex),
    ClassObject(ClassIndex),
    Array(ClassIndex, u32),
}

impl Shapes {
    pub(crate) fn new(classes: &Classes) -> Self {
        let count = classes.len() as u32;
        let arrays = classes.arrays().to_vec();
        Self {
            classes: count,
            // Saturated when there are too many classes, which `has_room` refuses.
            long: count
                .saturating_mul(2)
                .saturating_add((arrays.len() as u32).saturating_mul(SHORT)),
            arrays,
            longs: Vec::new(),
        }
    }

    /// Whether the shapes leave room for this many long arrays.
    pub(crate) fn has_room(&self, longs: usize) -> bool {
        u64::from(self.long) + longs as u64 + 1 < u64::from(u32::MAX)
    }

    pub(crate) const fn instance(&self, class: u32) -> u32 {
        class
    }

    pub(crate) const fn class_object(&self, class: u32) -> u32 {
        self.classes + class
    }

    /// The shape of a short array; `None` when it is a long one.
    #[inline(always)]
    pub(crate) fn short_array(&self, array: u32, len: u32) -> Option<u32> {
        (len < SHORT).then(|| self.classes * 2 + array * SHORT + len)
    }

    /// The shape of the long array with this number.
    pub(crate) const fn long_array(&self, number: u32) -> u32 {
        self.long + number
    }

    pub(crate) const fn first_long(&self) -> u32 {
        self.long
    }

    /// The shapes that objects of these classes may have, those of all long arrays among them if any of the
    /// classes is an array's.
    pub(crate) fn ranges_of(&self, classes: &[ClassIndex]) -> Vec<Range<u32>> {
        let mut ranges = Vec::new();
        for &class in classes {
            ranges.push(class.0..class.0 + 1);
            if let Some(at) = self.arrays.iter().position(|&c| c == class) {
                let first = self.classes * 2 + at as u32 * SHORT;
                ranges.extend([first..first + SHORT, self.long..u32::MAX]);
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
        } else if shape < self.long {
            let at = shape - self.classes * 2;
            Shape::Array(self.arrays[(at / SHORT) as usize], at % SHORT)
        } else {
            let (class, len) = self.longs[(shape - self.long) as usize];
            Shape::Array(ClassIndex(class), len)
        }
    }
}

/// Shallow sizes by shape, since most shapes stand for thousands of objects.
#[derive(Debug)]
pub(crate) struct ShapeSizes {
    /// Of all but long arrays; [`u32::MAX`] where that is not enough.
    sizes: Vec<u32>,
}

impl ShapeSizes {
    pub(crate) fn new(shapes: &Shapes, sizes: &Sizes) -> Self {
        let size = |shape| u32::try_from(of_shape(shapes, sizes, shape)).unwrap_or(u32::MAX);
        Self {
            sizes: (0..shapes.first_long()).map(size).collect(),
        }
    }

    /// An object's shallow size in bytes.
    #[inline(always)]
    pub(crate) fn of(&self, shapes: &Shapes, sizes: &Sizes, shape: u32) -> u64 {
        match self.sizes.get(shape as usize) {
            Some(&size) if size != u32::MAX => u64::from(size),
            _ => of_shape(shapes, sizes, shape),
        }
    }
}

fn of_shape(shapes: &Shapes, sizes: &Sizes, shape: u32) -> u64 {
    match shapes.decode(shape) {
        Shape::Instance(class) => sizes.instance(class),
        Shape::ClassObject(class) => sizes.class_object(class),
        Shape::Array(class, len) => sizes.array(class, len),
    }
}

/// The class object that an object of each shape refers to by being of that class.
#[derive(Debug)]
pub(crate) struct ShapeClasses {
    /// By shape, of all but long arrays; [`NONE`] for those that refer to none.
    short: Vec<u32>,
    /// Whether objects of each class refer to it.
    counts: Vec<bool>,
}

impl ShapeClasses {
    /// `counts` tells of which classes the objects refer to their class.
    pub(crate) fn new(shapes: &Shapes, counts: impl Fn(ClassIndex) -> bool) -> Self {
        let counts: Vec<bool> = (0..shapes.classes).map(|c| counts(ClassIndex(c))).collect();
        let short = (0..shapes.first_long())
            .map(|shape| match shapes.decode(shape) {
                Shape::Instance(class) | Shape::Array(class, _) if counts[class.index()] => class.0,
                _ => NONE,
            })
            .collect();
        Self { short, counts }
    }

    #[inline(always)]
    pub(crate) fn of(&self, shapes: &Shapes, shape: u32) -> u32 {
        match self.short.get(shape as usize) {
            Some(&class) => class,
            None => {
                let (class, _) = shapes.longs[(shape - shapes.long) as usize];
                match self.counts[class as usize] {
                    true => class,
                    false => NONE,
                }
            }
        }
    }
}
