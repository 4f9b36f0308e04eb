//! A dump in memory: a forked child of the JVM sends the dump through a pipe, and heapdiff stores it in an anonymous
//! memory file (memfd).
//!
//! The agent creates the pipe. In a container the JVM sees none of our files, but a user who may attach to the JVM may
//! open its descriptors ([`heapdiff_sites::piped`]). The memory is accounted to heapdiff and not to the JVM's
//! container. If either process is killed, nothing remains.

use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::sleep;
use std::time::{Duration, Instant};

use heapdiff_sites::{attach, piped};
use heapdiff_units::Size;
use hprof::bytes::piped::{TRAILER, parts_of};
use rustix::fs::{MemfdFlags, OFlags, memfd_create};

use super::child::Child;
use super::fork::{self, Refused};
use super::library::Library;
use super::process::unusable_failure;
use super::protocol::Jvm;
use crate::failure::{Result, system_message};
use crate::progress::{Meter, Wanted};

/// Time between two searches for the pipe through which the child sends the dump.
const LOOK: Duration = Duration::from_millis(5);
/// Time between two reads from an empty pipe. During this time, the pipe's buffer stores what the child writes.
const MORE: Duration = Duration::from_micros(300);
/// Maximum time without bytes from the pipe after the agent has finished. After this time, receiving the dump fails.
const SILENT: Duration = Duration::from_secs(5);
/// Number of received bytes after which the free memory is checked again.
const ROOM: u64 = 16 << 20;
/// Number of bytes of free memory that are left for other processes.
const RESERVE: u64 = 64 << 20;

/// A dump in memory. Dropping this value frees the memory.
#[derive(Debug)]
pub(super) struct Held {
    file: File,
}

impl Held {
    /// Makes a child of the JVM send its heap, and receives it.
    pub(super) fn take(
        jvm: &Jvm<'_>,
        library: &Library,
        wanted: Wanted,
        name: &Path,
    ) -> Result<Self> {
        let meter = Meter::new(wanted, name);
        meter.begin_unbounded_phase("dumping");
        let token = token();
        let options = [attach::SNAPSHOT_PIPE, &token].concat();
        let (over, received) = (AtomicBool::new(false), AtomicU64::new(0));
        let (asked, came) = std::thread::scope(|scope| {
            let receiver = scope.spawn(|| {
                let pipe = find_pipe(jvm.process.pid, &token, &over)?;
                pipe.map(|pipe| receive(&pipe, &over, &received))
                    .transpose()
            });
            let mut child = Child::for_jvm(jvm.process);
            let asked = fork::request_with(jvm, library, options.as_bytes(), || {
                let bytes = received.load(Relaxed);
                meter.set_done(bytes);
                meter.print_above_bar(child.new_wait_message(bytes));
                jvm.process.check_alive().map(|()| child.sign(bytes))
            });
            over.store(true, Relaxed);
            let came = receiver.join();
            (asked, came.unwrap_or_else(|panic| resume_unwind(panic)))
        });
        let process = jvm.process;
        // If memory runs short, heapdiff closes the pipe, which makes the child fail, too. So the lack of memory is the
        // cause of both failures, and is reported first.
        if let Err(Unreceived::NoRoom(why)) = &came {
            return Err(unusable_failure(format!("{process}: {why}")).with_hint(
                "leave out --no-files: the dumps are then written to files, and --max-memory limits the memory of the analysis",
            ));
        }
        let answer = asked?;
        // If heapdiff has no permission to open the pipe, the agent reports only that nobody read from it. The error
        // from opening the pipe is more exact, and is returned below.
        let is_barred =
            matches!(&came, Err(Unreceived::Io(e)) if e.kind() == ErrorKind::PermissionDenied);
        if let Some(refused) = answer.filter(|_| !is_barred) {
            return Err(refused.without_files(process));
        }
        match came {
            Ok(Some(held)) => Ok(held),
            Ok(None) => Err(Refused::missing_dump_refusal().without_files(process)),
            Err(error) => Err(unusable_failure(format!("{process}: {error}"))),
        }
    }

    /// Returns a path to the dump that is valid in this process only.
    pub(super) fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.file.as_raw_fd()))
    }
}

/// The reason why a dump was not received.
#[derive(Debug)]
enum Unreceived {
    NoRoom(String),
    Io(io::Error),
}

impl std::fmt::Display for Unreceived {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoRoom(why) => f.write_str(why),
            Self::Io(error) => write!(
                f,
                "the transfer of the dump failed: {}",
                system_message(error)
            ),
        }
    }
}

