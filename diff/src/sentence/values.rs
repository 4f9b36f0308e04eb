//! Values that occur in several sentences.

use std::cmp::Ordering;
use std::fmt;

use heapdiff_units::grouped;

/// The number of some things, such as tasks, in the first and in the last dump: `12 tasks, up from 5`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// The number in the first dump; `None` if there is only one dump.
    pub(crate) first: Option<u64>,
    pub(crate) last: u64,
    /// The plural noun for what is counted, such as "objects".
    pub(crate) things: String,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", grouped(self.last), self.things)?;
        let Some(first) = self.first else {
            return Ok(());
        };
        match self.last.cmp(&first) {
            Ordering::Greater => write!(f, ", up from {}", grouped(first)),
            Ordering::Equal => f.write_str(", as before"),
            Ordering::Less => write!(f, ", down from {}", grouped(first)),
        }
    }
}

/// A list of names, written as `A, B and C`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Names(pub(crate) Vec<String>);

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0[..] {
            [] => Ok(()),
            [one] => f.write_str(one),
            [names @ .., last] => write!(f, "{} and {last}", names.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_a_list() {
        let list = |names: &[&str]| {
            let names = names.iter().map(|&name| name.to_owned());
            Names(names.collect()).to_string()
        };
        assert_eq!(list(&[]), "");
        assert_eq!(list(&["A"]), "A");
        assert_eq!(list(&["A", "B"]), "A and B");
        assert_eq!(list(&["A", "B", "C"]), "A, B and C");
    }

    #[test]
    fn a_change_compares_with_the_first_dump() {
        let change = |first| {
            let things = "tasks".to_owned();
            let change = Change {
                first,
                last: 1200,
                things,
            };
            change.to_string()
        };
        assert_eq!(change(None), "1,200 tasks");
        assert_eq!(change(Some(5)), "1,200 tasks, up from 5");
        assert_eq!(change(Some(1200)), "1,200 tasks, as before");
        assert_eq!(change(Some(9000)), "1,200 tasks, down from 9,000");
    }
}
