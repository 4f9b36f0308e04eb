//! Checks that a recording and heap dumps are of one JVM.
//!
//! A `jdk.HeapDump` event has the size of the dump's file and the time at which the JVM wrote it. Both together identify
//! a dump. Recordings without such events (async-profiler, JDK 16 and earlier) are matched by time, JVM version and
//! command.

use heapdiff_jfr::HeapDump;
use heapdiff_units::grouped;

use crate::evidence::{Evidence, NS_PER_MS};

/// Maximum difference of the clocks of an event and of a dump's header, in milliseconds.
const SLACK_MS: i64 = 1000;

/// The properties of a heap dump by which a recording is matched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dump {
    /// The file as the user named it.
    pub path: String,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// For a gzipped file, the decompressed size modulo 2^32, from the last four bytes of the file.
    pub unpacked: Option<u32>,
    /// When the dump was taken, in milliseconds since 1970.
    pub taken_ms: u64,
    /// The system property `java.vm.version`.
    pub version: Option<String>,
    /// The system property `sun.java.command`.
    pub command: Option<String>,
}

/// How a recording was matched with dumps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// By the event of a dump.
    DumpEvent,
    /// By time, JVM version and command.
    Time,
    /// Not at all: the file has neither times nor the name of a JVM.
    Unknown,
}

impl Fit {
    /// Returns the word for JSON reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::DumpEvent => "dump-event",
            Self::Time => "time",
            Self::Unknown => "none",
        }
    }
}

/// The reason why a recording does not belong to the dumps.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages document the variants")]
pub enum Refusal {
    #[error("no dumps were given")]
    NoDumps,
    #[error("the recording {} {apart_s} s {} the dump {path} was taken", if *.is_before { "ended" } else { "began" }, if *.is_before { "before" } else { "after" })]
    Apart {
        path: String,
        apart_s: String,
        is_before: bool,
    },
    #[error("the recorded JVM started after the dump {path} was taken")]
    StartedLater { path: String },
    #[error("the JVMs have different versions: {recorded} in the recording, {dumped} in the dump")]
    Version { recorded: String, dumped: String },
    #[error(
        "the JVMs ran different commands: `{recorded}` in the recording, `{dumped}` in the dump"
    )]
    Command { recorded: String, dumped: String },
    #[error("the recorded JVM wrote {}, but none with the size and the time of {path}", heapdiff_units::counted(*.count, "heap dump"))]
    OtherDumps { count: u64, path: String },
    #[error(
        "neither the JVM version nor the command is known, so nothing shows that recording and dump are of one JVM"
    )]
    Unknown,
}

/// Matches a recording with dumps of one JVM, oldest first.
///
/// # Errors
/// Returns the reason why the recording is of another JVM, or of another time.
pub fn fit(evidence: &Evidence, dumps: &[Dump]) -> Result<Fit, Refusal> {
    let Some((from, to)) = evidence.span_ns else {
        return Ok(Fit::Unknown);
    };
    let [first, .., last] = dumps else {
        return match dumps {
            [only] => fit(evidence, &[only.clone(), only.clone()]),
            _ => Err(Refusal::NoDumps),
        };
    };
    let (from_ms, to_ms) = (from / NS_PER_MS - SLACK_MS, to / NS_PER_MS + SLACK_MS);
    let during: Vec<&Dump> = dumps
        .iter()
        .filter(|dump| (from_ms..=to_ms).contains(&taken(dump)))
        .collect();
    let is_own = |dump: &&&Dump| evidence.heap_dumps.iter().any(|e| is_of(e, dump));
    // The event of the last dump during the recording is enough: it identifies the JVM.
    if during.last().filter(is_own).is_some() {
        return Ok(Fit::DumpEvent);
    }
    let Some(latest) = during.last() else {
        let is_before = to_ms < taken(first);
        let (path, apart) = if is_before {
            (&first.path, taken(first) - to_ms)
        } else {
            (&last.path, from_ms - taken(last))
        };
        return Err(Refusal::Apart {
            path: path.clone(),
            apart_s: grouped((apart.unsigned_abs() / 1000).max(1)),
            is_before,
        });
    };
    if !evidence.heap_dumps.is_empty() {
        return Err(Refusal::OtherDumps {
            count: evidence.heap_dumps.len() as u64,
            path: latest.path.clone(),
        });
    }
    by_time(evidence, first, latest)
}

fn taken(dump: &Dump) -> i64 {
    i64::try_from(dump.taken_ms).unwrap_or(i64::MAX)
}

/// True if an event describes this dump.
fn is_of(event: &HeapDump, dump: &Dump) -> bool {
    let packed = dump.unpacked.map(u64::from);
    let has_size = event.bytes == dump.bytes || packed == Some(event.bytes & u64::from(u32::MAX));
    let from = event.from_ns / NS_PER_MS - SLACK_MS;
    let to = event.to_ns / NS_PER_MS + SLACK_MS;
    has_size && (from..=to).contains(&taken(dump))
}

/// Matches by JVM version and command. The time has been checked before.
fn by_time(evidence: &Evidence, first: &Dump, last: &Dump) -> Result<Fit, Refusal> {
    let jvm = evidence.jvm.as_ref().ok_or(Refusal::Unknown)?;
    if jvm.start_ms > 0 && jvm.start_ms > taken(first) {
        return Err(Refusal::StartedLater {
            path: first.path.clone(),
        });
    }
    let mut known = false;
    if let Some(version) = &last.version {
        if !jvm.version.is_empty() && !jvm.version.contains(version.as_str()) {
            return Err(Refusal::Version {
                recorded: jvm.version.clone(),
                dumped: version.clone(),
            });
        }
        known |= !jvm.version.is_empty();
    }
    if let Some(command) = &last.command {
        if !jvm.command.is_empty() && jvm.command.trim() != command.trim() {
            return Err(Refusal::Command {
                recorded: jvm.command.clone(),
                dumped: command.clone(),
            });
        }
        known |= !jvm.command.is_empty();
    }
    if known {
        Ok(Fit::Time)
    } else {
        Err(Refusal::Unknown)
    }
}
