//! Synthetic dumps, leak scenarios and real JVMs for the tests.

pub mod writer;
