//! Builds suspects. A suspect is a candidate as the report shows it, with its path, figures, verdict and reasons.

mod cleared;
pub(crate) mod containers;
mod held;
mod outside;
mod resolved_paths;
mod shared_paths;
mod titles;

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use heapdiff_model::diff::{Coverage, Growth, Suspect, Verdict, difference};
use heapdiff_sites::packages::is_jdk;
use heapdiff_units::Size;
use hprof::{ObjectIndex, Snapshot};

use self::resolved_paths::ResolvedPaths;
use crate::evidence::context::{Last, SuspectContext};
use crate::evidence::survival::Survival;
use crate::evidence::usage::{self, Usages};
use crate::evidence::verdict::{Evidence, Moved};
use crate::evidence::{bounds, detect};
use crate::facts::HolderFacts;
use crate::growth;
use crate::names::{self, Label, LabelKind};
use crate::sentence::{self, Names};
use crate::trie::StepId;
use heapdiff_trend::Course;
pub(crate) use held::holds_same_objects;
pub(crate) use resolved_paths::PathsToShared;
pub(crate) use shared_paths::{SharedPath, Wanted, find as find_shared_paths};
pub(crate) use titles::{Title, saved_title, thread_local_field};

/// The path to a suspect, and its holder.
struct Placed {
    root: String,
    path: Vec<Label>,
    holder: String,
    /// The class that declares the holding field.
    holder_class: String,
    resolved: ResolvedPaths,
    /// Indices of the shared trie nodes on the path. Several paths lead to the objects of a shared trie node.
    shared_steps: Vec<usize>,
    /// True if several local variables of a thread hold the suspect's objects.
    is_shared_by_locals: bool,
    /// True if the trie shows at which GC root the path begins. False if a class object is on the path, or if a path
    /// found in the dump replaces the first trie node.
    begins_at_root: bool,
}

/// Returns two results, as indices in `steps`, the path to the suspect. The first one is the trie node at which the
/// reported path begins; `None` is the root. The second one is the list of the shared trie nodes below it.
fn path_parts(context: &SuspectContext<'_>, steps: &[StepId]) -> (Option<usize>, Vec<usize>) {
    let trie = context.trie();
    // The reported path begins at the deepest class object on the path, because its static field leads to the suspect's
    // content. If there is no class object, the path begins at the root. If the last trie node consists of several
    // class objects, these are the suspect's content. So the path does not begin at them.
    let holds = |s: &StepId| trie[*s].objects == 1 || Some(s) != steps.last();
    let start = steps
        .iter()
        .rposition(|s| is_class(context.class(*s)) && holds(s));
    // Find the shared trie nodes, whose objects are reachable on several paths. Ignore ancestors of the class with the
    // static field, because the reported path begins at this class.
    let mut shared_steps: Vec<usize> = (0..steps.len())
        .filter(|&at| trie.names.kind(trie[steps[at]].via) == LabelKind::Shared)
        .filter(|&at| start.is_none_or(|class| at > class))
        .collect();
    // Dumps list a virtual thread as a GC root although it is not one in the JVM. So look up what really holds it.
    let first = steps.first();
    if first.is_some_and(|&s| context.is_kind(s, "java.lang.VirtualThread"))
        && !shared_steps.contains(&0)
    {
        shared_steps.insert(0, 0);
    }
    (start, shared_steps)
}

