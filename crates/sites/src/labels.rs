//! Labels of threads, such as `tenant=acme`. The agent stores them after the thread's name.
//!
//! ```text
//! http-1                                       a thread without labels
//! http-1 U+001F tenant=acme U+001F route=/book a thread with two labels
//! ```
//!
//! Versions of heapdiff that do not support labels show them as a part of the thread's name.

/// The character between the name of a thread and its labels, and between two labels: the unit separator of ASCII. If a
/// name or a label contains this character, the agent replaces it by a space.
pub const SEPARATOR: char = '\u{1f}';
/// Maximum number of labels of a thread.
pub const MOST: usize = 3;

/// Splits a stored name into the thread's name and its labels. The labels are empty if the thread has none.
#[must_use]
pub fn split(name: &str) -> (&str, &str) {
    name.split_once(SEPARATOR).unwrap_or((name, ""))
}

/// Returns the pairs of key and value of labels that [`split`] returned. A label without `=` is left out.
pub fn pairs(labels: &str) -> impl Iterator<Item = (&str, &str)> {
    labels
        .split(SEPARATOR)
        .filter_map(|label| label.split_once('='))
}

/// Adds labels to the name of a thread. `labels` is not empty.
#[must_use]
pub fn join(thread: &str, labels: &str) -> String {
    format!("{thread}{SEPARATOR}{labels}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_and_without_labels() {
        assert_eq!(split("http-1"), ("http-1", ""));
        let name = join("http-1", "tenant=acme\u{1f}route=/a=b\u{1f}broken");
        let (thread, labels) = split(&name);
        assert_eq!(thread, "http-1");
        let pairs: Vec<_> = pairs(labels).collect();
        assert_eq!(pairs, [("tenant", "acme"), ("route", "/a=b")]);
        assert_eq!(super::pairs("").count(), 0);
    }
}
