//! The program as a user meets it.

mod commands;
mod formats;
mod index;
mod output;
mod schema;
mod support;
mod tables;
mod trace;
