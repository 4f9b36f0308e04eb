//! Checks that a recording and heap dumps are of one JVM.
//!
//! A `jdk.HeapDump` event has the size of the dump's file and the time at which the JVM wrote it. Size and time
//! together identify a dump. Recordings without such events (async-profiler, JDK 16 and earlier) are matched by time,
//! JVM version and command.

use heapdiff_jfr::HeapDump;
use heapdiff_units::grouped;

use crate::evidence::{Evidence, NS_PER_MS};

/// Maximum difference between the times of a recording and the time in a dump's header, in milliseconds.
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
    /// The system property `java.vm.version`. `None` if unknown.
    pub version: Option<String>,
    /// The system property `sun.java.command`. `None` if unknown.
    pub command: Option<String>,
    /// The [hash](hprof::bytes::hash) of the command, if `command` is `None`. A summary file contains only this hash of
    /// the command.
    pub command_hash: Option<u64>,
}

/// How a recording was matched with dumps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// By the size and time in a `jdk.HeapDump` event.
    DumpEvent,
    /// By time, and by at least one of JVM version and command.
    Time {
        /// True if the JVM versions are known, and are equal.
        version: bool,
        /// True if the commands are known, and are equal.
        command: bool,
    },
    /// The recording was not matched, because the file has neither times nor the name of a JVM.
    Unknown,
}

impl Fit {
    /// Returns the name of this variant in JSON reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::DumpEvent => "dump-event",
            Self::Time { .. } => "time",
            Self::Unknown => "none",
        }
    }

    /// Returns a sentence about what was compared, if the recording was matched by time.
    #[must_use]
    pub const fn note(self) -> Option<&'static str> {
        match self {
            Self::Time { version, command } => Some(match (version, command) {
                (true, true) => "matched by time, JVM version and command",
                (true, false) => "matched by time and JVM version; the command is unknown",
                (false, true) => "matched by time and command; the JVM version is unknown",
                (false, false) => "matched by time; JVM version and command are unknown",
            }),
            _ => None,
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
    #[error("the recorded JVM ran `{recorded}`, the JVM of {path} ran another command")]
    OtherCommand { recorded: String, path: String },
    #[error("the recorded JVM wrote {}, but none with the size and the time of {path}", heapdiff_units::counted(*.count, "heap dump"))]
    OtherDumps { count: u64, path: String },
    #[error(
        "{path} has another size than the heap dump that the recorded JVM wrote at this time ({recorded} bytes); give the original dump, not a redacted or repaired copy"
    )]
    OtherSize { path: String, recorded: String },
    #[error(
        "neither the JVM version nor the command is known, so nothing shows that recording and dump are of one JVM"
    )]
    Unknown,
}

/// Matches a recording with dumps of one JVM, oldest first.
///
/// The `jdk.HeapDump` event of the last dump that was taken during the recording identifies the JVM. If the recording
/// ran between two dumps, or has no such events, JVM version and command are compared.
///
/// # Errors
/// Returns the reason why the recording is of another JVM, or of another time.
pub fn fit(evidence: &Evidence, dumps: &[Dump]) -> Result<Fit, Refusal> {
    let Some((from, to)) = evidence.span_ns else {
        return Ok(Fit::Unknown);
    };
    let (Some(first), Some(last)) = (dumps.first(), dumps.last()) else {
        return Err(Refusal::NoDumps);
    };
    let (from_ms, to_ms) = (from / NS_PER_MS - SLACK_MS, to / NS_PER_MS + SLACK_MS);
    let apart = |dump: &Dump, apart_ms: i64, is_before| Refusal::Apart {
        path: dump.path.clone(),
        apart_s: grouped((apart_ms.unsigned_abs() / 1000).max(1)),
        is_before,
    };
    if to_ms < taken(first) {
        return Err(apart(first, taken(first) - to_ms, true));
    }
    if from_ms > taken(last) {
        return Err(apart(last, from_ms - taken(last), false));
    }
    if !evidence.heap_dumps.is_empty() {
        for dump in dumps.iter().rev() {
            // If a dump was taken outside of the recording's time, the recording may lack the event of the dump. This
            // is not an error.
            let is_outside = from / NS_PER_MS > taken(dump) || to / NS_PER_MS < taken(dump);
            match by_event(&evidence.heap_dumps, dump) {
                Ok(fit) => return Ok(fit),
                Err(_) if is_outside => {}
                Err(refusal) => return Err(refusal),
            }
        }
    }
    by_identity(evidence, first, last)
}

