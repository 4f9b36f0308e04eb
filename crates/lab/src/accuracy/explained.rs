//! Explains to readers of the table why reports on some scenarios differ from the expectation.

/// Returns the explanation for a scenario, if there is one.
pub(super) fn of(name: &str) -> Option<&'static str> {
    let known = EXPLAINED.iter().find(|(of, _)| *of == name);
    known.map(|(_, why)| *why)
}

/// Pairs of a scenario's name and its explanation. There is none at present.
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
