//! Why a profile could not be pushed.

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
    /// The server's certificate, or what it said before, is no ground to trust it.
    #[error("{url}: no trusted connection: {why}")]
    Tls {
        /// Where.
        url: String,
        /// What is wrong.
        why: String,
    },
    /// No answer in time.
    #[error("{url}: no answer within {} s", .within.as_secs_f32())]
    Timeout {
        /// Where.
        url: String,
        /// How long it had.
        within: Duration,
    },
    /// The server sends elsewhere.
    #[error("{url}: the server sends elsewhere, to {to}")]
    Redirect {
        /// Where.
        url: String,
        /// The address that it names.
        to: String,
    },
    /// An answer that says no.
    #[error("{url}: the server answers {status}{}{said}", if .said.is_empty() { "" } else { ": " })]
    Refused {
        /// Where.
        url: String,
        /// The HTTP status.
        status: u16,
        /// The beginning of what it says.
        said: String,
    },
    /// An answer that no such server gives.
    #[error("{url}: the answer is not that of a server of profiles: {why}")]
    Foreign {
        /// Where.
        url: String,
        /// What is odd.
        why: String,
    },
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
