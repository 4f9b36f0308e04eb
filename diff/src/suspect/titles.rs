//! Names for holders that are not application fields, in a form that programmers know. A thread local is named by the
//! field that refers to it, a local variable by its method.

use heapdiff_model::diff::Suspect;
use hprof::records::RootKind;
use hprof::{ObjectIndex, Snapshot};

use crate::evidence::context::SuspectContext;
use crate::growth;
use crate::names::{self, Label, LabelKind};
use crate::suspect::shared_paths;

/// The name of the reference by which a thread holds the value of a thread local.
const VALUE: &str = "java.lang.ThreadLocal$ThreadLocalMap$Entry.value";
/// The name of the reference by which a Clojure Var holds its value.
const VAR_ROOT: &str = "clojure.lang.Var.root";
/// The label of a reference from a stack frame.
pub(super) const LOCAL: &str = "<local variable>";
/// Number of class objects to read in one batch.
const BATCH: usize = 1 << 12;
/// Maximum number of objects of a trie node for which the thread local that holds them is looked up.
const ASKED: usize = 4;

/// The name of a holder, and the class that declares the holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Title {
    pub(crate) name: String,
    pub(crate) class: String,
}

/// Returns the name of the thread local, Clojure Var or local variable that holds the objects of the last trie node on
/// the path, for a summary.
pub(crate) fn saved_title(context: &SuspectContext<'_>) -> Option<Title> {
    let at = context.steps.len().checked_sub(1)?;
    match context.via(*context.steps.last()?) {
        VALUE => thread_local(context, at),
        VAR_ROOT => clojure_var(context, at),
        LOCAL => frame(context, at),
        _ => None,
    }
}

/// Returns the name of a holder that has no field in an application class, such as a thread local. `labels` are the
/// references from the root down to the suspect's content. Returns `None` if a field is the holder, because then the
/// field's name is used.
pub(super) fn of(context: &SuspectContext<'_>, labels: &[Label]) -> Option<Title> {
    let own = labels.iter().rposition(|l| growth::is_application(l.1));
    let is_below = |at: usize| own.is_none_or(|own| own < at);
    let value = labels.iter().rposition(|l| l.0 == VALUE);
    if let Some(at) = value.filter(|&at| is_below(at))
        && let Some(title) = thread_local(context, at)
    {
        return Some(title);
    }
    let root = labels.iter().rposition(|l| l.0 == VAR_ROOT);
    if let Some(at) = root.filter(|&at| is_below(at))
        && let Some(title) = clojure_var(context, at)
    {
        return Some(title);
    }
    let of_runtime = |l: &Label| l.1 == LabelKind::RuntimeStatic;
    let local = labels.iter().rposition(|l| l.0 == LOCAL);
    local
        .filter(|&at| is_below(at) && !labels[at..].iter().any(of_runtime))
        .and_then(|at| frame(context, at))
}

/// Returns the field that refers to the thread local whose values hold the content. Returns `None` if the leak pattern
/// of the suspect is another one.
pub(crate) fn thread_local_field(
    context: &SuspectContext<'_>,
    suspect: &Suspect,
) -> Option<String> {
    if suspect.detector.as_deref() != Some("thread-local") {
        return None;
    }
    let mut steps = context.steps.iter();
    let at = steps.rposition(|&step| context.via(step) == VALUE)?;
    Some(thread_local(context, at)?.name)
}

/// Returns the thread's name if the path starts at a single thread. In a single dump, the path may also start at
/// several threads. Then returns the name of the thread that retains most of the bytes, if there is one.
pub(super) fn thread(context: &SuspectContext<'_>) -> Option<String> {
    let &step = context.steps.first()?;
    let of = &context.trie()[step];
    let largest = || {
        let bytes = context.dump()?.retained_bytes(*of.samples.first()?);
        bytes.filter(|&bytes| bytes > of.retained_bytes / 2)
    };
    let is_one = of.objects == 1 || context.is_alone() && largest().is_some();
    if !context.is_kind(step, "java.lang.Thread") || !is_one {
        return None;
    }
    let names = context.field(&of.samples, "name");
    let name = names.into_iter().next()??;
    context.strings(&[name], 100).pop()?
}

/// Returns the stored samples of a trie node that is on the path to the suspect's content.
fn samples<'a>(context: &SuspectContext<'a>, at: usize) -> &'a [ObjectIndex] {
    let step = context.steps.get(at);
    step.map_or(&[][..], |&s| &context.trie()[s].samples)
}