/// Returns the path to a candidate, and its holder. `known` are the paths to shared trie nodes if they were searched
/// before.
fn placed(context: &SuspectContext<'_>, known: Option<&[PathsToShared]>) -> Placed {
    let (aligned, candidate) = (context.aligned, context.candidate);
    let trie = aligned.last();
    let text = |name| trie.names.text(name).to_owned();
    let steps = trie.path(candidate.named);
    let labels: Vec<Label> = steps
        .iter()
        .map(|&s| (text(trie[s].via), aligned.kind(trie[s].via)))
        .collect();
    let (start, shared_steps) = path_parts(context, &steps);
    let mut root = match (start, steps.first()) {
        (Some(i), _) => text(trie[steps[i]].class).replacen("class ", "static ", 1),
        (None, Some(&first)) => format!("{} {}", labels[0].0, text(trie[first].class)),
        (None, None) => text(trie[StepId::ROOT].via),
    };
    let resolved = match known {
        Some(known) => ResolvedPaths::of_found(context, &steps, known),
        None => ResolvedPaths::new(context, &steps, &shared_steps),
    };
    let begin = match (resolved.static_field_step(), start) {
        (Some((at, class)), _) => {
            root = format!("static {class}");
            at
        }
        (None, Some(class)) => class + 1,
        (None, None) if resolved.is_root_replaced() => 0,
        (None, None) => 1.min(labels.len()),
    };
    let path = resolved.path(&labels, begin);
    let down_to_head = resolved.path(&aligned.labels(candidate), 0);
    let title = titles::of(context, &labels);
    let is_shared_by_locals = is_shared_by_locals(&labels, &down_to_head);
    let field = growth::holder(&down_to_head).filter(|_| !is_shared_by_locals);
    let head = candidate.content.first().map(|&s| text(trie[s].class));
    let holder = field.clone().unwrap_or_else(|| match candidate.at {
        // For a class object, the report names the class itself instead of a holder.
        StepId::ROOT if labels[0].1 == LabelKind::Shared => head
            .filter(|class| class.starts_with("class "))
            .unwrap_or_else(|| labels[0].0.clone()),
        StepId::ROOT => labels[0].0.clone(),
        _ if is_shared_by_locals => names::SEVERAL_PATHS.to_owned(),
        at => text(trie[at].class),
    });
    let declaring = field.as_ref().and_then(|f| f.rsplit_once('.'));
    let holder_class = declaring.map_or(&*holder, |(class, _)| class);
    let holder_class = holder_class.trim_start_matches("class ").to_owned();
    let (holder, holder_class) = match title {
        Some(title) => (title.name, title.class),
        None => (holder, holder_class),
    };
    Placed {
        root,
        path,
        holder,
        holder_class,
        begins_at_root: start.is_none() && !resolved.is_root_replaced(),
        resolved,
        shared_steps,
        is_shared_by_locals,
    }
}

/// Returns a candidate's suspect, with its path and figures but without a verdict. Also returns the class that declares
/// the holding field.
pub(crate) fn of(context: &SuspectContext<'_>) -> (Suspect, String) {
    let (aligned, candidate) = (context.aligned, context.candidate);
    let Placed {
        mut root,
        path,
        holder,
        holder_class,
        resolved,
        shared_steps,
        is_shared_by_locals,
        begins_at_root,
    } = placed(context, None);
    let mut reasons = if context.is_alone() {
        held::reasons(context, spreading_step(context))
    } else {
        let mut reasons = vec![structure(context)];
        reasons.extend(spread_sentence(context));
        reasons
    };
    reasons.extend(outside::reasons(context));
    let mut also_held_by: Vec<String> = Vec::new();
    // The paths differ only between the root and the shared trie node. If an application field further down holds the
    // objects, that field is their only holder.
    let shared_at = shared_steps.first().copied().unwrap_or(0);
    let has_own_holder = |labels: &[Label]| {
        let below = labels.iter().skip(shared_at + 1);
        below.clone().any(|l| growth::is_application(l.1))
    };
    if has_own_holder(&aligned.labels(candidate)) {
        // The path already names the only holder, so there are no others to mention.
    } else if let Some((parent, found)) = resolved.paths_to_shared() {
        let ways = shared_holders(context, parent, found);
        reasons.extend(several_holders_sentence(&ways));
        also_held_by = ways.into_iter().map(|w| w.name).collect();
        also_held_by.sort();
        also_held_by.dedup();
    } else if !shared_steps.is_empty() {
        reasons.push(sentence::Evidence::SeveralPaths);
    }
    let growth = Growth {
        objects: difference(&candidate.objects),
        shallow_bytes: difference(&candidate.shallow),
        retained_bytes: candidate.growth(),
    };
    if begins_at_root && let Some(name) = titles::thread(context) {
        root = format!("{root} \"{name}\"");
    }
    if is_shared_by_locals {
        reasons.push(sentence::Evidence::SeveralPaths);
    }
    also_held_by.retain(|name| *name != holder);
    if also_held_by.is_empty()
        && let Some(other) = other_holder(context, &holder)
    {
        reasons.push(sentence::Evidence::AlsoReachable {
            holder: holder.clone(),
            other: other.clone(),
        });
        also_held_by.push(other);
    }
    let holder_id = holder_id(context, &holder);
    let off_heap: Vec<u64> = candidate.off_heap.iter().map(|o| o.bytes).collect();
    let suspect = Suspect {
        reasons: reasons.iter().map(ToString::to_string).collect(),
        root,
        holder,
        path: path.into_iter().map(|l| l.0).collect(),
        class: context.class(candidate.named).to_owned(),
        objects: candidate.objects.clone(),
        shallow_bytes: candidate.shallow.clone(),
        retained_bytes: candidate.retained.clone(),
        growth,
        coverage: Coverage {
            growth_bytes: u64::try_from(growth.retained_bytes).unwrap_or(0),
            ..Coverage::default()
        },
        trend: (candidate.retained.len() > 2).then(|| candidate.trend.name().into()),
        holders: holders(context),
        also_held_by,
        holder_id,
        off_heap_bytes: if off_heap.iter().any(|&b| b > 0) {
            off_heap
        } else {
            Vec::new()
        },
        ..Suspect::default()
    };
    (suspect, holder_class)
}

