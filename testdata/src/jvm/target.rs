//! A running Java program that follows the `READY` protocol.
//!
//! The program prints `READY n` when phase `n` is done, and waits for a line on standard input before it continues.
//! While it waits, it changes nothing, so that a dump and a histogram describe the same heap.

#[cfg(unix)]
use super::attach;
use super::jdk::SHORT_RUN;
use super::{Histogram, Jdk, JvmError, command};
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs;
#[cfg(unix)]
use std::io::ErrorKind;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum time to wait until a program that has printed `READY` reads its input. Some programs never read it.
const READING: Duration = Duration::from_millis(200);
/// Maximum time to wait for a line that the program has printed.
const PRINTED: Duration = Duration::from_secs(20);
/// Maximum time to wait until a JVM has enqueued the references that a GC cleared. Before that, the JVM keeps these
/// references alive.
const ENQUEUED: Duration = Duration::from_secs(10);

/// Maximum number of skipped output lines that an error shows if the program ends unexpectedly. If the JVM crashed,
/// these lines are the start of its report.
const LINES_SHOWN: usize = 40;

/// Maximum time from the end of a program's output to the end of its process. A JVM that crashes writes its report
/// during this time.
const ENDING: Duration = Duration::from_secs(10);

/// The command that starts a Java program.
#[derive(Debug, Clone)]
pub struct Launch {
    jdk: Jdk,
    flags: Vec<OsString>,
    program: Vec<OsString>,
    args: Vec<OsString>,
    clean_folder: Option<PathBuf>,
    through: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    timeout: Duration,
}

impl Launch {
    /// Runs a source file directly, as `java File.java` does. The heap then also contains objects of the compiler.
    pub fn source(jdk: &Jdk, source: impl AsRef<Path>) -> Launch {
        Launch::new(jdk, vec![source.as_ref().into()])
    }

    /// Runs a compiled class.
    pub fn class(jdk: &Jdk, classpath: impl AsRef<Path>, main_class: &str) -> Launch {
        Launch::new(
            jdk,
            vec!["-cp".into(), classpath.as_ref().into(), main_class.into()],
        )
    }

    fn new(jdk: &Jdk, program: Vec<OsString>) -> Launch {
        Launch {
            jdk: jdk.clone(),
            flags: Vec::new(),
            program,
            args: Vec::new(),
            clean_folder: None,
            through: Vec::new(),
            env: Vec::new(),
            timeout: DEFAULT_TIMEOUT,
        }
    }

    /// Adds a JVM flag, such as `-Xmx128m`.
    #[must_use]
    pub fn flag(mut self, flag: impl AsRef<OsStr>) -> Launch {
        self.flags.push(flag.as_ref().into());
        self
    }

    /// Adds JVM flags.
    #[must_use]
    pub fn flags<S: AsRef<OsStr>>(mut self, flags: impl IntoIterator<Item = S>) -> Launch {
        self.flags
            .extend(flags.into_iter().map(|flag| flag.as_ref().into()));
        self
    }

    /// Loads a native agent with these options.
    #[must_use]
    pub fn agent(self, library: &Path, options: &str) -> Launch {
        let mut flag = OsString::from("-agentpath:");
        flag.push(library);
        if !options.is_empty() {
            flag.push("=");
            flag.push(options);
        }
        self.flag(flag)
    }

