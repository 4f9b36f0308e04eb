//! Who may ask: the person who was given the URL, by a page that came from here.
//!
//! A page of another site can make a browser on this machine send requests to 127.0.0.1, and, by a name of
//! its own that it has resolve to 127.0.0.1, even read the answers. So the name that a browser went to is
//! checked, where a request comes from, and a token that only the URL has.

use std::fmt::Write as _;

use subtle::ConstantTimeEq;

use crate::http::{Request, Status};

/// Bytes of a token.
const BYTES: usize = 24;

/// A secret in the URL.
#[derive(Clone)]
pub(crate) struct Token(String);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(..)")
    }
}

impl Token {
    /// A new one, from the system's source of randomness.
    pub(crate) fn new() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; BYTES];
        getrandom::fill(&mut bytes)?;
        let mut text = String::with_capacity(2 * BYTES);
        for byte in bytes {
            let _ = write!(text, "{byte:02x}");
        }
        Ok(Self(text))
    }

    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    /// Compares in constant time for texts of the right length.
    fn is(&self, text: &str) -> bool {
        self.0.as_bytes().ct_eq(text.as_bytes()).into()
    }
}

/// The rules that requests have to keep.
#[derive(Clone, Debug)]
pub(crate) struct Guard {
    pub(crate) token: Token,
    pub(crate) port: u16,
}

impl Guard {
    /// The path below the token, such as `/api/runs`.
    pub(crate) fn admit<'a>(
        &self,
        request: &'a Request,
    ) -> Result<&'a str, (Status, &'static str)> {
        let ours = |authority: &str| {
            let port = self.port;
            [format!("127.0.0.1:{port}"), format!("localhost:{port}")]
                .iter()
                .any(|own| own.eq_ignore_ascii_case(authority))
        };
        let mut hosts = request.header("host");
        if !matches!((hosts.next(), hosts.next()), (Some(host), None) if ours(host)) {
            let said = "this server only accepts requests for 127.0.0.1 and localhost";
            return Err((Status::Forbidden, said));
        }
        let from_here = |origin: &str| origin.strip_prefix("http://").is_some_and(ours);
        if !request.header("origin").all(from_here) {
            return Err((Status::Forbidden, "request from a page of another origin"));
        }
        // "none" is a person who typed or clicked the URL outside of any page.
        let mut sites = request.header("sec-fetch-site");
        if !sites.all(|site| matches!(site, "same-origin" | "none")) {
            return Err((Status::Forbidden, "request from a page of another site"));
        }
        if !matches!(request.method.as_str(), "GET" | "HEAD") {
            return Err((Status::MethodNotAllowed, "only GET and HEAD are allowed"));
        }
        let (path, _) = request.parts();
        let Some(below) = path.strip_prefix('/') else {
            return Err((Status::BadRequest, "the request has no valid path"));
        };
        let (token, rest) = match below.find('/') {
            Some(at) => below.split_at(at),
            None => (below, ""),
        };
        if self.token.is(token) {
            Ok(rest)
        } else {
            Err((
                Status::Forbidden,
                "the URL has no token, or the token of an earlier start; use the URL that heapdiff printed",
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_differ_and_are_long() {
        let (a, b) = (Token::new().unwrap(), Token::new().unwrap());
        assert_eq!(a.text().len(), 48);
        assert_ne!(a.text(), b.text());
        assert!(a.is(a.text()) && !a.is(b.text()) && !a.is("") && !a.is(&a.text()[1..]));
        assert!(!format!("{a:?}").contains(a.text()));
    }
}