/// True if this is the class name of a class object, such as `class com.acme.Foo`.
fn is_class(text: &str) -> bool {
    text.starts_with("class ")
}

/// Adds the verdict and its reasons to a suspect. Returns false if the evidence shows that it is not a suspect, for
/// example because all of its objects are replaced over time.
pub(crate) fn add_verdict(
    context: &SuspectContext<'_>,
    suspect: &mut Suspect,
    survival: Option<Survival>,
    usages: &Usages,
) -> bool {
    let candidate = context.candidate;
    let finding = detect::find(context);
    suspect.detector = finding.as_ref().map(|f| f.detector.into());
    suspect.thread_local = thread_local_field(context, suspect);
    let usage = usage::of(context, usages);
    suspect.usage = usage.map(|usage| usage.to_report());
    let evidence = Evidence {
        course: context.aligned.trend_of(&candidate.series),
        figures: &candidate.series,
        finding,
        bound: bounds::of(context),
        start: start(context),
        survival,
        usage,
        few: few(context),
        moved: moved(context),
    };
    let Some(verdict) = evidence.verdict() else {
        return false;
    };
    let lacks_facts = context.lacks_facts();
    suspect.verdict = match verdict {
        Verdict::Leak if lacks_facts => Verdict::Growth,
        verdict => verdict,
    };
    let mut reasons = evidence.reasons();
    // The sentences are in this order: the cause, how the suspect's content is held, the evidence for the verdict.
    let cause = usize::from(suspect.detector.is_some());
    reasons.splice(cause..cause, suspect.reasons.drain(..));
    let stays = bounds::survives_soft_clearing(context);
    let by_class = candidate.by_class.iter();
    let by_class = by_class.map(|&i| sentence::Evidence::FiguresOfClass { dump: i + 1 });
    let elsewhere = candidate.elsewhere.iter();
    let elsewhere = elsewhere.map(|&i| sentence::Evidence::FiguresInterpolated { dump: i + 1 });
    let unknown = lacks_facts.then_some(sentence::Evidence::NotInSummary);
    let rest = stays
        .into_iter()
        .chain(by_class)
        .chain(elsewhere)
        .chain(unknown);
    reasons.extend(rest.map(|sentence| sentence.to_string()));
    suspect.reasons = reasons;
    true
}

/// If fewer than [`FEW`] objects were added, and they retain less than 1/[`SMALL_PART`] of the heap, the growth is
/// usually not called a leak. Exceptions: the cause is certain, or the suspect grew in many dumps.
const FEW: u64 = 30;
const SMALL_PART: i64 = 100;

