//! Recognises dumps that a forked child of heapdiff's agent wrote.
//!
//! In such a dump, the id of an object is the sum of the sizes of all objects that the child visited before. So the
//! distance from an id to the next one is the exact size of the object. The only exceptions are arrays that the child
//! invents, each with the string constants of a class. JVMTI does not show the real arrays of string constants as
//! objects, so the child makes up their ids.

use crate::ids::ObjectId;
use crate::records::classes::Class;
use crate::records::record::{Kind, LoadClass};

/// Prefix of the text in which the child records the layout of its JVM. The text is the first name of the dump, or the
/// second name of a repaired dump.
const RECORDED: &str = "heapdiff forked dump: ids are sums of object sizes, ";
/// The id of the first class in dumps that earlier agents wrote with a forked child. These dumps do not record the
/// object layout.
const FIRST_ID: u64 = 0x7_0000_0000;
/// Minimum number of class objects that have ascending ids, close to each other, in a forked dump that does not record
/// the object layout. A JVM loads at least 400 classes.
const LEAST: usize = 350;
/// Limit for the distance between the ids of classes in a forked dump that does not record the object layout, in bytes.
/// The first [`LEAST`] ids must lie in a range of [`LEAST`] times this size.
const LARGEST: u64 = 1024;
/// The static field with the array of a class's string constants.
const RESOLVED: &str = "<resolved_references>";

/// The object layout that a forked child recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Recorded {
    /// The id of the name record that contains the object layout. A redacted dump has to keep this name.
    pub(crate) name: u64,
    /// Bytes of a reference in the heap.
    pub(crate) reference: u32,
    /// Object sizes are multiples of this number of bytes.
    pub(crate) align: u32,
}

impl Recorded {
    /// Parses the first name (string record) of a dump, in which a forked child records the object layout of its JVM.
    /// Returns `None` if the name does not have exactly this format.
    pub(crate) fn parse(name: u64, text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?.strip_prefix(RECORDED)?;
        let text = text.strip_prefix("references ")?.strip_suffix(" bytes")?;
        let (reference, align) = text.split_once(" bytes, alignment ")?;
        let number = |digits: &str| {
            digits
                .parse::<u32>()
                .ok()
                .filter(|n| n.to_string() == digits)
        };
        let (reference, align) = (number(reference)?, number(align)?);
        let is_layout =
            matches!(reference, 4 | 8) && align.is_power_of_two() && (8..=256).contains(&align);
        is_layout.then_some(Self {
            name,
            reference,
            align,
        })
    }
}

/// Data about a forked dump.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Forked {
    pub(crate) recorded: Option<Recorded>,
    /// Ids of arrays that the forked child invented (see the module's description), sorted. The distance from such an
    /// id to the next one is not a size.
    pub(crate) made_up: Vec<u64>,
}

impl Forked {
    /// Returns the data about a forked dump; `None` if a forked child did not write the dump. Dumps of agents that
    /// recorded no object layout are recognised by the ids of classes.
    pub(crate) fn new(
        recorded: Option<Recorded>,
        loads: &[LoadClass],
        classes: &[Class],
    ) -> Option<Self> {
        let is_forked = recorded.is_some() || has_numbered_classes(loads);
        is_forked.then(|| {
            let statics = classes.iter().flat_map(|class| &class.statics);
            let constants = statics.filter(|s| s.kind == Kind::Object && &*s.name == RESOLVED);
            let mut made_up: Vec<u64> = constants.map(|s| s.value).filter(|&id| id != 0).collect();
            made_up.sort_unstable();
            Self { recorded, made_up }
        })
    }

    /// Returns true if the forked child invented this array (see the module's description).
    pub(crate) fn is_synthetic(&self, id: ObjectId) -> bool {
        self.made_up.binary_search(&id.0).is_ok()
    }
}

/// Returns true if the ids of class objects ascend in the order of their records, from [`FIRST_ID`] on and close to
/// each other.
fn has_numbered_classes(loads: &[LoadClass]) -> bool {
    let Some(first) = loads.first_chunk::<LEAST>() else {
        return false;
    };
    let end = FIRST_ID + LEAST as u64 * LARGEST;
    first[0].class == FIRST_ID
        && first[LEAST - 1].class < end
        && loads.windows(2).all(|pair| pair[0].class < pair[1].class)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_text_records_a_layout() {
        let text = |rest: &str| Recorded::parse(1, format!("{RECORDED}{rest}").as_bytes());
        let found = text("references 8 bytes, alignment 16 bytes");
        let expected = Recorded {
            name: 1,
            reference: 8,
            align: 16,
        };
        assert_eq!(found, Some(expected));
        for other in [
            "",
            "references 8 bytes, alignment 16 bytes ",
            "references 5 bytes, alignment 16 bytes",
            "references 4 bytes, alignment 24 bytes",
            "references 4 bytes, alignment 4 bytes",
            "references 4 bytes, alignment 512 bytes",
            "references +4 bytes, alignment 8 bytes",
            "references 04 bytes, alignment 8 bytes",
            "references 4 bytes, alignment 99999999999 bytes",
        ] {
            assert_eq!(text(other), None, "{other}");
        }
        assert_eq!(Recorded::parse(1, b"java/lang/Object"), None);
        assert_eq!(Recorded::parse(1, &[0xff]), None);
    }

    #[test]
    fn an_older_forked_dump_is_recognised_by_its_classes() {
        let load = |class| LoadClass {
            serial: 1,
            class,
            name: 1,
        };
        let numbered: Vec<LoadClass> = (0..400).map(|n| load(FIRST_ID + n * 112)).collect();
        assert!(Forked::new(None, &numbered, &[]).is_some());
        assert!(Forked::new(None, &numbered[..LEAST - 1], &[]).is_none());
        assert!(Forked::new(None, &numbered[1..], &[]).is_none());
        let mut swapped = numbered.clone();
        swapped.swap(120, 121);
        assert!(Forked::new(None, &swapped, &[]).is_none());
        let scattered: Vec<LoadClass> = (0..400).map(|n| load(FIRST_ID + n * 4096)).collect();
        assert!(Forked::new(None, &scattered, &[]).is_none());
    }
}
