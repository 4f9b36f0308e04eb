//! JVMs for the tests, and helpers that run heapdiff.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::Value;
use testdata::jvm::{Jdk, Launch, Target};

/// The class of which the program `Shelf` creates 10,000 more instances before each `READY`.
pub(crate) const BOX: &str = "Shelf$Box";

/// Returns the command for the program that most tests use.
pub(crate) fn shelf(jdk: &Jdk) -> Launch {
    let classes = jdk.compile(&testdata::programs::shelf()).expect("classes");
    Launch::class(jdk, classes, "Shelf").flag("-Xmx256m")
}

/// Starts a program, and waits until it prints `READY` for the first time.
pub(crate) fn ready(launch: &Launch) -> Target {
    let mut target = launch.start().expect("a JVM");
    target.wait_ready(1).expect("READY");
    target
}

/// Returns the JDKs to test with; there must be at least one.
pub(crate) fn jdks() -> Vec<Jdk> {
    let jdks = Jdk::all_for_scenarios();
    assert!(!jdks.is_empty(), "a JDK from 17 on is needed");
    jdks
}

/// Creates a temporary folder.
pub(crate) fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

pub(crate) fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("other permissions");
}

/// Returns the path of the program to test: the value of the environment variable `HEAPDIFF_BIN`, or else the program
/// that cargo built.
pub(crate) fn program() -> PathBuf {
    let other = std::env::var_os("HEAPDIFF_BIN").map(PathBuf::from);
    other.unwrap_or_else(|| env!("CARGO_BIN_EXE_heapdiff").into())
}

pub(crate) fn heapdiff(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(program());
    command
        .args(args)
        .current_dir(folder)
        .env_remove("HEAPDIFF_AGENT");
    command
}

/// The result of a run of heapdiff.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Done {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("text"),
            stderr: String::from_utf8(output.stderr).expect("text"),
        }
    }
}

impl Done {
    /// Checks that the run succeeded.
    pub(crate) fn well(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }

    /// Checks that the run failed with this exit code, and that the first line of standard error contains the reason.
    pub(crate) fn failed(self, code: i32, why: &str) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        let mut lines = self.stderr.lines().filter(|line| !line.starts_with(WAITS));
        let first = lines.next().unwrap_or_default();
        assert!(first.contains(why), "{why}: {self:?}");
        assert_eq!(self.stdout, "");
        self
    }
}

pub(crate) fn run(folder: &Path, args: &[&str]) -> Done {
    let mut command = heapdiff(folder, args);
    let pipes = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    ended(pipes.spawn().expect("a run"))
}

/// Waits until the process ends, with a time limit. All its pipes are read at once, because a full pipe would block it.
pub(crate) fn ended(child: Child) -> Done {
    let pid = child.id();
    let (send, output) = mpsc::channel();
    std::thread::spawn(move || send.send(child.wait_with_output()));
    let (output, late) = match output.recv_timeout(Duration::from_secs(120)) {
        Ok(output) => (output, false),
        Err(_) => {
            let running = processes();
            signal("KILL", pid);
            // Another process that the program started may keep the output open forever.
            let Ok(killed) = output.recv_timeout(Duration::from_secs(10)) else {
                panic!("{pid} does not end, nor what it started:\n{running}");
            };
            (killed, true)
        }
    };
    let done = Done::from(output.expect("an end"));
    assert!(!late, "it does not end: {done:?}");
    done
}

/// Returns the running processes, with what each one waits for.
fn processes() -> String {
    let columns = "pid,ppid,stat,etimes,wchan:24,args";
    let list = Command::new("ps")
        .args(["-ww", "-eo", columns, "--forest"])
        .output();
    list.map_or_else(
        |error| format!("ps: {error}"),
        |list| String::from_utf8_lossy(&list.stdout).into_owned(),
    )
}

/// Starts heapdiff in the background, so that interrupts have an effect on it. The tests themselves may run with
/// interrupts ignored (`nohup`, a background job), and child processes would inherit that.
pub(crate) fn start(folder: &Path, args: &[&str]) -> Child {
    begun(folder, &heapdiff(folder, args), &[])
}

/// Like [`start`], but runs any command. `variables` are environment variables, given as `NAME=VALUE`.
pub(crate) fn begun(folder: &Path, plain: &Command, variables: &[String]) -> Child {
    Command::new("env")
        .arg("--default-signal=INT")
        .args(variables)
        .arg(plain.get_program())
        .args(plain.get_args())
        .current_dir(folder)
        .env_remove("HEAPDIFF_AGENT")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a run")
}