/// Returns the number of added objects if there are only a few small ones: fewer than [`FEW`] objects that together
/// retain less than 1/100 of the heap. The memory of their direct buffers is included. Otherwise returns `None`.
fn few(context: &SuspectContext<'_>) -> Option<u64> {
    let candidate = context.candidate;
    let came = u64::try_from(difference(&candidate.objects)).ok()?;
    let off_heap: Vec<u64> = candidate.off_heap.iter().map(|o| o.bytes).collect();
    let bytes = candidate.growth().saturating_add(difference(&off_heap));
    let heap = context.summaries.last()?.info.reachable_bytes;
    let is_small = bytes.saturating_mul(SMALL_PART) < i64::try_from(heap).unwrap_or(i64::MAX);
    (came > 0 && came < FEW && is_small).then_some(came)
}

/// Returns in which intervals between two dumps the suspect's content grew while its class as a whole grew less than
/// half as much. An example is a pooled buffer that a worker uses at the time of one dump, and that is back in the pool
/// at the next.
fn moved(context: &SuspectContext<'_>) -> Moved {
    let Some(&head) = context.candidate.content.first() else {
        return Moved::Nowhere;
    };
    let class = context.class(head);
    // Class objects are counted together as instances of `java.lang.Class`, so the class does not identify them.
    if is_class(class) {
        return Moved::Nowhere;
    }
    let of_class: Vec<u64> = context
        .summaries
        .iter()
        .map(|summary| {
            let lines = summary
                .classes
                .iter()
                .filter(|((name, _), _)| name == class);
            lines.map(|(_, figures)| figures.reachable.objects).sum()
        })
        .collect();
    let here = context.objects(head);
    let (mut grew, mut moved) = (0, 0);
    for (here, all) in here.windows(2).zip(of_class.windows(2)) {
        let came = here[1].saturating_sub(here[0]);
        grew += usize::from(came > 0);
        moved += usize::from(came > 0 && all[1].saturating_sub(all[0]) < came.div_ceil(2));
    }
    let candidate = context.candidate;
    let is_measured = candidate.elsewhere.is_empty() && candidate.by_class.is_empty();
    match moved {
        0 => Moved::Nowhere,
        _ if moved == grew && is_measured => Moved::InEachStep,
        _ => Moved::InSomeSteps,
    }
}

/// Removes suspects that are only a collection (its nodes, keys and tables) around the objects of another suspect.
/// There are such suspects if several fields lead to the same objects through separate collections. The other suspect
/// mentions each removed one in its reasons, with the sentence that `mention` returns.
pub(crate) fn fold_collections(
    suspects: &mut Vec<Suspect>,
    mention: impl Fn(&Suspect) -> sentence::Evidence,
) {
    // Start with the largest suspect, whatever its rank: a collection may look more like a leak than the objects that
    // it holds.
    let mut order: Vec<usize> = (0..suspects.len()).collect();
    order.sort_by_key(|&i| Reverse(suspects[i].growth.retained_bytes));
    let mut kept: Vec<usize> = Vec::new();
    for i in order {
        let owner = kept
            .iter()
            .copied()
            .filter(|&of| is_collection_of(&suspects[i], &suspects[of]))
            .min();
        match owner {
            Some(of) => {
                let sentence = mention(&suspects[i]);
                suspects[of].reasons.push(sentence.to_string());
            }
            None => kept.push(i),
        }
    }
    let mut at = 0..;
    suspects.retain(|_| at.next().is_some_and(|i| kept.contains(&i)));
}

/// Returns the sentence which says that a collection grew together with its content.
pub(crate) fn grew_with_content(collection: &Suspect) -> sentence::Evidence {
    sentence::Evidence::CollectionGrew {
        field: collection.holder.clone(),
        growth: grown(collection),
    }
}

/// Returns the growth of a suspect in bytes; 0 if it shrank.
fn grown(suspect: &Suspect) -> Size {
    Size(u64::try_from(suspect.growth.retained_bytes).unwrap_or(0))
}

