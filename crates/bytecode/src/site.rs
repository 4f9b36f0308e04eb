//! A place that allocates, and how names are told.

use std::fmt;

/// A name as class files have it, in modified UTF-8. As text it is UTF-8, with replacement characters for what has no other.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name<'a>(pub(crate) &'a [u8]);

impl<'a> Name<'a> {
    /// A name, in modified UTF-8.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Name(bytes)
    }

    /// As it is in the file.
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

/// The class of what a site allocates, as the JVM names it: `java/lang/String`, `[I`, `[Ljava/lang/String;`.
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

    /// The class of arrays of a class.
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

    /// In modified UTF-8.
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

/// What a site allocates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// One object.
    Object,
    /// One array.
    Array,
    /// The arrays of one class among those that a `multianewarray` makes: 0 is the outermost.
    Level(u8),
    /// What a call returns, whose class only the run tells; with the mark of [`Told`](crate::Told).
    Returned(u8),
}

/// A place that allocates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Site<'a> {
    /// The method's name.
    pub method: Name<'a>,
    /// The method's descriptor.
    pub descriptor: Name<'a>,
    /// The instruction's offset in the code as it was.
    pub bytecode: u16,
    /// The line, where the class tells lines.
    pub line: Option<u16>,
    /// An object, an array, the arrays of one level, or what a call returns.
    pub kind: Kind,
    /// Of what class.
    pub class: ClassName<'a>,
}
