//! Information from `/proc` about a process, and the checks that it is a JVM that heapdiff can attach to.

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::time::{Duration, Instant};

use rustix::fs::{Gid, Uid};
use rustix::process::{
    Pid, PidfdFlags, Signal, geteuid, kill_process, pidfd_open, pidfd_send_signal,
    test_kill_process,
};

use super::c_library::CLibrary;
use super::deadline::Deadline;
use super::library::MARK;
use super::list::table;
use super::request::Target;
use super::user::User;
use crate::failure::{Failure, Result, system_message};

/// A HotSpot JVM that heapdiff may attach to.
#[derive(Debug)]
pub(crate) struct Process {
    pub(super) pid: u32,
    /// The process id in the PID namespace of the process. The JVM uses this id in the names of its files.
    pub(super) inner_pid: u32,
    pub(super) user: User,
    /// The main class or jar.
    main: String,
    /// A file descriptor that refers to the process (pidfd), which needs Linux 5.3. A signal that is sent through it
    /// cannot reach a later process with the same id.
    handle: Option<OwnedFd>,
}

/// Part of the path of a JVM's performance counter file.
const PERF_DATA: &str = "/hsperfdata_";

/// How long a starting JVM may take to load its library, and then to install its signal handlers.
const STARTING: Duration = Duration::from_secs(10);

impl Process {
    /// Finds the process. Checks that it is a HotSpot JVM and that heapdiff may act as its user.
    pub(super) fn find(target: &Target, deadline: &Deadline) -> Result<Self> {
        let pid = match target {
            Target::Pid(pid) => *pid,
            Target::Name(name) => find_by_name(name)?,
        };
        Self::open(pid, deadline)
    }