/// True if the objects of `suspect` are parts of a JDK collection, such as its nodes, and the collection holds the
/// objects of the suspect `of`. `of` must be at least as large as `suspect`.
fn is_collection_of(suspect: &Suspect, of: &Suspect) -> bool {
    let (own, all) = (suspect.growth.objects, of.growth.objects);
    let is_held = of.holder == suspect.holder || of.also_held_by.contains(&suspect.holder);
    // A collection has about one node for each object. So both suspects must have grown by about as many objects.
    let as_many = own.abs_diff(all) <= all.unsigned_abs() / 8;
    is_held && as_many && all > 1 && is_jdk(&suspect.class)
}

/// Returns the sentence which says that the JDK's own tables grew because classes were loaded, as during start-up.
/// Returns `None` if this is not the reason for the growth.
fn start(context: &SuspectContext<'_>) -> Option<sentence::Evidence> {
    let [first, .., last] = context.summaries else {
        return None;
    };
    let (before, after) = (first.stats.classes, last.stats.classes);
    // If the program loads classes at a constant rate, it is not starting up.
    let classes: Vec<(u64, u64)> = context
        .summaries
        .iter()
        .map(|s| (s.info.taken_ms, s.stats.classes))
        .collect();
    let course = Course::from_points(&classes, before / 50);
    if course.trend.is_steady() && course.telling > 2 {
        return None;
    }
    if are_generated_alike(context, after.saturating_sub(before)) {
        return None;
    }
    let labels = context.aligned.labels(context.candidate);
    let own = labels.iter().any(|l| growth::is_application(l.1));
    let is_table = |step: StepId| {
        let class = context.class(step);
        let of_runtime = class.strip_prefix("class ").is_some_and(|c| {
            const PLACES: [&str; 8] = [
                "java.lang.Class",
                "java.lang.invoke.",
                "java.lang.reflect.",
                "java.lang.Module",
                "java.security.",
                "java.util.ResourceBundle",
                "jdk.internal.",
                "sun.",
            ];
            PLACES.iter().any(|p| c.starts_with(p))
        });
        of_runtime || context.is_kind(step, "java.lang.ClassLoader")
    };
    let tables = context.steps.iter().any(|&s| is_table(s));
    (!own && tables && after > before + before / 50).then(|| {
        let classes = after - before;
        sentence::Evidence::ClassesLoaded { classes }
    })
}

/// True if the program generates classes all the time: at least `came` / 2 generated application classes have names that
/// are equal except for the generated part. `came` is the number of new classes.
fn are_generated_alike(context: &SuspectContext<'_>, came: u64) -> bool {
    let most = match context.last {
        Last::Dump(snapshot) => generated_alike(snapshot),
        Last::Summary(facts) => facts.generated_alike,
    };
    most > 0 && most.saturating_mul(2) >= came
}

/// Returns the number of generated application classes whose names are equal except for the generated part. Counts the
/// most frequent such name.
pub(crate) fn generated_alike(snapshot: &Snapshot) -> u64 {
    let mut families: BTreeMap<Cow<'_, str>, u64> = BTreeMap::new();
    for (index, class) in snapshot.classes().iter() {
        let is_own = !names::is_runtime(snapshot, index);
        if let (true, Cow::Owned(family)) = (is_own, names::stable(&class.name)) {
            *families.entry(Cow::Owned(family)).or_default() += 1;
        }
    }
    families.values().copied().max().unwrap_or(0)
}

/// True if several local variables of a thread hold the suspect's objects, without an application field or a static
/// field in between. `labels` is the path in the trie. `path` is the same path, in which references found in the dump
/// replace the labels of shared trie nodes.
fn is_shared_by_locals(labels: &[Label], path: &[Label]) -> bool {
    let is_local = |l: &Label| l.0 == titles::LOCAL;
    let is_named = |l: &Label| growth::is_application(l.1) || l.1 == LabelKind::RuntimeStatic;
    let at = path.iter().position(is_local);
    !labels.iter().any(is_local) && at.is_some_and(|at| !path[at..].iter().any(is_named))
}

/// A field that holds the same objects as other fields do.
struct SharedHolder {
    /// Name of the field.
    name: String,
    /// True if the objects on the path that begins at this field grew.
    grew: bool,
}

