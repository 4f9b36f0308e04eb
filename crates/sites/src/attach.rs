//! The agent's options, and the return codes of `Agent_OnAttach`. The process that attaches to the JVM receives the
//! return code.

/// A request to stop sampling. It is sent instead of the agent's options.
pub const DETACH: &str = "detach:";
/// Prefix of a request with options. An agent that is already sampling replaces all its options by the options of the
/// request.
pub const CHANGE: &str = "change:";
/// Prefix of a request with options. An agent that is already sampling changes only the options that the request
/// contains.
pub const ADD: &str = "add:";

/// Success: the agent is sampling, or about to start.
pub const DONE: i32 = 0;
/// The agent is already active in this JVM; nothing was changed.
pub const ALREADY_LOADED: i32 = 201;
/// The options are wrong. The JVM's standard error has the reason.
pub const BAD_OPTIONS: i32 = 202;
/// Another agent is sampling allocations in this JVM (JVMTI error 98).
pub const OTHER_SAMPLER: i32 = 203;
/// The JVM lacks a function that the agent needs, or the setup failed. The JVM's standard error has the reason.
pub const FAILED: i32 = 204;
/// The Java heap is too full for the agent's objects. Nothing was changed; try again later.
pub const HEAP_FULL: i32 = 205;
/// No snapshot can be taken: the heap is shared memory, so a forked child would not have its own copy of the heap.
pub const SHARED_HEAP: i32 = 206;
/// There is too little memory for a forked child.
pub const NO_ROOM: i32 = 207;
/// There is no disk space for the snapshot's file.
pub const NO_SPACE: i32 = 208;

/// Prefix of the request for a snapshot that a forked child of the JVM writes to a file. The path of the file follows.
pub const SNAPSHOT: &str = "snapshot=";
/// Prefix of the request for a snapshot through a pipe. A token follows the prefix. A forked child of the JVM writes
/// the snapshot to the pipe ([`crate::piped`]).
pub const SNAPSHOT_PIPE: &str = "snapshot-pipe=";

/// The agent was already sampling, and uses the new options now.
pub const CHANGED: i32 = 209;
/// The agent has stopped sampling.
pub const DETACHED: i32 = 210;
/// The agent was not sampling.
pub const DETACHED_BEFORE: i32 = 211;
/// The JVM is still starting. Nothing was changed; try again later.
pub const NOT_UP: i32 = 212;

/// Prefix of a request to count allocations. After the prefix, the request has options with [`COUNT_KEYS`].
pub const COUNT: &str = "count:";
/// Prefix of a request to end a count. After the prefix, the request has a token. The agent returns the
/// [`crate::Counts`] in a file in memory whose name contains the token ([`counts_file_name`]).
pub const COUNT_END: &str = "count-end:";
/// Prefix of a request for the number of classes that the agent would change if counting started now. After the prefix,
/// the request has options with [`COUNT_KEYS`]. The agent returns the sum of [`CLASSES`] and the number of classes.
pub const COUNT_CLASSES: &str = "count-classes:";
/// The return code of [`COUNT_CLASSES`] for zero classes. Each class adds 1.
pub const CLASSES: i32 = 1 << 24;
/// The count was ended before the agent had inserted counters into all classes ([`Counting`]).
pub const COUNT_ENDED: i32 = 217;
/// The request was to count only classes in sampled stacks, but the agent is not sampling.
pub const NO_SAMPLES: i32 = 218;
/// A count is already active.
pub const COUNTS_ALREADY: i32 = 213;
/// No count is active.
pub const COUNTS_NOT: i32 = 214;
/// A debugger is attached, so the agent cannot change classes. If the request was to end a count, the count has ended,
/// but its counters remain. The agent removes them once the debugger has detached.
pub const DEBUGGED: i32 = 215;
/// The JVM is older than JDK 11 and lacks JVMTI 11; nothing was changed.
pub const TOO_OLD: i32 = 216;
/// A request for the agent's state. The agent returns [`STATE`], plus each of [`SAMPLES`], [`COUNTS`] and [`TRACES`]
/// that applies.
pub const STATUS: &str = "status:";
/// The return code of an inactive agent.
pub const STATE: i32 = 256;
/// The agent is sampling allocations.
pub const SAMPLES: i32 = 1;
/// The agent is counting all allocations.
pub const COUNTS: i32 = 2;
/// The agent is writing a trace.
pub const TRACES: i32 = 4;
/// Keys of the options of [`COUNT`], as in `seconds=30,jdk=on`:
///
/// - `seconds` is the maximum duration.
/// - `jdk` is `on` to count JDK classes, too.
/// - `include` and `exclude` are regular expressions for class names.
/// - `sampled` is `on` to count only classes in sampled stacks.
/// - `token` is the token of a [`Counting`].
pub const COUNT_KEYS: [&str; 6] = ["seconds", "jdk", "include", "exclude", "sampled", "token"];

/// Returns the name of the file in memory with the progress of a count ([`Counting`]). The agent writes the progress,
/// and the requester of the count reads it.
#[must_use]
pub fn counting_file_name(token: &str) -> String {
    format!("heapdiff-counting-{token}")
}

/// The agent's progress while it inserts or removes the counters of a count, as stored in a file in memory. If the
/// requester empties this file, the agent ends the count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counting {
    /// Number of classes that the agent has changed.
    pub done: u64,
    /// Number of classes to change.
    pub all: u64,
    /// A heartbeat: a number that increases while the agent is alive, even if it is not changing classes.
    pub beats: u64,
}

impl Counting {
    /// Size of the file in memory, in bytes.
    pub const LEN: usize = 24;

    /// Returns the content of the file in memory.
    #[must_use]
    pub fn encode(self) -> [u8; Self::LEN] {
        let numbers = [self.done, self.all, self.beats].map(u64::to_le_bytes);
        let mut bytes = [0; Self::LEN];
        bytes.copy_from_slice(numbers.as_flattened());
        bytes
    }

    /// Reads the content of the file in memory.
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

/// Returns the name of the file in memory that holds the [`crate::Counts`].
#[must_use]
pub fn counts_file_name(token: &str) -> String {
    format!("heapdiff-count-{token}")
}

/// All keys of the agent's options, each with its meaning and default.
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
    (
        "log",
        "least important messages on standard error: error, warn, info or debug [default: info]",
    ),
    (
        "guard",
        "dump at this share of the heap after a full GC, such as 90%, or at OutOfMemoryError",
    ),
    (
        "guard-container",
        "dump at this share of the container's memory, such as 90%",
    ),
    (
        "guard-to",
        "folder for the guard's dumps and trace [default: the working folder]",
    ),
    (
        "guard-disk",
        "maximum size of the guard's dumps; the oldest goes first [default: twice the heap]",
    ),
    (
        "guard-pipe",
        "named pipe for the guard's dumps, instead of files",
    ),
];