    fn open(pid: u32, deadline: &Deadline) -> Result<Self> {
        if pid == std::process::id() {
            return Err(unusable_failure(format!(
                "{pid} is heapdiff itself, which is not a JVM"
            )));
        }
        let handle = i32::try_from(pid)
            .ok()
            .and_then(Pid::from_raw)
            .and_then(|id| pidfd_open(id, PidfdFlags::empty()).ok());
        let status = Status::read(pid).map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => {
                unusable_failure(format!("there is no process {pid}")).with_hint(other_jvms_hint())
            }
            _ => unusable_failure(format!("process {pid}: {}", system_message(&e))),
        })?;
        let name = &status.name;
        if status.process != pid {
            let process = status.process;
            return Err(
                unusable_failure(format!("{pid} is a thread of the process {process}"))
                    .with_hint(format!("use the process id {process}")),
            );
        }
        if matches!(status.state, 'Z' | 'X') {
            return Err(unusable_failure(format!(
                "process {pid} ({name}) has ended"
            )));
        }
        let user = status.user.clone();
        if !user.is_inspectable() {
            let owner = user.name();
            return Err(unusable_failure(format!(
                "process {pid} ({name}) belongs to the user {owner}"
            ))
            .with_hint(with_sudo()));
        }
        match Kind::of(pid, STARTING.min(deadline.remaining()))
            .map_err(|e| permission_failure(pid, name, &e))?
        {
            Kind::HotSpot => {}
            Kind::OpenJ9 => {
                return Err(unusable_failure(format!(
                    "process {pid} ({name}) is an OpenJ9 JVM; heapdiff can attach to HotSpot JVMs only"
                ))
                .with_hint(format!(
                    "OpenJ9 writes no HPROF: run `jcmd {pid} Dump.system`, and export the system dump as HPROF with Eclipse MAT and its DTFJ plug-in"
                )));
            }
            Kind::Starting | Kind::Other => {
                return Err(unusable_failure(format!(
                    "process {pid} ({name}) is not a HotSpot JVM: it has no libjvm.so"
                ))
                .with_hint(other_jvms_hint()));
            }
        }
        if matches!(status.state, 'T' | 't') {
            return Err(unusable_failure(format!(
                "process {pid} ({name}) is stopped, so it cannot answer"
            ))
            .with_hint(format!(
                "continue it with `kill -CONT {pid}`, and run the command again"
            )));
        }
        let command = CommandLine::of(pid);
        if command.refuses_to_attach() {
            return Err(unusable_failure(format!(
                "process {pid} ({name}) was started with -XX:+DisableAttachMechanism"
            ))
            .with_hint("restart the JVM without that option, or with -XX:+HeapDumpOnOutOfMemoryError to get a dump"));
        }
        Ok(Self {
            pid,
            inner_pid: status.inner_pid,
            user,
            main: command.main().unwrap_or_else(|| name.clone()),
            handle,
        })
    }

    /// Sends SIGQUIT, which makes the JVM start its attach listener. SIGQUIT ends a process that does not handle it,
    /// such as a JVM with `-Xrs` or a JVM that is still starting. So this function first waits until the process
    /// handles the signal.
    pub(super) fn send_sigquit(&self, deadline: &Deadline) -> Result<()> {
        let start = Instant::now();
        let most = STARTING.min(deadline.remaining());
        while !Status::read(self.pid).is_ok_and(|status| status.handles_quit) {
            if start.elapsed() > most {
                self.check_alive()?;
                return Err(unusable_failure(format!(
                    "cannot attach to {self}: it does not handle SIGQUIT, so this signal would end the process"
                ))
                .with_hint("if the JVM is still starting, run the command again; if it runs with -Xrs or -XX:+ReduceSignalUsage, restart it without these options"));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let sent = match (&self.handle, self.raw_pid()) {
            (Some(handle), _) => pidfd_send_signal(handle, Signal::QUIT),
            (None, Some(pid)) => kill_process(pid, Signal::QUIT),
            (None, None) => Ok(()),
        };
        sent.map_err(|e| {
            unusable_failure(format!(
                "cannot send a signal to {self}: {}",
                system_message(&e.into())
            ))
        })
    }

    fn raw_pid(&self) -> Option<Pid> {
        Pid::from_raw(i32::try_from(self.pid).ok()?)
    }

    /// Returns an error if the process has ended.
    pub(super) fn check_alive(&self) -> Result<()> {
        let gone = self
            .raw_pid()
            .is_none_or(|pid| test_kill_process(pid) == Err(rustix::io::Errno::SRCH))
            || Status::read(self.pid).is_ok_and(|s| matches!(s.state, 'Z' | 'X'));
        if gone {
            Err(unusable_failure(format!("{self} has ended")))
        } else {
            Ok(())
        }
    }

    /// Like [`Self::check_alive`], but checks repeatedly until `time` has passed. The kernel closes the files of a
    /// process before it reports the end of the process. So a process that closed a connection may still seem alive.
    pub(super) fn check_survives(&self, time: Duration) -> Result<()> {
        let end = Instant::now() + time;
        loop {
            self.check_alive()?;
            if Instant::now() >= end {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Returns a path by which the process's dynamic linker recognizes the loaded agent; `None` if no agent is loaded.
    ///
    /// The dynamic linker of glibc recognizes a loaded library by its path. The dynamic linker of musl recognizes a
    /// loaded library by its inode, so it needs a path to the same file, even if the file was deleted or replaced.
    /// Therefore the agent keeps its file open in a JVM with musl.
    pub(super) fn agent(&self) -> Option<String> {
        let mut agent = None;
        mapped(self.pid, |path| {
            // The kernel escapes unusual characters with a backslash. Paths that contain a backslash are skipped.
            let is_it = file_name(path).contains(MARK) && !path.contains('\\');
            if is_it {
                agent = Some(path.to_owned());
            }
            is_it
        })
        .ok()?;
        let path = agent?;
        let open = match self.c_library() {
            CLibrary::Musl => self.open_as(&path),
            CLibrary::Glibc => None,
        };
        Some(open.unwrap_or_else(|| inside(&self.root(), without_mark(&path)).to_owned()))
    }

    /// Searches the open files of the process for the file with this path. Returns its path `/proc/self/fd/N`, which is
    /// valid in the process.
    fn open_as(&self, path: &str) -> Option<String> {
        let files = fs::read_dir(format!("/proc/{}/fd", self.pid)).ok()?;
        let mut files = files.flatten().map(|entry| entry.path());
        let file = files.find(|file| fs::read_link(file).is_ok_and(|open| open == *path))?;
        Some(format!("/proc/self/fd/{}", file.file_name()?.to_str()?))
    }

    /// Returns the C library of the process.
    pub(super) fn c_library(&self) -> CLibrary {
        match mapped(self.pid, |path| CLibrary::is_musl(file_name(path))) {
            Ok(true) => CLibrary::Musl,
            _ => CLibrary::Glibc,
        }
    }

    /// Returns the folder that is `/` to the process, as a path from our own `/`.
    ///
    /// For a process in a `chroot` this is the folder of the `chroot`, otherwise `/`. The kernel also reports `/` for a
    /// container, whose root has no path in our file system.
    pub(super) fn root(&self) -> String {
        root_of(self.pid)
    }

    /// Returns the path of the file with the JVM's performance counters, as the process sees it.
    pub(super) fn perf_data(&self) -> Option<String> {
        Listed::read(self.pid)?.perf_data
    }

    /// Returns the paths in `/proc/PID/maps` that end with `end`, at most `most` of them. Leaves out duplicates,
    /// deleted files and names with unusual characters.
    pub(super) fn mapped(&self, end: &str, most: usize) -> Vec<String> {
        let mut files: Vec<String> = Vec::new();
        let found = mapped(self.pid, |path| {
            if path.ends_with(end) && !path.contains('\\') && !files.iter().any(|f| f == path) {
                files.push(path.to_owned());
            }
            files.len() >= most
        });
        // If reading fails, the files found before the error are still valid.
        drop(found);
        files
    }
}

fn root_of(pid: u32) -> String {
    let root = fs::read_link(format!("/proc/{pid}/root"));
    root.map_or_else(
        |_| "/".to_owned(),
        |root| root.to_string_lossy().into_owned(),
    )
}

/// Writes the process as `process 4711 (com.acme.Main)`.
impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} ({})", self.pid, self.main)
    }
}

/// The failure for a process that heapdiff cannot use.
pub(super) fn unusable_failure(message: String) -> Failure {
    Failure::bad_input(message)
}

fn permission_failure(pid: u32, name: &str, error: &io::Error) -> Failure {
    unusable_failure(format!(
        "cannot inspect process {pid} ({name}): {}",
        system_message(error)
    ))
    .with_hint(if geteuid().is_root() {
        "heapdiff needs the capability CAP_SYS_PTRACE to inspect this process".to_owned()
    } else {
        format!(
            "the process has more permissions than heapdiff; {}",
            with_sudo()
        )
    })
}

/// Returns a hint to run the current command as root.
fn with_sudo() -> String {
    let words = std::env::args_os().skip(1);
    let words: Vec<String> = words
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let command = heapdiff_report::printable(&words.join(" ")).into_owned();
    format!("run `sudo heapdiff {command}`")
}

/// Fields of `/proc/PID/status`.
#[derive(Debug)]
struct Status {
    name: String,
    state: char,
    /// The id of the process itself. The requested id may be the id of one of its threads.
    process: u32,
    inner_pid: u32,
    user: User,
    handles_quit: bool,
}

impl Status {
    fn read(pid: u32) -> io::Result<Self> {
        let text = fs::read(format!("/proc/{pid}/status"))?;
        Self::parse(&String::from_utf8_lossy(&text))
            .ok_or_else(|| io::Error::other("the status file in /proc has an unknown format"))
    }

    fn parse(text: &str) -> Option<Self> {
        let field = |name: &str| {
            text.lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
                .map(str::trim)
        };
        // The line has four ids: the real, the effective, the saved and the file system id.
        let effective = |name| field(name)?.split_whitespace().nth(1)?.parse().ok();
        let process = field("Tgid")?.parse().ok()?;
        let caught = u64::from_str_radix(field("SigCgt")?, 16).ok()?;
        Some(Self {
            // A process chooses its own name, so characters that are not printable are replaced.
            name: printable(field("Name")?),
            state: field("State")?.chars().next()?,
            process,
            // The line `NSpid` lists the id of the process in each PID namespace, from heapdiff's namespace to the
            // process's own. Kernels before Linux 4.1 lack this line.
            inner_pid: field("NSpid")
                .and_then(|ids| ids.split_whitespace().last()?.parse().ok())
                .unwrap_or(process),
            user: User {
                uid: Uid::from_raw(effective("Uid")?),
                gid: Gid::from_raw(effective("Gid")?),
                groups: field("Groups")
                    .unwrap_or_default()
                    .split_whitespace()
                    .filter_map(|id| id.parse().ok().map(Gid::from_raw))
                    .collect(),
            },
            handles_quit: caught & (1 << (Signal::QUIT.as_raw() - 1)) != 0,
        })
    }
}

/// The kind of program that a process runs, according to its mapped libraries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    HotSpot,
    OpenJ9,
    /// The launcher of a JDK that has not loaded its JVM yet.
    Starting,
    Other,
}