/// Returns the fields that hold the same objects. `found` are the paths from the trie node `parent` to these objects.
fn shared_holders(
    context: &SuspectContext<'_>,
    parent: StepId,
    found: &[Vec<Label>],
) -> Vec<SharedHolder> {
    // Skip paths inside a single collection, such as those from both ends of a linked list: they name no field.
    let holder = |path: &Vec<Label>| {
        let is_named = |l: &Label| growth::is_application(l.1) || l.1 == LabelKind::RuntimeStatic;
        path.iter().find(|l| is_named(l))?;
        Some(SharedHolder {
            name: growth::holder(path)?,
            // A single dump shows no growth. So all holders count as growing.
            grew: context.is_alone() || path_grew(context, parent, path),
        })
    };
    found.iter().filter_map(holder).collect()
}

/// True if the objects on a path that leads down from a trie node grew in number or size.
fn path_grew(context: &SuspectContext<'_>, parent: StepId, path: &[Label]) -> bool {
    let trie = context.trie();
    let is_static = |kind| {
        matches!(
            kind,
            LabelKind::ApplicationStatic | LabelKind::RuntimeStatic
        )
    };
    let larger = |step: StepId| {
        let shallow = context.aligned.figures(step, |s| s.shallow_bytes);
        difference(&shallow) > 0
    };
    let mut level = vec![parent];
    for (i, (text, kind)) in path.iter().enumerate() {
        let is_this = |s: &StepId| context.via(*s) == text;
        // The trie node of a static field is below the trie node of its class, which can be anywhere in the trie.
        level = if i == 0 && is_static(*kind) {
            (1..trie.len() as u32).map(StepId).filter(is_this).collect()
        } else {
            let below = level.iter().flat_map(|&s| &trie[s].children).copied();
            below.filter(is_this).collect()
        };
        if level.iter().any(|&s| larger(s)) {
            return true;
        }
    }
    false
}

/// Returns the id of the object whose field `holder` holds the suspect's largest object.
fn holder_id(context: &SuspectContext<'_>, holder: &str) -> Option<String> {
    let content = *context.candidate.content.first()?;
    let read = |snapshot: &Snapshot| {
        let object = cleared::holder_of(snapshot, largest_content(context)?, holder)?;
        let id = snapshot.ids(&[object]).pop()??;
        Some(format!("{:#x}", id.0))
    };
    context.fact(content, read, |facts| facts.holder_id(holder))
}

/// True if the suspect's objects, or objects on the path to them, are reachable on several paths.
pub(crate) fn has_shared_steps(context: &SuspectContext<'_>) -> bool {
    !path_parts(context, &context.steps).1.is_empty()
}

/// True if a report on the suspect names threads. Only the dump itself contains these names, not its summary.
pub(crate) fn names_threads(context: &SuspectContext<'_>, suspect: &Suspect) -> bool {
    let begins_at_thread = context.steps.first().is_some_and(|&step| {
        context.is_kind(step, "java.lang.Thread") && context.trie()[step].objects == 1
    });
    let may_be_stuck = matches!(
        suspect.detector.as_deref(),
        Some("thread-local" | "finalizer" | "cleaner")
    );
    begins_at_thread && !suspect.root.starts_with("static ")
        || may_be_stuck
        || outside::grown_threads(context).is_some()
}

/// Returns the holder of the objects of the trie node `candidate.named`, in the form in which a summary file stores it.
/// `paths` are the result of [`paths_to_shared`].
pub(crate) fn holder_facts(context: &SuspectContext<'_>, paths: &[PathsToShared]) -> HolderFacts {
    let name = placed(context, Some(paths)).holder;
    HolderFacts {
        other: other_holder(context, &name),
        id: holder_id(context, &name),
        name,
    }
}