    /// Adds an argument of the program.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Launch {
        self.args.push(arg.as_ref().into());
        self
    }

    /// Runs in this folder without environment variables, so that a dump reveals nothing about the machine.
    #[must_use]
    pub fn clean_in(mut self, folder: impl Into<PathBuf>) -> Launch {
        self.clean_folder = Some(folder.into());
        self
    }

    /// Starts the JVM through another program, such as `["setpriv", "--reuid=1000"]`. The command that starts the JVM
    /// is appended to the arguments of that program.
    #[must_use]
    pub fn through<S: AsRef<OsStr>>(mut self, command: impl IntoIterator<Item = S>) -> Launch {
        self.through
            .extend(command.into_iter().map(|word| word.as_ref().into()));
        self
    }

    /// Sets an environment variable, such as `JAVA_TOOL_OPTIONS`.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Launch {
        self.env.push((name.as_ref().into(), value.as_ref().into()));
        self
    }

    /// Sets the time limit for each phase and each diagnostic command (default: one minute).
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Launch {
        self.timeout = timeout;
        self
    }

    /// Starts the program.
    pub fn start(&self) -> Result<Target, JvmError> {
        let mut java = match self.through.split_first() {
            None => Command::new(self.jdk.java()),
            Some((program, args)) => {
                let mut command = Command::new(program);
                command.args(args).arg(self.jdk.java());
                command
            }
        };
        java.args(&self.flags).args(&self.program).args(&self.args);
        if let Some(folder) = &self.clean_folder {
            java.env_clear().current_dir(folder);
        }
        java.envs(self.env.iter().map(|(name, value)| (name, value)));
        java.stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let name = command::describe(&java);
        let mut child = java.spawn().map_err(|error| JvmError::Process {
            command: name.clone(),
            error,
        })?;
        let (send, lines) = channel();
        if let Some(out) = child.stdout.take() {
            thread::spawn(move || {
                for line in BufReader::new(out).lines().map_while(Result::ok) {
                    if send.send(line).is_err() {
                        break;
                    }
                }
            });
        }
        let errors = Arc::new(Mutex::new(String::new()));
        let error_reader = child.stderr.take().map(|err| {
            let errors = Arc::clone(&errors);
            thread::spawn(move || {
                for line in BufReader::new(err).lines().map_while(Result::ok) {
                    let mut text = errors.lock().unwrap_or_else(PoisonError::into_inner);
                    text.push_str(&line);
                    text.push('\n');
                }
            })
        });
        Ok(Target {
            stdin: child.stdin.take(),
            child,
            name,
            lines,
            passed: VecDeque::new(),
            errors,
            error_reader,
            jdk: self.jdk.clone(),
            timeout: self.timeout,
        })
    }
}

/// The objects that a dump or a histogram includes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Selection {
    /// Live objects only: the JVM runs a GC first.
    #[default]
    Live,
    /// All objects, including unreachable ones (`-all`).
    All,
}

/// Options of a dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DumpOptions {
    /// The objects to include.
    pub selection: Selection,
    /// Compression level, 1 to 9 (`-gz`). Requires JDK 15 or later.
    pub gzip: Option<u8>,
}

/// A running Java program. Dropping this value ends the process and reaps it.
#[derive(Debug)]
pub struct Target {
    child: Child,
    name: String,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    passed: VecDeque<String>,
    errors: Arc<Mutex<String>>,
    error_reader: Option<JoinHandle<()>>,
    jdk: Jdk,
    timeout: Duration,
}

impl Target {
    /// Returns the process ID.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the process ID of the JVM. If the JVM was started through another program, this is not the process ID of
    /// [`Target::pid`]. Linux only.
    pub fn jvm_pid(&self) -> Option<u32> {
        let mut pid = self.pid();
        loop {
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
            if name.trim_end() == "java" {
                return Some(pid);
            }
            let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
            pid = children.split_whitespace().next()?.parse().ok()?;
        }
    }

    /// True if the process still runs.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Returns the JDK that runs the program.
    pub fn jdk(&self) -> &Jdk {
        &self.jdk
    }

