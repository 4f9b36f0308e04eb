//! Why a profile could not be pushed.

use std::path::PathBuf;
use std::time::Duration;

/// Why a profile could not be pushed. Addresses are without credentials.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PushError {
    /// Not an address of a server.
    #[error("{url}: {why}")]
    Address {
        /// As it was given.
        url: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A header that no request can have.
    #[error("{place}: {why}")]
    Header {
        /// Where it stands.
        place: String,
        /// What is wrong with it; never its value, which may be secret.
        why: &'static str,
    },
    /// Nobody could be reached.
    #[error("{url}: {why}")]
    Unreachable {
        /// Where.
        url: String,
        /// What the system says.
        why: String,
    },
    /// A file of authorities that has none.
    #[error("{}: cannot read CA certificates: {why}", .file.display())]
    Authorities {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The server's certificate, or what it said before, is no ground to trust it.
    #[error("{url}: cannot establish a trusted connection: {why}")]
    Tls {
        /// Where.
        url: String,
        /// What is wrong.
        why: String,
        /// What kind of fault that is.
        fault: TlsFault,
    },
    /// No answer in time.
    #[error("{url}: no response within {} s", .within.as_secs_f32())]
    Timeout {
        /// Where.
        url: String,
        /// How long it had.
        within: Duration,
    },
    /// The server sends elsewhere.
    #[error("{url}: the server redirects to {to}")]
    Redirect {
        /// Where.
        url: String,
        /// The address that it names.
        to: String,
    },
    /// An answer that says no.
    #[error("{url}: the server responded with {status}{}{said}", if .said.is_empty() { "" } else { ": " })]
    Refused {
        /// Where.
        url: String,
        /// The HTTP status.
        status: u16,
        /// The beginning of what it says.
        said: String,
    },
    /// An answer that no such server gives.
    #[error("{url}: the response is not from a profile server: {why}")]
    Foreign {
        /// Where.
        url: String,
        /// What is odd.
        why: String,
    },
}

/// Why a connection is not trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsFault {
    /// The certificate is of an authority that is not trusted.
    Authority,
    /// The certificate is another server's.
    Name,
    /// The certificate's time is over, or has not begun.
    Time,
    /// There are no authorities at all.
    NoAuthorities,
    /// Something else: the port may speak no TLS.
    Other,
}

impl TlsFault {
    pub(crate) fn of(error: &rustls::Error) -> Self {
        use rustls::CertificateError as Bad;
        let rustls::Error::InvalidCertificate(bad) = error else {
            return Self::Other;
        };
        match bad {
            // An authority of the same name signs otherwise.
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
    /// Whether the same may succeed later.
    #[must_use]
    pub const fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Timeout { .. } => true,
            Self::Refused { status, .. } => matches!(status, 429 | 500 | 502 | 503 | 504),
            _ => false,
        }
    }
}