/// Returns paths of references for a summary file. Each path leads to the objects of a shared trie node that is an
/// ancestor of the trie node `candidate.named`, or this trie node itself. `find` searches for the paths.
pub(crate) fn paths_to_shared(
    context: &SuspectContext<'_>,
    find: &mut dyn FnMut(Wanted<'_>) -> Vec<SharedPath>,
) -> Vec<PathsToShared> {
    let (_, shared_steps) = path_parts(context, &context.steps);
    resolved_paths::shared_paths_to(context, &context.steps, &shared_steps, 0, find)
}

/// Returns a second holder: the field through which the largest of the objects would stay reachable if the holder were
/// cleared. Returns `None` if the object would be freed, or if a bounded search finds no such field.
fn other_holder(context: &SuspectContext<'_>, holder: &str) -> Option<String> {
    let content = *context.candidate.content.first()?;
    let read = |snapshot: &Snapshot| {
        let path = cleared::path_without(snapshot, largest_content(context)?, holder)?;
        growth::holder(&path).filter(|other| other != holder)
    };
    context.fact(content, read, |facts| facts.other_holder(holder))
}

/// Returns the largest of the objects that accumulate.
fn largest_content(context: &SuspectContext<'_>) -> Option<ObjectIndex> {
    let content = *context.candidate.content.first()?;
    context.trie()[content].samples.first().copied()
}

/// Returns the sentence that names several holders of the same objects. It also says which of the holders grew.
fn several_holders_sentence(ways: &[SharedHolder]) -> Option<sentence::Evidence> {
    let mut names: Vec<&str> = ways.iter().map(|w| &*w.name).collect();
    let mut seen: Vec<&str> = Vec::new();
    names.retain(|n| {
        let new = !seen.contains(n);
        seen.push(n);
        new
    });
    if names.len() < 2 {
        return None;
    }
    let mut grew = names.clone();
    grew.retain(|n| ways.iter().any(|w| w.name == *n && w.grew));
    if grew.len() == names.len() {
        grew.clear();
    }
    let owned = |names: Vec<&str>| Names(names.into_iter().map(str::to_owned).collect());
    Some(sentence::Evidence::Shared {
        fields: owned(names),
        grew: owned(grew),
    })
}

/// Returns the number of holders over which the growth is spread.
fn holders(context: &SuspectContext<'_>) -> u64 {
    let trie = context.trie();
    let step = spreading_step(context);
    match step {
        StepId::ROOT => 1,
        step => trie[step].objects.max(1),
    }
}

/// Returns the trie node whose objects are the holders over which the growth is spread.
fn spreading_step(context: &SuspectContext<'_>) -> StepId {
    if context.candidate.in_place {
        context.candidate.content[0]
    } else {
        context.candidate.at
    }
}

/// Minimum number of holders that the report mentions. Fewer holders are not mentioned.
const MANY: u64 = 8;

/// Returns the class of a trie node's objects. If the objects are arrays inside of lists, returns the class of the
/// lists, which is more informative.
fn class_of_holders<'a>(context: &SuspectContext<'a>, at: StepId) -> &'a str {
    let mut above = context.trie().above(at);
    let of = above
        .find(|&s| s == StepId::ROOT || !context.class(s).ends_with("[]"))
        .filter(|&s| s != StepId::ROOT);
    context.class(of.unwrap_or(at))
}

/// Returns the sentence which says that one of many holders has most of the suspect's content. Returns `None` if none
/// has most of it.
fn dominant_holder_sentence(
    context: &SuspectContext<'_>,
    at: StepId,
) -> Option<sentence::Evidence> {
    let is_mostly_one = context.fact(
        at,
        |_| Some(is_mostly_one(context, at)),
        |facts| Some(facts.is_mostly_one),
    );
    is_mostly_one?.then(|| sentence::Evidence::MostlyOne {
        holders: context.trie()[at].objects,
        class: class_of_holders(context, at).to_owned(),
    })
}

/// True if one object of a trie node retains most of the trie node's bytes.
pub(crate) fn is_mostly_one(context: &SuspectContext<'_>, step: StepId) -> bool {
    let step = &context.trie()[step];
    // `samples` are the objects of a trie node that retain the most bytes.
    let largest = step.samples.iter();
    let largest = largest.filter_map(|&m| context.dump()?.retained_bytes(m));
    largest.max().unwrap_or(0) > step.retained_bytes / 2
}

