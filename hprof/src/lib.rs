//! Reads one heap dump.
