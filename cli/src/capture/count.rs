//! `heapdiff count`: the agent puts counters before all allocations, and takes them out again.

use std::fs;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use heapdiff_sites::{Counts, attach};
use heapdiff_units::Span;

use super::agent::{SAYS, asked, not_loaded, too_old, visible};
use super::deadline::{Deadline, Sign};
use super::held::{is_named, memory_at, token};
use super::library::library;
use super::process::{Process, refused};
use super::protocol::Jvm;
use crate::failure::{Failure, Result, plain};
use crate::interrupt::Wait;
use crate::job::{Count, LONGEST_ARGUMENT};
use crate::progress::{Meter, Wanted};

/// How often is looked whether the JVM is alive.
const LOOK: Duration = Duration::from_millis(200);
/// Bytes of counts at most.
const MOST: u64 = 256 << 20;

/// Counts for a while. Returns the process as it is called, and what was counted.
pub(crate) fn count(count: &Count, wanted: Wanted) -> Result<(String, Counts)> {
    let options = options(count)?;
    let library = library(count.library.as_deref())?;
    let deadline = Deadline::new(count.timeout);
    let process = Process::find(&count.target, &deadline)?;
    let jvm = Jvm::attach(&process, deadline)?;
    let name = process.to_string();
    let meter = Meter::new(wanted, Path::new(&name));
    meter.phase_of_unknown_length("putting counters into classes");
    if ask(&jvm, &library, &options)? == attach::DEBUGGED {
        let why = format!(
            "{}: a debugger is attached, so nothing is counted",
            jvm.process
        );
        return Err(refused(why)
            .with_hint("detach it first: it keeps the places of lines in the code as it is"));
    }
    wait(&jvm, count.time, &meter)?;
    meter.phase_of_unknown_length("taking counters out of classes");
    jvm.restart();
    let token = token();
    let code = ask(&jvm, &library, &format!("{}{token}", attach::COUNT_END))?;
    let counts = shown(&jvm, &attach::count_sign(&token))?;
    if code == attach::DEBUGGED {
        let stay = "a debugger is attached: classes keep their counters until it has gone";
        meter.say(Some(stay.to_owned()));
    }
    Ok((name, counts))
}

