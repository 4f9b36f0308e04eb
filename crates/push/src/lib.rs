//! Pushes profiles to servers with the API of Pyroscope.
//!
//! An [`Endpoint`] holds a server's URL and everything that its requests have in common. [`Endpoint::push`] sends a
//! [`Series`]. Time, size of answers and attempts are limited. Redirects are not followed, so credentials are sent only
//! to the given server.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod client;
mod error;
mod headers;
mod requests;

pub use client::{Endpoint, Patience};
pub use error::{PushError, TlsFault};
pub use headers::{Header, headers};
pub use requests::Series;
