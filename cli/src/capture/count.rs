//! `heapdiff count`: the agent inserts counters at all allocations. When the count ends, it removes them again.

use std::cell::RefCell;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use heapdiff_sites::attach::Counting;
use heapdiff_sites::{Counts, attach};
use heapdiff_units::{Span, grouped};

use super::agent::{SAYS, agent_load_failure, load_with_retries, old_jvm_failure, path_for_jvm};
use super::deadline::{Deadline, Sign};
use super::held::{is_named, memory_at, token};
use super::library::Library;
use super::process::{Process, unusable_failure};
use super::protocol::Jvm;
use super::request::{CountRequest, JvmArgs, LONGEST_ARGUMENT};
use crate::failure::{Failure, Result, system_message};
use crate::interrupt::Wait;
use crate::progress::{Meter, Wanted};

/// Time between two checks that the JVM is still alive.
const LOOK: Duration = Duration::from_millis(200);
/// Approximate number of classes that the agent can change per second, including pauses.
const CLASSES_A_SECOND: u64 = 150;
/// Maximum size in bytes of the counts that the agent sends.
const MOST: u64 = 256 << 20;

/// Counts allocations for a while. Returns the name of the process and the counts.
pub(crate) fn count(
    jvm: &JvmArgs,
    count: &CountRequest,
    wanted: Wanted,
) -> Result<(String, Counts)> {
    let options = options(count)?;
    let library = Library::find(count.library.as_deref())?;
    let deadline = Deadline::new(jvm.timeout.0);
    let process = Process::find(&jvm.pid, &deadline)?;
    let jvm = Jvm::attach(&process, deadline)?;
    let name = process.to_string();
    let meter = Meter::new(wanted, Path::new(&name));
    let put = Changing::new(&jvm, &meter, "inserting counters into classes");
    // If the loaded agent has an earlier version, `classes` is `None`: such an agent reports neither how many classes
    // it will change nor its progress.
    let classes = classes(&jvm, &library, &options)?;
    let interrupt = Wait::start();
    let options = match classes {
        Some(classes) => {
            meter.print_above_bar(Some(announcement(&process, classes)));
            format!("{options},{}={}", attach::COUNT_KEYS[5], put.token)
        }
        None if count.sampled => return Err(other_version(&process)),
        None => options,
    };
    let begun = send_request(&jvm, &library, &options, || {
        if !interrupt.pause(Duration::ZERO) {
            put.end();
        }
        put.show_progress();
    })?;
    let is_ended = !interrupt.pause(Duration::ZERO);
    drop(interrupt);
    if begun == attach::DEBUGGED {
        let why = format!(
            "{}: a debugger is attached, so nothing is counted",
            jvm.process
        );
        return Err(unusable_failure(why)
            .with_hint("detach the debugger, and run the command again: heapdiff must not change classes while a debugger is attached"));
    }
    if !is_ended {
        wait(&jvm, count.time, &meter)?;
    }
    let taken = Changing::new(&jvm, &meter, "removing counters from classes");
    jvm.restart();
    let end = format!("{}{}", attach::COUNT_END, taken.token);
    let code = send_request(&jvm, &library, &end, || taken.show_progress())?;
    let counts = read_counts(&jvm, &attach::counts_file_name(&taken.token))?;
    if code == attach::DEBUGGED {
        let stay =
            "a debugger is attached: the counters stay in the classes until the debugger detaches";
        meter.print_above_bar(Some(stay.to_owned()));
    }
    Ok((name, counts))
}

/// Returns how many classes get counters in a count with the given options. Returns `None` if the loaded agent has an
/// earlier version, which does not report this number.
fn classes(jvm: &Jvm<'_>, library: &Library, options: &str) -> Result<Option<u64>> {
    let options = options.strip_prefix(attach::COUNT).unwrap_or(options);
    let code = request(
        jvm,
        library,
        &format!("{}{options}", attach::COUNT_CLASSES),
        || {},
    )?;
    let is_old = matches!(code, attach::BAD_OPTIONS | attach::ALREADY_LOADED);
    match code.checked_sub(attach::CLASSES).map(u64::try_from) {
        Some(Ok(classes)) => Ok(Some(classes)),
        _ if is_old => Ok(None),
        _ => checked(jvm, code).map(|_| None),
    }
}

/// Returns the message to print before the agent changes the first class.
fn announcement(process: &Process, classes: u64) -> String {
    let seconds = classes.div_ceil(CLASSES_A_SECOND).max(1);
    let time = Span(Duration::from_secs(seconds));
    format!(
        "{process}: inserting counters into {}; the program is slower for about {time}, and once more when the counters are removed",
        counted_message(classes)
    )
}

fn counted_message(classes: u64) -> String {
    match classes {
        1 => "1 class".to_owned(),
        _ => format!("{} classes", grouped(classes)),
    }
}

