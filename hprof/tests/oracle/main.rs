//! Compares dominators, sizes and paths with slow and simple algorithms.

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
