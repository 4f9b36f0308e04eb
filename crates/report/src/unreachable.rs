//! The sentence about unreachable objects.

use heapdiff_model::owners::OwnedClass;
use heapdiff_model::unreachable::UnreachableSummary;
use heapdiff_units::{Size, counted, grouped, percent};

/// Maximum number of classes in the sentence.
const CLASSES: usize = 3;

/// Returns the sentence about unreachable objects. It names their largest classes, and the class whose unreachable
/// objects would hold the largest part of them. If most of them have no referrer, it states this instead of naming
/// such a class. `dump` is the name of the dump.
pub(crate) fn sentence(summary: &UnreachableSummary, dump: &str) -> String {
    let size = |class: &OwnedClass| format!("{} {}", Size(class.bytes), class.class);
    let classes: Vec<String> = summary.classes.iter().take(CLASSES).map(size).collect();
    let held = match summary.holders.first() {
        Some(first) if is_made_of(summary, first) => "most of them have no referrer".to_owned(),
        Some(first) if first.bytes * 2 >= summary.bytes => {
            let objects = grouped(first.objects);
            let part = percent(first.bytes, summary.bytes);
            format!("{objects} {} would hold {part} of them", first.class)
        }
        Some(first) => {
            let part = percent(first.bytes, summary.bytes);
            format!(
                "{} would hold {part} of them, more than any other class",
                first.class
            )
        }
        None => return "no object is unreachable".to_owned(),
    };
    let share = match summary.percent {
        0 => "less than 1 %".to_owned(),
        percent => format!("{percent} %"),
    };
    format!(
        "{share} of {dump} is unreachable, {} in {}: {}; {held}",
        Size(summary.bytes),
        counted(summary.objects, "object"),
        classes.join(", "),
    )
}

/// True if at least half of the bytes of all unreachable objects belong to objects of the class `first`, and no
/// unreachable object refers to these objects.
fn is_made_of(summary: &UnreachableSummary, first: &OwnedClass) -> bool {
    let is_same = |class: &OwnedClass| class.class == first.class && first.bytes <= class.bytes;
    first.bytes * 2 >= summary.bytes && summary.classes.first().is_some_and(is_same)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(class: &str, objects: u64, bytes: u64) -> OwnedClass {
        OwnedClass {
            class: class.to_owned(),
            objects,
            bytes,
        }
    }

    #[test]
    fn a_sentence_names_classes_and_holders() {
        let mut summary = UnreachableSummary {
            objects: 30,
            bytes: 4096,
            percent: 62,
            classes: vec![class("byte[]", 10, 2048), class("a.B", 9, 1024)],
            holders: vec![class("a.Request", 3, 3072)],
        };
        assert_eq!(
            sentence(&summary, "the dump"),
            "62 % of the dump is unreachable, 4.0 KiB in 30 objects: 2.0 KiB byte[], 1.0 KiB a.B; \
             3 a.Request would hold 75.0% of them"
        );
        summary.holders[0].bytes = 1024;
        assert!(
            sentence(&summary, "the dump")
                .ends_with("; a.Request would hold 25.0% of them, more than any other class")
        );
        summary.holders = vec![class("byte[]", 10, 2048)];
        assert!(sentence(&summary, "the dump").ends_with("; most of them have no referrer"));
        summary.holders.clear();
        assert_eq!(sentence(&summary, "the dump"), "no object is unreachable");
    }
}