/// The start of the line that reports that a forked child gets hardly any processor time.
const WAITS: &str =
    "heapdiff: the forked child that writes the dump waits for a processor: it got ";

/// Returns the first line of standard error, and a reader of the lines that follow.
///
/// The caller must not drop the reader while the child still prints.
///
/// Skips lines that start with `WAITS`, because a forked child may have to wait for a processor when other tests use
/// the processors.
pub(crate) fn first_line(child: &mut Child) -> (String, BufReader<ChildStderr>) {
    let mut stderr = BufReader::new(child.stderr.take().expect("a pipe"));
    loop {
        let mut line = String::new();
        stderr.read_line(&mut line).expect("a line");
        if !line.starts_with(WAITS) {
            return (line, stderr);
        }
    }
}

/// Sends a signal to a process, like `kill -SIGNAL PID`.
pub(crate) fn signal(name: &str, pid: u32) {
    let done = Command::new("kill")
        .args([&format!("-{name}"), &pid.to_string()])
        .status();
    assert!(done.expect("kill").success());
}

/// Waits until the condition is true.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Returns the names of the entries in a folder.
pub(crate) fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .expect("the folder")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into()
        })
        .collect();
    names.sort();
    names
}

/// Returns the number of objects of each class in a dump, in the order of `classes`.
pub(crate) fn instances(dump: &Path, classes: &[&str]) -> Vec<u64> {
    let name = dump.to_str().expect("a name");
    let args = ["histo", name, "--format", "json", "--strict"];
    let report = run(Path::new("/"), &args).well().stdout;
    let report: Value = serde_json::from_str(&report).expect("JSON");
    let rows = report["classes"].as_array().expect("classes");
    let of = |class: &&str| {
        rows.iter()
            .filter(|row| row["class"] == **class)
            .filter_map(|row| row["objects"].as_u64())
            .sum()
    };
    classes.iter().map(of).collect()
}

/// True if the tests may start programs as other users and in other namespaces.
#[expect(clippy::print_stderr, reason = "what is left out is said")]
pub(crate) fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().expect("id");
    let root = id.stdout.trim_ascii() == b"0";
    if !root {
        eprintln!("not root: other users and namespaces are left out");
    }
    root
}

/// The words before a command that run the command as an ordinary user, who shares no group with us.
pub(crate) const AS_NOBODY: [&str; 4] = [
    "setpriv",
    "--reuid=65534",
    "--regid=65534",
    "--clear-groups",
];

/// Copies the program's classes to a folder that everybody may read, and returns the command.
pub(crate) fn public_shelf(jdk: &Jdk, folder: &Path) -> Launch {
    let classes = jdk.compile(&testdata::programs::shelf()).expect("classes");
    let copy = folder.join("classes");
    fs::create_dir_all(&copy).expect("a folder");
    for name in files(&classes) {
        fs::copy(classes.join(&name), copy.join(&name)).expect("a copy");
        chmod(&copy.join(name), 0o644);
    }
    chmod(folder, 0o755);
    chmod(&copy, 0o755);
    Launch::class(jdk, copy, "Shelf").flag("-Xmx256m")
}

/// Copies heapdiff to a folder that has no library of the agent.
pub(crate) fn lonely(folder: &Path) -> PathBuf {
    fs::create_dir_all(folder).expect("a folder");
    let program = folder.join("heapdiff");
    // Copy with `cp`. If this process wrote the file, another test could start a child at the same time. The child
    // would inherit the file open for writing, and then nobody could execute the file.
    let copied = Command::new("cp")
        .arg(self::program())
        .arg(&program)
        .status();
    assert!(copied.expect("a copy").success());
    program
}

/// Compiles the test agent `agent.c` and returns its library. Its options choose the code that it returns, a file that
/// it writes, and a file that it waits for.
pub(crate) fn agent(jdk: &Jdk, folder: &Path) -> PathBuf {
    let library = folder.join("libheapdiff_agent.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/capture/agent.c");
    let include = jdk.home().join("include");
    let done = Command::new("cc")
        .args(["-shared", "-fPIC", "-Wall", "-Werror", "-o"])
        .arg(&library)
        .arg(source)
        .arg("-I")
        .arg(&include)
        .arg("-I")
        .arg(include.join("linux"))
        .output()
        .expect("a C compiler");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
    library
}