impl Kind {
    /// Returns the kind of a process. Waits for a launcher to load its JVM, for at most `most`.
    fn of(pid: u32, most: Duration) -> io::Result<Self> {
        let start = Instant::now();
        loop {
            match Self::now(pid)? {
                Self::Starting if start.elapsed() < most => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                kind => return Ok(kind),
            }
        }
    }

    fn now(pid: u32) -> io::Result<Self> {
        let mut kind = Self::Other;
        mapped(pid, |path| {
            let name = file_name(path);
            if name == "libjvm.so" {
                kind = Self::HotSpot;
            } else if name.starts_with("libj9vm") {
                kind = Self::OpenJ9;
            } else if is_launcher(name) && kind == Self::Other {
                kind = Self::Starting;
            }
            kind == Self::OpenJ9
        })?;
        Ok(kind)
    }
}

/// True if a mapped file belongs to the launcher of a JDK: the library `libjli.so`, or the program `java`. Both names
/// are needed, because the kernel maps the program before the loader maps the library.
fn is_launcher(name: &str) -> bool {
    name == "libjli.so" || name == "java"
}

/// Calls `wanted` with the path of each mapped file of a process. Stops and returns true as soon as `wanted` returns
/// true.
fn mapped(pid: u32, mut wanted: impl FnMut(&str) -> bool) -> io::Result<bool> {
    let mut maps = BufReader::new(File::open(format!("/proc/{pid}/maps"))?);
    let mut line = Vec::new();
    loop {
        line.clear();
        if maps.read_until(b'\n', &mut line)? == 0 {
            return Ok(false);
        }
        // The path is the last field, after the address range, permissions, offset, device and inode.
        if let Some(at) = line.iter().position(|&b| b == b'/')
            && wanted(String::from_utf8_lossy(&line[at..]).trim_end())
        {
            return Ok(true);
        }
    }
}

