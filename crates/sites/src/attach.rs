//! The agent's options, and what `Agent_OnAttach` returns, which the JVM hands on to the process that asked it to load
//! the agent.

/// In place of options: the agent is to stop sampling.
pub const DETACH: &str = "detach:";
/// Before options: an agent that samples already is to sample by these from now on.
pub const CHANGE: &str = "change:";

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
/// The heap has no room for what the agent needs; nothing was changed, and it can be tried again.
pub const HEAP_FULL: i32 = 205;
/// The heap is shared memory, of which a forked child has no copy.
pub const SHARED_HEAP: i32 = 206;
/// There is not enough memory for a forked child.
pub const NO_ROOM: i32 = 207;
/// There is no space for the snapshot's file.
pub const NO_SPACE: i32 = 208;

/// How options begin that ask for a snapshot by a forked child; the rest is the file.
pub const SNAPSHOT: &str = "snapshot=";
/// As [`SNAPSHOT`], for one that goes through a pipe ([`crate::piped`]); the rest is the token.
pub const SNAPSHOT_PIPE: &str = "snapshot-pipe=";

/// The agent sampled already, and samples by the new options now.
pub const CHANGED: i32 = 209;
/// The agent has stopped sampling.
pub const DETACHED: i32 = 210;
/// The agent was not sampling.
pub const DETACHED_BEFORE: i32 = 211;
/// The JVM is still starting; nothing was changed, and it can be tried again.
pub const NOT_UP: i32 = 212;

/// How options begin that have allocations counted; the rest is [`COUNT_KEYS`].
pub const COUNT: &str = "count:";
/// How options begin that end the count; the rest is a token, which is part of the name of a file in memory with
/// [`crate::Counts`] ([`count_sign`]).
pub const COUNT_END: &str = "count-end:";
/// Allocations are being counted already.
pub const COUNTS_ALREADY: i32 = 213;
/// No allocations are being counted.
pub const COUNTS_NOT: i32 = 214;
/// A debugger is attached, so no class is changed. A count that was to end has ended; its counters are taken out when the debugger has gone.
pub const DEBUGGED: i32 = 215;
/// The JVM is older than JDK 11, so it has no JVMTI of version 11; nothing was changed.
pub const TOO_OLD: i32 = 216;
/// The keys of what goes with [`COUNT`], as in `seconds=30,jdk=on`: how long at most, whether in classes of the JDK's too, and regular
/// expressions for the names of classes.
pub const COUNT_KEYS: [&str; 4] = ["seconds", "jdk", "include", "exclude"];

/// The name of the file in memory that holds what was counted.
#[must_use]
pub fn count_sign(token: &str) -> String {
    format!("heapdiff-count-{token}")
}

/// Every key of the agent's options, with what it means and its default.
pub const KEYS: &[(&str, &str)] = &[
    (
        "interval",
        "mean bytes between samples, such as 512k; 0: every allocation (512k)",
    ),
    ("depth", "the most frames of a stack, 1 to 1024 (64)"),
    (
        "include",
        "regular expression: only objects of, or allocated by, classes it finds; comma: \\,",
    ),
    (
        "exclude",
        "regular expression: no objects of, or allocated by, classes that it finds",
    ),
    ("strategy", "bytes, count, time or class (bytes)"),
    (
        "rate",
        "mean allocations between samples, for strategy=count and class (1000)",
    ),
    (
        "ms",
        "mean milliseconds between samples, for strategy=time (10)",
    ),
    ("delay", "seconds before the first sample (0)"),
    (
        "verbosity",
        "what frames tell: method, class or line (line)",
    ),
    (
        "embed",
        "on or off: whether dumps hold the samples; off goes with trace (on)",
    ),
    (
        "max_samples",
        "the most live samples; the interval doubles when they are reached (262144)",
    ),
    (
        "follow",
        "generational ZGC: bytes between samples followed until collected (8 a second)",
    ),
    (
        "garbage",
        "collected samples remembered: so many recent ones and as many chosen at random (512)",
    ),
    (
        "classes",
        "on or off: whether class definitions are recorded with their stack (on)",
    ),
    (
        "reaper",
        "how collected samples are found: auto, scan (JDK 16 and later) or queue (auto)",
    ),
    (
        "trace",
        "file in which to record allocation and collection over time; %p in its name is the process",
    ),
    ("tick", "how often the trace is written, such as 1s (1s)"),
    (
        "retain",
        "how much of the past the trace keeps, such as 24h or 7d (7d)",
    ),
    (
        "trace_max",
        "the most bytes of the trace, such as 256m; the oldest goes first (256m)",
    ),
    (
        "count",
        "every allocation counted by site: on, jdk (in the JDK's classes, too) or off (off)",
    ),
    (
        "usage",
        "how large collections of the JDK's are used: on or off (off)",
    ),
    ("service", "a name for this program in the trace"),
];
