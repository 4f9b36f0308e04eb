//! `heapdiff threads`: lists threads, their frames, and what their local variables retain.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;

use clap::Args;
use heapdiff_diff::samples::AgentObjects;
use heapdiff_diff::{PendingWork, pending_work};
use heapdiff_model::threads::{
    FrameRow, LocalRow, Locals, PendingRow, ThreadRow, ThreadTotals, ThreadsReport,
};
use heapdiff_report::Report;
use hprof::answers::{Local, Thread, ThreadState};
use hprof::{ObjectIndex, Progress, Snapshot};

use super::describe::Mentions;
use super::dump_info;
use super::opened::open;
use crate::args::input;
use crate::classpath::{ClassPath, Classpath, SuspendFunction, class_path};
use crate::failure::Result;
use crate::job::{Setup, Task};

/// Maximum number of threads in text and in JSON. A program can have millions of virtual threads.
const ROWS: [usize; 2] = [10, 100];
/// Maximum number of objects that are listed for the variables of a frame.
const LOCALS: usize = 5;
/// Maximum number of groups of pending work, such as tasks in a queue or threads with equal stacks.
const GROUPS: usize = 10;

const HELP: &str = "\
Examples:
  heapdiff threads app.hprof                     # the threads that retain the most
  heapdiff threads app.hprof -v -o threads.json  # all frames, as JSON";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Threads {
    /// Heap dump (HPROF), gzipped or not
    #[arg(value_parser = input())]
    pub(crate) dump: PathBuf,
    /// Class files that show the lines of suspended Kotlin functions: folders or jars, separated as
    /// in a Java class path
    #[arg(long, value_name = "PATH", value_parser = class_path)]
    pub(crate) classpath: Vec<ClassPath>,
}

impl Task for Threads {
    fn run(&self, setup: &Setup) -> Result<Vec<Report>> {
        let (snapshot, meter) = open(setup, &self.dump)?;
        meter.phase("reading threads", 0);
        let own = AgentObjects::find(&snapshot);
        let mut threads = snapshot.threads();
        threads.retain(|t| t.object.is_none_or(|o| !own.contains(o)));
        let totals = ThreadTotals {
            threads: threads.len() as u64,
            virtual_threads: threads.iter().filter(|t| t.is_virtual).count() as u64,
        };
        let mut pending = self.pending(&snapshot, &threads)?;
        let pending_groups = pending.len() as u64;
        let mut grouped_threads = 0;
        if setup.output.format.is_read_by_people() {
            // Reports for people show the threads of a group together, so these threads are not listed again.
            let grouped: BTreeSet<ObjectIndex> = pending
                .iter()
                .flat_map(|group| group.members.iter().copied())
                .collect();
            let all = threads.len();
            threads.retain(|thread| thread.object.is_none_or(|o| !grouped.contains(&o)));
            grouped_threads = (all - threads.len()) as u64;
        }
        pending.truncate(setup.top.unwrap_or(GROUPS));
        threads.sort_by_cached_key(|thread| {
            let retained = thread.object.and_then(|o| snapshot.retained_bytes(o));
            (Reverse(retained), thread.serial.is_none())
        });
        let rows = if setup.output.format.is_read_by_people() {
            ROWS[0]
        } else {
            ROWS[1]
        };
        threads.truncate(setup.top.unwrap_or(rows));
        for thread in &mut threads {
            for locals in thread.frames.iter_mut().map(|f| &mut f.locals) {
                largest_first(&snapshot, &own, locals);
            }
            largest_first(&snapshot, &own, &mut thread.other_locals);
        }
        let mentioned = threads.iter().flat_map(|thread| {
            let in_frames = thread.frames.iter().flat_map(|f| listed(&f.locals));
            let locals = in_frames.chain(listed(&thread.other_locals));
            let own = thread.object.into_iter().chain(thread.context_loader);
            locals.map(|l| l.object).chain(own)
        });
        let largest: Vec<Option<ObjectIndex>> = pending
            .iter()
            .map(|group| {
                let members = group.members.iter().copied();
                members.max_by_key(|&o| (snapshot.retained_bytes(o), Reverse(o)))
            })
            .collect();
        let mentioned = mentioned.chain(largest.iter().flatten().copied());
        let mentions = Mentions::new(&snapshot, mentioned);
        Ok(vec![Report::Threads(ThreadsReport {
            schema: ThreadsReport::SCHEMA,
            threads: threads
                .iter()
                .map(|t| row(&snapshot, t, &mentions))
                .collect(),
            pending: pending
                .into_iter()
                .zip(largest)
                .map(|(group, largest)| PendingRow {
                    kind: group.kind.name(),
                    count: group.members.len() as u64,
                    retained_bytes: group.retained_bytes,
                    shape: group.shape,
                    largest: largest.and_then(|o| mentions.of(o)),
                })
                .collect(),
            pending_groups,
            grouped_threads,
            snapshot: dump_info::of(&snapshot, &own),
            totals,
        })])
    }
}

impl Threads {
    fn pending(&self, snapshot: &Snapshot, threads: &[Thread]) -> Result<Vec<PendingWork>> {
        let mut classpath = Classpath::open(&self.classpath)?;
        let mut functions: HashMap<String, Option<SuspendFunction>> = HashMap::new();
        let mut failed = None;
        let mut suspended = |class: &str, label: i64| {
            let function = functions.entry(class.to_owned()).or_insert_with(|| {
                let read = classpath.suspend_function(class);
                read.unwrap_or_else(|failure| {
                    failed.get_or_insert(failure);
                    None
                })
            });
            function.as_ref()?.frame(label)
        };
        let pending = pending_work(snapshot, threads, &mut suspended);
        match failed {
            Some(failure) => Err(failure),
            None => Ok(pending),
        }
    }
}

/// Sorts variables by retained size. Drops objects of the agent, which a thread may hold while it runs agent code.
fn largest_first(snapshot: &Snapshot, own: &AgentObjects, locals: &mut Vec<Local>) {
    locals.retain(|local| !own.contains(local.object));
    locals.sort_by_key(|local| Reverse(snapshot.retained_bytes(local.object)));
}

fn listed(locals: &[Local]) -> impl Iterator<Item = &Local> {
    locals.iter().take(LOCALS)
}

fn row(snapshot: &Snapshot, thread: &Thread, mentions: &Mentions) -> ThreadRow {
    let locals = |locals: &[Local]| Locals {
        count: locals.len() as u64,
        largest: listed(locals)
            .map(|local| LocalRow {
                kind: local.kind.name(),
                object: mentions.of(local.object),
                retained_bytes: snapshot.retained_bytes(local.object).unwrap_or(0),
            })
            .collect(),
    };
    let mention = thread.object.and_then(|o| mentions.of(o));
    ThreadRow {
        name: thread.name.clone(),
        id: mention.as_ref().map(|m| m.id.clone()),
        class: mention.and_then(|m| m.class),
        daemon: thread.daemon,
        is_virtual: thread.is_virtual,
        priority: thread.priority,
        state: thread.state.map(ThreadState::name),
        context_loader: thread.context_loader.and_then(|o| mentions.of(o)),
        retained_bytes: thread.object.and_then(|o| snapshot.retained_bytes(o)),
        retained_objects: thread.object.and_then(|o| snapshot.retained_objects(o)),
        frames: thread
            .frames
            .iter()
            .map(|f| FrameRow {
                frame: f.frame.to_string(),
                locals: locals(&f.locals),
            })
            .collect(),
        other_locals: locals(&thread.other_locals),
    }
}
