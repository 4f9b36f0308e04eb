//! Takes many forked dumps of a JVM under load. At random moments, kills the client (the `heapdiff` process that
//! requests the dump) or the forked child. At the end, the JVM must have as many open files, threads and child
//! processes as before, and must not use more memory.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use testdata::jvm::Jdk;

use super::service::{Service, Tools, children, loading};

/// Size of the live objects in megabytes. It is small, so that a thousand dumps do not take hours.
const LIVE: u32 = 8;
/// Maximum growth of the JVM's memory in kilobytes. Some growth is normal, because the JVM's buffers and compiled code
/// grow.
const GAINED: u64 = 48 << 10;
/// Maximum time that a child may run after its client was killed.
const ENDING: Duration = Duration::from_secs(120);

/// Numbers of resources that a process uses.
#[derive(Debug, Clone, Copy)]
struct Has {
    files: usize,
    threads: usize,
    kilobytes: u64,
}

impl Has {
    fn now(pid: u32) -> Result<Self> {
        let count = |what: &str| fs::read_dir(format!("/proc/{pid}/{what}")).map(Iterator::count);
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let word = line.and_then(|line| line.split_whitespace().next());
        Ok(Self {
            files: count("fd")?,
            threads: count("task")?,
            kilobytes: word.context("no VmRSS")?.parse()?,
        })
    }
}

/// A row of the table: the result for one JVM.
#[derive(Debug)]
pub(super) struct Row {
    name: String,
    whole: u32,
    killed: [u32; 3],
    before: Has,
    after: Has,
    took: Duration,
    wrong: Vec<String>,
}

/// A pseudo-random generator with a fixed seed, so that runs can be repeated.
struct Random(u64);

impl Random {
    fn random_below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most.max(1)
    }
}

/// Takes `count` dumps. During each dump whose number is a multiple of `kill_every`, kills a process.
pub(super) fn dump_repeatedly(
    jdk: &Jdk,
    (collector, flags): (&str, &[&str]),
    tools: &Tools,
    count: u32,
    kill_every: u32,
) -> Result<Row> {
    let begun = Instant::now();
    let mut all = loading(jdk);
    all.extend(flags.iter().map(|flag| (*flag).to_owned()));
    // Keep the heap size and the number of threads constant, because their changes would look like a leak.
    let steady = [
        "-Xms128m",
        "-Xmx128m",
        "-XX:+AlwaysPreTouch",
        "-XX:-UseDynamicNumberOfGCThreads",
        "-XX:-UseDynamicNumberOfCompilerThreads",
        "-Xcheck:jni",
        // Send the messages of -Xcheck:jni to standard error, because standard output has the service's lines.
        "-XX:+DisplayVMOutputToStderr",
    ];
    all.extend(steady.map(str::to_owned));
    let mut service = Service::start(jdk, LIVE, 1, &all)?;
    let name = format!("{} | {collector}", jdk.version());
    println!("{name}");
    let pid = service.target.pid();
    let home = tempfile::tempdir_in(&tools.scratch)?;
    let file = home.path().join("dump.hprof");
    let mut random = Random(u64::from(jdk.major()));
    let mut usual = Duration::from_secs(1);
    let (mut whole, mut killed, mut wrong) = (0, [0; 3], Vec::new());
    let warm = (count / 10).clamp(1, 50);
    let mut before = None;
    for number in 1..=count {
        if number % kill_every == 0 {
            let who = usize::try_from(random.random_below(3))?;
            let moment =
                usual.mul_f64(f64::from(u32::try_from(random.random_below(1000))?) / 1000.0);
            if file.exists() {
                fs::remove_file(&file)?;
            }
            if kill(tools, pid, &file, (who, moment))? {
                killed[who] += 1;
            }
            wait_until_ended(pid)?;
            if file.exists() {
                check(&mut wrong, tools, &file, service.entries, number);
            }
            let left = fs::read_dir(home.path())?.flatten();
            for part in left.filter(|entry| entry.file_name() != "dump.hprof") {
                // A client that gets SIGKILL cannot remove its temporary file. Accept this, because no program reads a
                // file of that name.
                if who != 0 {
                    wrong.push(format!(
                        "{number}: the file {} was not removed",
                        part.path().display()
                    ));
                }
                fs::remove_file(part.path())?;
            }
        } else {
            let took = tools
                .forked(pid, &file)
                .with_context(|| format!("{name}, dump {number}: {}", service.target.errors()))?;
            usual = (usual * 7 + took) / 8;
            whole += 1;
            if whole % 50 == 1 || number == count {
                check(&mut wrong, tools, &file, service.entries, number);
            }
        }
        ensure!(service.target.is_running(), "{name}: the JVM ended");
        let orphans = children(pid);
        if !orphans.is_empty() {
            wrong.push(format!("{number}: the processes {orphans:?} still run"));
        }
        if number == warm {
            before = Some(Has::now(pid)?);
        }
    }
    let (before, after) = (before.context("no dump")?, Has::now(pid)?);
    let (well, errors) = service.target.finish_with_errors()?;
    if !well {
        wrong.push("the JVM ended with an error".to_owned());
    }
    let others = errors.lines().filter(|l| !l.starts_with("heapdiff agent:"));
    wrong.extend(others.map(|line| format!("the JVM printed: {line}")));
    if after.files > before.files || after.threads > before.threads {
        wrong.push(format!("{before:?} before, {after:?} after"));
    }
    if after.kilobytes > before.kilobytes + GAINED {
        wrong.push(format!("{before:?} before, {after:?} after"));
    }
    Ok(Row {
        name,
        whole,
        killed,
        before,
        after,
        took: begun.elapsed(),
        wrong,
    })
}

