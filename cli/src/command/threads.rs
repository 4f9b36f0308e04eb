//! `heapdiff threads`: lists threads, their frames, and what their local variables retain.

use std::cmp::Reverse;
use std::path::PathBuf;

use clap::Args;
use heapdiff_diff::samples::AgentObjects;
use heapdiff_model::threads::{FrameRow, LocalRow, Locals, ThreadRow, ThreadTotals, ThreadsReport};
use heapdiff_report::Report;
use hprof::answers::{Local, Thread, ThreadState};
use hprof::{Progress, Snapshot};

use super::describe::Mentions;
use super::dump_info;
use super::opened::open;
use crate::args::input;
use crate::failure::Result;
use crate::job::{Setup, Task};

/// Maximum number of threads in text and in JSON. A program can have millions of virtual threads.
const ROWS: [usize; 2] = [10, 100];
/// Maximum number of objects that are listed for the variables of a frame.
const LOCALS: usize = 5;

const HELP: &str = "\
Examples:
  heapdiff threads app.hprof                     # the threads that retain the most
  heapdiff threads app.hprof -v -o threads.json  # all frames, as JSON";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Threads {
    /// Heap dump (HPROF), gzipped or not
    #[arg(value_parser = input())]
    dump: PathBuf,
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
        let mentions = Mentions::new(&snapshot, mentioned);
        Ok(vec![Report::Threads(ThreadsReport {
            schema: ThreadsReport::SCHEMA,
            threads: threads
                .iter()
                .map(|t| row(&snapshot, t, &mentions))
                .collect(),
            snapshot: dump_info::of(&snapshot, &own),
            totals,
        })])
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
