//! Takes a snapshot of the heap in a forked child process, while the JVM keeps running.
//!
//! 1. [`take`] reads classes, names and stacks from the JVM and writes the start of the file.
//! 2. A child is forked at a safepoint. It walks its copy of the heap and writes the objects (`writer`).
//! 3. The parent watches the child until it ends (`watch`).
//!
//! `image` holds the data collected before the fork. `room` decides whether forking is possible and safe.

#[allow(unsafe_code)]
mod gather;
mod image;
mod room;
mod target;
mod threads;
#[allow(unsafe_code)]
mod values;
#[allow(unsafe_code)]
mod virtual_threads;
#[allow(unsafe_code)]
mod walk;
mod watch;
mod writer;

#[cfg(test)]
mod tests;

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use heapdiff_sites::{attach, piped};

use crate::jvmti::Environment;
use crate::jvmti::calls::Env;
use crate::jvmti::sys::capability;
use crate::log::{Level, print_line};
pub(crate) use image::Image;
use image::ObjectLayout;
pub use room::memory_left;
pub(crate) use target::Target;
use walk::{Completion, NoChild, end};
pub use watch::State;
pub(crate) use writer::{Kind, Reference, Tally, Writer};

/// Maximum number of children that are forked for one dump. A child must be replaced if it waits for a lock that
/// another thread of the parent held at the fork. In measurements on a busy machine, right after the program's start,
/// every second child had to be replaced.
const TRIES: u32 = 10;

/// The progress of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Number of callbacks of the heap walk that the child has handled.
    pub(crate) callbacks: u64,
    /// True if part of the dump has been sent to the reader of a pipe.
    pub(crate) sent: bool,
    /// True while the child handles a callback of the heap walk.
    pub(crate) busy: bool,
    pub(crate) tally: Tally,
}