    /// Waits until the program prints a line that starts with `prefix`, and returns that line.
    pub fn wait_line(&mut self, prefix: &str) -> Result<String, JvmError> {
        let deadline = Instant::now() + self.timeout;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) if line.starts_with(prefix) => return Ok(line),
                Ok(line) => {
                    if self.passed.len() == LINES_SHOWN {
                        self.passed.pop_front();
                    }
                    self.passed.push_back(line);
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.ended(prefix)),
                Err(RecvTimeoutError::Timeout) => {
                    return Err(JvmError::TimedOut {
                        waiting_for: format!("\"{prefix}\" of {}", self.name),
                        after: self.timeout,
                        output: self.errors(),
                    });
                }
            }
        }
    }

    /// Returns an error that explains why the output ended: how the program ended, and the last lines of its standard
    /// output and standard error.
    fn ended(&mut self, prefix: &str) -> JvmError {
        let status = command::ended(&mut self.child, ENDING);
        // Joining fails only if the thread panicked. This thread only reads, so it does not panic.
        if let Some(reader) = self.error_reader.take() {
            let _ = reader.join();
        }
        let mut output = self.errors();
        for line in self.passed.drain(..) {
            output.push_str(&line);
            output.push('\n');
        }
        JvmError::Ended {
            waiting_for: format!("\"{prefix}\" of {}", self.name),
            status,
            output,
        }
    }

    /// Returns the lines that the program prints until its next `READY`.
    pub fn lines_until_ready(&mut self) -> Result<Vec<String>, JvmError> {
        let mut lines = Vec::new();
        loop {
            let line = self.wait_line("")?;
            if line.starts_with("READY") {
                return Ok(lines);
            }
            lines.push(line);
        }
    }

    /// Waits for `READY phase`.
    pub fn wait_ready(&mut self, phase: u32) -> Result<(), JvmError> {
        self.wait_line(&format!("READY {phase}"))?;
        self.wait_for_read();
        Ok(())
    }

    /// Waits until a thread of the JVM reads standard input, for at most [`READING`]. Until then, the program may still
    /// print, which allocates objects. Linux only.
    fn wait_for_read(&self) {
        let Some(pid) = self.jvm_pid() else {
            return;
        };
        let end = Instant::now() + READING;
        while !reads_input(pid) && Instant::now() < end {
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Lets the program continue, without waiting for it.
    pub fn proceed(&mut self) -> Result<(), JvmError> {
        self.tell("")
    }

    /// Sends the program a line, without waiting for an answer.
    pub fn tell(&mut self, line: &str) -> Result<(), JvmError> {
        let Some(stdin) = &mut self.stdin else {
            return Ok(());
        };
        stdin
            .write_all(format!("{line}\n").as_bytes())
            .and_then(|()| stdin.flush())
            .map_err(|error| JvmError::Process {
                command: self.name.clone(),
                error,
            })
    }

    /// Lets the program continue and waits for `READY phase`.
    pub fn advance(&mut self, phase: u32) -> Result<(), JvmError> {
        self.proceed()?;
        self.wait_ready(phase)
    }

    /// Lets the program run until it ends, and returns true if it succeeded.
    pub fn finish(mut self) -> Result<bool, JvmError> {
        drop(self.stdin.take());
        let deadline = Instant::now() + self.timeout;
        loop {
            let ended = self.child.try_wait();
            let failed = |error| JvmError::Process {
                command: self.name.clone(),
                error,
            };
            if let Some(status) = ended.map_err(failed)? {
                return Ok(status.success());
            }
            if Instant::now() >= deadline {
                return Err(JvmError::TimedOut {
                    waiting_for: format!("end of {}", self.name),
                    after: self.timeout,
                    output: self.errors(),
                });
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Lets the program run until it ends, as [`Target::finish`] does. Also returns all of the program's standard
    /// error.
    pub fn finish_with_errors(mut self) -> Result<(bool, String), JvmError> {
        let (reader, errors) = (self.error_reader.take(), Arc::clone(&self.errors));
        let ended_well = self.finish()?;
        if let Some(reader) = reader {
            // Joining fails only if the thread panicked. This thread only reads, so it does not panic.
            let _ = reader.join();
        }
        let text = errors.lock().unwrap_or_else(PoisonError::into_inner);
        Ok((ended_well, text.clone()))
    }

    /// Loads a native agent into the running JVM and returns the JVM's answer.
    pub fn load_agent(&self, library: &Path, options: &str) -> Result<String, JvmError> {
        let options = OsString::from(format!("\"{options}\""));
        self.jcmd(["JVMTI.agent_load".into(), quoted(library), options])
    }

    /// Sends a diagnostic command, such as `["VM.flags"]`, and returns the JVM's answer.
    pub fn jcmd<S: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = S>,
    ) -> Result<String, JvmError> {
        let args: Vec<OsString> = args.into_iter().map(|a| a.as_ref().to_owned()).collect();
        // A JVM in a container has another process ID and another `/tmp`.
        #[cfg(unix)]
        if self.jvm_pid() == Some(self.pid())
            && let Ok(jvm) = attach::connect(self.pid())
        {
            let text = args.join(" ".as_ref()).to_string_lossy().into_owned();
            return match attach::send(jvm, &text, self.timeout) {
                Ok((true, output)) => Ok(output),
                Ok((false, output)) => Err(JvmError::Failed {
                    command: text,
                    output,
                }),
                Err(error) if error.kind() == ErrorKind::WouldBlock => Err(JvmError::TimedOut {
                    waiting_for: format!("answer to {text}"),
                    after: self.timeout,
                    output: self.errors(),
                }),
                Err(error) => Err(JvmError::Process {
                    command: text,
                    error,
                }),
            };
        }
        let mut jcmd = Command::new(self.jdk.jcmd());
        let jcmd = jcmd.args(SHORT_RUN).arg(self.pid().to_string());
        command::run(jcmd.args(args), self.timeout)
    }

    /// Writes a heap dump with `jcmd`, and replaces any file of that name.
    pub fn dump(&self, file: &Path, options: DumpOptions) -> Result<(), JvmError> {
        let file = std::path::absolute(file).map_err(|error| JvmError::file(file, error))?;
        if file.exists() {
            fs::remove_file(&file).map_err(|error| JvmError::file(&file, error))?;
        }
        let mut args: Vec<OsString> = vec!["GC.heap_dump".into()];
        if options.selection == Selection::All {
            args.push("-all".into());
        }
        if let Some(level) = options.gzip {
            if self.jdk.major() < 15 {
                return Err(JvmError::Unsupported {
                    major: self.jdk.major(),
                    what: "compressed heap dumps",
                });
            }
            args.push(format!("-gz={level}").into());
        }
        args.push(quoted(&file));
        let output = self.jcmd(&args)?;
        // If the JVM cannot write the dump, it reports this only in its text. The exit status of `jcmd` is 0
        // nevertheless.
        if output.contains("Heap dump file created") && file.is_file() {
            return Ok(());
        }
        Err(JvmError::Failed {
            command: format!("GC.heap_dump of {}", self.name),
            output,
        })
    }

    /// Returns the JVM's own histogram.
    pub fn histogram(&self, selection: Selection) -> Result<Histogram, JvmError> {
        let args: &[&str] = match selection {
            Selection::Live => &["GC.class_histogram"],
            Selection::All => &["GC.class_histogram", "-all"],
        };
        let output = self.jcmd(args)?;
        let histogram = Histogram::parse(&output);
        if histogram.classes.is_empty() {
            let command = format!("GC.class_histogram of {}", self.name);
            return Err(JvmError::Failed { command, output });
        }
        Ok(histogram)
    }

    /// Returns a histogram of live objects for which `is_settled` returns true. If there is no such histogram within
    /// ten seconds, returns the last one. The JVM keeps references that a GC just cleared alive until it has enqueued
    /// them. So the first histogram may contain too many objects.
    pub fn settled_histogram(
        &self,
        is_settled: impl Fn(&Histogram) -> bool,
    ) -> Result<Histogram, JvmError> {
        let end = Instant::now() + ENQUEUED;
        loop {
            let histogram = self.histogram(Selection::Live)?;
            if is_settled(&histogram) || Instant::now() > end {
                return Ok(histogram);
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// True if the program prints `text` on standard error at least `times` times within 20 seconds. Waits, because a
    /// line may arrive later than the answer to a command.
    pub fn prints(&self, text: &str, times: usize) -> bool {
        let end = Instant::now() + PRINTED;
        while self.errors().matches(text).count() < times {
            if Instant::now() > end {
                return false;
            }
            thread::sleep(Duration::from_millis(5));
        }
        true
    }

    /// Returns the program's standard error so far.
    pub fn errors(&self) -> String {
        self.errors
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let jvm = self.jvm_pid();
        command::kill(&mut self.child);
        // Remove the attach socket that a killed JVM leaves behind. Otherwise a later JVM of another user with the same
        // process ID could not create its own socket.
        if let Some(pid) = jvm {
            let _ = fs::remove_file(format!("/tmp/.java_pid{pid}"));
        }
    }
}

/// True if a thread of the process waits in the system call `read` of file 0.
fn reads_input(pid: u32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return false;
    };
    // The numbers of the system call `read`: 0 on x86-64, 63 on aarch64.
    let reads = |call: &str| call.starts_with("0 0x0 ") || call.starts_with("63 0x0 ");
    let call = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("syscall"));
    let mut calls = threads.flatten().map(call);
    calls.any(|call| call.is_ok_and(|call| reads(&call)))
}

/// Quotes a path, because the JVM splits the arguments of a diagnostic command at blanks.
fn quoted(path: &Path) -> OsString {
    let mut text = path.as_os_str().to_owned();
    if path.to_string_lossy().contains(' ') {
        let mut quoted = OsString::from("\"");
        quoted.push(&text);
        quoted.push("\"");
        text = quoted;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_blanks_is_quoted() {
        assert_eq!(quoted(Path::new("/a/b.hprof")), "/a/b.hprof");
        assert_eq!(quoted(Path::new("/a b/c.hprof")), "\"/a b/c.hprof\"");
    }

    fn with_program(source: &str, test: impl Fn(Launch, &Path)) {
        let Some(jdk) = Jdk::all_for_scenarios().pop() else {
            return;
        };
        let name = thread::current()
            .name()
            .unwrap_or("test")
            .replace("::", "-");
        let folder = std::env::temp_dir().join(format!("testdata {name} {}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("Program.java");
        fs::write(&file, source).unwrap();
        test(Launch::source(&jdk, &file).flag("-Xmx64m"), &folder);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_program_that_fails_is_reported_with_its_message() {
        with_program(
            "class Program { public static void main(String[] a) {
                System.out.println(\"so far so good\"); throw new Error(a[0]); } }",
            |launch, _| {
                let mut target = launch.arg("no disk").start().unwrap();
                let error = target.wait_ready(1).unwrap_err().to_string();
                assert!(
                    error.contains("before \"READY 1\"")
                        && error.contains("no disk (exit status: 1):")
                        && error.contains("java.lang.Error: no disk")
                        && error.contains("so far so good"),
                    "{error}"
                );
            },
        );
    }

    #[test]
    fn a_program_that_hangs_times_out_and_is_reaped() {
        with_program(
            "class Program { public static void main(String[] a) throws Exception {
                System.out.println(\"UP\"); Thread.sleep(600_000); } }",
            |launch, _| {
                let mut target = launch.start().unwrap();
                target.wait_line("UP").unwrap();
                target.timeout = Duration::from_millis(100);
                let error = target.wait_ready(1).unwrap_err();
                assert!(matches!(error, JvmError::TimedOut { .. }), "{error}");
                let pid = target.pid();
                drop(target);
                assert!(!Path::new(&format!("/proc/{pid}")).exists());
            },
        );
    }

    #[test]
    fn dumps_and_histograms_of_all_kinds() {
        with_program(
            "class Program { static int[][] kept = new int[77][3];
                public static void main(String[] a) throws Exception {
                System.out.println(\"READY 1\"); System.in.read();
                kept = null; System.out.println(\"READY 2\"); System.in.read(); } }",
            |launch, folder| {
                let mut target = launch.start().unwrap();
                target.wait_ready(1).unwrap();
                assert!(
                    target
                        .histogram(Selection::Live)
                        .unwrap()
                        .instances("int[][]")
                        >= 1
                );
                target.advance(2).unwrap();
                assert!(target.histogram(Selection::All).unwrap().instances("int[]") >= 77);

                // This path contains a blank. The second dump to this path replaces the first one.
                let file = folder.join("plain.hprof");
                target
                    .dump(
                        &file,
                        DumpOptions {
                            selection: Selection::All,
                            gzip: None,
                        },
                    )
                    .unwrap();
                let all = fs::metadata(&file).unwrap().len();
                target.dump(&file, DumpOptions::default()).unwrap();
                assert!(fs::metadata(&file).unwrap().len() < all);

                let file = folder.join("small.hprof.gz");
                let gzip = DumpOptions {
                    gzip: Some(1),
                    ..DumpOptions::default()
                };
                target.dump(&file, gzip).unwrap();
                assert_eq!(fs::read(&file).unwrap()[..2], [0x1f, 0x8b]);

                let nowhere = folder.join("missing/file.hprof");
                let error = target.dump(&nowhere, DumpOptions::default()).unwrap_err();
                assert!(matches!(error, JvmError::Failed { .. }), "{error}");
                assert!(target.finish().unwrap());
            },
        );
    }
}
