//! Adds pending work to the suspects that consist of it.

use heapdiff_model::diff::Suspect;
use hprof::Snapshot;

use super::{PendingKind, PendingWork, class_name, pending_work};
use crate::is_jdk_frame;

/// Classes whose instances are pending work.
const CLASSES: [&str; 6] = [
    "java.lang.Thread",
    "java.util.concurrent.FutureTask",
    "java.util.concurrent.CompletableFuture",
    "java.util.concurrent.CompletableFuture$Completion",
    "kotlin.coroutines.jvm.internal.BaseContinuationImpl",
    "io.netty.channel.AbstractChannel",
];
/// Suffixes of the names of fields. These fields hold the queued tasks of an executor.
const QUEUES: [&str; 2] = ["ThreadPoolExecutor.workQueue", "ForkJoinPool.queues"];
/// Maximum number of lines that a sentence about pending work quotes from [`PendingWork::shape`].
const LINES: usize = 4;

/// Adds to each suspect the largest group of pending work whose members have the suspect's class, or wrap tasks of this
/// class. The largest group is the group with the most members.
///
/// Cost: nothing if no suspect consists of pending work, otherwise that of [`pending_work`].
pub(crate) fn add_work(snapshot: &Snapshot, suspects: &mut [Suspect]) {
    if !suspects
        .iter()
        .any(|suspect| may_be_work(snapshot, suspect))
    {
        return;
    }
    let groups = pending_work(snapshot, &snapshot.threads(), &mut |_, _| None);
    let named = groups.iter().filter_map(|group| {
        let first = group.members.first()?;
        let class = match group.kind {
            // The object in the queue may be a wrapper of the task.
            PendingKind::Tasks => group.shape.first()?.clone(),
            _ => class_name(snapshot, *first),
        };
        Some((class, class_name(snapshot, *first), group))
    });
    let named: Vec<(String, String, &PendingWork)> = named.collect();
    for suspect in suspects {
        if !may_be_work(snapshot, suspect) {
            continue;
        }
        let own = named
            .iter()
            .filter(|(task, member, _)| *task == suspect.class || *member == suspect.class);
        let largest = own.max_by_key(|(.., group)| group.members.len());
        suspect.work = largest.map(|(.., group)| sentence(group));
    }
}

fn may_be_work(snapshot: &Snapshot, suspect: &Suspect) -> bool {
    let classes = snapshot.classes();
    let is_sub = |name: &&str| {
        let of = classes.by_name(name);
        let own = classes.by_name(&suspect.class).iter();
        own.copied()
            .any(|class| of.iter().any(|of| classes.is_subclass(class, *of)))
    };
    let path = || suspect.path.iter().chain([&suspect.holder]);
    let is_queue = |part: &&str| path().any(|step| step.ends_with(part));
    CLASSES.iter().any(is_sub) || QUEUES.iter().any(is_queue)
}

/// Returns the sentence about a group of pending work: the number of its members, and at most [`LINES`] of the lines
/// that describe them. If the lines are stack frames, the sentence quotes only one frame.
fn sentence(group: &PendingWork) -> String {
    let number = group.kind.counted(group.members.len() as u64);
    let shape: Vec<&str> = if group.kind.is_stack() {
        let own = group.shape.iter().find(|frame| !is_jdk_frame(frame));
        let frame = own.or(group.shape.first());
        frame.into_iter().map(String::as_str).collect()
    } else {
        group.shape.iter().take(LINES).map(String::as_str).collect()
    };
    let separator = match group.kind {
        PendingKind::Tasks => ", ",
        _ => " -> ",
    };
    format!("{number}: {}", shape.join(separator))
}

#[cfg(test)]
mod tests {
    use hprof::ObjectIndex;

    use super::*;

    #[test]
    fn sentences_have_number_and_shape() {
        let group = |kind: PendingKind, shape: &[&str]| PendingWork {
            kind,
            shape: shape.iter().map(|&line| line.to_owned()).collect(),
            members: vec![ObjectIndex(0); 2],
            retained_bytes: 0,
        };
        for (kind, shape, expected) in [
            (
                PendingKind::VirtualThreads,
                &[
                    "java.lang.Object.wait(X)",
                    "a.B.c(B.java:3)",
                    "a.D.e(D.java:1)",
                ][..],
                "2 virtual threads with the same stack: a.B.c(B.java:3)",
            ),
            (
                PendingKind::Threads,
                &["java.lang.Object.wait(X)"],
                "2 threads with the same stack: java.lang.Object.wait(X)",
            ),
            (
                PendingKind::Tasks,
                &["a.Mail", "in the queue of mailer"],
                "2 queued tasks: a.Mail, in the queue of mailer",
            ),
            (
                PendingKind::Futures,
                &["a.F", "thenApply a.G"],
                "2 incomplete futures: a.F -> thenApply a.G",
            ),
            (
                PendingKind::Coroutines,
                &["a.K"],
                "2 suspended coroutines: a.K",
            ),
            (
                PendingKind::Subscriptions,
                &["Map"],
                "2 Reactor subscriptions: Map",
            ),
            (PendingKind::Pipelines, &["a.H"], "2 Netty channels: a.H"),
        ] {
            assert_eq!(sentence(&group(kind, shape)), expected);
        }
    }
}
