//! HotSpot's attach protocol, version 1, which every HotSpot since JDK 6 supports.
//!
//! 1. The client creates the file `.attach_pidN` in the JVM's working folder or in `/tmp`. N is the process id in the
//!    JVM's own PID namespace. The JVM accepts the file only from its own user or root.
//! 2. The client sends SIGQUIT. A JVM that finds the file starts to listen on the socket `/tmp/.java_pidN`, and keeps
//!    listening until it ends.
//! 3. Each connection carries one command: the version, the command and three arguments, each ended by a zero byte.
//! 4. The answer is a number, a line end, and text up to the end of the stream.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustix::process::geteuid;

use super::deadline::{Deadline, Progress, Sign};
use super::folder::Folder;
use super::process::{Process, unusable_failure};
use super::user::User;
use crate::failure::{Failure, Result, system_message};
use crate::interrupt::Unfinished;

/// Maximum number of bytes of an answer that are stored. Answers to our commands have a few lines.
const LONGEST_ANSWER: usize = 1 << 16;
const POLL: Duration = Duration::from_millis(20);
/// Time between two calls of the function `tick`, which observes a JVM that does not answer.
const TICK: Duration = Duration::from_millis(200);
/// Minimum time-out of a socket. To a socket, zero means that there is no time-out.
const SHORTEST: Duration = Duration::from_millis(1);
/// Maximum time of [`Address::send`]. The socket's buffer has room for a whole command, so sending does not wait for
/// the JVM.
const SENDING: Duration = Duration::from_secs(1);
/// Time that a process may take to end after it closed a connection.
const ENDING: Duration = Duration::from_secs(2);
/// The sticky bit of a folder's mode. If it is set, users cannot remove files of other users from the folder.
const STICKY: u32 = 0o1000;

/// A JVM that listens for attach commands.
#[derive(Debug)]
pub(super) struct Jvm<'a> {
    pub(super) process: &'a Process,
    /// The root of the file system that the JVM sees.
    pub(super) root: Folder,
    /// The `/tmp` of the JVM.
    pub(super) tmp: Folder,
    deadline: Deadline,
}

/// The answer of a JVM to a command.
#[derive(Debug)]
pub(super) struct Answer {
    /// Zero, unless the command itself failed.
    pub(super) code: i32,
    pub(super) text: String,
}

impl<'a> Jvm<'a> {
    /// Makes the JVM listen, unless it already does.
    pub(super) fn attach(process: &'a Process, deadline: Deadline) -> Result<Self> {
        let folder = |folder: io::Result<Folder>| {
            folder.map_err(|e| {
                unusable_failure(format!(
                    "{process}: cannot open the JVM's /tmp: {}",
                    system_message(&e)
                ))
            })
        };
        let root = folder(Folder::root_of(process.pid))?;
        let tmp = folder(root.open_in_root(Path::new("/tmp")))?;
        let jvm = Self {
            process,
            root,
            tmp,
            deadline,
        };
        jvm.connect()?;
        Ok(jvm)
    }

    /// Restarts the time-out for the next step of a command.
    pub(super) fn restart(&self) {
        self.deadline.restart();
    }

    /// Returns the time that is left until the command gives up.
    pub(super) fn remaining_time(&self) -> Duration {
        self.deadline.remaining()
    }

