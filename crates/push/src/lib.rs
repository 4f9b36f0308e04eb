//! Profiles pushed to servers that take them as Pyroscope does.
//!
//! An [`Endpoint`] is a server's address with all that requests to it have in common; [`Endpoint::push`] sends it a
//! [`Series`]. Time, answers and tries are bounded; nothing is followed to another address, so that credentials stay
//! with the server that they are for.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod client;
mod error;
mod headers;
mod requests;

pub use client::{Endpoint, Patience};
pub use error::{PushError, TlsFault};
pub use headers::{Header, headers};
pub use requests::Series;
