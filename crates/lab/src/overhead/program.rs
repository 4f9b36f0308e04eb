//! The measured programs, and a JVM that runs one of them.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail};
use testdata::jvm::Jdk;
use testdata::programs;

use super::collections::{self, Collections};
use super::figures::Figures;
use crate::java;

/// A program in `testdata/java/overhead`.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) name: &'static str,
    /// Arguments of the program. They give the number of threads, and select whether all threads allocate at the same
    /// site.
    args: &'static [&'static str],
    /// The folder with a `pom.xml` that names the program's libraries, if it has any.
    pub(super) folder: Option<&'static str>,
    pub(super) about: &'static str,
    /// Number of operations per slice. A slice takes about half a second.
    slice: u32,
    /// Number of slices that run to warm up the JVM, before the measured slices.
    warm_up: u32,
}

pub(super) const PROGRAMS: [Program; 10] = [
    Program {
        name: "Allocating",
        args: &[],
        folder: None,
        about: "allocates trees, boxed numbers and small arrays as fast as possible; stacks have 3 to 10 frames",
        slice: 300_000,
        warm_up: 3,
    },
    Program {
        name: "Orders",
        args: &[],
        folder: None,
        about: "a service that parses documents into maps and strings and aggregates; stacks have about 60 frames",
        slice: 20_000,
        warm_up: 3,
    },
    Program {
        name: "Documents",
        args: &[],
        folder: Some("documents"),
        about: "Jackson 2.22 reads and writes documents as beans, trees and maps",
        slice: 8_000,
        warm_up: 4,
    },
    Program {
        name: "Queries",
        args: &[],
        folder: Some("queries"),
        about: "H2 2.2 in memory: inserts and deletes a row, updates, queries by an index, and sometimes parses a query",
        slice: 8_000,
        warm_up: 4,
    },
    threads(&["1", "one"]),
    threads(&["2", "one"]),
    threads(&["8", "one"]),
    threads(&["1", "own"]),
    threads(&["2", "own"]),
    threads(&["8", "own"]),
];

const fn threads(args: &'static [&'static str]) -> Program {
    Program {
        name: "Threads",
        args,
        folder: None,
        about: "allocates lists of a hundred small objects",
        slice: 500_000,
        warm_up: 3,
    }
}

/// The classes of a program, and its libraries.
#[derive(Clone, Debug)]
pub(super) struct Compiled {
    program: &'static Program,
    path: OsString,
}

impl Program {
    /// True if CI runs the program. The run must be short and must download nothing.
    pub(super) fn is_smoke(&self) -> bool {
        self.folder.is_none() && self.args.is_empty()
    }

    /// Returns the program's name with its arguments.
    pub(super) fn title(&self) -> String {
        let words = std::iter::once(self.name).chain(self.args.iter().copied());
        words.collect::<Vec<_>>().join(" ")
    }

    /// Compiles the program, with libraries that Maven fetches.
    pub(super) fn compiled(&'static self, jdk: &Jdk) -> Result<Compiled> {
        let source = format!("{}.java", self.name);
        let path = match self.folder {
            None => jdk.compile(&programs::overhead(&source))?.into_os_string(),
            Some(name) => {
                let folder = programs::overhead(name);
                let libraries = java::libraries(&folder, name, None)?;
                let classes = jdk.compile_with(&folder.join(source), &libraries)?;
                let mut path = classes.into_os_string();
                path.push(":");
                path.push(libraries.join("*"));
                path
            }
        };
        Ok(Compiled {
            program: self,
            path,
        })
    }
}

/// JVM flags that make measurements comparable. A small heap makes differences in memory outside of the heap visible.
/// With a single JIT compiler, and with threads that wait while a method is compiled, JVMs with the same flags differ
/// less.
const FLAGS: [&str; 4] = ["-Xms256m", "-Xmx256m", "-XX:-TieredCompilation", "-Xbatch"];

/// A running JVM that waits for its next slice of the work. It is killed and reaped when dropped.
pub(super) struct Running {
    program: &'static Program,
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// Divisor for the number of operations in a slice. The divisor is above 1 if a tool slows the program down.
    part: u32,
    /// The GC log.
    log: PathBuf,
}

impl Running {
    /// Starts the JVM. If two flags contradict each other, the later one is used.
    pub(super) fn start(
        jdk: &Jdk,
        Compiled { program, path }: &Compiled,
        flags: impl IntoIterator<Item = impl AsRef<OsStr>>,
        part: u32,
        log: &Path,
    ) -> Result<Self> {
        let mut child = Command::new(jdk.java())
            .args(FLAGS)
            .arg(collections::flag(log))
            .args(flags)
            .arg("-cp")
            .arg(path)
            .arg(program.name)
            .args(program.args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start java")?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let mut running = Self {
            program,
            child,
            input: input.context("the standard input of the process is not a pipe")?,
            output: BufReader::new(
                output.context("the standard output of the process is not a pipe")?,
            ),
            part,
            log: log.to_owned(),
        };
        running.line("READY")?;
        Ok(running)
    }

    /// Returns the next line that begins with `prefix`. Skips other lines, which the measured tools may print.
    fn line(&mut self, prefix: &str) -> Result<String> {
        let mut line = String::new();
        while self.output.read_line(&mut line)? > 0 {
            if line.starts_with(prefix) {
                return Ok(line);
            }
            line.clear();
        }
        bail!("{} ended before it printed {prefix}", self.program.name)
    }

    fn work(&mut self, operations: u32) -> Result<Figures> {
        writeln!(self.input, "{}", operations / self.part)?;
        let line = self.line("DONE")?;
        let numbers: Vec<u64> = line
            .split_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect();
        let &[operations, cpu, allocated] = &numbers[..] else {
            bail!("{}: {line:?}", self.program.name);
        };
        Ok(Figures {
            slices: 1,
            operations,
            cpu,
            allocated,
            ..Figures::default()
        })
    }

    pub(super) fn warm_up(&mut self, briefly: bool) -> Result<()> {
        for _ in 0..if briefly { 1 } else { self.program.warm_up } {
            self.work(self.program.slice)?;
        }
        Ok(())
    }

    pub(super) fn slice(&mut self) -> Result<Figures> {
        self.work(self.program.slice)
    }

    /// Ends the JVM. Returns its maximum resident memory in bytes, and the number of its GCs.
    pub(super) fn finish(self) -> Result<(u64, Collections)> {
        let file = format!("/proc/{}/status", self.child.id());
        let status = fs::read_to_string(&file).with_context(|| file.clone())?;
        let peak = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:"))
            .and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok());
        let peak = peak.with_context(|| format!("the file {file} has no VmHWM"))? * 1024;
        Ok((peak, Collections::from_log(&self.log)?))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Ignore the error, because the process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
