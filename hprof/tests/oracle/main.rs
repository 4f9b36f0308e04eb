//! Dominators, sizes and paths beside slow and simple ways of finding them.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod brute;
mod dominators;
mod naive;
mod world;