/// The time of the count, which Ctrl-C ends.
fn wait(jvm: &Jvm<'_>, time: Span, meter: &Meter) -> Result<()> {
    let wait = Wait::start();
    let message = format!("heapdiff: counting for {time}; Ctrl-C ends it now");
    meter.countdown(time, &message);
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

/// What the agent is told.
fn options(count: &Count) -> Result<String> {
    let [seconds, jdk, include, exclude] = attach::COUNT_KEYS;
    let mut options = format!("{}{seconds}={}", attach::COUNT, count.time.0.as_secs() + 1);
    if count.jdk {
        options += &format!(",{jdk}=on");
    }
    for (key, pattern) in [(include, &count.include), (exclude, &count.exclude)] {
        if let Some(pattern) = pattern {
            options += &format!(",{key}={}", pattern.as_str().replace(',', "\\,"));
        }
    }
    match options.len() < LONGEST_ARGUMENT {
        true => Ok(options),
        false => Err(Failure::usage("--include and --exclude are too long")),
    }
}

/// Has the agent do what the options say. Returns [`attach::DONE`] or [`attach::DEBUGGED`].
fn ask(jvm: &Jvm<'_>, library: &Path, options: &str) -> Result<i32> {
    let library = visible(jvm, library)?;
    let alive = || jvm.process.check_alive().map(|()| Sign::Nothing);
    let code = asked(jvm, &library.path, options.as_bytes(), alive)?;
    let code = code.map_err(|why| not_loaded(jvm, &why))?;
    if code == attach::TOO_OLD {
        return Err(too_old(jvm.process));
    }
    match reason(code) {
        None => Ok(code),
        Some((why, hint)) => Err(refused(format!("{}: {why}", jvm.process)).with_hint(hint)),
    }
}

/// Why nothing was counted, by what the agent returned, and what helps.
fn reason(code: i32) -> Option<(String, &'static str)> {
    let (why, hint) = match code {
        attach::DONE | attach::DEBUGGED => return None,
        attach::COUNTS_ALREADY => (
            "its allocations are being counted already",
            "wait until that is over",
        ),
        attach::COUNTS_NOT => ("the count was ended by another", "try again"),
        attach::HEAP_FULL => (
            "the heap is full, so nothing is counted",
            "try again when there is room",
        ),
        attach::NOT_UP => (
            "the JVM is still starting, so nothing is counted",
            "try again when it is up",
        ),
        attach::ALREADY_LOADED => (
            "the agent that is loaded there is of a version that cannot count",
            "start the program anew",
        ),
        attach::BAD_OPTIONS | attach::FAILED => ("the agent cannot count", SAYS),
        code => return Some((format!("the agent refused with code {code}"), SAYS)),
    };
    Some((why.to_owned(), hint))
}

/// Reads what the agent shows in a file in memory.
fn shown(jvm: &Jvm<'_>, sign: &str) -> Result<Counts> {
    let sign = format!("/memfd:{sign}");
    let files = PathBuf::from(format!("/proc/{}/fd", jvm.process.pid));
    let read = || {
        let mut entries = fs::read_dir(&files)?.flatten().map(|entry| entry.path());
        let found = entries.find(|path| is_named(path, &sign));
        let file = memory_at(&found.ok_or(ErrorKind::NotFound)?, &sign)?;
        let mut bytes = Vec::new();
        (&file).take(MOST).read_to_end(&mut bytes)?;
        // The JVM keeps the file open; its memory goes.
        file.set_len(0)?;
        Counts::decode(&bytes).ok_or_else(|| ErrorKind::InvalidData.into())
    };
    read().map_err(|e: std::io::Error| {
        let why = plain(&e);
        refused(format!(
            "{}: what was counted cannot be read: {why}",
            jvm.process
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Target;
    use regex::Regex;

    fn of(include: Option<&str>, exclude: Option<&str>) -> Count {
        Count {
            target: Target::Pid(1),
            timeout: Duration::ZERO,
            time: Span(Duration::from_secs(30)),
            jdk: include.is_some(),
            include: include.map(|re| Regex::new(re).unwrap()),
            exclude: exclude.map(|re| Regex::new(re).unwrap()),
            library: None,
        }
    }

    #[test]
    fn patterns_are_handed_over_whole() {
        assert_eq!(options(&of(None, None)).unwrap(), "count:seconds=31");
        let told = options(&of(Some("a{1,2}"), Some("b"))).unwrap();
        assert_eq!(told, "count:seconds=31,jdk=on,include=a{1\\,2},exclude=b");
        let error = options(&of(Some(&"x".repeat(1000)), None)).unwrap_err();
        assert_eq!(error.message, "--include and --exclude are too long");
    }

    #[test]
    fn each_refusal_is_told_with_what_helps() {
        assert_eq!(reason(attach::DONE), None);
        for (code, says, helps) in [
            (attach::COUNTS_ALREADY, "are being counted already", "wait"),
            (
                attach::COUNTS_NOT,
                "the count was ended by another",
                "again",
            ),
            (
                attach::HEAP_FULL,
                "so nothing is counted",
                "when there is room",
            ),
            (attach::NOT_UP, "so nothing is counted", "when it is up"),
            (attach::ALREADY_LOADED, "that cannot count", "anew"),
            (attach::FAILED, "the agent cannot count", "standard error"),
            (98, "refused with code 98", "standard error"),
        ] {
            let (why, hint) = reason(code).unwrap();
            assert!(why.contains(says) && hint.contains(helps), "{why}: {hint}");
        }
    }
}