impl From<io::Error> for Unreceived {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Returns a random word that nobody can guess.
pub(super) fn token() -> String {
    let random = RandomState::new().hash_one(std::process::id());
    format!("{random:016x}")
}

/// Opens the read end of the pipe whose file descriptor the agent wrote to a memory file (memfd). Returns `None` if the
/// agent has finished (`over`) and there is still no pipe.
fn find_pipe(
    pid: u32,
    token: &str,
    over: &AtomicBool,
) -> std::result::Result<Option<File>, Unreceived> {
    let sign = format!("/memfd:{}", piped::memory_file_name(token));
    let files = PathBuf::from(format!("/proc/{pid}/fd"));
    loop {
        // Most errors of listing the files are ignored, because the JVM opens and closes files during this search, and
        // may end. A missing permission is reported.
        let is_last = over.load(Relaxed);
        let entries = match fs::read_dir(&files) {
            Err(e) if e.kind() == ErrorKind::PermissionDenied => return Err(e.into()),
            entries => entries.into_iter().flatten().flatten(),
        };
        for entry in entries {
            if !is_named(&entry.path(), &sign) {
                continue;
            }
            let shown = open_sign(&entry.path(), &sign)?;
            let mut text = String::new();
            let read = (&shown).take(64).read_to_string(&mut text);
            if let (Ok(_), Some(end)) = (read, piped::parse_descriptor(&text)) {
                let pipe = open_pipe(&files.join(end.to_string()))?;
                // Empty the memory file (memfd) in which the agent wrote the pipe's file descriptor. The agent waits
                // until this file is empty, because then somebody reads the pipe.
                shown.set_len(0)?;
                return Ok(Some(pipe));
            }
        }
        if is_last {
            return Ok(None);
        }
        sleep(LOOK);
    }
}

/// True if a descriptor of a process refers to a file whose name starts with `name`.
pub(super) fn is_named(descriptor: &Path, name: &str) -> bool {
    let link = fs::read_link(descriptor).unwrap_or_default();
    let link = link.as_os_str().as_encoded_bytes();
    link.starts_with(name.as_bytes())
}

/// Opens the memory file (memfd) in which the agent wrote the pipe's file descriptor. The JVM's user may put another
/// file in its place, so this checks the open file and does not use its path again.
fn open_sign(path: &Path, sign: &str) -> io::Result<File> {
    memory_at(path, sign).map_err(|e| match e.kind() {
        ErrorKind::InvalidInput => {
            io::Error::other("the file that the agent created for the dump is not a pipe")
        }
        _ => e,
    })
}

/// Opens a memory file (memfd) of this name. Any other file is an error.
pub(super) fn memory_at(path: &Path, sign: &str) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    let own = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let meta = file.metadata()?;
    if is_named(&own, sign) && meta.is_file() && meta.nlink() == 0 {
        Ok(file)
    } else {
        Err(ErrorKind::InvalidInput.into())
    }
}

/// Opens a pipe. Any other file is an error: the JVM's user may have put one in its place.
fn open_pipe(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let pipe = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    if pipe.metadata()?.file_type().is_fifo() {
        Ok(pipe)
    } else {
        Err(io::Error::other(
            "the file that the agent created for the dump is not a pipe",
        ))
    }
}

/// Stores all bytes that are read from the pipe.
fn receive(
    mut pipe: &File,
    over: &AtomicBool,
    received: &AtomicU64,
) -> std::result::Result<Held, Unreceived> {
    let file = memfd_create("heapdiff-dump", MemfdFlags::CLOEXEC).map_err(io::Error::from)?;
    let mut held = File::from(file);
    let mut buffer = vec![0; 256 << 10];
    let (mut bytes, mut looked) = (0, 0);
    let mut heard = Instant::now();
    check_memory(0)?;
    loop {
        match pipe.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => {
                held.write_all(&buffer[..read])?;
                bytes += read as u64;
                received.store(bytes, Relaxed);
                heard = Instant::now();
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) if e.kind() == ErrorKind::WouldBlock => {
                if !over.load(Relaxed) {
                    heard = Instant::now();
                } else if heard.elapsed() > SILENT {
                    return Err(io::Error::from(ErrorKind::UnexpectedEof).into());
                }
                sleep(MORE);
            }
            Err(e) => return Err(e.into()),
        }
        if bytes - looked >= ROOM {
            looked = bytes;
            check_memory(bytes)?;
        }
    }
    completed(&held, bytes)?;
    Ok(Held { file: held })
}