/// While the agent inserts or removes counters, shows the progress on a [`Meter`]: the number of classes that the agent
/// has changed.
struct Changing<'a> {
    pid: u32,
    jvm: &'a Jvm<'a>,
    meter: &'a Meter,
    what: &'static str,
    token: String,
    /// The progress file of the agent (once it is found), the progress that was last read from it, and the time at
    /// which the agent began to change classes.
    seen: RefCell<(Option<File>, Counting, Instant)>,
}

impl<'a> Changing<'a> {
    fn new(jvm: &'a Jvm<'a>, meter: &'a Meter, what: &'static str) -> Self {
        meter.begin_unbounded_phase(what);
        Self {
            pid: jvm.process.pid,
            jvm,
            meter,
            what,
            token: token(),
            seen: RefCell::new((None, Counting::default(), Instant::now())),
        }
    }

    /// Shows the progress of the agent. The JVM's time-out starts again whenever the agent has changed more classes.
    fn show_progress(&self) {
        let mut seen = self.seen.borrow_mut();
        let (file, last, since) = &mut *seen;
        if file.is_none() {
            *file = memory(self.pid, &attach::counting_file_name(&self.token)).ok();
        }
        let Some(file) = file else { return };
        let mut bytes = [0; Counting::LEN];
        if file.read_exact_at(&mut bytes, 0).is_err() {
            return;
        }
        let now = Counting::decode(bytes);
        if now == *last || now.all == 0 {
            return;
        }
        if last.all == 0 {
            *since = Instant::now();
        }
        *last = now;
        self.jvm.restart();
        self.meter
            .classes(self.what, (now.done, now.all), since.elapsed());
    }

    /// Makes the agent stop inserting counters, although some classes do not have counters yet.
    fn end(&self) {
        if let Some(file) = &self.seen.borrow().0 {
            // If this call fails, the agent does not stop: it inserts the remaining counters, and the count starts.
            // Ctrl-C then ends the count.
            let _ = file.set_len(0);
        }
    }
}

/// Waits while allocations are counted. Ctrl-C ends the wait.
fn wait(jvm: &Jvm<'_>, time: Span, meter: &Meter) -> Result<()> {
    let wait = Wait::start();
    let message = format!("heapdiff: counting for {time}; Ctrl-C ends the count now");
    meter.countdown(
        time,
        "until the counters are read; Ctrl-C reads the counters now",
        &message,
    );
    let start = Instant::now();
    loop {
        let left = time.0.saturating_sub(start.elapsed());
        if left.is_zero() || !wait.pause(left.min(LOOK)) {
            return Ok(());
        }
        meter.waited(start.elapsed());
        jvm.process.check_alive()?;
    }
}

/// Converts the arguments of a count to options for the agent.
fn options(count: &CountRequest) -> Result<String> {
    let [seconds, jdk, include, exclude, sampled, token] = attach::COUNT_KEYS;
    let mut options = format!("{}{seconds}={}", attach::COUNT, count.time.0.as_secs() + 1);
    for (key, is_on) in [(jdk, count.jdk), (sampled, count.sampled)] {
        if is_on {
            options += &format!(",{key}=on");
        }
    }
    for (key, pattern) in [(include, &count.include), (exclude, &count.exclude)] {
        if let Some(pattern) = pattern {
            options += &format!(",{key}={}", pattern.as_str().replace(',', "\\,"));
        }
    }
    // The options that are sent must be shorter than the JVM's buffer. They are longer than `options`: a token with 16
    // characters is added later, and one request has a longer prefix (`COUNT_CLASSES`).
    let more = token.len() + 18 + attach::COUNT_CLASSES.len();
    if options.len() + more < LONGEST_ARGUMENT {
        Ok(options)
    } else {
        Err(Failure::usage("--include and --exclude are too long"))
    }
}

/// Sends a request to the agent, and calls `look` while waiting. Returns [`attach::DONE`] or [`attach::DEBUGGED`].
fn send_request(
    jvm: &Jvm<'_>,
    library: &Library,
    options: &str,
    look: impl FnMut(),
) -> Result<i32> {
    let code = request(jvm, library, options, look)?;
    checked(jvm, code)
}

/// Sends a request to the agent. Returns the agent's return code.
fn request(jvm: &Jvm<'_>, library: &Library, options: &str, mut look: impl FnMut()) -> Result<i32> {
    let library = path_for_jvm(jvm, library)?;
    let alive = || {
        look();
        jvm.process.check_alive().map(|()| Sign::Nothing)
    };
    let code = load_with_retries(jvm, &library.path, options.as_bytes(), alive)?;
    code.map_err(|why| agent_load_failure(jvm, &why))
}

/// Returns `code` if it is [`attach::DONE`] or [`attach::DEBUGGED`], else an error.
fn checked(jvm: &Jvm<'_>, code: i32) -> Result<i32> {
    if code == attach::TOO_OLD {
        return Err(old_jvm_failure(jvm.process));
    }
    match reason(code) {
        None => Ok(code),
        Some((why, hint)) => {
            let hint = hint.replace("PID", &jvm.process.pid.to_string());
            Err(unusable_failure(format!("{}: {why}", jvm.process)).with_hint(hint))
        }
    }
}

