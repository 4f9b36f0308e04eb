//! A minimal HTTP/1.1 server for a page on the same machine: one request without a body and one answer for each
//! connection.
//!
//! The server limits the size of a request's head and the number of its headers. It also limits the time for the client
//! to send the head and to read the answer.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// Maximum size of a request's head (first line and headers) in bytes.
const MOST_HEAD: usize = 16 * 1024;
const MOST_HEADERS: usize = 64;
/// Time limit for a client to send the head of a request: its first line and its headers.
pub(crate) const HEAD_TIME: Duration = Duration::from_secs(5);
/// Time limit for a client to accept the next part of an answer.
pub(crate) const WRITE_TIME: Duration = Duration::from_secs(10);
/// Maximum number of bytes that are read of a request's body. No request needs a body. But if a socket is closed with
/// unread bytes, the client may lose the answer.
const MOST_DRAINED: usize = 64 * 1024;

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// Path and query, as received.
    pub(crate) target: String,
    /// The headers that the server uses. Each has its name in lower case and its value.
    headers: Vec<(String, String)>,
}

impl Request {
    /// Returns all values of a header.
    pub(crate) fn header<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let same = self.headers.iter().filter(move |(n, _)| n == name);
        same.map(|(_, value)| value.as_str())
    }

    /// Splits the target into path and query at the question mark.
    pub(crate) fn parts(&self) -> (&str, &str) {
        self.target
            .split_once('?')
            .unwrap_or((self.target.as_str(), ""))
    }
}

/// The reason why a request could not be read.
#[derive(Debug)]
pub(crate) enum Refused {
    /// The client has disconnected or is too slow. It gets no answer.
    Gone,
    /// The client gets an answer with this status.
    With(Status),
}

/// The HTTP statuses that the server sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Ok,
    BadRequest,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    TooLarge,
    Unusable,
    Busy,
}

impl Status {
    const fn line(self) -> &'static str {
        match self {
            Self::Ok => "200 OK",
            Self::BadRequest => "400 Bad Request",
            Self::Forbidden => "403 Forbidden",
            Self::NotFound => "404 Not Found",
            Self::MethodNotAllowed => "405 Method Not Allowed",
            Self::TooLarge => "431 Request Header Fields Too Large",
            Self::Unusable => "500 Internal Server Error",
            Self::Busy => "503 Service Unavailable",
        }
    }
}

/// Reads the head of a request.
pub(crate) fn read(stream: &mut TcpStream) -> Result<Request, Refused> {
    let deadline = Instant::now() + HEAD_TIME;
    let mut head = Vec::new();
    let mut part = [0; 4096];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || stream.set_read_timeout(Some(left)).is_err() {
            return Err(Refused::Gone);
        }
        let n = match stream.read(&mut part) {
            Ok(0) => return Err(Refused::Gone),
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return Err(Refused::Gone),
        };
        head.extend_from_slice(part.get(..n).unwrap_or_default());
        if let Some(request) = parse(&head)? {
            return Ok(request);
        }
    }
}

/// Parses a request. Returns `None` while its head is incomplete.
fn parse(head: &[u8]) -> Result<Option<Request>, Refused> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    let bytes = head.get(..MOST_HEAD).unwrap_or(head);
    match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) if head.len() < MOST_HEAD => return Ok(None),
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
            return Err(Refused::With(Status::TooLarge));
        }
        Err(_) => return Err(Refused::With(Status::BadRequest)),
    }
    let (Some(method), Some(target)) = (parsed.method, parsed.path) else {
        return Err(Refused::With(Status::BadRequest));
    };
    let looked_at = parsed.headers.iter().filter(|h| {
        ["host", "origin", "sec-fetch-site"].contains(&h.name.to_ascii_lowercase().as_str())
    });
    let headers = looked_at
        .map(|h| {
            (
                h.name.to_ascii_lowercase(),
                String::from_utf8_lossy(h.value).into_owned(),
            )
        })
        .collect();
    Ok(Some(Request {
        method: method.to_owned(),
        target: target.to_owned(),
        headers,
    }))
}

/// An answer to a request.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: Status,
    pub(crate) kind: &'static str,
    /// The value of `Content-Security-Policy`.
    pub(crate) policy: String,
    pub(crate) body: Vec<u8>,
}

/// A content security policy for answers that are not pages: it allows nothing.
pub(crate) const NO_POLICY: &str = "default-src 'none'; frame-ancestors 'none'; sandbox";

impl Answer {
    /// Creates an answer with one line of text.
    pub(crate) fn plain(status: Status, text: &str) -> Self {
        Self {
            status,
            kind: "text/plain; charset=utf-8",
            policy: NO_POLICY.to_owned(),
            body: format!("{text}\n").into_bytes(),
        }
    }