/// Checks that enough memory is free for the analysis of a dump. Called repeatedly while the dump is received; `bytes`
/// is the number of bytes received so far.
fn check_memory(bytes: u64) -> std::result::Result<(), Unreceived> {
    match heapdiff_agent::memory_left() {
        None => Ok(()),
        Some((left, place)) => {
            if fits(bytes, left) {
                Ok(())
            } else {
                Err(Unreceived::NoRoom(format!(
                    "not enough memory for the dump: {place} has only {} left after the first {} of the dump",
                    Size(left),
                    Size(bytes)
                )))
            }
        }
    }
}

/// True if `left` bytes of free memory are enough for the analysis, after `bytes` bytes of a dump were received. The
/// analysis takes about 28 bytes for each object. The smallest record of an object in a dump (a boxed number) has about
/// as many bytes. So the analysis needs at most about as much memory as the dump.
fn fits(bytes: u64, left: u64) -> bool {
    left >= RESERVE.saturating_add(bytes)
}

/// Moves the last part of the stream to its position in the dump. The child can send this part only at the end,
/// although it belongs nearer to the start.
fn completed(held: &File, bytes: u64) -> io::Result<()> {
    let broken = || io::Error::from(ErrorKind::UnexpectedEof);
    let mut trailer = [0; TRAILER];
    let from = bytes.checked_sub(TRAILER as u64).ok_or_else(broken)?;
    held.read_exact_at(&mut trailer, from)?;
    let (at, length, whole) = parts_of(bytes, trailer).ok_or_else(broken)?;
    let mut piece = vec![0; usize::try_from(length).map_err(|_| broken())?];
    held.read_exact_at(&mut piece, whole)?;
    held.write_all_at(&piece, at)?;
    held.set_len(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the dump that is stored if the pipe delivers the bytes `sent`.
    fn held(sent: &[u8]) -> std::result::Result<Vec<u8>, Unreceived> {
        let (from, mut to) = io::pipe().unwrap();
        let files = PathBuf::from("/proc/self/fd");
        let pipe = open_pipe(&files.join(from.as_raw_fd().to_string())).unwrap();
        drop(from);
        std::thread::scope(|scope| {
            scope.spawn(move || to.write_all(sent).unwrap());
            let held = receive(&pipe, &AtomicBool::new(false), &AtomicU64::new(0))?;
            Ok(fs::read(held.path())?)
        })
    }

    #[test]
    fn a_dump_is_assembled_from_the_transfer() {
        let dump = vec![b'.'; 300_000];
        let sent = [&dump, &b"ab"[..], &piped::trailer(1, 2)].concat();
        let mut whole = dump.clone();
        whole[1..3].copy_from_slice(b"ab");
        assert_eq!(held(&sent).unwrap(), whole);
        for cut in [0, 1, 20] {
            let error = held(&sent[..cut]).unwrap_err().to_string();
            assert!(
                error.starts_with("the transfer of the dump failed: "),
                "{cut}: {error}"
            );
            assert!(!error.contains("is not a pipe"), "{error}");
        }
        let full = Unreceived::NoRoom("no room for the dump in memory".to_owned());
        assert!(!full.to_string().contains("the transfer of the dump failed"));
    }

    #[test]
    fn only_pipes_are_opened() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = open_pipe(file.path()).unwrap_err().to_string();
        assert_eq!(
            error,
            "the file that the agent created for the dump is not a pipe"
        );
    }

    #[test]
    fn only_the_agents_sign_is_answered() {
        let (from, mut to) = io::pipe().unwrap();
        to.write_all(b"dump").unwrap();
        let token = token();
        let name = piped::memory_file_name(&token);
        let mut sign = File::from(memfd_create(&*name, MemfdFlags::CLOEXEC).unwrap());
        let shown = piped::file_content(from.as_raw_fd());
        sign.write_all(shown.as_bytes()).unwrap();
        let us = std::process::id();
        let find = |token: &str| find_pipe(us, token, &AtomicBool::new(true)).unwrap();
        let mut came = [0; 4];
        find(&token).unwrap().read_exact(&mut came).unwrap();
        assert_eq!((&came, sign.metadata().unwrap().len()), (b"dump", 0));
        assert!(find("another").is_none());

        // An ordinary file takes the place of the memory file. The search must refuse the file and leave it unchanged,
        // even if its name has the expected prefix.
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("precious");
        fs::write(&file, &shown).unwrap();
        let named = file.to_str().unwrap();
        for sign in ["/memfd:", named] {
            let error = open_sign(&file, sign).unwrap_err().to_string();
            assert_eq!(
                error,
                "the file that the agent created for the dump is not a pipe"
            );
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), shown);
    }

    #[test]
    fn a_dump_needs_room_for_its_analysis() {
        assert!(fits(0, RESERVE) && !fits(0, RESERVE - 1));
        assert!(fits(800, RESERVE + 800) && !fits(800, RESERVE + 799));
    }
}
