//! Labels that a user adds to data, as in `--label service=shop`.

use crate::failure::{Failure, Result};

/// Parses a label that the user writes as `KEY=VALUE`.
pub(crate) fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => {
            Ok((key.trim().to_owned(), value.to_owned()))
        }
        _ => Err(format!("`{text}` is not KEY=VALUE")),
    }
}

/// Checks labels. A name must be valid in Prometheus and Pyroscope, must not be in `own` (the names that heapdiff sets
/// itself), and must be given only once. A value must not be empty.
pub(crate) fn labels(all: &[(String, String)], own: &[&str]) -> Result<()> {
    for (at, (name, value)) in all.iter().enumerate() {
        let why = match &**name {
            name if own.contains(&name) => "heapdiff sets this label itself",
            name if !is_name(name) => {
                "the name of a label consists of letters, digits and _, and does not begin with a digit or __"
            }
            name if all[..at].iter().any(|(before, _)| before == name) => {
                "this label was given twice"
            }
            _ if value.is_empty() => "the value is empty",
            _ => continue,
        };
        return Err(Failure::usage(format!("--label {name}: {why}")));
    }
    Ok(())
}

fn is_name(name: &str) -> bool {
    let is_letter = |b: u8| b.is_ascii_alphabetic() || b == b'_';
    let mut bytes = name.bytes();
    let begins = bytes.next().is_some_and(is_letter) && !name.starts_with("__");
    begins && bytes.all(|b| is_letter(b) || b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_labels_are_refused() {
        let why = |all: &[&str]| {
            let all: Vec<_> = all.iter().map(|text| label(text).unwrap()).collect();
            let checked = labels(&all, &["holder"]);
            checked.err().map(|failure| failure.message)
        };
        assert_eq!(why(&["zone=eu=1", "_a1=b", " host =c"]), None);
        for bad in [
            "1a=b",
            "a-b=c",
            "__name__=x",
            "\u{e4}=b",
            "a b=c",
            "a=",
            "holder=x",
        ] {
            let why = why(&[bad]).unwrap();
            assert!(why.starts_with("--label "), "{why}");
        }
        let twice = why(&["a=1", "b=1", "a=2"]);
        assert_eq!(
            twice.as_deref(),
            Some("--label a: this label was given twice")
        );
        assert!(label("=b").is_err() && label("zone").is_err());
    }
}
