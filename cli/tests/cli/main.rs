//! The program as a user meets it.

mod commands;
mod output;
mod schema;
mod support;
