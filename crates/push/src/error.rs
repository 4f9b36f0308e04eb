//! Errors of pushing a profile and of uploading a file.

use std::path::PathBuf;
use std::time::Duration;

/// The reason why a profile could not be pushed, or a file could not be uploaded. URLs contain no credentials.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PushError {
    /// The URL is invalid, or it contains credentials.
    #[error("{url}: {why}")]
    Address {
        /// The given URL, without credentials.
        url: String,
        /// The reason why the URL is not accepted.
        why: &'static str,
    },
    /// A header is invalid.
    #[error("{place}: {why}")]
    Header {
        /// Where the header comes from: an option, or a line of a file.
        place: String,
        /// The problem with the header. The text never contains the header's value, which may be secret.
        why: &'static str,
    },
    /// The file to upload cannot be read.
    #[error("{}: {why}", .file.display())]
    File {
        /// The path of the file.
        file: PathBuf,
        /// The reason why the file cannot be read.
        why: String,
    },
    /// The server cannot be reached.
    #[error("{url}: {why}")]
    Unreachable {
        /// The URL of the server.
        url: String,
        /// The reason why the server cannot be reached.
        why: String,
    },
    /// The file with CA certificates cannot be read, or contains no certificates.
    #[error("{}: cannot read CA certificates: {why}", .file.display())]
    Authorities {
        /// The path of the file with CA certificates.
        file: PathBuf,
        /// The reason why the file cannot be used.
        why: String,
    },
    /// No trusted TLS connection can be established, for example because the server's certificate is not trusted.
    #[error("{url}: cannot establish a trusted connection: {why}")]
    Tls {
        /// The URL of the server.
        url: String,
        /// The reason why no trusted connection can be established.
        why: String,
        /// The kind of problem.
        fault: TlsFault,
    },
    /// The server did not answer in time.
    #[error("{url}: no response within {} s", .within.as_secs_f32())]
    Timeout {
        /// The URL of the request.
        url: String,
        /// The time limit that was exceeded.
        within: Duration,
    },
    /// The server redirects to another URL. Redirects are not followed.
    #[error("{url}: the server redirects to {to}")]
    Redirect {
        /// The URL of the request.
        url: String,
        /// The target of the redirect.
        to: String,
    },
    /// The server refused the profile.
    #[error("{url}: the server responded with {status}{}{said}", if .said.is_empty() { "" } else { ": " })]
    Refused {
        /// The URL of the request.
        url: String,
        /// The HTTP status of the answer.
        status: u16,
        /// The first part of the server's message.
        said: String,
    },
    /// The answer does not come from a profile server.
    #[error("{url}: the response is not from a profile server: {why}")]
    Foreign {
        /// The URL of the request.
        url: String,
        /// The reason why the answer cannot come from a profile server.
        why: String,
    },
}

/// The reason why a connection is not trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsFault {
    /// The certificate is signed by an unknown authority.
    Authority,
    /// The certificate belongs to another server.
    Name,
    /// The certificate has expired or is not valid yet.
    Time,
    /// This machine has no CA certificates.
    NoAuthorities,
    /// Any other TLS problem, for example if the port does not use TLS.
    Other,
}

impl TlsFault {
    pub(crate) fn from_error(error: &rustls::Error) -> Self {
        use rustls::CertificateError as Bad;
        let rustls::Error::InvalidCertificate(bad) = error else {
            return Self::Other;
        };
        match bad {
            // If the signature is wrong, an unknown authority has issued the certificate under the name of a trusted
            // authority.
            Bad::UnknownIssuer | Bad::BadSignature => Self::Authority,
            Bad::NotValidForName | Bad::NotValidForNameContext { .. } => Self::Name,
            Bad::Expired
            | Bad::ExpiredContext { .. }
            | Bad::NotValidYet
            | Bad::NotValidYetContext { .. } => Self::Time,
            _ => Self::Other,
        }
    }
}

impl PushError {
    /// Returns true if the same request may succeed when it is sent again later.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Timeout { .. } => true,
            Self::Refused { status, .. } => matches!(status, 429 | 500 | 502 | 503 | 504),
            _ => false,
        }
    }
}
