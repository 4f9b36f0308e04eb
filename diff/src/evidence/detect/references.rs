//! Detects objects that the JDK keeps in lists until it processes them: finalizers, cleaners, files to delete on exit.

use heapdiff_sites::packages::is_jdk;
use hprof::ObjectIndex;
use hprof::answers::{StackFrame, Thread};

use super::{Finding, more};
use crate::evidence::context::SuspectContext;
use crate::sentence::Evidence;
use crate::trie::StepId;

/// Maximum number of objects to check on the way from the referent of a finalizer or cleaner up through its dominators.
const MOST_ABOVE: usize = 1 << 12;

/// Detects `File.deleteOnExit`: the JDK keeps the path of each file until the JVM ends.
pub(super) fn delete_on_exit(context: &SuspectContext<'_>) -> Option<Finding> {
    context.first_via(|v| v == "java.io.DeleteOnExitHook.files")?;
    let (first, last) = more(context, context.candidate.named)?;
    let sentence = Evidence::DeleteOnExit(context.changed(first, last, "paths"));
    Some(Finding::new("delete-on-exit", sentence).mark_certain())
}

/// Detects objects with a finalizer: objects that wait for their finalizer to run, and objects that are still in use.
pub(super) fn finalizer(context: &SuspectContext<'_>) -> Option<Finding> {
    context
        .of_class(|c| c == "java.lang.ref.Finalizer")
        .or_else(|| context.first_via(|v| v.starts_with("java.lang.ref.Finalizer.")))?;
    // Count the objects that the report names: the list also contains objects of other classes.
    let (first, last) = more(context, context.candidate.named)?;
    let sentence = Evidence::Finalizers(context.changed(first, last, "objects"));
    Some(
        Finding::new("finalizer", sentence)
            .with_evidence(stuck(context, |t| t.name.as_deref() == Some("Finalizer"))),
    )
}

/// True if a class is one of the JDK's classes for cleaners. The JDK keeps each cleaner in a list until it has cleaned
/// up after another object.
fn is_cleaner(class: &str) -> bool {
    matches!(
        class,
        "jdk.internal.ref.Cleaner" | "sun.misc.Cleaner" | "java.lang.ref.Cleaner"
    ) || class.starts_with("java.lang.ref.Cleaner$")
        || class.starts_with("jdk.internal.ref.CleanerImpl$")
        || class.starts_with("jdk.internal.ref.Phantom") && class.contains("Cleanable")
}

/// True if a suspect's objects are cleaners or finalizers whose referents are held by something other than the JDK's
/// list. In that case the list is not the holder, because the cleaners and finalizers are freed together with their
/// referents.
pub(crate) fn have_held_referents(context: &SuspectContext<'_>) -> bool {
    let kept = context.steps.iter();
    let kept = kept.filter(|&&s| keeps_referent(context.class(s)));
    let held = kept.filter_map(|&step| {
        context.fact(
            step,
            |_| are_held_elsewhere(context, step),
            |facts| facts.held_elsewhere,
        )
    });
    let mut held = held.peekable();
    held.peek().is_some() && held.all(|held| held)
}

/// True for the classes of cleaners and finalizers. The JDK keeps their objects in a list.
pub(crate) fn keeps_referent(class: &str) -> bool {
    is_cleaner(class) || class == "java.lang.ref.Finalizer"
}

/// True if other objects hold the referents of a trie node's cleaners or finalizers. False if a referent is
/// unreachable, or is reachable only through a cleaner or finalizer. Returns `None` if there are no referents.
pub(crate) fn are_held_elsewhere(context: &SuspectContext<'_>, step: StepId) -> Option<bool> {
    let snapshot = context.dump()?;
    let tree = snapshot.tree();
    // If a cleaning action refers to the object that it cleans up after, it keeps this object alive. In that case the
    // list is the holder.
    let is_held_elsewhere = |referent: ObjectIndex| {
        let up = |&object: &ObjectIndex| tree.object(tree.dominator(object)?);
        let above = std::iter::successors(Some(referent), up).take(MOST_ABOVE);
        let mut classes = above.map(|object| snapshot.name(object));
        tree.is_reachable(referent) && !classes.any(|class| keeps_referent(&class))
    };
    let samples = &context.trie()[step].samples;
    let mut referents = context.field(samples, "referent").into_iter().flatten();
    let first = referents.next()?;
    Some(is_held_elsewhere(first) && referents.all(is_held_elsewhere))
}

/// Detects cleaning actions that have not run yet.
pub(super) fn cleaner(context: &SuspectContext<'_>) -> Option<Finding> {
    let step = context
        .of_class(is_cleaner)
        .or_else(|| {
            let mut content = context.candidate.content.iter().copied();
            let step = content.find(|&s| is_cleaner(context.class(s)))?;
            // If several paths lead to the growing objects, cleaners may be only a small part of them. So the cleaners
            // must account for at least half of the growth.
            let grown = context.aligned.grown(step);
            (grown * 2 >= context.candidate.growth()).then_some(step)
        })
        .or_else(|| context.first_via(|v| v.starts_with("jdk.internal.ref.Cleaner.")))?;
    let (first, last) = more(context, step)?;
    let sentence = Evidence::CleaningActions(context.changed(first, last, "actions"));
    Some(
        Finding::new("cleaner", sentence).with_evidence(stuck(context, |t| {
            let of_cleaner = |f: &StackFrame| f.frame.class == "jdk.internal.ref.CleanerImpl";
            t.frames.iter().any(of_cleaner)
        })),
    )
}

/// Returns the sentence which says that application code keeps a JDK thread busy. Returns `None` if no application code
/// runs in the thread.
fn stuck(context: &SuspectContext<'_>, wanted: impl Fn(&Thread) -> bool) -> Option<Evidence> {
    let threads = context.dump()?.threads();
    let own = |f: &&StackFrame| !is_jdk(&f.frame.class);
    threads.iter().filter(|t| wanted(t)).find_map(|thread| {
        let frame = &thread.frames.iter().find(own)?.frame;
        let name = thread.name.as_deref().unwrap_or("(unnamed)");
        Some(Evidence::StuckThread {
            thread: name.to_owned(),
            frame: frame.to_string(),
        })
    })
}
