//! Explains to readers of the table why reports on some scenarios differ from the expectation.

/// Returns the explanation for the scenario `name`, if there is one.
pub(super) fn of(name: &str) -> Option<&'static str> {
    let known = EXPLAINED.iter().find(|(of, _)| *of == name);
    known.map(|(_, why)| *why)
}

/// Names of scenarios whose reports differ from the expectation, each with the reason for the difference. There are no
/// such scenarios at present.
const EXPLAINED: &[(&str, &str)] = &[];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accuracy::subject;

    #[test]
    fn every_explained_program_is_run() {
        for (name, _) in EXPLAINED {
            assert!(subject::all().iter().any(|s| s.name() == *name), "{name}");
        }
        assert_eq!(of("no such program"), None);
    }
}