    /// Sends a command and waits for the answer. Calls `tick` a few times a second while waiting. `tick` returns an
    /// observation of the JVM. If `tick` returns an error, heapdiff stops waiting.
    pub(super) fn execute(
        &self,
        command: &str,
        arguments: [&[u8]; 3],
        tick: impl FnMut() -> Result<Sign>,
    ) -> Result<Answer> {
        let mut stream = self.connect()?;
        let left = self.remaining_time().max(SHORTEST);
        stream
            .set_write_timeout(Some(left))
            .and_then(|()| stream.write_all(&request(command, arguments)))
            .map_err(|e| match e.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut => self.no_answer_failure(),
                _ => self.broken(&e),
            })?;
        self.answer(stream, tick)
    }

    /// Waits for the answer to a command that was sent over this connection. See [`Self::execute`].
    pub(super) fn answer(
        &self,
        mut stream: UnixStream,
        mut tick: impl FnMut() -> Result<Sign>,
    ) -> Result<Answer> {
        let left = || self.remaining_time().max(SHORTEST);
        let broken = |e: io::Error| self.broken(&e);
        let mut progress = Progress::for_process(self.process);
        let mut answer = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            if self.remaining_time().is_zero() {
                return Err(self.no_answer_failure());
            }
            stream
                .set_read_timeout(Some(TICK.min(left())))
                .map_err(broken)?;
            match stream.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => {
                    let room = LONGEST_ANSWER - answer.len();
                    answer.extend_from_slice(&buffer[..read.min(room)]);
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    if progress.has_progressed(tick()?) {
                        self.deadline.restart();
                    }
                }
                Err(e) => return Err(broken(e)),
            }
        }
        Answer::parse(&answer).ok_or_else(|| match self.check_survives() {
            Err(ended) => ended,
            Ok(()) => unusable_failure(format!(
                "{} closed the connection without an answer",
                self.process
            )),
        })
    }

    fn check_survives(&self) -> Result<()> {
        self.process
            .check_survives(ENDING.min(self.remaining_time()))
    }

    /// Returns the failure for a broken connection. If the JVM has ended, the failure reports this instead of `error`.
    pub(super) fn broken(&self, error: &io::Error) -> Failure {
        match self.check_survives() {
            Err(ended) => ended,
            Ok(()) => unusable_failure(format!(
                "{}: the connection to the JVM failed: {}",
                self.process,
                system_message(error)
            )),
        }
    }

    /// Returns the address at which the JVM listens. The address is valid while this value exists.
    pub(super) fn address(&self) -> Address {
        Address {
            socket: self.socket(),
            user: self.process.user.clone(),
        }
    }

    /// Connects to the JVM. Starts its attach listener first if it is not running.
    fn connect(&self) -> Result<UnixStream> {
        let mut trigger = None;
        // A JVM that is still starting may miss the first signal, so a second signal is sent after half of the time.
        let again = self.remaining_time() / 2;
        let mut signals = 0;
        loop {
            match self.address().connect() {
                Ok(stream) => return Ok(stream),
                Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                // Nobody listens: there is no socket yet, or the socket is one that an earlier process left behind.
                Err(e)
                    if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) =>
                {
                    if trigger.is_none() {
                        self.check_tmp()?;
                        self.remove_stale_socket()?;
                        trigger = Some(self.trigger()?);
                    }
                    if signals == 0 || (signals == 1 && self.remaining_time() <= again) {
                        self.process.send_sigquit(&self.deadline)?;
                        signals += 1;
                    }
                }
                Err(e) => {
                    let message = format!(
                        "{}: cannot connect to the JVM: {}",
                        self.process,
                        system_message(&e)
                    );
                    return Err(unusable_failure(message));
                }
            }
            self.process.check_alive()?;
            if self.remaining_time().is_zero() {
                return Err(self.no_answer_failure());
            }
            sleep(POLL);
        }
    }

    fn no_answer_failure(&self) -> Failure {
        let timeout = self.deadline.timeout();
        unusable_failure(format!(
            "{} did not answer within {timeout:?}",
            self.process
        ))
        .with_hint(
            "the JVM may be busy or swapped out, or attaching is disabled; wait longer with --timeout 60s",
        )
    }

    fn socket(&self) -> PathBuf {
        self.tmp
            .path(format!(".java_pid{}", self.process.inner_pid))
    }

    /// Checks that the JVM can create its socket. A JVM that cannot create its socket never listens, and does not
    /// report an error either.
    fn check_tmp(&self) -> Result<()> {
        let Ok(Err(e)) = self.process.user.run_as(|| self.tmp.is_writable()) else {
            return Ok(());
        };
        if !is_permission_error(&e) {
            return Ok(());
        }
        let process = self.process;
        let message = format!(
            "cannot attach to {process}: the JVM cannot write to its /tmp: {}",
            system_message(&e)
        );
        Err(unusable_failure(message)
            .with_hint("mount a folder at /tmp that the JVM can write to (in a Kubernetes pod: an emptyDir volume)"))
    }

    /// Removes an abandoned socket that would prevent the JVM from creating its own.
    ///
    /// A killed JVM leaves its socket behind. If a JVM of another user later gets the same process id, it cannot
    /// replace that socket in a folder like `/tmp`. It would then never listen, and report no error.
    fn remove_stale_socket(&self) -> Result<()> {
        let path = self.socket();
        let (Ok(found), Ok(folder)) = (
            fs::symlink_metadata(&path),
            fs::metadata(self.tmp.path(".")),
        ) else {
            return Ok(());
        };
        let user = self.process.user.uid;
        let is_theirs = |uid: u32| uid == user.as_raw() || user.is_root();
        if is_theirs(found.uid()) || is_theirs(folder.uid()) || folder.mode() & STICKY == 0 {
            return Ok(());
        }
        let is_socket = found.file_type().is_socket();
        let answers = connect_socket(&path).map_err(|e| e.kind());
        let is_deserted = answers.as_ref().err() == Some(&ErrorKind::ConnectionRefused);
        if is_socket && is_deserted && fs::remove_file(&path).is_ok() {
            return Ok(());
        }
        let (process, id) = (self.process, self.process.inner_pid);
        let owner = User::name_of(found.uid());
        let message = format!(
            "cannot attach to {process}: its socket /tmp/.java_pid{id} exists and belongs to the user {owner}"
        );
        Err(
            unusable_failure(message).with_hint(if is_socket && answers.is_err() {
                format!("an earlier process with the id {id} left this file; delete the file as {owner} or as root")
            } else {
                format!("another program created this file, or a process in another container has the id {id} and uses the same /tmp")
            }),
        )
    }

    /// Creates the trigger file. If this file exists when SIGQUIT arrives, the JVM starts to listen. If the file does
    /// not exist, the JVM prints a thread dump.
    fn trigger(&self) -> Result<Trigger> {
        let name = format!(".attach_pid{}", self.process.inner_pid);
        let user = &self.process.user;
        let create = |folder: &Folder| -> io::Result<(PathBuf, ())> {
            let path = folder.path(&name);
            let made = user.create_as(|| {
                let mut new = OpenOptions::new();
                // `create_new` never changes an existing file and never follows a link. The file or link may belong to
                // another user.
                new.write(true).create_new(true).mode(0o600).open(&path)
            });
            match made {
                Ok(file) => {
                    file.set_permissions(Permissions::from_mode(0o600))?;
                    let (uid, gid) = (user.uid.as_raw(), user.gid.as_raw());
                    if file.metadata()?.uid() != uid {
                        // If the owner of the file cannot be changed, JVMs since JDK 11 still accept the file if root
                        // owns it.
                        let _ = std::os::unix::fs::fchown(&file, Some(uid), Some(gid));
                    }
                }
                // Another program is attaching at the same time, or was killed while it was attaching.
                Err(e) if e.kind() == ErrorKind::AlreadyExists => {
                    let owner = fs::symlink_metadata(&path)?.uid();
                    if owner != user.uid.as_raw() && owner != 0 {
                        return Err(e);
                    }
                }
                Err(e) => return Err(e),
            }
            Ok((path, ()))
        };
        let make = |folder: &Folder| Unfinished::new(|| create(folder)).map(|(file, ())| file);
        match make(&self.tmp) {
            Ok(file) => Ok(Trigger {
                _file: file,
                _cwd: None,
            }),
            Err(first) => {
                let second = Folder::cwd_of(self.process.pid)
                    .and_then(|cwd| Ok((make(&cwd)?, cwd)))
                    .map_err(|_| {
                        let process = self.process;
                        unusable_failure(format!(
                            "cannot attach to {process}: cannot create /tmp/{name}: {}",
                            system_message(&first)
                        ))
                    });
                let (file, cwd) = second?;
                Ok(Trigger {
                    _file: file,
                    _cwd: Some(cwd),
                })
            }
        }
    }
}