/// Converts a path in `/proc/PID/maps` to the path in a process that has `root` as its `/`. Both arguments are paths
/// from our `/`. If the process mapped a file before it changed its root, the file may be outside the root. The path of
/// such a file is returned unchanged.
pub(super) fn inside<'p>(root: &str, path: &'p str) -> &'p str {
    match path.strip_prefix(root) {
        Some(inside) if inside.starts_with('/') => inside,
        _ => path,
    }
}

/// Returns the last part of a mapped path, without the suffix ` (deleted)`.
fn file_name(path: &str) -> &str {
    let path = without_mark(path);
    path.rsplit('/').next().unwrap_or(path)
}

fn without_mark(path: &str) -> &str {
    path.strip_suffix(" (deleted)").unwrap_or(path)
}

/// Returns at most 200 characters of a name. Control characters of terminals are replaced.
pub(super) fn printable(name: &str) -> String {
    heapdiff_report::printable(name).chars().take(200).collect()
}

/// The command line of a JVM, with the options from its environment.
#[derive(Debug, Default)]
struct CommandLine {
    args: Vec<String>,
    /// Options from environment variables. Options in the first list apply before the options of the command line, and
    /// options in the second list apply after them.
    environment: [String; 2],
}

/// Maximum number of bytes that are read of a command line: the owner of the process controls its length.
const LONGEST: u64 = 4 << 20;

impl CommandLine {
    fn of(pid: u32) -> Self {
        let split = |file: &str| -> Vec<String> {
            let mut bytes = Vec::new();
            // A file that cannot be read is treated as empty.
            let _ = File::open(format!("/proc/{pid}/{file}"))
                .and_then(|f| f.take(LONGEST).read_to_end(&mut bytes));
            bytes
                .split(|&b| b == 0)
                .map(|word| String::from_utf8_lossy(word).into_owned())
                .collect()
        };
        let environment = split("environ");
        let value = |name: &str| {
            environment
                .iter()
                .find_map(|entry| entry.strip_prefix(name))
                .unwrap_or_default()
                .to_owned()
        };
        Self {
            args: split("cmdline"),
            environment: [
                value("JAVA_TOOL_OPTIONS=") + " " + &value("JDK_JAVA_OPTIONS="),
                value("_JAVA_OPTIONS="),
            ],
        }
    }

    /// True if an option forbids attaching. If some options allow attaching and others forbid it, the last one decides.
    fn refuses_to_attach(&self) -> bool {
        let options = self.args.get(1..).unwrap_or_default();
        let ours = &options[..self.main_at().map_or(options.len(), |at| at - 1)];
        let [before, after] = &self.environment;
        before
            .split_whitespace()
            .chain(ours.iter().map(String::as_str))
            .chain(after.split_whitespace())
            .filter_map(|word| match word {
                "-XX:+DisableAttachMechanism" => Some(true),
                "-XX:-DisableAttachMechanism" => Some(false),
                _ => None,
            })
            .next_back()
            .unwrap_or(false)
    }

