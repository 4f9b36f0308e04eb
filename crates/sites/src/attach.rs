//! The agent's options, and what `Agent_OnAttach` returns, which the JVM hands on to the process that asked it to load
//! the agent.

/// In place of options: the agent is to stop sampling.
pub const DETACH: &str = "detach:";
/// Before options: an agent that samples already is to sample by these from now on.
pub const CHANGE: &str = "change:";
/// Before options: an agent that samples already also uses these. It keeps its options with other keys.
pub const ADD: &str = "add:";

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
/// How options begin that ask how many classes a count would change; the rest is [`COUNT_KEYS`]. The agent returns
/// [`CLASSES`] plus that number.
pub const COUNT_CLASSES: &str = "count-classes:";
/// The answer for no class.
pub const CLASSES: i32 = 1 << 24;
/// The count was ended before all classes had counters ([`Counting`]).
pub const COUNT_ENDED: i32 = 217;
/// Only classes in sampled stacks were to be counted, and the agent does not sample.
pub const NO_SAMPLES: i32 = 218;
/// Allocations are being counted already.
pub const COUNTS_ALREADY: i32 = 213;
/// No allocations are being counted.
pub const COUNTS_NOT: i32 = 214;
/// A debugger is attached, so no class is changed. A count that was to end has ended; its counters are taken out when the debugger has gone.
pub const DEBUGGED: i32 = 215;
/// The JVM is older than JDK 11, so it has no JVMTI of version 11; nothing was changed.
pub const TOO_OLD: i32 = 216;
/// Asks the agent for its state. It returns [`STATE`] plus the sum of [`SAMPLES`], [`COUNTS`] and [`TRACES`].
pub const STATUS: &str = "status:";
/// The state of an agent that does nothing.
pub const STATE: i32 = 256;
/// The agent samples allocations.
pub const SAMPLES: i32 = 1;
/// The agent counts all allocations.
pub const COUNTS: i32 = 2;
/// The agent writes a trace.
pub const TRACES: i32 = 4;
/// The keys of what goes with [`COUNT`], as in `seconds=30,jdk=on`: how long at most, whether in classes of the JDK's too, regular
/// expressions for the names of classes, whether only in classes of sampled stacks, and the token of a [`Counting`].
pub const COUNT_KEYS: [&str; 6] = ["seconds", "jdk", "include", "exclude", "sampled", "token"];

/// The name of the file in memory that holds a [`Counting`].
#[must_use]
pub fn counting_sign(token: &str) -> String {
    format!("heapdiff-counting-{token}")
}

/// How far the agent has come with a count. If the file is emptied while counters are put into classes, the agent ends the count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counting {
    /// Classes that were changed.
    pub done: u64,
    /// Classes to change.
    pub all: u64,
    /// Grows while the agent works or rests.
    pub beats: u64,
}

impl Counting {
    /// Bytes of a file.
    pub const LEN: usize = 24;

    /// Returns the bytes of the file.
    #[must_use]
    pub fn encode(self) -> [u8; Self::LEN] {
        let numbers = [self.done, self.all, self.beats].map(u64::to_le_bytes);
        let mut bytes = [0; Self::LEN];
        bytes.copy_from_slice(numbers.as_flattened());
        bytes
    }

    /// Reads the bytes of the file.
    #[must_use]
    pub fn decode(bytes: [u8; Self::LEN]) -> Self {
        let (numbers, _) = bytes.as_chunks();
        let number = |at: usize| {
            numbers
                .get(at)
                .map_or(0, |bytes| u64::from_le_bytes(*bytes))
        };
        Self {
            done: number(0),
            all: number(1),
            beats: number(2),
        }
    }
}

/// The name of the file in memory that holds what was counted.
#[must_use]
pub fn count_sign(token: &str) -> String {
    format!("heapdiff-count-{token}")
}

/// Every key of the agent's options, with what it means and its default.
pub const KEYS: &[(&str, &str)] = &[
    (
        "interval",
        "mean number of bytes per sample; 0 samples every allocation [default: 512k]",
    ),
    (
        "depth",
        "maximum number of frames per stack, 1 to 1024 [default: 64]",
    ),
    (
        "include",
        "regex: sample only if the class of the object or of the code matches (write , as \\,)",
    ),
    (
        "exclude",
        "regex: do not sample if the class of the object or of the code matches (write , as \\,)",
    ),
    (
        "strategy",
        "what sampling is based on: bytes, count, time or class [default: bytes]",
    ),
    (
        "rate",
        "mean number of allocations per sample, for strategy=count or class [default: 1000]",
    ),
    (
        "ms",
        "mean number of milliseconds per sample, for strategy=time [default: 10]",
    ),
    (
        "delay",
        "seconds to wait before the first sample [default: 0]",
    ),
    (
        "verbosity",
        "detail of stack frames: method, class or line [default: line]",
    ),
    (
        "embed",
        "on or off: also store samples in heap dumps; off only with trace=FILE [default: on]",
    ),
    (
        "max_samples",
        "maximum number of live samples; at this number the interval doubles [default: 262144]",
    ),
    (
        "follow",
        "with generational ZGC: track one sample per this many bytes [default: 8 per second]",
    ),
    (
        "garbage",
        "samples of freed objects to keep: this many recent and this many random [default: 512]",
    ),
    (
        "classes",
        "advanced: record class definitions with their stack, on or off [default: on]",
    ),
    (
        "reaper",
        "advanced: how to detect freed objects: auto, scan (JDK 16+) or queue [default: auto]",
    ),
    (
        "trace",
        "file to record allocation and GC over time; %p in its name becomes the process id",
    ),
    ("tick", "time between two writes to the trace [default: 1s]"),
    (
        "retain",
        "how much history the trace keeps, such as 24h [default: 7d]",
    ),
    (
        "trace_max",
        "maximum size of the trace; the oldest data is deleted first [default: 256m]",
    ),
    (
        "count",
        "count each allocation by line of code: on, jdk (JDK classes too) or off [default: off]",
    ),
    (
        "usage",
        "count puts, removals and reads of large JDK collections: on or off [default: off]",
    ),
    ("service", "name of this program, recorded in the trace"),
];