/// Returns the field that refers to the thread local whose values are the objects of a trie node.
fn thread_local(context: &SuspectContext<'_>, at: usize) -> Option<Title> {
    let Some(snapshot) = context.dump() else {
        return title_in_summary(context, at);
    };
    let tree = snapshot.tree();
    let values = samples(context, at).iter().take(ASKED);
    let entries: Vec<ObjectIndex> = values
        .filter_map(|&v| tree.object(tree.dominator(v)?))
        .collect();
    let locals = context.field(&entries, "referent");
    locals.into_iter().flatten().find_map(|local| {
        let field = held_by(context, snapshot, local)?;
        let class = field.rsplit_once('.')?.0.to_owned();
        Some(Title { name: field, class })
    })
}

/// Returns the title of a trie node on the path that is saved in the summary of the last dump.
fn title_in_summary(context: &SuspectContext<'_>, at: usize) -> Option<Title> {
    let step = *context.steps.get(at)?;
    context.fact(step, |_| None, |facts| facts.title.clone())
}

/// Returns the field that refers to an object. This is a field of the object's dominator, or else the first static
/// field that refers to it.
fn held_by(
    context: &SuspectContext<'_>,
    snapshot: &Snapshot,
    object: ObjectIndex,
) -> Option<String> {
    let tree = snapshot.tree();
    let field = |objects: &[ObjectIndex]| {
        let records = context.read(objects);
        let mut references = records
            .iter()
            .flat_map(|record| shared_paths::references(snapshot, record));
        let found = references.find(|(target, label)| {
            *target == object && label.1 != LabelKind::Element && !label.0.ends_with("[*]")
        });
        found.map(|(_, label)| label.0)
    };
    let dominator = tree.dominator(object).and_then(|d| tree.object(d));
    if let Some(found) = dominator.and_then(|d| field(&[d])) {
        return Some(found);
    }
    let classes = snapshot.classes();
    let objects: Vec<ObjectIndex> = classes
        .iter()
        .take(classes.dumped())
        .map(|(class, _)| ObjectIndex(class.0))
        .collect();
    objects.chunks(BATCH).find_map(field)
}

/// Returns the Clojure Var that holds more than half of the bytes of a trie node.
fn clojure_var(context: &SuspectContext<'_>, at: usize) -> Option<Title> {
    if context.dump().is_none() {
        return title_in_summary(context, at);
    }
    Some(Title {
        name: clojure_var_name(context, at)?,
        class: "clojure.lang.Var".to_owned(),
    })
}

/// Returns the name of the Clojure Var that holds more than half of the bytes of a trie node, in Clojure's own
/// notation: `#'shop.core/orders`.
fn clojure_var_name(context: &SuspectContext<'_>, at: usize) -> Option<String> {
    let snapshot = context.dump()?;
    let tree = snapshot.tree();
    let values = samples(context, at).iter().copied();
    let largest = values.max_by_key(|&value| snapshot.retained_bytes(value))?;
    let all = context.trie()[context.steps[at]].retained_bytes;
    if snapshot.retained_bytes(largest)? <= all / 2 {
        return None;
    }
    let var = tree.object(tree.dominator(largest)?)?;
    let field = |object, name| context.field(&[object], name).into_iter().next().flatten();
    let name = |symbol| {
        let name = field(symbol, "name")?;
        snapshot.strings(&[name], 200).pop()?
    };
    let symbol = name(field(var, "sym")?)?;
    let namespace = name(field(field(var, "ns")?, "name")?)?;
    Some(format!("#'{namespace}/{symbol}"))
}

/// Returns the method whose local variable holds the largest object of a trie node. If local variables of several
/// application methods hold this object, returns the outermost of these methods. It passes the object to the methods
/// that it calls.
fn frame(context: &SuspectContext<'_>, at: usize) -> Option<Title> {
    let Some(snapshot) = context.dump() else {
        return title_in_summary(context, at);
    };
    let &object = samples(context, at).first()?;
    let threads = snapshot.threads();
    let holds = |l: &hprof::answers::Local| l.object == object && l.kind == RootKind::JavaFrame;
    let frames: Vec<_> = threads
        .iter()
        .flat_map(|thread| &thread.frames)
        .filter(|frame| frame.locals.iter().any(holds))
        .map(|frame| &frame.frame)
        .collect();
    let own = frames
        .iter()
        .rev()
        .find(|f| names::is_application_class_name(&f.class));
    let frame = own.or(frames.last())?;
    let class = names::stable(&frame.class).into_owned();
    Some(Title {
        name: format!("local variable of {class}.{}", frame.method),
        class,
    })
}
