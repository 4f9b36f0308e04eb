//! Tests JVMs that listen but do not answer: each command ends soon after its `--timeout`.
//!
//! The test replaces the socket of an idle JVM, as a hostile JVM could do.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use testdata::jvm::Target;

use crate::support::{Done, chmod, files, folder, jdks, ready, run, shelf, signal, start, until};
use crate::trace::library;

/// The value of `--timeout`.
const TIMEOUT: &str = "2s";
/// Time within which a command must end, even on a busy machine.
const LATEST: Duration = Duration::from_secs(7);
/// The code that the agent returns in a JVM whose version is too old for the agent.
const TOO_OLD: i32 = heapdiff_sites::attach::TOO_OLD;

/// The behavior of the false JVM when a client connects. Each of the first three variants is named after the first step
/// that the false JVM omits. With `Reads`, for example, it does not read the command.
#[derive(Clone, Debug)]
enum Behaves {
    /// Does not accept connections.
    Accepts,
    /// Accepts connections, but reads no command.
    Reads,
    /// Reads the command, but does not answer.
    Answers,
    /// Sends an answer at a rate of one byte every 100 ms.
    Drips,
    /// Creates the file of the dump, but writes nothing to it and does not answer.
    Begins,
    /// Writes a dump for twice the time limit, and then answers. Everybody has write permission for the dump.
    Writes,
    /// Answers correctly, with this text.
    Says(String),
}

/// A JVM whose attach socket belongs to the test.
struct Impostor {
    target: Target,
    over: Arc<AtomicBool>,
    /// Number of commands that were received.
    came: Arc<AtomicUsize>,
    listens: Option<JoinHandle<()>>,
    socket: String,
}

impl Impostor {
    fn start(behaves: Behaves) -> Self {
        Self::of(ready(&shelf(&jdks()[0])), behaves)
    }

    fn of(target: Target, behaves: Behaves) -> Self {
        let socket = format!("/tmp/.java_pid{}", target.pid());
        let listener = UnixListener::bind(&socket).expect("a socket");
        let over = Arc::new(AtomicBool::new(false));
        let came = Arc::new(AtomicUsize::new(0));
        let (ends, counts) = (Arc::clone(&over), Arc::clone(&came));
        let listens = std::thread::spawn(move || {
            let mut held = Vec::new();
            if matches!(behaves, Behaves::Accepts) {
                while !ends.load(Relaxed) {
                    sleep(Duration::from_millis(20));
                }
                return;
            }
            for stream in listener.incoming() {
                if ends.load(Relaxed) {
                    break;
                }
                let (behaves, counts) = (behaves.clone(), Arc::clone(&counts));
                let (stream, ends) = (stream.expect("a connection"), Arc::clone(&ends));
                held.push(std::thread::spawn(move || {
                    behave(stream, &behaves, (&counts, &ends));
                }));
            }
            for thread in held {
                thread.join().expect("an end");
            }
        });
        Self {
            target,
            over,
            came,
            listens: Some(listens),
            socket,
        }
    }

    fn pid(&self) -> String {
        self.target.pid().to_string()
    }
}

impl Drop for Impostor {
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
        // Wakes up the listener.
        let _ = UnixStream::connect(&self.socket);
        if let Some(listens) = self.listens.take() {
            let _ = listens.join();
        }
        let _ = fs::remove_file(&self.socket);
    }
}

/// Reads the version, the command and three arguments. Returns `None` if the client only tests the connection.
fn command(stream: &mut UnixStream) -> Option<Vec<String>> {
    let (mut words, mut byte) = (vec![Vec::new()], [0]);
    while words.len() <= 5 {
        match (stream.read(&mut byte), byte) {
            (Ok(1), [0]) => words.push(Vec::new()),
            (Ok(1), [other]) => words.last_mut()?.push(other),
            _ => return None,
        }
    }
    let text = |word| String::from_utf8(word).expect("text");
    Some(words.into_iter().map(text).collect())
}

fn behave(mut stream: UnixStream, behaves: &Behaves, (came, over): (&AtomicUsize, &AtomicBool)) {
    let mut words = Vec::new();
    if !matches!(behaves, Behaves::Reads) {
        let Some(read) = command(&mut stream) else {
            return;
        };
        words = read;
        came.fetch_add(1, Relaxed);
    }
    match behaves {
        Behaves::Says(text) => {
            let _ = stream.write_all(text.as_bytes());
            return;
        }
        Behaves::Begins => fs::write(&words[2], "").expect("a file"),
        Behaves::Writes => {
            let mut file = fs::File::create(&words[2]).expect("a file");
            chmod(Path::new(&words[2]), 0o666);
            for _ in 0..40 {
                file.write_all(b"JAVA PROFILE ").expect("bytes");
                sleep(Duration::from_millis(100));
            }
            let _ = stream.write_all(b"0\nHeap dump file created [520 bytes in 4.0 secs]\n");
            return;
        }
        _ => {}
    }
    while !over.load(Relaxed) {
        sleep(Duration::from_millis(100));
        if matches!(behaves, Behaves::Drips) && stream.write_all(b"0").is_err() {
            return;
        }
    }
}

