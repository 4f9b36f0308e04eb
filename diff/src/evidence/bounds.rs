//! Reasons why a collection will not grow for ever: references that the JVM may clear, and bounds that
//! the objects themselves state.
//!
//! A bound counts if it is that of the very collection that grows, not of one above it. Enforced is what
//! a library's own field states of that instance; any other number that is called a bound counts once it
//! is reached and kept, and is a hint before.

use heapdiff_units::grouped;
use hprof::{ClassIndex, Content, Kind, ObjectIndex, Reference, Value};

use crate::evidence::context::SuspectContext;
use crate::names;
use crate::trie::StepId;

/// A bound more than this many times above the number of held objects is ignored.
const FAR: u64 = 64;
/// Smaller numbers are rarely bounds of a collection that grows.
const LEAST: u64 = 16;
/// Objects of one step whose fields are read for a bound.
const LOOKED_AT: usize = 4;

/// How far a bound is proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strength {
    /// The class is known to keep to it.
    Enforced,
    /// As many are held as it says, and no more have come since.
    Reached,
    /// A name only.
    Hint,
}

/// What keeps a collection from growing for ever, or may do so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bound {
    /// What a reader can check.
    pub(crate) sentence: String,
    /// How far that is proven.
    pub(crate) strength: Strength,
}

impl Bound {
    fn enforced(sentence: String) -> Self {
        Self {
            sentence,
            strength: Strength::Enforced,
        }
    }

    fn hint(sentence: String) -> Self {
        Self {
            sentence,
            strength: Strength::Hint,
        }
    }
}

/// What bounds it, the surest first; `None` where nothing does.
pub(crate) fn of(context: &SuspectContext<'_>) -> Option<Bound> {
    let enforced = soft(context)
        .or_else(|| soft_values(context))
        .or_else(|| slack(context))
        .or_else(|| library(context));
    enforced
        .map(Bound::enforced)
        .or_else(|| stated(context))
        .or_else(|| weak(context).map(Bound::hint))
        .or_else(|| eldest(context).map(Bound::hint))
}

fn reference(context: &SuspectContext<'_>, step: StepId) -> Option<Reference> {
    let class = context.class_index(step)?;
    Some(context.snapshot.classes()[class].reference)
}

/// What is named is the referent of soft references.
fn soft(context: &SuspectContext<'_>) -> Option<String> {
    let step = context.steps.windows(2).find(|w| {
        reference(context, w[0]) == Some(Reference::Soft)
            && context.via(w[1]) == "java.lang.ref.Reference.referent"
    })?;
    Some(format!(
        "held by soft references only ({}): the JVM clears them before memory runs out",
        context.class(step[0])
    ))
}

/// Most of what grows is the referents of soft references in it, as in a cache with soft values.
fn soft_values(context: &SuspectContext<'_>) -> Option<String> {
    const LOOKED_AT: usize = 1 << 10;
    let trie = context.trie();
    let mut work: Vec<StepId> = context.candidate.content.clone();
    let all: u64 = work.iter().map(|&s| trie[s].retained_bytes).sum();
    let mut softly = 0_u64;
    let mut class = None;
    let mut at = 0;
    while at < work.len() && work.len() < LOOKED_AT {
        let step = work[at];
        at += 1;
        let children = trie[step].children.iter().copied();
        if reference(context, step) == Some(Reference::Soft) {
            let referents =
                children.filter(|&c| context.via(c) == "java.lang.ref.Reference.referent");
            softly += referents.map(|c| trie[c].retained_bytes).sum::<u64>();
            class.get_or_insert_with(|| context.class(step));
        } else {
            work.extend(children);
        }
    }
    let class = class.filter(|_| softly.saturating_mul(2) >= all)?;
    Some(format!(
        "most of it is held by soft references only ({class}): the JVM clears them before memory runs out"
    ))
}

/// It is the content of a weak map, or weak references whose referents other paths keep alive. That says
/// where to look, and not that it ends.
fn weak(context: &SuspectContext<'_>) -> Option<String> {
    let table = context.held_via(|v| v == "java.util.WeakHashMap.table");
    if table.is_some_and(|table| is_own(context, table)) {
        return Some(
            "a WeakHashMap drops an entry when nothing else holds its key: look at what holds the keys"
                .to_owned(),
        );
    }
    // Subclasses that hold something besides (entries of thread locals) are not named, so they do not match.
    let step = context.candidate.named;
    if reference(context, step) != Some(Reference::Weak) {
        return None;
    }
    let some = context.members(step, 64);
    let referents = context.field(&some, "referent");
    let alive = referents.iter().flatten().count();
    // Where most are cleared, the tables and entries that stay are what grows.
    (alive * 2 > some.len()).then(|| {
        format!(
            "what it holds are weak references ({}), which keep nothing alive",
            context.class(step)
        )
    })
}

