//! What `Agent_OnAttach` returns, and what the JVM hands on to whoever asked it to load the agent.

/// Sampling, or about to.
pub const DONE: i32 = 0;
/// The agent is already at work in this JVM; nothing was changed.
pub const ALREADY_LOADED: i32 = 201;
/// The options are wrong; the target's standard error says how.
pub const BAD_OPTIONS: i32 = 202;
/// Another agent samples allocations in this JVM (JVMTI error 98).
pub const OTHER_SAMPLER: i32 = 203;
/// The JVM lacks what the agent needs, or setting up failed; its standard error says why.
pub const FAILED: i32 = 204;
