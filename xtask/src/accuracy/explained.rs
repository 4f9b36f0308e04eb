//! Why reports of some scenarios are not as expected, for the table's readers.

/// What is known of a scenario's misses.
pub(super) fn of(name: &str) -> Option<&'static str> {
    let known = EXPLAINED.iter().find(|(of, _)| *of == name);
    known.map(|(_, why)| *why)
}

const EXPLAINED: &[(&str, &str)] = &[(
    "class_value",
    "Dumps do not have the instance fields of `java.lang.Class`, `classValueMap` among them: what hangs on a class by a \
         `ClassValue` is in the dump, and nothing there holds it.",
)];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accuracy::subject;

    #[test]
    fn what_is_explained_is_run() {
        for (name, _) in EXPLAINED {
            assert!(subject::all().iter().any(|s| s.name() == *name), "{name}");
        }
        assert_eq!(of("no such program"), None);
    }
}
