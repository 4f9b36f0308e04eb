//! The native agent. Nothing is here yet: the sampler is the next piece of work, and this crate
//! holds its place in the workspace.
