//! Dominators, sizes and paths beside slow and simple ways of finding them.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod bare;
mod both;
mod brute;
mod dominators;
mod linked;
mod naive;
mod paths;
mod sets;
mod stream;
mod visit;
mod world;
