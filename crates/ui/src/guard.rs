//! Access control: only a page from this server may send requests, and only the person with the URL can open it.
//!
//! A page of another site can make a browser on this machine send requests to 127.0.0.1. If the host name of that site
//! resolves to 127.0.0.1 (DNS rebinding), the page can even read the answers. So the server checks the `Host` header,
//! the origin of the request, and a token that is only in the URL.

use std::fmt::Write as _;

use subtle::ConstantTimeEq;

use crate::http::{Request, Status};

/// The length of a token in bytes.
const BYTES: usize = 24;

/// A random secret in the URL.
#[derive(Clone)]
pub(crate) struct Token(String);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(..)")
    }
}

impl Token {
    /// Creates a token from the system's random source.
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

    /// Returns true if the token equals `text`. The comparison takes equally long for all strings of one length, so
    /// that its duration does not reveal the token.
    fn is(&self, text: &str) -> bool {
        self.0.as_bytes().ct_eq(text.as_bytes()).into()
    }
}

/// The checks that each request must pass.
#[derive(Clone, Debug)]
pub(crate) struct Guard {
    pub(crate) token: Token,
    pub(crate) port: u16,
}

impl Guard {
    /// Returns the path after the token, such as `/api/runs`, if the request passes all checks.
    pub(crate) fn authorize<'a>(
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
            let said = "this server accepts only requests for 127.0.0.1 and localhost";
            return Err((Status::Forbidden, said));
        }
        let from_here = |origin: &str| origin.strip_prefix("http://").is_some_and(ours);
        if !request.header("origin").all(from_here) {
            return Err((
                Status::Forbidden,
                "the request comes from a page of another origin",
            ));
        }
        // The header `Sec-Fetch-Site: none` means that the request does not come from a page: a person typed the URL,
        // or another program opened it.
        let mut sites = request.header("sec-fetch-site");
        if !sites.all(|site| matches!(site, "same-origin" | "none")) {
            return Err((
                Status::Forbidden,
                "the request comes from a page of another site",
            ));
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
                "the URL has no token, or a token of an earlier server; use the URL that heapdiff printed",
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