/// The address at which a JVM listens for commands.
#[derive(Clone, Debug)]
pub(super) struct Address {
    socket: PathBuf,
    user: User,
}

impl Address {
    /// Sends a command, if the JVM listens already. The JVM runs the command even if the connection is then closed.
    pub(super) fn send(&self, command: &str, arguments: [&[u8]; 3]) -> io::Result<UnixStream> {
        let mut stream = self.connect()?;
        stream.set_write_timeout(Some(SENDING))?;
        stream.write_all(&request(command, arguments))?;
        Ok(stream)
    }

    /// Connects as the JVM's user. The JVM accepts only its own user and, since JDK 11, root.
    fn connect(&self) -> io::Result<UnixStream> {
        let meta = fs::symlink_metadata(&self.socket)?;
        if !meta.file_type().is_socket() || meta.uid() != self.user.uid.as_raw() {
            // Any user may have put this socket into /tmp. The JVM replaces it if it can.
            return Err(ErrorKind::NotFound.into());
        }
        let socket = match self.user.run_as(|| connect_socket(&self.socket)) {
            // If root may not switch to the JVM's user, connect as root, because the JVM may accept root.
            Err(_) if geteuid().is_root() => connect_socket(&self.socket),
            dialled => dialled?,
        }?;
        let stream = UnixStream::from(socket);
        stream.set_nonblocking(false)?;
        Ok(stream)
    }
}