/// Whether what grows are the elements of the collection at a step, rather than something that one of its
/// elements holds.
pub(crate) fn is_own(context: &SuspectContext<'_>, collection: StepId) -> bool {
    let path = context.trie().path(context.candidate.at);
    let Some(at) = path.iter().position(|&s| s == collection) else {
        return false;
    };
    // Behind the first entry comes what the collection's elements hold. A set and a cache have a map in them; another
    // collection in a collection is one of its elements.
    let outer = context.class(collection);
    let maps = usize::from(!outer.starts_with("java.util.") || outer.contains("Set"));
    let is_inner = |&s: &StepId| {
        let class = context.class(s);
        !is_entry(class) && (names::is_container(class) || shares_package(class, outer))
    };
    let inside = &path[at + 1..];
    let collections = inside.iter().filter(|&&s| is_collection(context, s));
    inside.iter().all(is_inner) && collections.count() <= maps
}

/// Whether a class is that of a node or an entry of a collection.
fn is_entry(class: &str) -> bool {
    let name = class.rsplit(['.', '$']).next().unwrap_or(class);
    !class.ends_with("[]") && (name.contains("Entry") || name.contains("Node"))
}

/// Whether a step's objects are collections as programs use them, not parts of one.
fn is_collection(context: &SuspectContext<'_>, step: StepId) -> bool {
    let class = context.class(step);
    class.starts_with("java.util.") && !class.ends_with("[]") && !class.contains('$')
}

fn shares_package(one: &str, other: &str) -> bool {
    let package = |class: &str| class.rsplit_once('.').map(|c| c.0.to_owned());
    package(one).is_some() && package(one) == package(other)
}

/// It is a mostly empty array of references, which has the size that it was made with, whether or not it ever needed it.
fn slack(context: &SuspectContext<'_>) -> Option<String> {
    /// Elements of each array that are read.
    const ELEMENTS: u32 = 1 << 20;
    let candidate = context.candidate;
    if !candidate.in_place || !context.class(candidate.named).ends_with("[]") {
        return None;
    }
    let some = context.members(candidate.named, LOOKED_AT);
    let (mut slots, mut used) = (0_u64, 0_u64);
    for record in context.read(&some) {
        if let Content::Array(array) = &record.content
            && array.kind == Kind::Object
        {
            let set = |v: &Value| v.object().is_some();
            slots += u64::from(array.len.min(ELEMENTS));
            used += array.elements(0..ELEMENTS).filter(set).count() as u64;
        }
    }
    (used * 4 < slots).then(|| {
        format!(
            "{} of {} slots are empty: the array was made that large, or needed the size once",
            grouped(slots - used),
            grouped(slots)
        )
    })
}

/// It is in an application's subclass of `LinkedHashMap`, as maps are that remove their eldest entry. Whether
/// it ever removes one is not in the dump.
fn eldest(context: &SuspectContext<'_>) -> Option<String> {
    let above = context.trie().path(context.candidate.at);
    let step = above.into_iter().rev().find(|&s| {
        !names::is_runtime_name(context.class(s)) && context.is_kind(s, "java.util.LinkedHashMap")
    })?;
    is_own(context, step).then(|| {
        format!(
            "{} extends LinkedHashMap, as maps do that remove their eldest entry when they are full",
            context.class(step)
        )
    })
}

/// It is in a cache, queue or pool of a well-known library whose objects say how many they keep at most.
fn library(context: &SuspectContext<'_>) -> Option<String> {
    // The class, and the field that holds the bound of an instance. Classes of Caffeine's caches without a maximum
    // lack the field; others have a number there that is none: negative, 0, or the largest.
    const BOUNDED: [(&str, &str); 7] = [
        ("com.google.common.cache.LocalCache", "maxWeight"),
        (
            "com.github.benmanes.caffeine.cache.BoundedLocalCache",
            "maximum",
        ),
        (
            "org.ehcache.impl.internal.store.heap.OnHeapStore",
            "capacity",
        ),
        ("net.sf.ehcache.store.MemoryStore", "maximumSize"),
        (
            "org.apache.commons.pool2.impl.BaseGenericObjectPool",
            "maxTotal",
        ),
        ("java.util.concurrent.LinkedBlockingQueue", "capacity"),
        ("java.util.concurrent.LinkedBlockingDeque", "capacity"),
    ];
    let classes = context.snapshot.classes();
    let above = context.trie().path(context.candidate.at);
    above.into_iter().rev().find_map(|step| {
        let class = context.class_index(step)?;
        let extends = |name: &str| {
            let known = classes.by_name(name);
            known.iter().any(|&k| classes.is_subclass(class, k))
        };
        let (bound, field) = match BOUNDED.iter().find(|(name, _)| extends(name)) {
            Some((_, field)) => {
                let one = context.trie()[step].samples.first().copied()?;
                let bound = (*context.number(&[one], field).first()?)?;
                let set = |&b: &u64| b > 0 && b != i32::MAX as u64 && b < (i64::MAX as u64) / 2;
                (u64::try_from(bound).ok().filter(set)?, *field)
            }
            None if extends("java.util.concurrent.ArrayBlockingQueue") => {
                let one = context.trie()[step].samples.first().copied()?;
                let items = (*context.field(&[one], "items").first()?)?;
                (
                    u64::from(context.snapshot.array_length(items)?),
                    "items.length",
                )
            }
            None => return None,
        };
        // Weights may be anything, so a bound may be far above the number that is held, but not below it.
        let holders = context.trie()[step].objects.max(1);
        let held = context.ends(context.candidate.content[0]).1 / holders;
        (is_own(context, step) && held <= bound.saturating_add(bound / 2)).then(|| {
            let name = context.class(step);
            format!("{name} has a bound: {field} is {}", grouped(bound))
        })
    })
}