    /// Returns the main class, the jar or the module.
    fn main(&self) -> Option<String> {
        let main = &self.args[self.main_at()?];
        let is_path = main.ends_with(".jar") || main.ends_with(".java");
        let short = if is_path { file_name(main) } else { main };
        (!short.is_empty()).then(|| printable(short))
    }

    fn main_at(&self) -> Option<usize> {
        let mut at = 1;
        while at < self.args.len() {
            match &*self.args[at] {
                "-cp"
                | "-classpath"
                | "--class-path"
                | "-p"
                | "--module-path"
                | "--upgrade-module-path"
                | "--add-modules"
                | "--add-reads"
                | "--add-exports"
                | "--add-opens"
                | "--limit-modules"
                | "--patch-module"
                | "--enable-native-access"
                | "--source" => at += 2,
                "-jar" | "-m" | "--module" => return (at + 1 < self.args.len()).then_some(at + 1),
                word if word.starts_with(['-', '@']) => at += 1,
                "" => return None,
                _ => return Some(at),
            }
        }
        None
    }
}

/// A HotSpot JVM that this user may read.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) pid: u32,
    /// Main class or jar; empty if the command line has none.
    pub(super) main: String,
    /// True if the JVM has loaded the agent library.
    pub(super) has_agent: bool,
    /// The path of the file with the JVM's performance counters, as the process sees it.
    pub(super) perf_data: Option<String>,
}

impl Listed {
    /// Reads the mapped files of a process. Returns `None` if it is not a HotSpot JVM.
    fn read(pid: u32) -> Option<Self> {
        let (mut is_jvm, mut has_agent, mut perf_data) = (false, false, None);
        mapped(pid, |path| {
            is_jvm |= file_name(path) == "libjvm.so";
            has_agent |= file_name(path).contains(MARK);
            if path.contains(PERF_DATA) {
                perf_data = Some(without_mark(path).to_owned());
            }
            false
        })
        .ok()?;
        is_jvm.then(|| Self {
            pid,
            main: CommandLine::of(pid).main().unwrap_or_default(),
            has_agent,
            perf_data: perf_data.map(|path| inside(&root_of(pid), &path).to_owned()),
        })
    }
}

/// Returns the HotSpot JVMs that this user may read, sorted by process id.
pub(super) fn jvms() -> Vec<Listed> {
    let mut jvms: Vec<Listed> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok()?.parse().ok())
        .filter_map(Listed::read)
        .collect();
    jvms.sort_by_key(|jvm| jvm.pid);
    jvms
}

/// Length in milliseconds of a kernel tick, the unit of times in `/proc/PID/stat`. The kernel counts 100 ticks a second
/// on x86-64 and aarch64.
const MS_PER_TICK: u64 = 10;

/// Returns the time since a process began.
pub(super) fn uptime(pid: u32) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The program name is in parentheses and may contain any characters, so search for the last parenthesis. Field 3,
    // the state, follows it.
    let began = stat.rsplit_once(')')?.1.split_whitespace().nth(22 - 3)?;
    let began = Duration::from_millis(began.parse::<u64>().ok()?.checked_mul(MS_PER_TICK)?);
    let up = fs::read_to_string("/proc/uptime").ok()?;
    let up = up.split_whitespace().next()?.parse::<f64>().ok()?;
    Duration::try_from_secs_f64(up).ok()?.checked_sub(began)
}

/// Returns a hint that lists the JVMs on this machine.
fn other_jvms_hint() -> String {
    listed(OTHERS, &jvms())
}

const OTHERS: &str = "JVMs that this user may inspect:";

/// Returns a hint with a line for each JVM, as `heapdiff ps` prints them.
fn listed(head: &str, jvms: &[Listed]) -> String {
    if jvms.is_empty() {
        return "found no HotSpot JVM that this user may inspect".to_owned();
    }
    let lines = std::iter::once(head.to_owned()).chain(table(jvms));
    lines.collect::<Vec<_>>().join("\n          ")
}

