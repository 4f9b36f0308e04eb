//! `heapdiff attach`: makes a JVM load the agent library.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::deadline::Sign;
use super::library::Library;
use super::places::{self, Copy};
use super::process::{Process, bytes_of, unusable_failure};
use super::protocol::{Answer, Jvm};
use super::request::LONGEST_ARGUMENT;
use crate::failure::{Failure, Result, system_message};
use crate::messages;
use crate::progress::Wanted;
use heapdiff_sites::attach;
use heapdiff_units::Span;

/// Return codes of the agent that report an error, with the reason and a hint for the user.
const CODES: [(i32, &str, Option<&str>); 7] = [
    (
        attach::BAD_OPTIONS,
        "the agent rejected its options",
        Some(SAYS),
    ),
    (attach::OTHER_SAMPLER, OTHER_SAMPLER, None),
    (attach::FAILED, "the agent could not start", Some(SAYS)),
    (
        attach::HEAP_FULL,
        "the heap is full, so the agent was not loaded; a loaded agent keeps its old options",
        Some(
            "a heap dump shows what fills the heap; run this command again when the heap has free space",
        ),
    ),
    (
        attach::NOT_UP,
        "the JVM is still starting, so the agent was not loaded",
        Some("run the command again in a few seconds"),
    ),
    // JVMTI error codes. Agents other than ours return them unchanged.
    (98, OTHER_SAMPLER, None),
    (
        99,
        "the JVM does not let agents sample allocations (JVMTI error 99)",
        None,
    ),
];
const OTHER_SAMPLER: &str = "another agent already samples allocations in this JVM, and only one agent can (JVMTI error 98)";
pub(super) const SAYS: &str = "the JVM's standard error shows why";

/// Maximum time for which a request is repeated while a JVM is still starting. [`AGAIN`] is the pause between two
/// attempts.
const STARTING: Duration = Duration::from_secs(10);
const AGAIN: Duration = Duration::from_millis(50);

/// Time that the agent may take before heapdiff prints a message. With `--quiet`, heapdiff prints no message.
const LATE: Duration = Duration::from_secs(5);

/// The state of the agent in a JVM.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    NotLoaded,
    /// The agent is loaded, but its version does not report its state.
    Unknown,
    /// The sum of the flags of the agent's activities: [`attach::SAMPLES`], [`attach::COUNTS`] and [`attach::TRACES`].
    Does(i32),
}

impl State {
    /// True if the agent does everything in `what`, which is a sum of the flags in [`Self::Does`].
    pub(super) fn does(self, what: i32) -> bool {
        matches!(self, Self::Does(all) if all & what == what)
    }
}

/// The result of a successful request to the agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Loaded {
    Now,
    /// The agent was already sampling, and ignored the new options.
    Before,
    /// The agent was already sampling, and uses the new options now.
    Changed,
    /// The agent has stopped. `DetachedBefore` means that it had stopped before the request.
    Detached,
    DetachedBefore,
}

/// The reason why the agent does not run.
#[derive(Debug)]
pub(super) struct NotLoaded {
    pub(super) failure: Failure,
    /// True if the JVM cannot load the library, for example because an option forbids it, or because there is no
    /// library for the JVM's C library.
    pub(super) is_impossible: bool,
}

impl From<Failure> for NotLoaded {
    fn from(failure: Failure) -> Self {
        Self {
            failure,
            is_impossible: false,
        }
    }
}

impl From<NotLoaded> for Failure {
    fn from(not: NotLoaded) -> Self {
        not.failure
    }
}

/// Loads the agent. An agent that is already sampling keeps its options.
pub(super) fn load(
    jvm: &Jvm<'_>,
    library: &Library,
    options: &str,
    wanted: Wanted,
) -> Result<Loaded, NotLoaded> {
    let visible = path_for_jvm(jvm, library)?;
    // After loading the library, the JVM does not need its file. So a copy of the library may be removed when this
    // function returns.
    pass_options(jvm, &visible.path, options, wanted)
}

/// Loads the agent. If the agent is already loaded, `how` decides what happens with the options: with
/// [`attach::CHANGE`] they replace the agent's options, and with [`attach::ADD`] they are added to the agent's options.
pub(super) fn load_or_change(
    jvm: &Jvm<'_>,
    library: &Library,
    how: &str,
    options: &str,
    wanted: Wanted,
) -> Result<Loaded, NotLoaded> {
    let options = match jvm.process.agent() {
        None => options.to_owned(),
        Some(_) => how.to_owned() + options,
    };
    if options.len() >= LONGEST_ARGUMENT {
        let message = format!(
            "the agent options are longer than {} bytes",
            LONGEST_ARGUMENT - 1
        );
        return Err(Failure::usage(message).into());
    }
    load(jvm, library, &options, wanted)
}

