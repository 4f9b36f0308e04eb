//! A snapshot of the heap that a forked child writes, while the JVM goes on.
//!
//! Three steps: [`take`] asks the JVM for classes, names and stacks and writes the start of the file; a child is
//! forked at a safepoint and writes what the walk tells it (`writer`); the parent watches it to its end (`watch`). What is
//! known before has its place in `image`, and `room` tells where forking is no good.

mod image;
mod room;
mod watch;
mod writer;

#[cfg(test)]
mod tests;

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use heapdiff_sites::attach;

use crate::jvmti::calls::Env;
use crate::jvmti::sys::capability;
use crate::jvmti::walk::NoChild;
use crate::jvmti::{Environment, walk::end};
use crate::log::say;
pub(crate) use image::{ClassInfo, FieldInfo, FrameInfo, Gathered, Image, ThreadInfo, kind_of};
pub(crate) use writer::{Kind, Reference, Tally, Writer};

/// How far a child is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Calls of the walk that it has dealt with.
    pub(crate) callbacks: u64,
    /// Whether it is dealing with one.
    pub(crate) busy: bool,
    pub(crate) tally: Tally,
}

/// Writes a snapshot to a new file. Returns one of [`attach`]'s codes. The environment is given back in the end, with
/// all tags.
pub(crate) fn take(environment: &Environment, env: &Env<'_>, path: &str) -> i32 {
    match snapshot(environment, env, path) {
        Ok(tally) => {
            if tally.late > 0 {
                say(format_args!(
                    "{} objects in the snapshot are of classes that were loaded while it began; their fields are missing",
                    tally.late
                ));
            }
            attach::DONE
        }
        Err((code, why)) => {
            say(format_args!("no snapshot: {why}"));
            code
        }
    }
}

fn snapshot(environment: &Environment, env: &Env<'_>, path: &str) -> Result<Tally, (i32, String)> {
    let failed = |why: &dyn std::fmt::Display| (attach::FAILED, why.to_string());
    let addresses = environment
        .heap_addresses(env)
        .ok_or_else(|| (attach::HEAP_FULL, "the heap is full".to_owned()))?;
    room::heap_is_private(&addresses)?;
    room::enough(environment.marks_objects()).map_err(|why| (attach::NO_ROOM, why))?;
    let wanted = [
        capability::TAG_OBJECTS,
        capability::SOURCE_FILE_NAME,
        capability::LINE_NUMBERS,
    ];
    environment
        .add_capabilities(&wanted)
        .map_err(|e| failed(&e))?;
    let (mut gathered, held) = environment.gather(env).map_err(|e| failed(&e))?;
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    let millis = since_epoch.unwrap_or_default().as_millis();
    gathered.taken_ms = u64::try_from(millis).unwrap_or(0);
    let image = Image::new(&gathered);
    drop(gathered);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(|e| failed(&format_args!("{path}: {e}")))?;
    file.write_all(&image.start).map_err(|e| match e.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
            (attach::NO_SPACE, format!("{path}: {e}"))
        }
        _ => failed(&format_args!("{path}: {e}")),
    })?;
    let mut child = environment
        .fork(image, file, room::shared_files())
        .map_err(|why| match why {
            NoChild::Fork(code) => (
                attach::NO_ROOM,
                format!(
                    "the system does not let the JVM fork: {}",
                    std::io::Error::from_raw_os_error(code)
                ),
            ),
            NoChild::Jvm(e) => failed(&e),
        })?;
    drop(held);
    match watch::watch(&mut child, Path::new(path), room::still_enough) {
        watch::Ended::Code(end::DONE) => Ok(child.progress().tally),
        watch::Ended::Code(end::NO_SPACE) => Err((attach::NO_SPACE, "no space for it".to_owned())),
        watch::Ended::Code(code) => Err(failed(&format_args!(
            "the child that wrote it ended with {code}"
        ))),
        watch::Ended::Stuck => Err(failed(&"the child that wrote it made no progress")),
        watch::Ended::Unwanted => Err(failed(&"its file was removed")),
        watch::Ended::Memory(why) => Err((attach::NO_ROOM, why)),
    }
}
