//! Sentences about wasted memory.

use std::fmt;

/// A statement about all waste in a report, or the title of one kind of waste.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waste {
    /// The bytes that could be saved in one dump.
    Savings {
        /// The bytes as text, possibly with a style.
        size: String,
        /// These bytes as a percentage of the reachable heap.
        share: String,
    },
    /// The bytes that could be saved in the last of several dumps.
    SavingsSince {
        /// The bytes as text.
        size: String,
        /// The change of these bytes since the first dump, with its sign.
        change: String,
        /// These bytes as a percentage of the reachable heap.
        share: String,
    },
    /// Kinds with little waste are listed without examples.
    SmallKinds,

    /// Title of a kind of waste: strings with equal content.
    DuplicateStrings,
    /// Title of a kind of waste: arrays of primitives with equal content.
    DuplicateArrays,
    /// Title of a kind of waste: boxed primitive values (`Integer`, `Long`) that are equal.
    DuplicateBoxes,
    /// Title of a kind of waste: boxed primitive values in arrays and collections.
    BoxedValues,
    /// Title of a kind of waste: collections without elements.
    EmptyCollections,
    /// Title of a kind of waste: collections that are at most half full.
    SparseCollections,
    /// Title of a kind of waste: arrays without a value.
    ZeroArrays,
    /// Title of a kind of waste: arrays whose second half contains no values.
    LongArrays,
}

impl Waste {
    /// Returns the title for the name that a kind of waste has in JSON. A report of a later version may have unknown
    /// kinds. The title of an unknown kind is its name, split into words.
    #[must_use]
    pub fn title(kind: &str) -> String {
        let title = match kind {
            "duplicate_strings" => Self::DuplicateStrings,
            "duplicate_arrays" => Self::DuplicateArrays,
            "duplicate_boxes" => Self::DuplicateBoxes,
            "boxed_values" => Self::BoxedValues,
            "empty_collections" => Self::EmptyCollections,
            "sparse_collections" => Self::SparseCollections,
            "zero_arrays" => Self::ZeroArrays,
            "long_arrays" => Self::LongArrays,
            _ => return kind.replace('_', " "),
        };
        title.to_string()
    }
}

impl fmt::Display for Waste {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Savings { size, share } => {
                write!(f, "{size} could be saved: {share} of the reachable heap")
            }
            Self::SavingsSince {
                size,
                change,
                share,
            } => write!(
                f,
                "{size} could be saved, {change} since the first dump: {share} of the reachable heap"
            ),
            Self::SmallKinds => f.write_str(
                "categories below 1% of the total have no list here (--format json has all lists)",
            ),
            Self::DuplicateStrings => f.write_str("duplicate strings"),
            Self::DuplicateArrays => f.write_str("duplicate arrays of primitives"),
            Self::DuplicateBoxes => f.write_str("duplicate boxed values"),
            Self::BoxedValues => f.write_str("boxed values as elements"),
            Self::EmptyCollections => f.write_str("empty collections"),
            Self::SparseCollections => f.write_str("collections at most half full"),
            Self::ZeroArrays => f.write_str("arrays of zeros or nulls"),
            Self::LongArrays => f.write_str("arrays at most half full"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_kind_has_its_name_in_words() {
        assert_eq!(Waste::title("zero_arrays"), "arrays of zeros or nulls");
        assert_eq!(Waste::title("lazy_maps"), "lazy maps");
    }
}