/// A field that is called a bound: one of the object that declares the holding field, of its class, or of the
/// collection.
fn stated(context: &SuspectContext<'_>) -> Option<Bound> {
    let trie = context.trie();
    let path = trie.path(context.candidate.at);
    let field = context.own_field()?;
    // The owner of the field, then the steps down to the collection.
    let at = path.iter().position(|&s| s == field).unwrap_or(path.len());
    let collection = path
        .get(at)
        .copied()
        .unwrap_or(context.candidate.content[0]);
    if path.contains(&collection) && !is_own(context, collection) {
        return None;
    }
    let holders: u64 = trie[context.candidate.at].objects.max(1);
    let content = context.objects(context.candidate.content[0]);
    let each: Vec<u64> = content.iter().map(|n| n / holders).collect();
    let held = each.last().copied().unwrap_or(0);
    // Of those that came since the dump before: a field such as `maxActive` may be a high-water mark, and is
    // then about equal to the number held now, although many came.
    let late = match each[..] {
        [.., before, last] => last.saturating_sub(before),
        _ => 0,
    };
    let is_mark = |bound: u64| (bound - held).saturating_mul(8) < late;
    let owner = at.checked_sub(1).map(|i| path[i]);
    owner
        .into_iter()
        .chain(path[at..].iter().copied())
        .find_map(|step| {
            let &sample = trie[step].samples.first()?;
            let (name, bound) = match context.snapshot.represents(sample) {
                Some(class) => static_bound(context, class, held),
                None => own_bound(context, step, held),
            }
            .filter(|&(_, bound)| !is_mark(bound))?;
            let is_full = bound - held <= bound / 50 && late <= bound / 50;
            let (stands, strength) = match is_full {
                true => ("it is full", Strength::Reached),
                false => ("it may have a bound", Strength::Hint),
            };
            Some(Bound {
                sentence: format!(
                    "{stands}: {name} is {}, and {} are held",
                    grouped(bound),
                    grouped(held)
                ),
                strength,
            })
        })
}

fn is_bound(name: &str) -> bool {
    const WORDS: [&str; 5] = ["max", "limit", "capacity", "bound", "cap"];
    let lower = name.to_ascii_lowercase();
    WORDS
        .iter()
        .any(|w| lower == *w || (*w != "cap" && lower.contains(w)))
}

fn fits(value: Option<Value>, held: u64) -> Option<u64> {
    let value = u64::try_from(value?.integer()?).ok()?;
    (value >= held && value >= LEAST && value <= held.saturating_mul(FAR)).then_some(value)
}

/// The first static field of a class that states a bound which fits.
fn static_bound(
    context: &SuspectContext<'_>,
    class: ClassIndex,
    held: u64,
) -> Option<(String, u64)> {
    let of = &context.snapshot.classes()[class];
    if names::only_keeps(context.snapshot, class) {
        return None;
    }
    of.statics
        .iter()
        .filter(|f| is_bound(&f.name))
        .find_map(|f| {
            let bound = fits(context.snapshot.static_value(class, &f.name), held)?;
            Some((format!("{}.{}", of.name, f.name), bound))
        })
}

/// A bound in an instance field of a step's objects, or else in a static field of their class.
fn own_bound(context: &SuspectContext<'_>, step: StepId, held: u64) -> Option<(String, u64)> {
    let class = context.class_index(step)?;
    let classes = context.snapshot.classes();
    let some: Vec<ObjectIndex> = context.members(step, LOOKED_AT);
    let fields = classes.chain(class).flat_map(|c| {
        let runtime = names::is_runtime(context.snapshot, c);
        let fields = classes[c].fields.iter();
        let own = move |name: &str| match runtime {
            // Of the runtime's classes only blocking queues have a capacity that they enforce.
            true => name == "capacity" && classes[c].name.contains("Blocking"),
            false => is_bound(name),
        };
        fields.filter(move |f| own(&f.name)).map(move |f| (c, f))
    });
    let own = fields.into_iter().find_map(|(c, field)| {
        let values = context.number(&some, &field.name);
        let bounds = values
            .into_iter()
            .map(|v| fits(v.map(Value::Long), held))
            .collect::<Option<Vec<u64>>>()?;
        let bound = bounds.into_iter().max()?;
        Some((format!("{}.{}", classes[c].name, field.name), bound))
    });
    own.or_else(|| static_bound(context, class, held))
}
