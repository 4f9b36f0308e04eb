//! The live view: a web page on this machine that draws a trace, finished or being written.
//!
//! [`Server::start`] listens on 127.0.0.1 and gives a URL with a token in it. The page is built in,
//! asks nothing of any other host, and hears by server-sent events that the trace has changed; all
//! figures come from the trace by the questions in `api`, whose answers are bounded however
//! large the trace is. Nothing is written, and nothing but the traces and the page can be read.
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
mod page;
mod rankings;
mod runs;
mod server;
mod slots;
mod stacks;
mod text;
mod traces;
mod view;

pub use server::{Server, Subject, UiError};