/// Returns the state of the agent.
pub(super) fn state(jvm: &Jvm<'_>) -> Result<State> {
    let Some(library) = jvm.process.agent() else {
        return Ok(State::NotLoaded);
    };
    let tick = || jvm.process.check_alive().map(|()| Sign::Nothing);
    Ok(
        match load_with_retries(jvm, library.as_bytes(), attach::STATUS.as_bytes(), tick)? {
            Ok(state) if state >= attach::STATE => State::Does(state - attach::STATE),
            _ => State::Unknown,
        },
    )
}

/// Stops the agent. Returns `None` if the JVM has no agent.
pub(super) fn detach(jvm: &Jvm<'_>, wanted: Wanted) -> Result<Option<Loaded>> {
    match jvm.process.agent() {
        None => Ok(None),
        Some(path) => Ok(Some(pass_options(
            jvm,
            path.as_bytes(),
            attach::DETACH,
            wanted,
        )?)),
    }
}

/// Makes the JVM pass the options to the agent in this library. Loads the library first if the JVM has not loaded it
/// yet.
fn pass_options(
    jvm: &Jvm<'_>,
    library: &[u8],
    options: &str,
    wanted: Wanted,
) -> Result<Loaded, NotLoaded> {
    let (start, mut is_silent) = (Instant::now(), !wanted.quiet);
    let tick = || {
        if is_silent && start.elapsed() >= LATE {
            is_silent = false;
            messages::print_done(&format!(
                "{}: the agent has not finished after {}; if it changes many classes (count=on), the JVM's standard error shows its progress",
                jvm.process,
                Span(LATE)
            ));
        }
        jvm.process.check_alive().map(|()| Sign::Nothing)
    };
    match load_with_retries(jvm, library, options.as_bytes(), tick)? {
        Ok(attach::DONE) => Ok(Loaded::Now),
        Ok(attach::ALREADY_LOADED) => Ok(Loaded::Before),
        Ok(attach::CHANGED) => Ok(Loaded::Changed),
        Ok(attach::DETACHED) => Ok(Loaded::Detached),
        Ok(attach::DETACHED_BEFORE) => Ok(Loaded::DetachedBefore),
        Ok(attach::TOO_OLD) => Err(old_jvm_failure(jvm.process).into()),
        Ok(code) => {
            let process = jvm.process;
            let known = CODES.iter().find(|(known, ..)| *known == code);
            let (why, hint) = match known {
                Some((_, why, hint)) => ((*why).to_owned(), *hint),
                None => (
                    format!("the agent refused the command with code {code}"),
                    Some(SAYS),
                ),
            };
            Err(Failure {
                hint: hint.map(str::to_owned),
                ..unusable_failure(format!("{process}: {why}"))
            }
            .into())
        }
        Err(why) => Err(NotLoaded {
            failure: agent_load_failure(jvm, &why),
            is_impossible: true,
        }),
    }
}

/// The reason why commands that need the agent do not work with JVMs before JDK 11.
pub(super) const NEEDS_JDK_11: &str = "the agent needs JDK 11 or later, and this JVM is older";

/// The failure for a JVM that is too old for the agent. The hint names the commands that work with such a JVM.
pub(super) fn old_jvm_failure(process: &Process) -> Failure {
    let pid = process.pid;
    unusable_failure(format!("{process}: {NEEDS_JDK_11}")).with_hint(format!(
        "use a command that needs no agent: `heapdiff dump {pid}`, `heapdiff hunt {pid} --recording` or `heapdiff hunt {pid} --no-attach`"
    ))
}

/// Returns the agent's return code, or the reason why the JVM did not call the agent. Repeats the request while the JVM
/// is starting.
pub(super) fn load_with_retries(
    jvm: &Jvm<'_>,
    library: &[u8],
    options: &[u8],
    mut tick: impl FnMut() -> Result<Sign>,
) -> Result<std::result::Result<i32, String>> {
    let start = Instant::now();
    loop {
        let answer = jvm.execute("load", [library, b"true", options], &mut tick)?;
        let outcome = outcome(&answer);
        let is_over = start.elapsed() >= STARTING || jvm.remaining_time() <= AGAIN;
        if !is_jvm_starting(&outcome) || is_over {
            return Ok(outcome);
        }
        sleep(AGAIN);
    }
}

/// True if the JVM is still starting, according to the agent's return code or, since JDK 21, the JVM's own answer.
fn is_jvm_starting(outcome: &std::result::Result<i32, String>) -> bool {
    match outcome {
        Ok(code) => *code == attach::NOT_UP,
        Err(why) => why.contains("only permitted in the live phase"),
    }
}

/// Returns the failure for a JVM that did not load the agent. In this case, no code of the agent ran.
pub(super) fn agent_load_failure(jvm: &Jvm<'_>, why: &str) -> Failure {
    let process = jvm.process;
    let failure = unusable_failure(format!("{process} did not load the agent: {why}"));
    if why.contains("EnableDynamicAgentLoading") {
        failure.with_hint("restart the JVM with -XX:+EnableDynamicAgentLoading, or start it with the agent (-agentpath)")
    } else {
        failure
    }
}

