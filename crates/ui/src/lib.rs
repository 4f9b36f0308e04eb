//! The live view: a local web page that draws a trace, finished or still being written.
//!
//! [`Server::start`] listens on 127.0.0.1 and returns a URL that contains a token. The page is embedded in the binary
//! and contacts no other host. Server-sent events notify the page of changes in the trace. The page requests all
//! figures through the `api` module, whose answers have a limited size for any trace. The server writes no files, and
//! clients can read only the traces and the page.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod amount;
mod api;
mod between;
mod by;
mod candidates;
mod counted;
mod events;
mod guard;
mod http;
mod key;
mod metrics;
mod page;
mod rankings;
mod runs;
mod server;
mod slots;
mod stacks;
mod text;
mod traces;
mod view;

pub use server::{Pages, Server, Subject, UiError};
