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
        /// The URL without credentials.
        url: String,
        /// The problem.
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
        /// The file.
        file: PathBuf,
        /// The problem.
        why: String,
    },
    /// The server cannot be reached.
    #[error("{url}: {why}")]
    Unreachable {
        /// The URL.
        url: String,
        /// The problem.
        why: String,
    },
    /// The file with CA certificates cannot be read, or contains no certificates.
    #[error("{}: cannot read CA certificates: {why}", .file.display())]
    Authorities {
        /// The file.
        file: PathBuf,
        /// The problem.
        why: String,
    },
    /// No trusted TLS connection can be established, for example because the server's certificate is not trusted.
    #[error("{url}: cannot establish a trusted connection: {why}")]
    Tls {
        /// The URL.
        url: String,
        /// The problem.
        why: String,
        /// The kind of problem.
        fault: TlsFault,
    },
    /// The server did not answer in time.
    #[error("{url}: no response within {} s", .within.as_secs_f32())]
    Timeout {
        /// The URL.
        url: String,
        /// The time limit.
        within: Duration,
    },
    /// The server redirects to another URL. Redirects are not followed.
    #[error("{url}: the server redirects to {to}")]
    Redirect {
        /// The URL.
        url: String,
        /// The target of the redirect.
        to: String,
    },
    /// The server refused the profile.
    #[error("{url}: the server responded with {status}{}{said}", if .said.is_empty() { "" } else { ": " })]
    Refused {
        /// The URL.
        url: String,
        /// The HTTP status.
        status: u16,
        /// The first part of the server's message.
        said: String,
    },
    /// The answer does not come from a profile server.
    #[error("{url}: the response is not from a profile server: {why}")]
    Foreign {
        /// The URL.
        url: String,
        /// The problem.
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
            // A wrong signature means that an unknown authority issued the certificate under the name of a trusted
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
    /// Returns true if the same request may succeed later.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Timeout { .. } => true,
            Self::Refused { status, .. } => matches!(status, 429 | 500 | 502 | 503 | 504),
            _ => false,
        }
    }
}