/// Runs all commands at once. Each must end in time with its message, and leave no file.
fn all_end(impostor: &Impostor, commands: &[Vec<&str>]) {
    let pid = impostor.pid();
    std::thread::scope(|scope| {
        for command in commands {
            let pid = &pid;
            scope.spawn(move || {
                let home = folder();
                let begun = Instant::now();
                let args = [&command[..], &[pid, "--timeout", TIMEOUT]].concat();
                let done = run(home.path(), &args);
                let time = begun.elapsed();
                done.failed(3, &format!("did not answer within {TIMEOUT}"));
                assert!(time < LATEST, "{command:?}: {time:?}");
                assert_eq!(files(home.path()), [] as [&str; 0], "{command:?}");
            });
        }
    });
}

#[test]
fn a_jvm_that_does_not_answer_is_waited_for_until_the_timeout() {
    let library = library();
    let agent = library.to_str().expect("a path");
    let commands = [
        vec!["dump"],
        vec!["dump", "--gz", "1", "-o", "a.hprof"],
        vec!["dump", "-o", "-"],
        vec!["dump", "--fork", "--agent", agent],
        vec!["attach", "--agent", agent],
        vec!["count", "--agent", agent, "--for", "1s"],
        vec!["hunt", "--no-attach", "--for", "1s"],
        vec!["hunt", "--agent", agent, "--for", "1s"],
        vec!["hunt", "--agent", agent, "--for", "1s", "--no-files"],
    ];
    for behaves in [
        Behaves::Accepts,
        Behaves::Reads,
        Behaves::Answers,
        Behaves::Drips,
    ] {
        all_end(&Impostor::start(behaves), &commands);
    }
}

#[test]
fn an_interrupt_ends_the_wait_for_a_slow_jvm() {
    let impostor = Impostor::start(Behaves::Drips);
    let home = folder();
    let pid = impostor.pid();
    let mut dump = start(home.path(), &["dump", &pid, "--timeout", "60s"]);
    until("a command", || impostor.came.load(Relaxed) > 0);
    let begun = Instant::now();
    signal("INT", dump.id());
    let end = dump.wait().expect("an end");
    assert_eq!(end.signal(), Some(2), "{end:?}");
    assert!(begun.elapsed() < LATEST, "{:?}", begun.elapsed());
    assert_eq!(files(home.path()), [] as [&str; 0]);
}

#[test]
fn a_dump_that_grows_is_waited_for_longer_than_the_timeout() {
    let impostor = Impostor::start(Behaves::Writes);
    let home = folder();
    let (pid, begun) = (impostor.pid(), Instant::now());
    let args = ["dump", &pid, "--timeout", TIMEOUT, "-o", "a.hprof"];
    run(home.path(), &args).well();
    assert!(begun.elapsed() >= Duration::from_secs(4));
    // The JVM created the file with a mode that lets other users write to it. heapdiff must have changed the mode.
    let dump = fs::metadata(home.path().join("a.hprof")).expect("a dump");
    assert_eq!(dump.permissions().mode() & 0o777, 0o600);
    assert_eq!(files(home.path()), ["a.hprof"]);
}

#[test]
fn a_dump_that_does_not_grow_is_given_up() {
    let impostor = Impostor::start(Behaves::Begins);
    all_end(&impostor, &[vec!["dump"], vec!["dump", "-o", "-"]]);
}

#[test]
fn an_agent_that_does_not_answer_is_given_up() {
    let target = ready(&shelf(&jdks()[0]));
    let home = folder();
    let (pid, library) = (target.pid().to_string(), library());
    let agent = library.to_str().expect("a path");
    run(home.path(), &["attach", &pid, "--agent", agent]).well();
    fs::remove_file(format!("/tmp/.java_pid{pid}")).expect("a socket");
    let impostor = Impostor::of(target, Behaves::Drips);
    let attach = vec!["attach", "--agent", agent];
    all_end(&impostor, &[vec!["detach"], attach]);
}

#[test]
fn a_jvm_of_jdk_8_gets_the_commands_that_need_no_agent() {
    // HotSpot 8 returns only the code of the agent, without text.
    let impostor = Impostor::start(Behaves::Says(format!("0\n{TOO_OLD}\n")));
    let pid = impostor.pid();
    let library = library();
    let agent = library.to_str().expect("a path");
    let asks = |args: &[&str], home: &Path| -> Done {
        let args = [args, &[&pid, "--agent", agent]].concat();
        let done = run(home, &args).failed(3, "the agent needs JDK 11 or later");
        let hint = done.stderr.lines().nth(1).unwrap_or_default().to_owned();
        for command in ["dump", "hunt"] {
            assert!(
                hint.contains(&format!("`heapdiff {command} {pid}")),
                "{done:?}"
            );
        }
        assert!(hint.contains("--no-attach`"), "{done:?}");
        assert!(!done.stderr.contains("standard error"), "{done:?}");
        done
    };
    for args in [
        &["attach"][..],
        &["count", "--for", "1s"],
        &["hunt", "--for", "1s"],
        &["hunt", "--for", "1s", "--no-files"],
        &["dump", "--fork"],
    ] {
        let home = folder();
        asks(args, home.path());
        assert_eq!(files(home.path()), [] as [&str; 0], "{args:?}");
    }
}