/// Encodes a command: the version of the protocol, the command and its arguments, each with a zero byte at the end.
fn request(command: &str, arguments: [&[u8]; 3]) -> Vec<u8> {
    let mut request = b"1\0".to_vec();
    for word in [&[command.as_bytes()], &arguments[..]].concat() {
        request.extend_from_slice(word);
        request.push(0);
    }
    request
}

fn connect_socket(path: &Path) -> io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

/// The trigger file and its folder. The file exists until the JVM listens or heapdiff gives up.
#[derive(Debug)]
struct Trigger {
    _file: Unfinished,
    _cwd: Option<Folder>,
}

impl Answer {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(bytes);
        let (code, rest) = text.split_once('\n').unwrap_or((&text, ""));
        Some(Self {
            code: code.trim().parse().ok()?,
            text: rest.trim_end().to_owned(),
        })
    }

    /// Returns the text as one printable line, for messages.
    pub(super) fn line(&self) -> String {
        let mut lines = self.text.lines().map(str::trim).filter(|l| !l.is_empty());
        let mut line = lines.next().unwrap_or_default().to_owned();
        for more in lines {
            line += " ";
            line += more;
        }
        line.retain(|c| !c.is_control());
        if line.is_empty() {
            format!("error {}", self.code)
        } else {
            line
        }
    }
}

/// True if the error shows that the user may not create files in a folder. Any other error only shows that the
/// permission could not be checked: kernels before Linux 5.8 and some sandboxes lack the system call.
fn is_permission_error(error: &io::Error) -> bool {
    let refusals = [Errno::ACCESS, Errno::ROFS];
    Errno::from_io_error(error).is_some_and(|error| refusals.contains(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read() {
        let read = |text: &str| Answer::parse(text.as_bytes()).map(|a| (a.code, a.line()));
        assert_eq!(
            read("0\nreturn code: 0\n"),
            Some((0, "return code: 0".into()))
        );
        assert_eq!(
            read("-1\na.so was not loaded.\n\x1b[2J b\n"),
            Some((-1, "a.so was not loaded. [2J b".into()))
        );
        assert_eq!(read("101"), Some((101, "error 101".into())));
        assert_eq!(read(""), None);
        assert_eq!(read("hello\n"), None);
    }

    #[test]
    fn unavailable_system_calls_are_not_refusals() {
        let told = |error: Errno| is_permission_error(&error.into());
        assert!(told(Errno::ACCESS) && told(Errno::ROFS));
        assert!(!told(Errno::NOSYS) && !told(Errno::PERM) && !told(Errno::INVAL));
    }
}
