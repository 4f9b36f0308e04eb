//! The values of fields, statics and arrays, before addresses are assigned.

use super::format::{Body, FieldType};
use super::heap::{ClassId, Obj};

/// The target of a reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ref {
    /// Null.
    Null,
    /// An object of the builder.
    Object(Obj),
    /// The class object of a class of the builder.
    Class(ClassId),
    /// An arbitrary address. There may be no object at this address.
    Address(u64),
}

impl From<Obj> for Ref {
    fn from(object: Obj) -> Self {
        Self::Object(object)
    }
}

impl From<ClassId> for Ref {
    fn from(class: ClassId) -> Self {
        Self::Class(class)
    }
}

impl<T: Into<Ref>> From<Option<T>> for Ref {
    fn from(target: Option<T>) -> Self {
        target.map_or(Self::Null, Into::into)
    }
}

/// The value of a field or static.
#[derive(Debug, Clone, Copy, PartialEq)]
#[allow(missing_docs, reason = "the names are the names of the types")]
pub enum Value {
    Ref(Ref),
    Boolean(bool),
    Char(u16),
    Float(f32),
    Double(f64),
    Byte(i8),
    Short(i16),
    Int(i32),
    Long(i64),
}

impl Value {
    /// The null reference.
    pub const NULL: Self = Self::Ref(Ref::Null);

    /// Returns the type of the value.
    pub fn field_type(&self) -> FieldType {
        match self {
            Self::Ref(_) => FieldType::Object,
            Self::Boolean(_) => FieldType::Boolean,
            Self::Char(_) => FieldType::Char,
            Self::Float(_) => FieldType::Float,
            Self::Double(_) => FieldType::Double,
            Self::Byte(_) => FieldType::Byte,
            Self::Short(_) => FieldType::Short,
            Self::Int(_) => FieldType::Int,
            Self::Long(_) => FieldType::Long,
        }
    }
}

macro_rules! value_from {
    ($($source:ty => $variant:ident),*) => {
        $(impl From<$source> for Value {
            fn from(value: $source) -> Self {
                Self::$variant(value.into())
            }
        })*
    };
}

value_from!(
    Ref => Ref, Obj => Ref, ClassId => Ref, bool => Boolean, u16 => Char, f32 => Float,
    f64 => Double, i8 => Byte, i16 => Short, i32 => Int, i64 => Long
);

/// The elements of a primitive array.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the names are the names of the types")]
pub enum Elements {
    Boolean(Vec<bool>),
    Char(Vec<u16>),
    Float(Vec<f32>),
    Double(Vec<f64>),
    Byte(Vec<u8>),
    Short(Vec<i16>),
    Int(Vec<i32>),
    Long(Vec<i64>),
    /// The given number of zeros.
    Zeros(FieldType, usize),
    /// A number of elements without their values, as in Android's stripped dumps (PRIMITIVE_ARRAY_NODATA).
    NoData(FieldType, usize),
}

impl Elements {
    /// Returns the type of an element.
    pub fn field_type(&self) -> FieldType {
        match self {
            Self::Boolean(_) => FieldType::Boolean,
            Self::Char(_) => FieldType::Char,
            Self::Float(_) => FieldType::Float,
            Self::Double(_) => FieldType::Double,
            Self::Byte(_) => FieldType::Byte,
            Self::Short(_) => FieldType::Short,
            Self::Int(_) => FieldType::Int,
            Self::Long(_) => FieldType::Long,
            Self::Zeros(kind, _) | Self::NoData(kind, _) => *kind,
        }
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        match self {
            Self::Boolean(v) => v.len(),
            Self::Char(v) => v.len(),
            Self::Float(v) => v.len(),
            Self::Double(v) => v.len(),
            Self::Byte(v) => v.len(),
            Self::Short(v) => v.len(),
            Self::Int(v) => v.len(),
            Self::Long(v) => v.len(),
            Self::Zeros(_, length) | Self::NoData(_, length) => *length,
        }
    }

    /// True if there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn write(&self, body: &mut Body) {
        fn all<T: Copy, const N: usize>(body: &mut Body, items: &[T], bytes: fn(T) -> [u8; N]) {
            for &item in items {
                body.raw(&bytes(item));
            }
        }
        match self {
            Self::Boolean(v) => all(body, v, |item| [u8::from(item)]),
            Self::Char(v) => all(body, v, u16::to_be_bytes),
            Self::Float(v) => all(body, v, f32::to_be_bytes),
            Self::Double(v) => all(body, v, f64::to_be_bytes),
            Self::Byte(v) => {
                body.raw(v);
            }
            Self::Short(v) => all(body, v, i16::to_be_bytes),
            Self::Int(v) => all(body, v, i32::to_be_bytes),
            Self::Long(v) => all(body, v, i64::to_be_bytes),
            Self::Zeros(kind, length) => {
                body.raw(&vec![0; kind.width(0) * length]);
            }
            Self::NoData(..) => {}
        }
    }
}
