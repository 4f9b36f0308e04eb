//! Detects tasks of timers and schedulers.

use super::{Finding, counted, more};
use crate::evidence::context::SuspectContext;
use crate::sentence::Evidence;
use crate::trie::StepId;

const LOOKED_AT: usize = 512;
/// Value of `java.util.TimerTask.state` and `java.util.concurrent.FutureTask.state` in a cancelled task.
const CANCELLED_TIMER: i64 = 3;
const CANCELLED_FUTURE: i64 = 4;

pub(super) fn find(context: &SuspectContext<'_>) -> Option<Finding> {
    let is_queue = |class: &str| {
        class == "java.util.TaskQueue"
            || class == "java.util.concurrent.ScheduledThreadPoolExecutor$DelayedWorkQueue"
    };
    let queue = context.of_class(is_queue)?;
    let at = context.steps.iter().position(|&s| s == queue)?;
    let is_task = |&&s: &&_| is_task(context, s);
    let task = context.steps[at + 1..]
        .iter()
        .find(is_task)
        .or_else(|| context.candidate.content.iter().find(is_task))
        .copied()
        .unwrap_or(context.candidate.named);
    let (first, last) = more(context, task)?;
    let last = counted(context, queue, last);
    let sentence = Evidence::TimerTasks(context.changed(first, last, "tasks"));
    let is_timer = context.is_kind(task, "java.util.TimerTask");
    let cancelled = context.fact(
        task,
        |_| cancelled_tasks(context, task),
        |facts| facts.cancelled,
    );
    let cancelled = cancelled.map(|[cancelled, checked]| Evidence::CancelledTasks {
        cancelled,
        checked,
        is_timer,
    });
    Some(Finding::new("timer", sentence).with_evidence(cancelled))
}

/// True if a trie node's objects are tasks of a timer or a scheduler.
pub(crate) fn is_task(context: &SuspectContext<'_>, step: StepId) -> bool {
    context.is_kind(step, "java.util.TimerTask")
        || context.is_kind(step, "java.util.concurrent.FutureTask")
}

/// Returns the number of cancelled tasks among a trie node's objects, and the number of objects that were read. Returns
/// `None` if none is cancelled.
pub(crate) fn cancelled_tasks(context: &SuspectContext<'_>, task: StepId) -> Option<[u64; 2]> {
    let cancelled = if context.is_kind(task, "java.util.TimerTask") {
        CANCELLED_TIMER
    } else {
        CANCELLED_FUTURE
    };
    let some = context.members(task, LOOKED_AT);
    let states = context.number(&some, "state");
    let gone = states.iter().filter(|s| **s == Some(cancelled)).count() as u64;
    (gone > 0).then_some([gone, some.len() as u64])
}