/// Returns the process id of the only JVM whose main class or jar contains the name. It is an error if no JVM or
/// several JVMs match.
fn find_by_name(name: &str) -> Result<u32> {
    let (named, all): (Vec<_>, Vec<_>) =
        jvms().into_iter().partition(|jvm| jvm.main.contains(name));
    let shown = printable(name);
    match &named[..] {
        [jvm] => Ok(jvm.pid),
        [] => {
            let message = format!("no JVM has a main class or jar with `{shown}` in its name");
            Err(unusable_failure(message).with_hint(listed(OTHERS, &all)))
        }
        _ => {
            let message = format!(
                "{} JVMs have a main class or jar with `{shown}` in its name",
                named.len()
            );
            Err(Failure::usage(message).with_hint(listed("use one of these process ids:", &named)))
        }
    }
}

/// Returns a path as the bytes of an argument of the attach protocol.
pub(super) fn bytes_of(path: &std::path::Path) -> Vec<u8> {
    OsString::from(path).into_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "Name:\tjava: (x)\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t812\n\
        Uid:\t0\t1000\t0\t0\nGid:\t0\t1001\t0\t0\nGroups:\t4 24 \nNSpid:\t812\t7\n\
        SigCgt:\t0000000180004004\n";

    #[test]
    fn a_status_is_read() {
        let status = Status::parse(STATUS).unwrap();
        assert_eq!((status.process, status.inner_pid), (812, 7));
        assert_eq!((&*status.name, status.state), ("java: (x)", 'S'));
        assert_eq!(status.user.uid.as_raw(), 1000);
        assert_eq!(status.user.gid.as_raw(), 1001);
        assert_eq!(status.user.groups.len(), 2);
        assert!(status.handles_quit);
        let deaf = STATUS.replace("80004004", "80004000");
        assert!(!Status::parse(&deaf).unwrap().handles_quit);
        let old = STATUS.replace("NSpid:", "Pid_of_none:");
        assert_eq!(Status::parse(&old).unwrap().inner_pid, 812);
        for gone in ["Tgid", "Uid", "SigCgt", "State"] {
            assert!(
                Status::parse(&STATUS.replace(gone, "X")).is_none(),
                "{gone}"
            );
        }
    }

    fn command(line: &str, environment: [&str; 2]) -> CommandLine {
        CommandLine {
            args: line.split(' ').map(str::to_owned).collect(),
            environment: environment.map(str::to_owned),
        }
    }

    #[test]
    fn the_main_class_is_found() {
        let main = |line| command(line, ["", ""]).main();
        let found = |name: &str| Some(name.to_owned());
        assert_eq!(
            main("java -Xmx1g -cp a:b com.acme.Main -x y"),
            found("com.acme.Main")
        );
        assert_eq!(main("/usr/bin/java -jar /opt/app.jar x"), found("app.jar"));
        assert_eq!(main("java @args -p mods -m a/b.C"), found("a/b.C"));
        assert_eq!(main("java /src/One.java"), found("One.java"));
        for none in ["java", "java -jar", "java -cp", "java @args", ""] {
            assert_eq!(main(none), None, "{none}");
        }
    }

    #[test]
    fn the_last_option_on_attaching_wins() {
        const OFF: &str = "-XX:+DisableAttachMechanism";
        const ON: &str = "-XX:-DisableAttachMechanism";
        let refuses = |line: &str, environment| command(line, environment).refuses_to_attach();
        assert!(refuses(&format!("java {OFF} Main"), ["", ""]));
        assert!(!refuses(&format!("java Main {OFF}"), ["", ""]));
        assert!(!refuses(&format!("java {OFF} {ON} Main"), ["", ""]));
        assert!(refuses("java Main", [OFF, ""]));
        assert!(!refuses(&format!("java {ON} Main"), [OFF, ""]));
        assert!(refuses(&format!("java {ON} Main"), ["", OFF]));
        assert!(!refuses("java Main", ["", ""]));
    }

    #[test]
    fn paths_are_relative_to_the_root_of_the_process() {
        let path = "/srv/jail/tmp/liba.so";
        assert_eq!(inside("/", path), path);
        assert_eq!(inside("/srv/jail", path), "/tmp/liba.so");
        assert_eq!(inside("/srv/ja", path), path);
        assert_eq!(inside("/srv/other", path), path);
    }

    #[test]
    fn libraries_are_recognized_by_their_names() {
        assert_eq!(file_name("/usr/lib/server/libjvm.so"), "libjvm.so");
        assert_eq!(file_name("/usr/lib/libjvm.so (deleted)"), "libjvm.so");
        assert!(is_launcher("java") && is_launcher("libjli.so"));
        assert!(!is_launcher("javac") && !is_launcher("libjava.so"));
        assert_eq!(Kind::of(std::process::id(), STARTING).unwrap(), Kind::Other);
    }
}
