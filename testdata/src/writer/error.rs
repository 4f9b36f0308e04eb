//! What can be wrong with a heap that a test describes.

use std::fmt;
use std::io;
use std::sync::Arc;

/// Why a dump could not be built.
#[derive(Debug, Clone)]
pub enum BuildError {
    /// A field or static of that name does not exist.
    UnknownField {
        /// The class it was looked for in.
        class: String,
        /// The name.
        field: String,
    },
    /// A value is of another type than its field.
    WrongType {
        /// The class that declares the field.
        class: String,
        /// The field.
        field: String,
    },
    /// An instance was given more values than its class and superclasses have fields.
    TooManyValues {
        /// The class of the instance.
        class: String,
        /// Values given.
        given: usize,
        /// Fields there are.
        fields: usize,
    },
    /// A field was set on an array, or an element on something else than an object array.
    WrongKind {
        /// The address of the object.
        address: u64,
    },
    /// An element past the end of an array was set.
    OutOfBounds {
        /// The address of the array.
        address: u64,
        /// The element.
        index: usize,
    },
    /// An address does not fit into the dump's ids.
    AddressTooWide(u64),
    /// A count does not fit into its field of the format.
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
                write!(f, "address {address:#x} does not fit into an id")
            }
            Self::TooMany(what) => write!(f, "too many {what} for the format"),
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
