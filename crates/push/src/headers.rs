//! Headers that a user adds to requests.

use ureq::http::{HeaderName, HeaderValue};

use crate::error::PushError;

/// A header that is added to each request.
#[derive(Clone, Debug)]
pub struct Header {
    pub(crate) name: HeaderName,
    pub(crate) value: HeaderValue,
}

/// Headers that users must not add. Either each request already has them, or they describe how the body is encoded.
const OWN: [&str; 6] = [
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "host",
    "transfer-encoding",
];

impl Header {
    /// Parses a header in HTTP syntax, `Name: value`. `place` names the source of the header (an option, or a line of a
    /// file), for error messages. `Debug` output does not contain the value.
    ///
    /// # Errors
    /// Returns an error if the header is invalid. The error does not contain the value.
    pub fn parse(text: &str, place: &str) -> Result<Self, PushError> {
        let wrong = |why| PushError::Header {
            place: place.to_owned(),
            why,
        };
        let (name, value) = text
            .split_once(':')
            .ok_or_else(|| wrong("a header must have the form `Name: value`"))?;
        Self::new(name.trim(), value.trim()).map_err(wrong)
    }

    /// Returns an `Authorization` header: bearer authentication with the token, or Basic authentication if `user` is
    /// given.
    ///
    /// # Errors
    /// Returns an error if the token contains characters that a header cannot contain.
    pub fn authorization(user: Option<&str>, token: &str, place: &str) -> Result<Self, PushError> {
        use base64::Engine;
        let value = match user {
            Some(user) => {
                let both = format!("{user}:{token}");
                let both = base64::engine::general_purpose::STANDARD.encode(both);
                format!("Basic {both}")
            }
            None => format!("Bearer {token}"),
        };
        Self::new("authorization", &value).map_err(|why| PushError::Header {
            place: place.to_owned(),
            why,
        })
    }

    fn new(name: &str, value: &str) -> Result<Self, &'static str> {
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| "the name of a header consists of letters, digits and dashes")?;
        if OWN.contains(&name.as_str()) {
            return Err("heapdiff sets this header itself");
        }
        let mut value = HeaderValue::from_str(value)
            .map_err(|_| "the value of a header must be printable ASCII on one line")?;
        value.set_sensitive(true);
        Ok(Self { name, value })
    }

    /// Returns true if this is the `Authorization` header.
    #[must_use]
    pub fn is_authorization(&self) -> bool {
        self.name == ureq::http::header::AUTHORIZATION
    }
}

/// Parses a file that has one header in each line. Empty lines and lines that begin with `#` are ignored.
///
/// # Errors
/// Returns an error if a line is not a valid header. The error describes the first invalid line.
pub fn headers(text: &str, file: &str) -> Result<Vec<Header>, PushError> {
    let lines = (1..).zip(text.lines().map(str::trim));
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|(number, line)| Header::parse(line, &format!("{file}:{number}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_headers_are_refused() {
        let header = Header::parse("X-Scope-OrgID: acme:eu ", "--header").unwrap();
        assert_eq!(header.name, "x-scope-orgid");
        assert_eq!(header.value, "acme:eu");
        for bad in [
            "X-Scope-OrgID",
            ": x",
            "a b: c",
            "Host: elsewhere",
            "content-length: 3",
            "X: a\nb",
            "X: a\u{7f}",
        ] {
            let error = Header::parse(bad, "--header").unwrap_err().to_string();
            assert!(error.starts_with("--header: "), "{error}");
        }
    }

    #[test]
    fn secrets_are_in_no_message() {
        let header = Header::authorization(None, "s3cret", "HEAPDIFF_PUSH_TOKEN").unwrap();
        assert_eq!(header.value, "Bearer s3cret");
        assert!(!format!("{header:?}").contains("s3cret"));
        let error = Header::authorization(None, "s3cret\n", "HEAPDIFF_PUSH_TOKEN").unwrap_err();
        assert!(!format!("{error:?} {error}").contains("s3cret"));
        let basic = Header::authorization(Some("17"), "s3cret", "").unwrap();
        assert_eq!(basic.value, "Basic MTc6czNjcmV0");
        assert!(basic.is_authorization());
    }

    #[test]
    fn a_file_has_one_header_per_line() {
        let text = "# from the vault\nAuthorization: Bearer a\r\n\n  X-Scope-OrgID: b\n";
        let names: Vec<String> = headers(text, "f")
            .unwrap()
            .iter()
            .map(|h| h.name.to_string())
            .collect();
        assert_eq!(names, ["authorization", "x-scope-orgid"]);
        let error = headers("A: b\nsecret words\n", "f")
            .unwrap_err()
            .to_string();
        assert_eq!(error, "f:2: a header must have the form `Name: value`");
    }
}
