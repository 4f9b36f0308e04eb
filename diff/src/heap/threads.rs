//! Threads that retain much memory. For each thread, also finds the local variable that holds most of it.

use std::cmp::Reverse;

use hprof::Snapshot;
use hprof::answers::Thread;

use crate::names;
use crate::samples::AgentObjects;
use heapdiff_model::heap::{HeapThread, ThreadHold};

/// Maximum number of threads to report.
const THREADS: usize = 20;

/// Returns all threads except the agent's.
pub(super) fn of(snapshot: &Snapshot, own: &AgentObjects) -> Vec<Thread> {
    let mut threads = snapshot.threads();
    threads.retain(|t| t.object.is_none_or(|o| !own.contains(o)));
    threads
}

/// Returns the threads that retain at least `least` bytes, sorted by retained bytes, descending.
pub(super) fn largest_threads(
    snapshot: &Snapshot,
    threads: &[Thread],
    least: u64,
) -> Vec<HeapThread> {
    let retained = |t: &Thread| {
        t.object
            .and_then(|o| snapshot.retained_bytes(o))
            .unwrap_or(0)
    };
    let mut large: Vec<(u64, &Thread)> = threads.iter().map(|t| (retained(t), t)).collect();
    large.retain(|&(bytes, _)| bytes >= least);
    large.sort_by_key(|&(bytes, _)| Reverse(bytes));
    large.truncate(THREADS);
    let row = |(bytes, thread): (u64, &Thread)| HeapThread {
        name: thread.name.clone(),
        retained_bytes: bytes,
        local: local(snapshot, thread),
    };
    large.into_iter().map(row).collect()
}

/// Returns the local variable that retains most. If several frames have the same object, returns the outermost
/// application frame (or else the outermost frame), because it passed the object to the other frames.
fn local(snapshot: &Snapshot, thread: &Thread) -> Option<ThreadHold> {
    let own = |f: &hprof::answers::Frame| names::is_application_class_name(&f.class);
    let locals = thread.frames.iter().enumerate().flat_map(|(depth, frame)| {
        let held = frame.locals.iter();
        // Skip the thread object itself. The `run` method of a thread has the thread object in a local variable
        // (`this`).
        let held = held.filter(|local| Some(local.object) != thread.object);
        held.map(move |local| (local.object, depth, &frame.frame))
    });
    let known = locals.filter_map(|(object, depth, frame)| {
        let bytes = snapshot.retained_bytes(object)?;
        Some((bytes, own(frame), depth, frame, object))
    });
    let (bytes, _, _, frame, object) =
        known.max_by_key(|&(bytes, own, depth, ..)| (bytes, own, depth))?;
    (bytes > 0).then(|| ThreadHold {
        frame: frame.to_string(),
        class: names::name_of(snapshot, object),
        retained_bytes: bytes,
    })
}
