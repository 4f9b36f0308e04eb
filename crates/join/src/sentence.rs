//! Sentences about the stacks of a recording that may have allocated a suspect's objects.

use heapdiff_units::{Probability, counted};

/// Minimum probability (in thousandths) at which reports state the allocating stack without the word "probably".
pub(crate) const NAMED: u64 = 750;
/// Minimum probability (in thousandths) at which reports name an allocating stack.
pub(crate) const PROBABLE: u64 = 250;

/// Returns the sentence about the most probable stack. `frame` is the first application frame of this stack.
pub(crate) fn allocated(frame: &str, permille: u64, evidence: &str) -> String {
    let word = if permille >= NAMED {
        "allocated in"
    } else {
        "probably allocated in"
    };
    // Insert a space before the file and line in parentheses, as in headlines.
    let frame = match frame.rsplit_once('(') {
        Some((name, place)) if !name.ends_with(' ') => format!("{name} ({place}"),
        _ => frame.to_owned(),
    };
    format!("{word} {frame}, {}: {evidence}", Probability(permille))
}

/// Returns the sentence for a suspect without a probable stack. `matching` is the number of samples whose class and
/// array length match the suspect's objects.
pub(crate) fn unknown(matching: u64) -> String {
    match matching {
        0 => "allocating code unknown: no matching sample".to_owned(),
        1 => "allocating code unknown: 1 matching sample is too few".to_owned(),
        few if few < FEW => {
            format!(
                "allocating code unknown: {} are too few",
                counted(few, "matching sample")
            )
        }
        many => format!(
            "allocating code unknown: {} do not point to one stack",
            counted(many, "matching sample")
        ),
    }
}

/// If fewer samples match than this number, the sentence of [`unknown`] gives the small number of samples as the
/// reason.
const FEW: u64 = 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probability_decides_the_words() {
        let frame = "Orders.book(Orders.java:31)";
        let of = |permille| allocated(frame, permille, "41 of 44 surviving samples");
        assert_eq!(
            of(934),
            "allocated in Orders.book (Orders.java:31), probability 0.9: 41 of 44 surviving samples"
        );
        assert!(
            of(749).starts_with(
                "probably allocated in Orders.book (Orders.java:31), probability 0.7:"
            )
        );
        let unknown = [0, 1, 2, 40].map(super::unknown);
        assert_eq!(
            unknown,
            [
                "allocating code unknown: no matching sample",
                "allocating code unknown: 1 matching sample is too few",
                "allocating code unknown: 2 matching samples are too few",
                "allocating code unknown: 40 matching samples do not point to one stack",
            ]
        );
    }
}
