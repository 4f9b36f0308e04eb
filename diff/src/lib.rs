//! What grew between heap dumps.