/// Records an error unless the dump contains the expected number of the service's entries.
fn check(
    wrong: &mut Vec<String>,
    tools: &Tools,
    file: &std::path::Path,
    entries: u64,
    number: u32,
) {
    match tools.entries(file) {
        Ok(found) if found == entries => {}
        Ok(found) => wrong.push(format!(
            "{number}: found {found} entries, expected {entries}"
        )),
        Err(e) => wrong.push(format!("{number}: {e}")),
    }
}

/// Begins a dump, and kills a process after a moment. `who` selects the process: the client with SIGKILL (0), the
/// client with SIGTERM (1), or the forked child with SIGKILL (2). Returns true if there was a process to kill.
fn kill(
    tools: &Tools,
    pid: u32,
    file: &std::path::Path,
    (who, moment): (usize, Duration),
) -> Result<bool> {
    let mut client = tools.fork(pid, file)?;
    sleep(moment);
    let victim = match who {
        2 => {
            let until = Instant::now() + Duration::from_secs(2);
            let mut child = children(pid).first().copied();
            while child.is_none() && Instant::now() < until && client.try_wait()?.is_none() {
                child = children(pid).first().copied();
            }
            child
        }
        _ => Some(client.id()),
    };
    let is_there = client.try_wait()?.is_none();
    if let (Some(victim), true) = (victim, is_there) {
        let signal = if who == 1 { "-TERM" } else { "-KILL" };
        // The process may just have ended, so an error of `kill` is ignored.
        let _ = Command::new("kill")
            .args([signal, &victim.to_string()])
            .output()?;
    }
    client.wait_with_output()?;
    Ok(is_there && victim.is_some())
}

/// Waits until the forked child has ended. The child may run longer than the client.
fn wait_until_ended(pid: u32) -> Result<()> {
    let until = Instant::now() + ENDING;
    while !children(pid).is_empty() {
        ensure!(
            Instant::now() < until,
            "a child process did not end in time"
        );
        sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// The rows of the table, and all errors.
pub(super) struct Table {
    text: String,
    wrong: Vec<String>,
}

impl Table {
    pub(super) fn new(count: u32) -> Self {
        Self {
            text: format!(
                "## {count} forked dumps of a JVM under load, with -Xcheck:jni\n\n\
                 | JVM | collector | complete dumps | client was killed | client was interrupted | child was killed | open files, start to end | threads, start to end | resident MB, start to end | minutes |\n\
                 |---|---|---|---|---|---|---|---|---|---|\n"
            ),
            wrong: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, row: &Row) -> Result<()> {
        let [killed, asked, child] = row.killed;
        let start = self.text.len();
        writeln!(
            self.text,
            "| {} | {} | {killed} | {asked} | {child} | {} to {} | {} to {} | {} to {} | {:.1} |",
            row.name,
            row.whole,
            row.before.files,
            row.after.files,
            row.before.threads,
            row.after.threads,
            row.before.kilobytes >> 10,
            row.after.kilobytes >> 10,
            row.took.as_secs_f64() / 60.0,
        )?;
        print!("{}", &self.text[start..]);
        for wrong in &row.wrong {
            println!("  {wrong}");
            self.wrong.push(format!("{}: {wrong}", row.name));
        }
        Ok(())
    }

    pub(super) fn end(self) -> (String, Vec<String>) {
        (self.text, self.wrong)
    }
}
