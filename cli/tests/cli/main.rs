//! The program as a user meets it.

mod commands;
mod documents;
mod formats;
mod index;
mod links;
mod output;
mod schema;
mod support;
mod tables;
mod trace;
mod workflows;
