//! `heapdiff ps` and `heapdiff status`: list the JVMs of this machine, or show one of them with the state of its agent.

use std::time::Duration;

use heapdiff_sites::attach;
use heapdiff_units::{Size, Span};

use super::agent::{self, State};
use super::deadline::{Deadline, Sign};
use super::perf_data::PerfData;
use super::process::{self, Listed, Process};
use super::protocol::Jvm;
use super::request::JvmArgs;
use crate::failure::{Exit, Result};
use crate::write;

/// Text of a table cell that has no value.
const UNKNOWN: &str = "-";

/// Prints a line for each JVM that this user may read, sorted by process id.
pub(crate) fn ps() -> Result<Exit> {
    let jvms = process::jvms();
    if jvms.is_empty() {
        write::print("found no JVM that this user may inspect\n")?;
        return Ok(Exit::Done);
    }
    let lines = table(&jvms).join("\n");
    write::print(&format!(
        "{lines}\n\nFor most collectors, the column `heap used` shows the value at the last GC. `heapdiff status PID` shows what the agent does.\n"
    ))?;
    Ok(Exit::Done)
}

/// Returns a heading and a line for each JVM.
pub(super) fn table(jvms: &[Listed]) -> Vec<String> {
    let head = [
        "pid",
        "uptime",
        "heap used",
        "maximum",
        "agent",
        "main class",
    ];
    let mut rows = vec![head.map(str::to_owned)];
    rows.extend(jvms.iter().map(|jvm| {
        let heap = jvm.perf_data.as_deref();
        let heap = heap.and_then(|file| PerfData::read(jvm.pid, file)?.heap());
        let size = |bytes: Option<u64>| {
            bytes.map_or_else(|| UNKNOWN.to_owned(), |bytes| Size(bytes).to_string())
        };
        let agent = if jvm.has_agent { "loaded" } else { UNKNOWN };
        [
            jvm.pid.to_string(),
            uptime(jvm.pid),
            size(heap.map(|(used, _)| used)),
            size(heap.map(|(_, max)| max)),
            agent.to_owned(),
            jvm.main.clone(),
        ]
    }));
    let widths: [usize; 6] =
        std::array::from_fn(|i| rows.iter().map(|row| row[i].len()).max().unwrap_or(0));
    let [pid, uptime, used, max, agent, _] = widths;
    let line = |[a, b, c, d, e, main]: &[String; 6]| {
        let line = format!("{a:>pid$}  {b:>uptime$}  {c:>used$}  {d:>max$}  {e:<agent$}  {main}");
        line.trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// Prints the user, version, uptime and heap size of one JVM, and the state of its agent.
pub(crate) fn status(jvm: &JvmArgs) -> Result<Exit> {
    let deadline = Deadline::new(jvm.timeout.0);
    let process = Process::find(&jvm.pid, &deadline)?;
    let jvm = Jvm::attach(&process, deadline)?;
    let heap = process.perf_data();
    let heap = heap.and_then(|file| PerfData::read(process.pid, &file)?.heap());
    let heap = heap.map_or_else(
        || "unknown: the JVM runs with -XX:-UsePerfData".to_owned(),
        |(used, max)| format!("{} of {} used at the last GC", Size(used), Size(max)),
    );
    let lines = [
        ("user", process.user.name()),
        ("JVM", version(&jvm)?),
        ("uptime", uptime(process.pid)),
        ("heap", heap),
        ("agent", agent(&jvm)?),
    ];
    let lines = lines.map(|(name, text)| format!("  {name:<6}  {text}\n"));
    write::print(&format!("{process}\n{}", lines.concat()))?;
    Ok(Exit::Done)
}

/// Returns the time since the process began.
fn uptime(pid: u32) -> String {
    let uptime = process::uptime(pid).map(|uptime| Duration::from_secs(uptime.as_secs()));
    uptime.map_or_else(|| UNKNOWN.to_owned(), |uptime| Span(uptime).to_string())
}

/// Returns the version of the JVM.
fn version(jvm: &Jvm<'_>) -> Result<String> {
    let tick = || jvm.process.check_alive().map(|()| Sign::Nothing);
    let answer = jvm.execute("properties", [b"", b"", b""], tick)?;
    let value = |key: &str| {
        let mut lines = answer.text.lines();
        let value = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix('='))?;
        Some(process::printable(&value.replace('\\', "")))
    };
    let version = value("java.vm.version").unwrap_or_else(|| UNKNOWN.to_owned());
    Ok(match value("java.vm.name") {
        Some(name) => format!("{version} ({name})"),
        None => version,
    })
}

/// Returns a description of what the agent does.
fn agent(jvm: &Jvm<'_>) -> Result<String> {
    let pid = jvm.process.pid;
    let state = match agent::state(jvm)? {
        State::NotLoaded => return Ok(format!("not loaded; `heapdiff attach {pid}` loads it")),
        State::Unknown => {
            return Ok("loaded; this version of the agent does not report whether it samples, counts or writes a trace".to_owned());
        }
        state => state,
    };
    let does = [
        (attach::SAMPLES, "samples allocations"),
        (attach::COUNTS, "counts allocations"),
        (attach::TRACES, "writes a trace"),
    ];
    let does = does.iter().filter(|(bit, _)| state.does(*bit));
    let does: Vec<&str> = does.map(|&(_, text)| text).collect();
    Ok(if does.is_empty() {
        format!("loaded, but does nothing now; `heapdiff attach {pid}` starts sampling")
    } else {
        does.join(", ")
    })
}
