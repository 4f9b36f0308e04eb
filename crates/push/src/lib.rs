//! Pushes profiles to servers with the API of Pyroscope, and uploads files to other servers.
//!
//! An [`Endpoint`] holds a server's URL and everything that its requests have in common. [`Endpoint::push`] sends a
//! [`Series`]. [`Upload::put`] sends a file. Time, size of answers and attempts are limited. Redirects to other servers
//! are not followed, so credentials are sent only to the given server.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod client;
mod endpoint;
mod error;
mod headers;
mod requests;
mod upload;

pub use client::Patience;
pub use endpoint::Endpoint;
pub use error::{PushError, TlsFault};
pub use headers::{Header, headers};
pub use requests::Series;
pub use upload::Upload;
