//! Mistakes in the description of a heap.

use std::fmt;
use std::io;
use std::sync::Arc;

/// The reason why a dump could not be built.
#[derive(Debug, Clone)]
pub enum BuildError {
    /// The class has no field or static of that name.
    UnknownField {
        /// The class that was searched.
        class: String,
        /// The name of the field or static.
        field: String,
    },
    /// A value has another type than its field.
    WrongType {
        /// The class that declares the field.
        class: String,
        /// The field.
        field: String,
    },
    /// An instance has more values than its class and superclasses have fields.
    TooManyValues {
        /// The class of the instance.
        class: String,
        /// Number of values.
        given: usize,
        /// Number of fields.
        fields: usize,
    },
    /// A field was set on an array, or an element on an object that is not an object array.
    WrongKind {
        /// The address of the object.
        address: u64,
    },
    /// The builder was asked to set an element beyond the end of an array.
    OutOfBounds {
        /// The address of the array.
        address: u64,
        /// The index of the element.
        index: usize,
    },
    /// An address needs more bytes than the dump's IDs have.
    AddressTooWide(u64),
    /// A count is too large for its field in the format.
    TooMany(&'static str),
    /// Writing failed.
    Io(Arc<io::Error>),
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownField { class, field } => write!(f, "{class} has no field {field}"),
            Self::WrongType { class, field } => {
                write!(f, "the value for {class}.{field} is of another type")
            }
            Self::TooManyValues {
                class,
                given,
                fields,
            } => write!(f, "{given} values for the {fields} fields of {class}"),
            Self::WrongKind { address } => {
                write!(f, "the object at {address:#x} is of another kind")
            }
            Self::OutOfBounds { address, index } => {
                write!(f, "the array at {address:#x} has no element {index}")
            }
            Self::AddressTooWide(address) => {
                write!(f, "the address {address:#x} is too large for an object id")
            }
            Self::TooMany(what) => write!(f, "the heap has more {what} than the format allows"),
            Self::Io(error) => write!(f, "cannot write the dump: {error}"),
        }
    }
}

impl std::error::Error for BuildError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error.as_ref()),
            _ => None,
        }
    }
}

impl From<io::Error> for BuildError {
    fn from(error: io::Error) -> Self {
        Self::Io(Arc::new(error))
    }
}