fn taken(dump: &Dump) -> i64 {
    i64::try_from(dump.taken_ms).unwrap_or(i64::MAX)
}

/// Finds the `jdk.HeapDump` event with the dump's time and file size.
fn by_event(events: &[HeapDump], dump: &Dump) -> Result<Fit, Refusal> {
    let has_time = |event: &&HeapDump| {
        let from = event.from_ns / NS_PER_MS - SLACK_MS;
        let to = event.to_ns / NS_PER_MS + SLACK_MS;
        (from..=to).contains(&taken(dump))
    };
    let packed = dump.unpacked.map(u64::from);
    let has_size = |event: &HeapDump| {
        event.bytes == dump.bytes || packed == Some(event.bytes & u64::from(u32::MAX))
    };
    let path = dump.path.clone();
    if events.iter().filter(has_time).any(has_size) {
        return Ok(Fit::DumpEvent);
    }
    Err(match events.iter().find(has_time) {
        Some(event) => Refusal::OtherSize {
            path,
            recorded: grouped(event.bytes),
        },
        None => Refusal::OtherDumps {
            count: events.len() as u64,
            path,
        },
    })
}

/// Matches a recording with dumps by JVM version and command. The caller has already checked the time.
fn by_identity(evidence: &Evidence, first: &Dump, last: &Dump) -> Result<Fit, Refusal> {
    let jvm = evidence.jvm.as_ref().ok_or(Refusal::Unknown)?;
    if jvm.start_ms > 0 && jvm.start_ms > taken(first) {
        return Err(Refusal::StartedLater {
            path: first.path.clone(),
        });
    }
    let recorded = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
    let version = recorded(&jvm.version).zip(last.version.clone());
    let command = recorded(&jvm.command).zip(last.command.clone());
    if let Some((recorded, dumped)) = &version
        && !has_word(recorded, dumped)
    {
        return Err(Refusal::Version {
            recorded: recorded.clone(),
            dumped: dumped.clone(),
        });
    }
    if let Some((recorded, dumped)) = &command
        && recorded != dumped.trim()
    {
        return Err(Refusal::Command {
            recorded: recorded.clone(),
            dumped: dumped.clone(),
        });
    }
    let hashes = recorded(&jvm.command).zip(last.command_hash);
    if let Some((recorded, hash)) = &hashes
        && hprof::bytes::hash(recorded.as_bytes()) != *hash
    {
        return Err(Refusal::OtherCommand {
            recorded: recorded.clone(),
            path: last.path.clone(),
        });
    }
    match (version.is_some(), command.is_some() || hashes.is_some()) {
        (false, false) => Err(Refusal::Unknown),
        (version, command) => Ok(Fit::Time { version, command }),
    }
}

/// True if a JVM's description, such as `OpenJDK 64-Bit Server VM (17.0.15+6) for linux`, names this version.
fn has_word(description: &str, version: &str) -> bool {
    let mut words = description.split([' ', '(', ')', ',']);
    words.any(|word| word == version.trim())
}

#[cfg(test)]
mod tests {
    use heapdiff_jfr::Jvm;

    use super::*;

    const S: i64 = 1_000_000_000;

    fn evidence() -> Evidence {
        Evidence {
            span_ns: Some((100 * S, 200 * S)),
            jvm: Some(Jvm {
                version: "OpenJDK 64-Bit Server VM (17.0.15+6) for linux".to_owned(),
                command: "com.acme.Main leak".to_owned(),
                start_ms: 99_000,
                ..Jvm::default()
            }),
            ..Evidence::default()
        }
    }

    fn dump(taken_ms: u64) -> Dump {
        Dump {
            path: format!("{taken_ms}.hprof"),
            bytes: 5000,
            taken_ms,
            version: Some("17.0.15+6".to_owned()),
            command: Some("com.acme.Main leak".to_owned()),
            ..Dump::default()
        }
    }

    fn event(second: i64, bytes: u64) -> HeapDump {
        HeapDump {
            from_ns: second * S,
            to_ns: second * S + S / 2,
            bytes,
            destination: String::new(),
        }
    }

