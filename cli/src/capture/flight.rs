//! Records a JVM with Java Flight Recorder during a hunt, because plain dumps have no allocating stacks.
//!
//! heapdiff sends the commands of `jcmd` through the attach protocol. It stops only its own recording. A recording that
//! the user started is copied, and continues.

use std::io::{ErrorKind, Read};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use heapdiff_units::Span;

use super::deadline::Sign;
use super::dump::{DumpPlace, PartialDump, Written};
use super::held::token;
use super::process::unusable_failure;
use super::protocol::{Address, Answer, Jvm};
use super::request::{LONGEST_ARGUMENT, What};
use crate::failure::Result;
use crate::interrupt::Undo;
use crate::messages;
use crate::progress::{Meter, Wanted};
use crate::write::failed as failed_to_write;

/// Prefix of the names of recordings that a hunt starts. In the name, the prefix is followed by the latest time at
/// which the hunt ends, in seconds since 1970.
const OURS: &str = "heapdiff-";
/// Maximum time that the dumps of a hunt are expected to take, in seconds. With this time, a hunt computes the latest
/// time at which it ends: start, plus the wait between the dumps, plus this time. If a hunt is killed, its recording
/// continues. After that hunt's latest end, a later hunt stops the recording.
const DUMPING_S: u64 = 3600;
/// Maximum size of a recording. When it is reached, Flight Recorder drops the oldest events.
const MAX_SIZE: &str = "maxsize=250M";
/// Settings that record stacks of live objects. JVMs before JDK 17 accept only the second of these settings.
const SETTINGS: [&str; 2] = [
    "settings=default memory-leaks=stack-traces",
    "settings=profile",
];
/// Maximum time to wait until the JVM has stopped a recording. The JVM may have to finish a dump first.
const STOPPING: Duration = Duration::from_secs(2);

/// A recording of the JVM.
#[derive(Debug)]
pub(super) struct Recorder<'a> {
    jvm: &'a Jvm<'a>,
    /// The name of a recording that the hunt started, or the number of a recording that the user started.
    name: String,
    /// Stops the recording; `None` if the user started it.
    stop: Option<Undo>,
}

impl<'a> Recorder<'a> {
    /// Starts a recording. If the JVM already has a recording with stacks of live objects, uses that one. Returns the
    /// reason if the JVM cannot record. Fails if the JVM has ended or does not answer.
    pub(super) fn start(
        jvm: &'a Jvm<'a>,
        wait: Span,
        wanted: Wanted,
    ) -> Result<std::result::Result<Self, String>> {
        let process = jvm.process;
        let running = command(jvm, "JFR.check")?.text;
        for recording in recordings(&running) {
            if let Some(until) = recording.until() {
                if until < now_s() {
                    command(jvm, &format!("JFR.stop name={}", recording.id))?;
                }
                continue;
            }
            let details = format!("JFR.check name={} verbose=true", recording.id);
            if recording.is_lasting && has_stacks(&command(jvm, &details)?.text) {
                if !wanted.quiet {
                    messages::print_done(&format!(
                        "{process}: the hunt uses the running recording {}, which has the stacks of live objects, and starts no other",
                        recording.name
                    ));
                }
                return Ok(Ok(Self {
                    jvm,
                    name: recording.id.to_owned(),
                    stop: None,
                }));
            }
        }
        let until = now_s()
            .saturating_add(wait.0.as_secs())
            .saturating_add(DUMPING_S);
        let name = format!("{OURS}{until}-{}", token());
        let mut why = String::new();
        for settings in SETTINGS {
            let start = format!("JFR.start name={name} {settings} {MAX_SIZE}");
            let (address, stopped) = (jvm.address(), name.clone());
            let who = process.to_string();
            let undo = move || stop(&address, &stopped, &who);
            let begin = || jvm.address().send("jcmd", [start.as_bytes(), b"", b""]);
            let (stop, stream) = Undo::new(undo, begin).map_err(|e| jvm.broken(&e))?;
            let answer = jvm.answer(stream, || alive(jvm))?;
            if answer.text.contains("Started recording") {
                return Ok(Ok(Self {
                    jvm,
                    name,
                    stop: Some(stop),
                }));
            }
            why = answer.line();
            drop(stop);
        }
        Ok(Err(why))
    }

    /// Saves the recording to `file`, and stops the recording if the hunt started it. Fails if the JVM cannot save it.
    pub(super) fn finish(self, file: &Path, wanted: Wanted) -> Result<()> {
        self.jvm.restart();
        let place = DumpPlace::new(file, false)?;
        let meter = Meter::new(wanted, file);
        meter.begin_unbounded_phase("saving the recording");
        let saved = self.save(&place, &meter);
        drop(self.stop);
        let written = saved?;
        written
            .finish_at(&place, &meter)
            .map(|_| ())
            .map_err(|e| failed_to_write(file.display(), &e))
    }

    /// Makes the JVM write the recording to a temporary file.
    fn save(&self, place: &DumpPlace, meter: &Meter) -> Result<Written> {
        let (jvm, process) = (self.jvm, self.jvm.process);
        let mut part = PartialDump::new(jvm, &place.folder)?;
        if self.dump_command(&part).is_none() {
            part = PartialDump::in_tmp(jvm)?;
        }
        loop {
            let command = self.dump_command(&part).ok_or_else(|| {
                unusable_failure(format!("{process}: the name of its /tmp is too long"))
            })?;
            let answer = jvm.execute("jcmd", [&command, b"", b""], || {
                let bytes = part.size();
                meter.set_done(bytes);
                alive(jvm).map(|nothing| {
                    if bytes > 0 {
                        Sign::Dump(bytes)
                    } else {
                        nothing
                    }
                })
            })?;
            if answer.text.contains("Dumped recording") {
                return Written::read(jvm, (part, 0), &place.file, What::default(), meter);
            }
            let why = format!("{process} did not save the recording: {}", answer.line());
            // If the JVM cannot write to the requested folder, which may be mounted read-only for the JVM, try the
            // JVM's `/tmp`.
            if part.folder.is_some() || !answer.text.contains("Could not") {
                return Err(unusable_failure(why));
            }
            part = PartialDump::in_tmp(jvm)?;
        }
    }

