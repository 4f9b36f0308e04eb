//! Why reports of some scenarios are not as expected, for the table's readers.

/// What is known of a scenario's misses.
pub(super) fn of(name: &str) -> Option<&'static str> {
    let known = EXPLAINED.iter().find(|(of, _)| *of == name);
    known.map(|(_, why)| *why)
}

/// The names of scenarios, and why; none at present.
const EXPLAINED: &[(&str, &str)] = &[];

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