/// Returns the sentence which describes how the growth is spread over many holders. Returns `None` for fewer than
/// [`MANY`] holders.
fn spread_sentence(context: &SuspectContext<'_>) -> Option<sentence::Evidence> {
    let at = spreading_step(context);
    // The holders are maps of thread locals. Each has entries for several thread locals, so the mean size of a map
    // means little.
    if context
        .class(at)
        .starts_with("java.lang.ThreadLocal$ThreadLocalMap")
    {
        return None;
    }
    let (before, count) = match at {
        StepId::ROOT => (0, 1),
        at => context.ends(at),
    };
    if count < MANY {
        return None;
    }
    if let Some(one) = dominant_holder_sentence(context, at) {
        return Some(one);
    }
    let [first, .., last] = &context.candidate.retained[..] else {
        return None;
    };
    let mean = |bytes: u64, n: u64| bytes.checked_div(n).unwrap_or(0);
    Some(sentence::Evidence::Spread {
        holders: count,
        class: class_of_holders(context, at).to_owned(),
        mean: mean(*last, count),
        before: Some(mean(*first, before)),
    })
}

/// Returns the sentence about how the suspect's content grew: objects were added, or the objects themselves became
/// larger. It also says how the number of holders changed.
fn structure(context: &SuspectContext<'_>) -> sentence::Evidence {
    let step = spreading_step(context);
    let (before, now) = context.ends(step);
    match (context.candidate.in_place, step) {
        (true, _) => sentence::Evidence::GrewInPlace { before, now },
        (false, StepId::ROOT) => sentence::Evidence::MoreObjects,
        (false, _) => sentence::Evidence::MoreHeld { before, now },
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns a suspect that grew by `growth` objects and bytes. The fields in `also` hold the content, too.
    pub(crate) fn suspect(holder: &str, class: &str, also: &[&str], growth: (i64, i64)) -> Suspect {
        Suspect {
            root: "static".to_owned(),
            holder: holder.to_owned(),
            class: class.to_owned(),
            growth: Growth {
                objects: growth.0,
                shallow_bytes: growth.1,
                retained_bytes: growth.1,
            },
            holders: 1,
            also_held_by: also.iter().map(|&name| name.to_owned()).collect(),
            ..Suspect::default()
        }
    }

    #[test]
    fn collections_are_merged_into_their_content_at_any_rank() {
        const NODE: &str = "java.util.HashMap$Node";
        let waiting = || suspect("A.queue", "a.Task", &["B.all"], (5000, 9_000_000));
        let nodes = |objects| suspect("B.all", NODE, &[], (objects, 160_000));
        let folded = |mut all: Vec<Suspect>| {
            fold_collections(&mut all, grew_with_content);
            let of = |s: Suspect| (s.holder, s.reasons.join(""));
            all.into_iter().map(of).collect::<Vec<_>>()
        };
        let told = "the collection in B.all holds the same objects and grew by 156.3 KiB";
        let one = [("A.queue".to_owned(), told.to_owned())];
        assert_eq!(folded(vec![waiting(), nodes(5001)]), one);
        assert_eq!(folded(vec![nodes(5001), waiting()]), one);
        // If the two suspects grew by different numbers of objects, they grew independently, so both stay in the
        // report. The same is true if the class of the first suspect is not a JDK class.
        assert_eq!(folded(vec![nodes(9000), waiting()]).len(), 2);
        let own = suspect("B.all", "b.Entry", &[], (5000, 160_000));
        assert_eq!(folded(vec![own, waiting()]).len(), 2);
    }

    fn way(name: &str, grew: bool) -> SharedHolder {
        SharedHolder {
            name: name.to_owned(),
            grew,
        }
    }

    #[test]
    fn several_holders_are_named() {
        assert_eq!(
            several_holders_sentence(&[way("A.all", true), way("A.all", true)]),
            None
        );
        let told = |ways: &[SharedHolder]| several_holders_sentence(ways).unwrap().to_string();
        let both = told(&[way("A.all", true), way("B.all", true)]);
        assert!(both.ends_with("through A.all and B.all: clearing only one of them frees nothing"));
        let one = told(&[way("A.all", true), way("B.all", false)]);
        assert!(
            one.contains("A.all and B.all, but only A.all grew"),
            "{one}"
        );
    }
}