    /// Returns the command that saves the recording to `part`. Returns `None` if the command would be too long, or
    /// if the path has characters with a meaning for `jcmd`.
    fn dump_command(&self, part: &PartialDump) -> Option<Vec<u8>> {
        let path = str::from_utf8(&part.name_for_jvm).ok()?;
        let odd = |c: char| c.is_control() || matches!(c, '"' | '%' | '\\');
        let command = format!("JFR.dump name={} {MAX_SIZE} filename=\"{path}\"", self.name);
        (!path.contains(odd) && command.len() < LONGEST_ARGUMENT).then(|| command.into_bytes())
    }
}

fn alive(jvm: &Jvm<'_>) -> Result<Sign> {
    jvm.process.check_alive().map(|()| Sign::Nothing)
}

fn command(jvm: &Jvm<'_>, command: &str) -> Result<Answer> {
    jvm.execute("jcmd", [command.as_bytes(), b"", b""], || alive(jvm))
}

/// Stops a recording that the hunt started. Waits for the answer for at most [`STOPPING`]. If the JVM does not listen,
/// it has ended, so there is no recording to stop.
fn stop(address: &Address, name: &str, process: &str) {
    let command = format!("JFR.stop name={name}");
    let Ok(stream) = address.send("jcmd", [command.as_bytes(), b"", b""]) else {
        return;
    };
    if !is_answered(stream) {
        messages::print_done(&format!(
            "{process} has not answered yet; it stops the recording {name} after its current command"
        ));
    }
}

/// True if the JVM answers and closes the connection within [`STOPPING`]. Also true if the connection breaks.
fn is_answered(mut stream: UnixStream) -> bool {
    let start = Instant::now();
    loop {
        let left = STOPPING.saturating_sub(start.elapsed());
        if left.is_zero() || stream.set_read_timeout(Some(left)).is_err() {
            return false;
        }
        match stream.read(&mut [0; 512]) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return !matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
        }
    }
}

fn now_s() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

/// A running recording, as `JFR.check` lists it.
#[derive(Debug, PartialEq, Eq)]
struct Listed<'t> {
    id: &'t str,
    name: &'t str,
    /// True if the recording has no maximum duration, so that it does not end during the hunt.
    is_lasting: bool,
}

impl Listed<'_> {
    /// If a hunt started the recording, returns the latest time at which this hunt ends, in seconds since 1970.
    fn until(&self) -> Option<u64> {
        let (until, _) = self.name.strip_prefix(OURS)?.split_once('-')?;
        until.parse().ok()
    }
}

/// Parses the lines of running recordings, such as `Recording 1: name=mine maxsize=250.0MB (running)`.
fn recordings(text: &str) -> impl Iterator<Item = Listed<'_>> {
    text.lines().filter_map(|line| {
        let (id, rest) = line
            .trim()
            .strip_prefix("Recording ")?
            .split_once(": name=")?;
        let rest = rest.strip_suffix("(running)")?.trim_end();
        let is_id = !id.is_empty() && id.bytes().all(|b| b.is_ascii_digit());
        // The options follow the name. A name may have spaces.
        let options = [" duration=", " maxsize=", " maxage="];
        let end = options.iter().filter_map(|option| rest.find(option)).min();
        is_id.then(|| Listed {
            id,
            name: &rest[..end.unwrap_or(rest.len())],
            is_lasting: !rest.contains(" duration="),
        })
    })
}

/// True if the settings of a recording, as `JFR.check verbose=true` lists them, include stacks of live objects.
fn has_stacks(text: &str) -> bool {
    let mut lines = text
        .lines()
        .skip_while(|line| !line.contains("(jdk.OldObjectSample)"));
    let settings = lines.nth(1).unwrap_or_default();
    settings.contains("enabled=true") && settings.contains("stackTrace=true")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_recordings_are_listed() {
        let text = "4711:\nRecording 1: name=my own maxsize=250.0MB (running)\n\nRecording 2: name=short duration=30s (running)\nRecording 3: name=over (stopped)\nRecording 4: name=heapdiff-99-ab (running)\n";
        let found: Vec<_> = recordings(text).collect();
        let told: Vec<_> = found.iter().map(|r| (r.id, r.name, r.is_lasting)).collect();
        let expected = [
            ("1", "my own", true),
            ("2", "short", false),
            ("4", "heapdiff-99-ab", true),
        ];
        assert_eq!(told, expected);
        let until: Vec<_> = found.iter().map(Listed::until).collect();
        assert_eq!(until, [None, None, Some(99)]);
        assert_eq!(recordings("No available recordings.").count(), 0);
    }

    #[test]
    fn only_stacks_of_live_objects_are_enough() {
        let with = |settings: &str| {
            has_stacks(&format!(
                " A (jdk.A)\n   [stackTrace=true,enabled=true]\n Old Object Sample (jdk.OldObjectSample)\n   [{settings}]\n B (jdk.B)\n"
            ))
        };
        assert!(with("stackTrace=true,cutoff=0 ns,enabled=true"));
        assert!(!with("stackTrace=false,cutoff=0 ns,enabled=true"));
        assert!(!with("stackTrace=true,enabled=false"));
        assert!(!has_stacks(
            " A (jdk.A)\n   [stackTrace=true,enabled=true]\n"
        ));
    }
}