    #[test]
    fn an_event_with_size_and_time_identifies_a_dump() {
        let mut evidence = evidence();
        evidence.heap_dumps = vec![event(150, 5000), event(160, 7)];
        assert_eq!(fit(&evidence, &[dump(150_100)]), Ok(Fit::DumpEvent));
        assert_eq!(
            fit(&evidence, &[dump(20_000), dump(150_100)]),
            Ok(Fit::DumpEvent)
        );
        let refused = fit(&evidence, &[dump(153_000)]).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "the recorded JVM wrote 2 heap dumps, but none with the size and the time of 153000.hprof"
        );
        let packed = Dump {
            bytes: 900,
            unpacked: Some(5000),
            ..dump(150_100)
        };
        assert_eq!(fit(&evidence, &[packed]), Ok(Fit::DumpEvent));
    }

    #[test]
    fn without_events_time_version_and_command_decide() {
        let evidence = evidence();
        let both = Fit::Time {
            version: true,
            command: true,
        };
        assert_eq!(fit(&evidence, &[dump(150_000)]), Ok(both));
        let unnamed = Dump {
            command: None,
            ..dump(150_000)
        };
        let fit_of = fit(&evidence, &[unnamed]).unwrap();
        assert_eq!(
            fit_of.note(),
            Some("matched by time and JVM version; the command is unknown")
        );
        let refused = |dump: Dump| fit(&evidence, &[dump]).unwrap_err().to_string();
        assert_eq!(
            refused(dump(20_000)),
            "the recording began 79 s after the dump 20000.hprof was taken"
        );
        assert_eq!(
            refused(dump(260_000)),
            "the recording ended 59 s before the dump 260000.hprof was taken"
        );
        let other = Dump {
            version: Some("25.0.1+8".to_owned()),
            ..dump(150_000)
        };
        assert!(refused(other).starts_with("the JVMs have different versions: OpenJDK"));
        // The version must match a whole word of the description, not a part of a word.
        let other = Dump {
            version: Some("7.0.15+6".to_owned()),
            ..dump(150_000)
        };
        assert!(refused(other).starts_with("the JVMs have different versions: OpenJDK"));
        let other = Dump {
            command: Some("com.acme.Other".to_owned()),
            ..dump(150_000)
        };
        assert!(
            refused(other).starts_with("the JVMs ran different commands: `com.acme.Main leak`")
        );
        let unknown = Dump {
            version: None,
            command: None,
            ..dump(150_000)
        };
        assert!(refused(unknown).starts_with("neither the JVM version nor the command is known"));
        let refused = fit(&evidence, &[dump(50_000), dump(150_000)]).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "the recorded JVM started after the dump 50000.hprof was taken"
        );
    }

    #[test]
    fn a_recording_between_two_dumps_is_matched_by_version_and_command() {
        let mut evidence = evidence();
        // During the recording, the JVM wrote a third dump. The user did not give this dump.
        evidence.heap_dumps = vec![event(150, 7)];
        evidence.span_ns = Some((102 * S, 200 * S));
        let saved_before = [dump(99_500), dump(200_500)];
        assert!(matches!(
            fit(&evidence, &saved_before),
            Ok(Fit::Time { .. })
        ));
        let dumps = [dump(99_500), dump(205_000)];
        assert!(matches!(fit(&evidence, &dumps), Ok(Fit::Time { .. })));
        let mut other = dumps;
        other[1].command = Some("com.acme.Other".to_owned());
        assert!(matches!(
            fit(&evidence, &other),
            Err(Refusal::Command { .. })
        ));
    }

    #[test]
    fn the_hash_of_a_summary_stands_for_the_command() {
        let with_hash = |command: &str| Dump {
            command: None,
            command_hash: Some(hprof::bytes::hash(command.as_bytes())),
            ..dump(150_000)
        };
        let fitting = fit(&evidence(), &[with_hash("com.acme.Main leak")]);
        assert!(matches!(fitting, Ok(Fit::Time { command: true, .. })));
        let refused = fit(&evidence(), &[with_hash("com.acme.Other")]).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "the recorded JVM ran `com.acme.Main leak`, the JVM of 150000.hprof ran another command"
        );
    }

    #[test]
    fn a_changed_copy_of_a_dump_is_refused_with_both_sizes() {
        let mut evidence = evidence();
        evidence.heap_dumps = vec![event(150, 6000)];
        assert_eq!(
            fit(&evidence, &[dump(150_100)]).unwrap_err().to_string(),
            "150100.hprof has another size than the heap dump that the recorded JVM wrote at this time (6,000 bytes); give \
             the original dump, not a redacted or repaired copy"
        );
    }

    #[test]
    fn profiles_have_no_identity() {
        assert_eq!(fit(&Evidence::default(), &[dump(1)]), Ok(Fit::Unknown));
        assert_eq!(fit(&evidence(), &[]), Err(Refusal::NoDumps));
    }
}
