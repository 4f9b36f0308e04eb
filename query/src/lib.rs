//! SQL over a heap dump.
