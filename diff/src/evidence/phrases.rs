//! Figures worded for sentences.

use heapdiff_units::{Size, grouped};

/// A growth as a size. Only positive growth is reported; a negative one reads as 0.
pub(crate) fn grown(bytes: i64) -> Size {
    Size(u64::try_from(bytes).unwrap_or(0))
}

/// How a number of things changed: `12 tasks, up from 5`.
pub(crate) fn changed(first: u64, last: u64, what: &str) -> String {
    let now = grouped(last);
    match last.cmp(&first) {
        std::cmp::Ordering::Greater => format!("{now} {what}, up from {}", grouped(first)),
        std::cmp::Ordering::Equal => format!("{now} {what}, as before"),
        std::cmp::Ordering::Less => format!("{now} {what}, down from {}", grouped(first)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        assert_eq!(grown(64 << 20).to_string(), "64.0 MiB");
        assert_eq!(changed(5, 12, "tasks"), "12 tasks, up from 5");
        assert_eq!(changed(5, 5, "tasks"), "5 tasks, as before");
    }
}