    /// Creates an answer with JSON for the page.
    pub(crate) fn json(status: Status, body: Vec<u8>) -> Self {
        Self {
            status,
            kind: "application/json",
            policy: NO_POLICY.to_owned(),
            body,
        }
    }

    /// Creates an answer with OpenMetrics.
    pub(crate) fn metrics(body: String) -> Self {
        Self {
            status: Status::Ok,
            kind: "application/openmetrics-text; version=1.0.0; charset=utf-8",
            policy: NO_POLICY.to_owned(),
            body: body.into_bytes(),
        }
    }

    /// Sends the answer, without its body if `only_head` is set. Calls `waits` each time before it waits for the
    /// client.
    pub(crate) fn send(
        &self,
        stream: &mut TcpStream,
        only_head: bool,
        waits: impl Fn(),
    ) -> io::Result<()> {
        let length = format!("Content-Length: {}\r\n", self.body.len());
        let mut bytes = head(self.status, self.kind, &self.policy, &length).into_bytes();
        if !only_head {
            bytes.extend_from_slice(&self.body);
        }
        stream.set_write_timeout(Some(WRITE_TIME))?;
        send_all(stream, &bytes, &waits)?;
        waits();
        finish(stream);
        Ok(())
    }
}

/// Writes all bytes in parts. A client must accept each part within [`WRITE_TIME`]. So a client that reads very slowly
/// cannot hold the connection.
fn send_all(stream: &mut TcpStream, bytes: &[u8], waits: &impl Fn()) -> io::Result<()> {
    /// Size of a part in bytes. The loopback device accepts about this number of bytes without waiting for the client.
    const PART: usize = 256 * 1024;
    for part in bytes.chunks(PART) {
        waits();
        let begun = Instant::now();
        let mut left = part;
        while !left.is_empty() {
            if begun.elapsed() > WRITE_TIME {
                return Err(io::ErrorKind::TimedOut.into());
            }
            match stream.write(left) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => left = left.get(n..).unwrap_or_default(),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }
    Ok(())
}

/// Returns the head of an answer. `more` contains complete header lines to add.
pub(crate) fn head(status: Status, kind: &str, policy: &str, more: &str) -> String {
    let allow = match status {
        Status::MethodNotAllowed => "Allow: GET, HEAD\r\n",
        _ => "",
    };
    format!(
        "HTTP/1.1 {}\r\n\
         Content-Type: {kind}\r\n\
         Content-Security-Policy: {policy}\r\n\
         Cache-Control: no-store\r\n\
         Referrer-Policy: no-referrer\r\n\
         X-Content-Type-Options: nosniff\r\n\
         X-Frame-Options: DENY\r\n\
         Cross-Origin-Resource-Policy: same-origin\r\n\
         Cross-Origin-Opener-Policy: same-origin\r\n\
         {allow}{more}Connection: close\r\n\r\n",
        status.line()
    )
}

/// Closes the connection after the client has read the answer. First reads the rest of the request, because closing a
/// socket with unread bytes may discard the answer.
fn finish(stream: &mut TcpStream) {
    if stream.shutdown(Shutdown::Write).is_err() {
        return;
    }
    let _ = stream.set_read_timeout(Some(Duration::from_millis(200)));
    let begun = Instant::now();
    let mut drained = 0;
    let mut part = [0; 4096];
    while let Ok(n @ 1..) = stream.read(&mut part) {
        drained += n;
        if drained > MOST_DRAINED || begun.elapsed() > HEAD_TIME {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_once_it_is_whole() {
        let head = b"GET /a?b=c HTTP/1.1\r\nHost: h\r\nX: y\r\nORIGIN: o\r\n\r\nmore";
        for n in 0..head.len() - 4 {
            assert!(matches!(parse(&head[..n]), Ok(None)), "{n}");
        }
        let request = parse(head).unwrap().unwrap();
        assert_eq!(request.parts(), ("/a", "b=c"));
        assert_eq!(request.header("host").collect::<Vec<_>>(), ["h"]);
        assert_eq!(request.header("origin").collect::<Vec<_>>(), ["o"]);
        assert_eq!(request.header("x").count(), 0);
    }

    #[test]
    fn requests_that_are_too_long_are_refused() {
        let status = |head: &[u8]| match parse(head) {
            Err(Refused::With(status)) => Some(status),
            _ => None,
        };
        let mut long = b"GET /".to_vec();
        long.resize(MOST_HEAD - 1, b'a');
        assert_eq!(status(&long), None);
        long.push(b'a');
        assert_eq!(status(&long), Some(Status::TooLarge));
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(65));
        assert_eq!(status(many.as_bytes()), Some(Status::TooLarge));
        assert_eq!(status(b"\x16\x03\x01 tls"), Some(Status::BadRequest));
        assert_eq!(status(b"GET / HTTP/3.0\r\n\r\n"), Some(Status::BadRequest));
    }
}