/// The destination of a snapshot.
#[derive(Clone, Copy)]
pub(crate) enum Wanted<'a> {
    /// A destination to which the child continues to write even if the JVM ends.
    Kept(Kept<'a>),
    /// A new file with this name.
    File(&'a str),
    /// A pipe to the process that requested the snapshot and passed this token.
    Pipe(&'a str),
}

/// The destination of a dump that outlives the JVM.
#[derive(Clone, Copy)]
pub(crate) enum Place<'a> {
    /// A file with its name while the dump is written, and its name when the dump is complete.
    File { part: &'a Path, last: &'a Path },
    /// A pipe that another process reads.
    Pipe(&'a File),
}

/// A dump that outlives the JVM: the forked child continues to write the dump if the JVM ends.
#[derive(Clone, Copy)]
pub(crate) struct Kept<'a> {
    pub(crate) place: Place<'a>,
    pub(crate) prepared: &'a Prepared,
    /// Called after each fork of a child.
    pub(crate) forked: &'a dyn Fn(),
    /// If true, the child is not ended when memory becomes scarce, because the JVM is expected to die in any case.
    pub(crate) outlasts_memory: bool,
}

impl<'a> Wanted<'a> {
    /// Returns the destination named in the options, or `None` if the options do not request a snapshot.
    pub(crate) fn parse(options: &'a str) -> Option<Self> {
        let file = options.strip_prefix(attach::SNAPSHOT).map(Self::File);
        file.or_else(|| options.strip_prefix(attach::SNAPSHOT_PIPE).map(Self::Pipe))
    }
}

/// Writes a snapshot and returns one of the result codes of [`attach`]. The caller disposes of the environment
/// afterwards, which releases all tags.
pub(crate) fn take(environment: &Environment, env: &Env<'_>, wanted: Wanted<'_>) -> i32 {
    match snapshot(environment, env, wanted) {
        Ok(tally) => {
            if tally.late > 0 {
                print_line(
                    Level::Warn,
                    format_args!(
                        "{} objects in the dump have no field values, because their classes were loaded after the agent started the dump",
                        tally.late
                    ),
                );
            }
            attach::DONE
        }
        Err((code, why)) => {
            print_line(Level::Error, format_args!("no dump was written: {why}"));
            code
        }
    }
}

/// Data about a JVM that is read once and used for all later dumps. Reading it allocates arrays in the Java heap.
#[derive(Debug)]
pub(crate) struct Prepared {
    layout: Option<ObjectLayout>,
}

/// Prepares a JVM for dumps. Returns one of [`attach`]'s codes and the reason if no dump of this JVM is possible.
pub(crate) fn prepare(environment: &Environment, env: &Env<'_>) -> Result<Prepared, (i32, String)> {
    check_heap(environment, env)?;
    add_capabilities(environment)?;
    let (gathered, _) = environment.gather(env, None).map_err(|e| failed(&e))?;
    Ok(Prepared {
        layout: gathered.layout,
    })
}

fn failed(why: &dyn std::fmt::Display) -> (i32, String) {
    (attach::FAILED, why.to_string())
}

/// Checks that the heap's memory is private, so that a forked child does not see later changes of the heap.
fn check_heap(environment: &Environment, env: &Env<'_>) -> Result<(), (i32, String)> {
    let addresses = environment
        .heap_addresses(env)
        .ok_or_else(|| (attach::HEAP_FULL, "the heap is full".to_owned()))?;
    room::heap_is_private(&addresses)
}

fn add_capabilities(environment: &Environment) -> Result<(), (i32, String)> {
    let mut needed = vec![
        capability::TAG_OBJECTS,
        capability::SOURCE_FILE_NAME,
        capability::LINE_NUMBERS,
    ];
    if environment.has_value_objects() {
        needed.push(capability::VALUE_OBJECTS);
    }
    environment
        .add_capabilities(&needed)
        .map_err(|e| failed(&e))
}

fn snapshot(
    environment: &Environment,
    env: &Env<'_>,
    wanted: Wanted<'_>,
) -> Result<Tally, (i32, String)> {
    let kept = match wanted {
        Wanted::Kept(kept) => Some(kept),
        _ => None,
    };
    if kept.is_none() {
        check_heap(environment, env)?;
    }
    let outlasts_memory = kept.is_some_and(|kept| kept.outlasts_memory);
    room::check_memory_before_fork(environment.marks_objects(), outlasts_memory)
        .map_err(|why| (attach::NO_ROOM, why))?;
    add_capabilities(environment)?;
    let prepared = kept.map(|kept| kept.prepared);
    let (mut gathered, held) = environment.gather(env, prepared).map_err(|e| failed(&e))?;
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    let millis = since_epoch.unwrap_or_default().as_millis();
    gathered.taken_ms = u64::try_from(millis).unwrap_or(0);
    let image = Image::new(&gathered);
    if gathered.stacks_left > 0 {
        print_line(
            Level::Warn,
            format_args!(
                "the dump has incomplete stacks for {} virtual threads: it contains only the frames that hold objects",
                gathered.stacks_left
            ),
        );
    }
    drop(gathered);
    let in_file = |path| create_dump_file(path, &image.start).map(Target::File);
    let in_pipe = |mark: &[u8], pipe: io::Result<File>| match pipe {
        Ok(pipe) => Ok(Target::Pipe {
            pipe,
            start: [mark, &image.start].concat(),
        }),
        Err(e) => Err(failed(&format_args!("cannot create a pipe: {e}"))),
    };
    let (target, file, completion) = match wanted {
        Wanted::File(path) => (in_file(Path::new(path))?, Some(Path::new(path)), None),
        Wanted::Pipe(token) => (in_pipe(&[], target::offered(token))?, None, None),
        Wanted::Kept(Kept { place, .. }) => match place {
            Place::File { part, last } => {
                let rename = Completion::rename(part, last).map_err(|e| failed(&e))?;
                (in_file(part)?, Some(part), Some(rename))
            }
            Place::Pipe(pipe) => {
                let pipe = in_pipe(piped::MARK, pipe.try_clone())?;
                (pipe, None, Some(Completion::Pipe))
            }
        },
    };
    let start = image.start.len() as u64;
    let forked = |(image, target)| {
        let (mut child, image, target) = environment
            .fork(image, target, room::shared_files(), completion.as_ref())
            .map_err(fork_error)?;
        if let Some(kept) = kept {
            (kept.forked)();
        }
        let check = || match outlasts_memory {
            true => Ok(()),
            false => room::check_memory_during_dump(),
        };
        let ended = watch::watch(&mut child, file, check);
        // `child` is dropped here. If its process still runs, dropping it kills the process.
        Ok(((image, target), ended, child.progress()))
    };
    let begin_anew = |(_, target): &mut (Image, Target)| target.truncate_to(start);
    let tally = first_unlocked((image, target), forked, begin_anew)?;
    drop(held);
    Ok(tally)
}

/// Runs a child. If the child hangs because it waits for a lock, runs another child, but at most [`TRIES`] children in
/// total. If a child has already sent part of the dump, no other child is run after it.
///
/// `child` runs one child and returns how the child ended. `begin_anew` discards the data that the child wrote.
fn first_unlocked<T>(
    mut target: T,
    mut child: impl FnMut(T) -> Result<(T, watch::Ended, Progress), (i32, String)>,
    begin_anew: impl Fn(&mut T) -> std::io::Result<()>,
) -> Result<Tally, (i32, String)> {
    let mut tries = 1;
    loop {
        let (ended, progress);
        (target, ended, progress) = child(target)?;
        match ended {
            watch::Ended::Code(end::DONE) => return Ok(progress.tally),
            watch::Ended::Locked if tries < TRIES && !progress.sent => {
                tries += 1;
                begin_anew(&mut target).map_err(|e| (attach::FAILED, e.to_string()))?;
            }
            other => return Err(unfinished(other)),
        }
    }
}

fn fork_error(why: NoChild) -> (i32, String) {
    match why {
        NoChild::Fork(code) => (
            attach::NO_ROOM,
            format!(
                "the system refused to fork the JVM: {}",
                std::io::Error::from_raw_os_error(code)
            ),
        ),
        NoChild::Jvm(e) => (attach::FAILED, e.to_string()),
    }
}

/// Returns the result code and the message for a child that failed to write a complete dump.
fn unfinished(ended: watch::Ended) -> (i32, String) {
    let failed = |why: &str| (attach::FAILED, why.to_owned());
    match ended {
        watch::Ended::Code(end::NO_SPACE) => (
            attach::NO_SPACE,
            "there is no disk space for the dump".to_owned(),
        ),
        watch::Ended::Code(end::VALUES) => failed(
            "this JVM stores value objects in a way that the agent does not know; take the dump without --fork",
        ),
        watch::Ended::Code(code) => (
            attach::FAILED,
            format!("the forked child that writes the dump ended with code {code}"),
        ),
        watch::Ended::Stuck => failed("the forked child that writes the dump made no progress"),
        watch::Ended::Locked => failed(
            "the forked child that writes the dump waited for a thread that exists only in the JVM, not in the child",
        ),
        watch::Ended::Unwanted => failed("the dump file was deleted"),
        watch::Ended::Memory(why) => (attach::NO_ROOM, why),
    }
}

/// Creates the dump file and writes the start of the dump.
fn create_dump_file(path: &Path, start: &[u8]) -> Result<File, (i32, String)> {
    let failed = |code, e| (code, format!("{}: {e}", path.display()));
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(|e| failed(attach::FAILED, e))?;
    file.write_all(start).map_err(|e| {
        let code = match e.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => attach::NO_SPACE,
            _ => attach::FAILED,
        };
        failed(code, e)
    })?;
    Ok(file)
}
