//! The program as a user meets it.

mod commands;
mod formats;
mod output;
mod schema;
mod support;
mod tables;
