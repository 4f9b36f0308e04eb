//! Tasks of timers and schedulers.

use heapdiff_units::grouped;

use super::{Finding, counted, more};
use crate::evidence::context::SuspectContext;

const LOOKED_AT: usize = 512;
/// `java.util.TimerTask.state` and `java.util.concurrent.FutureTask.state` of a cancelled task.
const CANCELLED_TIMER: i64 = 3;
const CANCELLED_FUTURE: i64 = 4;

pub(super) fn find(context: &SuspectContext<'_>) -> Option<Finding> {
    let is_queue = |class: &str| {
        class == "java.util.TaskQueue"
            || class == "java.util.concurrent.ScheduledThreadPoolExecutor$DelayedWorkQueue"
    };
    let queue = context.of_class(is_queue)?;
    let at = context.steps.iter().position(|&s| s == queue)?;
    let is_task = |&&s: &&_| {
        context.is_kind(s, "java.util.TimerTask")
            || context.is_kind(s, "java.util.concurrent.FutureTask")
    };
    let task = context.steps[at + 1..]
        .iter()
        .find(is_task)
        .or_else(|| context.candidate.content.iter().find(is_task))
        .copied()
        .unwrap_or(context.candidate.named);
    let (first, last) = more(context, task)?;
    let last = counted(context, queue, last);
    let what = match context.is_alone() {
        true => "tasks wait in a timer's queue",
        false => "tasks pile up in a timer's queue",
    };
    let sentence = format!("{what} ({})", context.changed(first, last, "tasks"));
    let is_timer = context.is_kind(task, "java.util.TimerTask");
    let cancelled = if is_timer {
        CANCELLED_TIMER
    } else {
        CANCELLED_FUTURE
    };
    let remedy = match is_timer {
        true => "Timer.purge() removes them",
        false => "setRemoveOnCancelPolicy(true) removes them at once",
    };
    let some = context.members(task, LOOKED_AT);
    let states = context.number(&some, "state");
    let gone = states.iter().filter(|s| **s == Some(cancelled)).count() as u64;
    let told = (gone > 0).then(|| {
        format!(
            "{} of {} tasks looked at are cancelled but stay until their time comes; {remedy}",
            grouped(gone),
            grouped(some.len() as u64)
        )
    });
    Some(Finding::new("timer", sentence).and(told))
}