/// Returns the agent's return code, or the reason why the JVM did not call the agent.
fn outcome(answer: &Answer) -> std::result::Result<i32, String> {
    // JDK 8 writes only the number, without `return code:`.
    let last = answer.text.lines().next_back().unwrap_or_default().trim();
    let number = last.strip_prefix("return code:").unwrap_or(last).trim();
    match (answer.code, number.parse()) {
        (0, Ok(code)) => Ok(code),
        // Some JDK versions put the agent's return code into `answer.code`, too. So a code other than 0 does not always
        // mean that the JVM did not call the agent.
        (code, Ok(number)) if number != 0 || code == 0 => Ok(number),
        _ => Err(answer.line()),
    }
}

/// The agent library as the JVM sees it.
pub(super) struct Visible {
    pub(super) path: Vec<u8>,
    /// A copy in a folder that the JVM sees. It is removed when this value is dropped.
    _copy: Option<Copy>,
}

impl Visible {
    /// The library at its original path, without a copy.
    const fn at(path: Vec<u8>) -> Self {
        Self { path, _copy: None }
    }
}

/// Returns the path under which the JVM sees the library: the path of the library itself, or of a copy in a folder of
/// the JVM.
///
/// If the JVM has already loaded an agent library, returns the path of that library. A second library would not
/// recognize the first, and would report that a different agent is already sampling.
pub(super) fn path_for_jvm(jvm: &Jvm<'_>, library: &Library) -> Result<Visible, NotLoaded> {
    places::remove_leftover_copies(jvm);
    let process = jvm.process;
    if let Some(loaded) = process.agent()
        && loaded.len() < LONGEST_ARGUMENT
    {
        return Ok(Visible::at(loaded.into_bytes()));
    }
    let c_library = process.c_library();
    let library = library.path_for(c_library)?.ok_or_else(|| {
        let why = library.missing(c_library);
        NotLoaded {
            failure: unusable_failure(format!("{process} uses {c_library}, and {why}"))
                .with_hint("`heapdiff dump` and `heapdiff hunt --recording` need no agent"),
            is_impossible: true,
        }
    })?;
    let path = bytes_of(&library);
    if path.len() < LONGEST_ARGUMENT && is_seen(jvm, &library) {
        return Ok(Visible::at(path));
    }
    let copy = Copy::create(jvm, &library).map_err(|e| {
        unusable_failure(format!(
            "{process}: cannot copy the agent to the JVM's /tmp: {}",
            system_message(&e)
        ))
    })?;
    Ok(Visible {
        path: bytes_of(&copy.path),
        _copy: Some(copy),
    })
}

/// True if the JVM sees the same file under this path as heapdiff does, and may read it.
fn is_seen(jvm: &Jvm<'_>, library: &Path) -> bool {
    let ours = fs::metadata(library).map(|meta| (meta.dev(), meta.ino()));
    let theirs = jvm.root.identity_of(library);
    let same = matches!((ours, theirs), (Ok(ours), Ok(theirs)) if ours == theirs);
    same && matches!(jvm.process.user.run_as(|| File::open(library)), Ok(Ok(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jvm_that_is_still_starting_is_reported() {
        let said = "Dynamic agent loading is only permitted in the live phase";
        assert!(is_jvm_starting(&Err(said.to_owned())) && is_jvm_starting(&Ok(attach::NOT_UP)));
        assert!(!is_jvm_starting(&Err(
            "cannot open shared object file".to_owned()
        )));
        assert!(!is_jvm_starting(&Ok(attach::DONE)) && !is_jvm_starting(&Ok(attach::FAILED)));
        let told = CODES.iter().find(|(code, ..)| *code == attach::NOT_UP);
        let why = "the JVM is still starting, so the agent was not loaded";
        assert_eq!(told.map(|(_, why, _)| *why), Some(why));
    }

    #[test]
    fn attach_outcomes_of_every_jdk_are_understood() {
        let outcome = |code, text: &str| {
            outcome(&Answer {
                code,
                text: text.to_owned(),
            })
        };
        assert_eq!(outcome(0, "return code: 0"), Ok(0));
        assert_eq!(outcome(0, "return code: 98"), Ok(98));
        assert_eq!(outcome(0, "0"), Ok(0));
        assert_eq!(outcome(-1, "return code: -1"), Ok(-1));
        let missing = "/a.so was not loaded.\n/a.so: cannot open shared object file";
        for code in [0, -1] {
            assert_eq!(outcome(code, missing), Err(missing.replace('\n', " ")));
            assert!(outcome(code, "Agent_OnAttach is not available in /a.so").is_err());
            assert!(outcome(code, "").is_err());
        }
        assert!(outcome(100, "return code: 0").is_err());
    }
}
