//! Types for allocation sites and for the names that class files contain.

use std::fmt;

/// A name in modified UTF-8, the encoding of class files. `Display` writes UTF-8, with replacement characters for bytes
/// that are not valid UTF-8.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name<'a>(pub(crate) &'a [u8]);

impl<'a> Name<'a> {
    /// Creates a name from bytes in modified UTF-8. The bytes are not checked.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Name(bytes)
    }

    /// Returns the bytes of the name, unchanged from the file.
    #[must_use]
    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }
}

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(self.0))
    }
}

impl fmt::Debug for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(self.0))
    }
}

/// The class that a site allocates, as the JVM names it: `java/lang/String`, `[I`, `[Ljava/lang/String;`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClassName<'a> {
    before: &'static str,
    name: Name<'a>,
    after: &'static str,
}

impl<'a> ClassName<'a> {
    pub(crate) fn named(name: &'a [u8]) -> Self {
        ClassName {
            before: "",
            name: Name(name),
            after: "",
        }
    }

    /// Returns the class of arrays whose elements have the class `name`.
    pub(crate) fn array_of(name: &'a [u8]) -> Self {
        let (before, after) = match name.first() {
            Some(b'[') => ("[", ""),
            _ => ("[L", ";"),
        };
        ClassName {
            before,
            name: Name(name),
            after,
        }
    }

    /// Returns the name in modified UTF-8.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        [self.before.as_bytes(), self.name.0, self.after.as_bytes()].concat()
    }
}

impl fmt::Display for ClassName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{}", self.before, self.name, self.after)
    }
}

/// The kind of allocation at a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// One object.
    Object,
    /// One array.
    Array,
    /// The arrays of one level of a `multianewarray`. Level 0 is the outermost.
    Level(u8),
    /// The object that a call returns. Its class is known only at run time. The number is the field `mark` of
    /// [`Told::Returned`](crate::Told::Returned), which the caller of this crate chooses.
    Returned(u8),
}

/// An allocation site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Site<'a> {
    /// The name of the method that contains the site.
    pub method: Name<'a>,
    /// The descriptor of the method that contains the site.
    pub descriptor: Name<'a>,
    /// The offset of the allocating instruction in the original code.
    pub bytecode: u16,
    /// The number of the source line, if the class has line numbers.
    pub line: Option<u16>,
    /// The kind of allocation: one object, one array, the arrays of one level of a `multianewarray`, or the result of a
    /// call.
    pub kind: Kind,
    /// The class that the site allocates.
    pub class: ClassName<'a>,
}
