//! Pushes profiles to servers with the API of Pyroscope, and uploads files to other servers.
//!
//! An [`Endpoint`] contains the URL of a server, and the headers and limits of its requests. [`Endpoint::push`] sends a
//! profile ([`Series`]). [`Upload::put`] sends a file. The time of a request, the size of an answer and the number of
//! attempts are limited. Redirects to other servers are not followed, so credentials are sent only to the given server.
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
