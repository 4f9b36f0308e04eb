//! Reasons why a collection will not grow for ever: references that the JVM may clear, and bounds that
//! the objects themselves state.

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

/// The sentence that says why it will not grow for ever; `None` where nothing bounds it.
pub(crate) fn of(context: &SuspectContext<'_>) -> Option<String> {
    soft(context)
        .or_else(|| weak(context))
        .or_else(|| slack(context))
        .or_else(|| eldest(context))
        .or_else(|| library(context))
        .or_else(|| stated(context))
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

/// It is the content of a weak map, or weak references whose referents other paths keep alive.
fn weak(context: &SuspectContext<'_>) -> Option<String> {
    if context
        .held_via(|v| v == "java.util.WeakHashMap.table")
        .is_some()
    {
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

/// It is a mostly empty array of references, which keeps the size that it once needed.
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
            "{} of {} slots are empty: such an array keeps the size that it needed once",
            grouped(slots - used),
            grouped(slots)
        )
    })
}

/// It is in an application's subclass of `LinkedHashMap`, as maps are that remove their eldest entry.
fn eldest(context: &SuspectContext<'_>) -> Option<String> {
    let above = context.trie().path(context.candidate.at);
    let step = above.into_iter().find(|&s| {
        !names::is_runtime_name(context.class(s)) && context.is_kind(s, "java.util.LinkedHashMap")
    })?;
    Some(format!(
        "{} extends LinkedHashMap, as maps do that remove their eldest entry when they are full",
        context.class(step)
    ))
}

/// It is in a cache or pool of a well-known library whose objects say that they are bounded.
fn library(context: &SuspectContext<'_>) -> Option<String> {
    // The class, and the field that holds the bound; a negative value means that there is no bound.
    const BOUNDED: [(&str, Option<&str>); 9] = [
        ("com.google.common.cache.LocalCache", Some("maxWeight")),
        ("com.github.benmanes.caffeine.cache.BoundedLocalCache", None),
        (
            "org.ehcache.impl.internal.store.heap.OnHeapStore",
            Some("capacity"),
        ),
        ("net.sf.ehcache.store.MemoryStore", Some("maximumSize")),
        (
            "org.apache.commons.pool2.impl.BaseGenericObjectPool",
            Some("maxTotal"),
        ),
        ("com.zaxxer.hikari.util.ConcurrentBag", None),
        ("io.netty.util.Recycler$LocalPool", None),
        ("io.netty.buffer.PoolArena", None),
        ("java.util.concurrent.ArrayBlockingQueue", None),
    ];
    let classes = context.snapshot.classes();
    let above = context.trie().path(context.candidate.at);
    above.into_iter().rev().find_map(|step| {
        let class = context.class_index(step)?;
        let bounded = |name: &str| {
            let known = classes.by_name(name);
            known.iter().any(|&k| classes.is_subclass(class, k))
        };
        let (_, field) = BOUNDED.iter().find(|(name, _)| bounded(name))?;
        let name = context.class(step);
        let Some(field) = field else {
            return Some(format!("{name} has a bound"));
        };
        let one = context.trie()[step].samples.first().copied()?;
        let bound = (*context.number(&[one], field).first()?)?;
        let bound = u64::try_from(bound).ok().filter(|&b| b < i64::MAX as u64)?;
        Some(format!("{name} has a bound: {field} is {}", grouped(bound)))
    })
}

/// A field states a bound: one of the object that declares the holding field, of its class, or of the
/// collection.
fn stated(context: &SuspectContext<'_>) -> Option<String> {
    let trie = context.trie();
    let path = trie.path(context.candidate.at);
    let field = context.own_field()?;
    // The owner of the field, then the steps down to the collection.
    let at = path.iter().position(|&s| s == field).unwrap_or(path.len());
    let holders: u64 = trie[context.candidate.at].objects.max(1);
    let held = context.ends(context.candidate.content[0]).1 / holders;
    // A field such as `maxActive` may be a high-water mark rather than a bound: then it is about equal to
    // the number held now, although many were added since the dump before.
    let late = match context.candidate.objects[..] {
        [.., before, last] => last.saturating_sub(before) / holders,
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
            let full = match bound {
                b if b == held => "is full",
                _ => "has room",
            };
            Some(format!(
                "it {full}: {name} is {}, and {} are held",
                grouped(bound),
                grouped(held)
            ))
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
    if names::is_runtime(context.snapshot, class) {
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