/// Returns the error for a loaded agent that is too old for the requested feature.
fn other_version(process: &Process) -> Failure {
    let (why, hint) = OTHER_VERSION;
    unusable_failure(format!("{process}: {why}")).with_hint(hint)
}

const OTHER_VERSION: (&str, &str) = (
    "the version of the loaded agent cannot limit the count to sampled classes",
    "restart the JVM, or count without --sampled-classes",
);

/// Returns the reason why nothing was counted, with a hint for the user; `None` if the count succeeded.
fn reason(code: i32) -> Option<(String, &'static str)> {
    let (why, hint) = match code {
        attach::DONE | attach::DEBUGGED => return None,
        attach::COUNTS_ALREADY => (
            "the allocations of this JVM are already being counted",
            "wait until that count has ended, and run the command again",
        ),
        attach::COUNTS_NOT => (
            "another `heapdiff count` ended the count",
            "run the command again",
        ),
        attach::COUNT_ENDED => (
            "the count was ended before all classes had counters, so nothing is counted",
            "the classes have their original code again",
        ),
        attach::NO_SAMPLES => (
            "--sampled-classes needs samples, but the agent does not sample in this JVM",
            "run `heapdiff attach PID`, wait a few minutes, and run the command again",
        ),
        attach::HEAP_FULL => (
            "the heap is full, so nothing is counted",
            "`heapdiff dump PID` shows what fills the heap; run `heapdiff count` again when the heap has free space",
        ),
        attach::NOT_UP => (
            "the JVM is still starting, so nothing is counted",
            "run the command again in a few seconds",
        ),
        attach::ALREADY_LOADED => (
            "the loaded agent is of an earlier version, which cannot count",
            "restart the JVM with the agent of this heapdiff",
        ),
        attach::BAD_OPTIONS | attach::FAILED => ("the agent cannot count", SAYS),
        code => {
            return Some((
                format!("the agent refused the command with code {code}"),
                SAYS,
            ));
        }
    };
    Some((why.to_owned(), hint))
}

/// Opens a memory file (memfd) of the agent.
fn memory(pid: u32, sign: &str) -> std::io::Result<File> {
    let sign = format!("/memfd:{sign}");
    let files = fs::read_dir(format!("/proc/{pid}/fd"))?;
    let mut files = files.flatten().map(|entry| entry.path());
    let found = files.find(|path| is_named(path, &sign));
    memory_at(&found.ok_or(ErrorKind::NotFound)?, &sign)
}

/// Reads the counts from a memory file (memfd) of the agent.
fn read_counts(jvm: &Jvm<'_>, sign: &str) -> Result<Counts> {
    let read = || {
        let file = memory(jvm.process.pid, sign)?;
        let mut bytes = Vec::new();
        (&file).take(MOST).read_to_end(&mut bytes)?;
        // The JVM keeps the file open, so only truncating the file frees its memory.
        file.set_len(0)?;
        Counts::decode(&bytes).ok_or_else(|| ErrorKind::InvalidData.into())
    };
    read().map_err(|e: std::io::Error| {
        let why = system_message(&e);
        unusable_failure(format!("{}: cannot read the counts: {why}", jvm.process))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use regex::Regex;

    fn count(include: Option<&str>, exclude: Option<&str>) -> CountRequest {
        CountRequest {
            time: Span(Duration::from_secs(30)),
            jdk: include.is_some(),
            include: include.map(|re| Regex::new(re).unwrap()),
            exclude: exclude.map(|re| Regex::new(re).unwrap()),
            sampled: false,
            library: None,
        }
    }

    #[test]
    fn patterns_are_passed_to_the_agent_unchanged() {
        assert_eq!(options(&count(None, None)).unwrap(), "count:seconds=31");
        let told = options(&count(Some("a{1,2}"), Some("b"))).unwrap();
        assert_eq!(told, "count:seconds=31,jdk=on,include=a{1\\,2},exclude=b");
        let error = options(&count(Some(&"x".repeat(1000)), None)).unwrap_err();
        assert_eq!(error.message, "--include and --exclude are too long");
    }

    #[test]
    fn each_refusal_has_a_reason_and_a_hint() {
        assert_eq!(reason(attach::DONE), None);
        for (code, says, helps) in [
            (attach::COUNTS_ALREADY, "already being counted", "wait"),
            (attach::COUNTS_NOT, "ended the count", "again"),
            (
                attach::COUNT_ENDED,
                "so nothing is counted",
                "original code",
            ),
            (attach::NO_SAMPLES, "needs samples", "heapdiff attach PID"),
            (
                attach::HEAP_FULL,
                "so nothing is counted",
                "when the heap has free space",
            ),
            (attach::NOT_UP, "so nothing is counted", "in a few seconds"),
            (
                attach::ALREADY_LOADED,
                "the loaded agent is of an earlier version",
                "restart",
            ),
            (attach::FAILED, "the agent cannot count", "standard error"),
            (98, "refused the command with code 98", "standard error"),
        ] {
            let (why, hint) = reason(code).unwrap();
            assert!(why.contains(says) && hint.contains(helps), "{why}: {hint}");
        }
    }
}
