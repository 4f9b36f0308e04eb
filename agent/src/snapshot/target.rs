//! The destination of a snapshot. It is a file, or a pipe to the process that requested the snapshot. With a pipe, no
//! file is written anywhere.
//!
//! The requester cannot pass a pipe to the JVM: a JVM in a container sees no files of the requester. So the agent
//! creates the pipe and announces it. The requester has access to the JVM's process, and opens one end of the pipe
//! ([`heapdiff_sites::piped`]).

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt;
use std::thread::sleep;
use std::time::{Duration, Instant};

use heapdiff_sites::piped;

use crate::jvmti::{memory_file, wide_pipe};

/// Maximum time to wait until the requester opens the pipe. [`LOOK`] is the interval between checks.
const TAKEN: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(2);
/// Maximum number of bytes written to a pipe in one call. The parent detects progress by the kernel's count of written
/// bytes, and the kernel updates this count only after a call.
const PART: usize = 1 << 20;

/// A writer of the dump.
pub(crate) trait Output {
    /// Appends bytes.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Overwrites bytes at offset `at`. With a pipe, this is possible only once, as the last call.
    fn overwrite(&mut self, at: u64, bytes: &[u8]) -> io::Result<()>;
}

/// A file that contains the start of the dump, or a pipe to which the child writes the whole dump. The JVM itself never
/// writes to the pipe, so a reader that stops reading cannot block the JVM.
#[derive(Debug)]
pub(crate) enum Target {
    File(File),
    Pipe { pipe: File, start: Vec<u8> },
}

impl Target {
    /// Returns the only file descriptor that the child keeps open.
    pub(crate) fn descriptor(&self) -> RawFd {
        match self {
            Self::File(file) | Self::Pipe { pipe: file, .. } => file.as_raw_fd(),
        }
    }

    /// True if part of the dump was sent through a pipe, so that the dump cannot be restarted.
    pub(crate) fn has_sent(&self) -> bool {
        matches!(self, Self::Pipe { start, .. } if start.is_empty())
    }

    /// Discards the data that a child wrote to the file after the first `start` bytes. Does nothing for a pipe.
    pub(crate) fn truncate_to(&mut self, start: u64) -> io::Result<()> {
        let Self::File(file) = self else {
            return Ok(());
        };
        file.set_len(start)?;
        file.seek(SeekFrom::Start(start)).map(drop)
    }
}

impl Output for Target {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::File(file) => file.write_all(bytes),
            Self::Pipe { pipe, start } => {
                pipe.write_all(&std::mem::take(start))?;
                bytes.chunks(PART).try_for_each(|part| pipe.write_all(part))
            }
        }
    }

    fn overwrite(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::File(file) => file.write_all_at(bytes, at),
            Self::Pipe { pipe, .. } => {
                pipe.write_all(bytes)?;
                pipe.write_all(&piped::trailer(at, bytes.len() as u64))
            }
        }
    }
}

/// Creates a pipe, announces it under the requester's token, and waits until the requester opens it. Returns the write
/// end.
pub(super) fn offered(token: &str) -> io::Result<File> {
    let (from, to) = wide_pipe()?;
    let mut sign = memory_file(&piped::memory_file_name(token))?;
    sign.write_all(piped::file_content(from.as_raw_fd()).as_bytes())?;
    let shown = Instant::now();
    loop {
        let mut first = [0];
        sign.seek(SeekFrom::Start(0))?;
        if sign.read(&mut first)? == 0 {
            // The file `sign` announces the pipe. The requester has emptied this file, so it has opened the pipe for
            // reading. Now this function closes the agent's own read end. So if the requester later closes its read
            // end, writing fails.
            return Ok(File::from(OwnedFd::from(to)));
        }
        if shown.elapsed() > TAKEN {
            let why = "heapdiff did not open the pipe in time";
            return Err(io::Error::new(ErrorKind::TimedOut, why));
        }
        sleep(LOOK);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use hprof::bytes::piped::parts_of;

    use super::*;

    #[test]
    fn a_file_is_restarted_from_its_start() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("dump");
        let mut file = File::create(&path).unwrap();
        file.write_all(b"start").unwrap();
        let mut target = Target::File(file);
        target.append(b"of one that was killed").unwrap();
        assert!(!target.has_sent());
        target.truncate_to(5).unwrap();
        target.append(b" more").unwrap();
        assert_eq!(fs::read(path).unwrap(), b"start more");
    }

    #[test]
    fn a_pipe_is_offered_and_accepted() {
        let token = format!("test-{}", std::process::id());
        let asked = token.clone();
        let agent = std::thread::spawn(move || {
            let pipe = offered(&asked)?;
            let mut target = Target::Pipe {
                pipe,
                start: b"0123456789".to_vec(),
            };
            assert!(!target.has_sent());
            target.append(b"more")?;
            assert!(target.has_sent());
            target.overwrite(2, b"ab")
        });
        let sign = format!("/memfd:{}", piped::memory_file_name(&token));
        let started = Instant::now();
        let (path, end) = loop {
            assert!(started.elapsed() < TAKEN, "no sign of it");
            let files = fs::read_dir("/proc/self/fd").unwrap();
            let found = files.flatten().find(|file| {
                let link = fs::read_link(file.path()).unwrap_or_default();
                link.to_string_lossy().starts_with(&sign)
            });
            let text = found.map(|found| (found.path(), fs::read_to_string(found.path())));
            if let Some((path, Ok(text))) = text
                && let Some(end) = piped::parse_descriptor(&text)
            {
                break (path, end);
            }
        };
        let mut pipe = File::open(format!("/proc/self/fd/{end}")).unwrap();
        fs::write(path, "").unwrap();
        let mut all = Vec::new();
        pipe.read_to_end(&mut all).unwrap();
        agent.join().unwrap().unwrap();
        let trailer = all.last_chunk().unwrap();
        let (at, length, whole) = parts_of(all.len() as u64, *trailer).unwrap();
        assert_eq!((at, length, whole), (2, 2, 14));
        assert_eq!(&all[..16], b"0123456789moreab");
    }
}
