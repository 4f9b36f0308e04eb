//! `heapdiff dump --fork`: the agent forks the JVM, and the child writes the dump.

use heapdiff_sites::attach;

use super::agent::{SAYS, agent_load_failure, load_with_retries, old_jvm_failure, path_for_jvm};
use super::deadline::Sign;
use super::dump::Forker;
use super::library::Library;
use super::process::{Process, unusable_failure};
use super::protocol::Jvm;
use super::request::LONGEST_ARGUMENT;
use crate::failure::{Failure, Result};

/// Hint if a forked child cannot write a dump.
const ORDINARY: &str =
    "leave out --fork: the JVM then writes the dump itself, and is paused while it writes";

/// Hint if a forked child cannot send a dump, for a command with `--no-files`.
const WITH_FILES: &str = "leave out --no-files: the JVM then writes the dumps to files itself, and is paused while it writes";

/// The reason why the agent wrote no dump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) why: String,
    hint: &'static str,
    /// True if the JVM itself may succeed in writing a dump.
    pub(super) ordinary: bool,
}

impl Refused {
    /// The agent reported success, but there is no file.
    pub(super) fn missing_dump_refusal() -> Self {
        Self {
            why: "the agent wrote nothing".to_owned(),
            hint: ORDINARY,
            ordinary: true,
        }
    }

    /// The path is too long for the agent's options. The JVM's own dump command may accept it.
    fn long_path_refusal() -> Self {
        Self {
            why: "the path of the folder is too long for the agent".to_owned(),
            hint: ORDINARY,
            ordinary: true,
        }
    }

    /// Converts the reason to a failure that ends the command.
    pub(super) fn failure(self, process: &Process) -> Failure {
        unusable_failure(format!("{process}: {}", self.why)).with_hint(self.hint)
    }

    /// Like [`Self::failure`], but for a command with `--no-files`: the hint to leave out `--fork` becomes a hint to
    /// leave out `--no-files`.
    pub(super) fn without_files(self, process: &Process) -> Failure {
        self.hinting_at_files().failure(process)
    }

    fn hinting_at_files(self) -> Self {
        let hint = match self.hint {
            ORDINARY => WITH_FILES,
            hint => hint,
        };
        Self { hint, ..self }
    }
}

/// Makes a child of the JVM write the dump to `file`, and waits until the child has finished. If the agent reports that
/// there is no dump, returns the reason.
pub(super) fn request_dump(
    jvm: &Jvm<'_>,
    forker: Forker<'_>,
    file: &[u8],
    tick: impl FnMut() -> Result<Sign>,
) -> Result<Option<Refused>> {
    let options = [attach::SNAPSHOT.as_bytes(), file].concat();
    if options.len() >= LONGEST_ARGUMENT {
        return if forker.only {
            Err(Failure::usage("-o: the path of the folder is too long"))
        } else {
            Ok(Some(Refused::long_path_refusal()))
        };
    }
    request_with(jvm, forker.library, &options, tick)
}

/// Sends a request to the agent, and waits for it. Returns the reason if the agent reports that it failed.
pub(super) fn request_with(
    jvm: &Jvm<'_>,
    library: &Library,
    options: &[u8],
    tick: impl FnMut() -> Result<Sign>,
) -> Result<Option<Refused>> {
    let library = path_for_jvm(jvm, library)?;
    let outcome = load_with_retries(jvm, &library.path, options, tick)?;
    let code = outcome.map_err(|why| agent_load_failure(jvm, &why))?;
    if code == attach::TOO_OLD {
        return Err(old_jvm_failure(jvm.process));
    }
    Ok(reason(code))
}

/// Converts a return code of the agent to the reason why there is no dump, with a hint; `None` if the dump succeeded.
fn reason(code: i32) -> Option<Refused> {
    let (why, hint) = match code {
        attach::DONE => return None,
        attach::SHARED_HEAP => (
            "the heap is in shared memory (ZGC, or large pages), so a forked child would see it change",
            ORDINARY,
        ),
        attach::NO_ROOM => (
            "the JVM cannot fork: there is not enough memory for a child, or forking is not allowed",
            ORDINARY,
        ),
        attach::HEAP_FULL => ("the heap is full, so no dump was taken", ORDINARY),
        attach::NOT_UP => (
            "the JVM is still starting, so no dump was taken",
            "run the command again in a few seconds",
        ),
        attach::NO_SPACE => (
            "there is no disk space for the dump",
            "the incomplete dump was deleted; free some space, or write the dump to another folder",
        ),
        // An agent of an earlier version interprets the request as an option.
        attach::BAD_OPTIONS | attach::ALREADY_LOADED => (
            "the version of the loaded agent cannot fork the JVM",
            ORDINARY,
        ),
        attach::FAILED => ("the agent wrote no dump", SAYS),
        code => {
            return Some(Refused {
                why: format!("the agent refused the command with code {code}"),
                hint: SAYS,
                ordinary: true,
            });
        }
    };
    Some(Refused {
        why: why.to_owned(),
        hint,
        // If the disk is too full for the child's dump, it is also too full for the JVM's dump, unless the JVM
        // compresses the dump.
        ordinary: code != attach::NO_SPACE,
    })
}

/// Returns the message that the JVM itself wrote the dump although the user requested a child process.
pub(super) fn fallback_message(file: &impl std::fmt::Display, why: &str) -> String {
    format!(
        "{file}: the JVM wrote this dump itself and was paused meanwhile, because a forked child could not: {why}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_too_long_for_the_agent_is_written_by_the_jvm() {
        let refused = Refused::long_path_refusal();
        assert_eq!(
            refused.why,
            "the path of the folder is too long for the agent"
        );
        assert!(refused.ordinary);
        let other = reason(attach::NO_SPACE).unwrap();
        assert!(!other.why.contains("too long for the agent"));
    }

    #[test]
    fn refusals_with_no_files_suggest_files() {
        let hint = |code| reason(code).unwrap().hinting_at_files().hint;
        let files = "leave out --no-files: the JVM then writes the dumps to files itself";
        assert!(hint(attach::SHARED_HEAP).starts_with(files));
        assert!(!hint(attach::NOT_UP).contains("the JVM writes the dumps"));
    }

    #[test]
    fn each_refusal_has_a_reason_and_a_hint() {
        assert_eq!(reason(attach::DONE), None);
        for (code, says, helps) in [
            (
                attach::SHARED_HEAP,
                "the heap is in shared memory",
                "leave out --fork: the JVM then writes the dump itself",
            ),
            (
                attach::NO_ROOM,
                "there is not enough memory for a child",
                "leave out --fork",
            ),
            (
                attach::HEAP_FULL,
                "the heap is full, so no dump",
                "leave out --fork",
            ),
            (
                attach::NOT_UP,
                "the JVM is still starting, so no dump",
                "in a few seconds",
            ),
            (
                attach::NO_SPACE,
                "no disk space for the dump",
                "the incomplete dump was deleted",
            ),
            (
                attach::ALREADY_LOADED,
                "of the loaded agent cannot fork",
                "leave out --fork",
            ),
            (
                attach::FAILED,
                "the agent wrote no dump",
                "standard error shows why",
            ),
            (
                98,
                "the agent refused the command with code 98",
                "standard error shows why",
            ),
        ] {
            let Refused {
                why,
                hint,
                ordinary,
            } = reason(code).unwrap();
            assert!(why.contains(says) && hint.contains(helps), "{why}: {hint}");
            assert_eq!(ordinary, code != attach::NO_SPACE, "{why}");
        }
    }
}
