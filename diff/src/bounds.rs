//! What keeps a collection from growing for ever: references that the JVM may clear, and bounds that
//! the objects themselves state.

use hprof::{ClassIndex, Content, Kind, ObjectIndex, Reference, Value};

use crate::case::Case;
use crate::names;
use crate::size::grouped;
use crate::trie::StepId;

/// A bound so many times above what is held is none that matters.
const FAR: u64 = 64;
/// Numbers below this are rarely bounds of a collection that grows.
const LEAST: u64 = 16;
/// Objects of one holder that are asked for their bound.
const LOOKED_AT: usize = 4;

/// Why it will not grow for ever, in a sentence.
pub(crate) fn of(case: &Case<'_>) -> Option<String> {
    soft(case)
        .or_else(|| weak(case))
        .or_else(|| slack(case))
        .or_else(|| eldest(case))
        .or_else(|| library(case))
        .or_else(|| stated(case))
}

fn reference(case: &Case<'_>, step: StepId) -> Option<Reference> {
    let class = case.class_index(step)?;
    Some(case.snapshot.classes()[class].reference)
}

/// Soft references above what is named, whose referents it is.
fn soft(case: &Case<'_>) -> Option<String> {
    let step = case.steps.windows(2).find(|w| {
        reference(case, w[0]) == Some(Reference::Soft)
            && case.via(w[1]) == "java.lang.ref.Reference.referent"
    })?;
    Some(format!(
        "held by soft references only ({}): the JVM clears them before memory runs out",
        case.class(step[0])
    ))
}

/// Weak maps, and tables of weak references that are not cleared: their objects live elsewhere.
fn weak(case: &Case<'_>) -> Option<String> {
    if case
        .held_via(|v| v == "java.util.WeakHashMap.table")
        .is_some()
    {
        return Some(
            "a WeakHashMap drops an entry when nothing else holds its key: look at what holds the keys"
                .to_owned(),
        );
    }
    // Not those that hold something besides, as the entries of thread locals do.
    let step = case.candidate.named;
    if reference(case, step) != Some(Reference::Weak) {
        return None;
    }
    let some = case.members(step, 64);
    let referents = case.field(&some, "referent");
    let alive = referents.iter().flatten().count();
    // Of cleared ones the tables and entries stay, and those grow.
    (alive * 2 > some.len()).then(|| {
        format!(
            "what it holds are weak references ({}), which keep nothing alive",
            case.class(step)
        )
    })
}

/// Arrays of references that grew with what they held at one time: they do not shrink.
fn slack(case: &Case<'_>) -> Option<String> {
    /// Elements looked at.
    const ELEMENTS: u32 = 1 << 20;
    let candidate = case.candidate;
    if !candidate.in_place || !case.class(candidate.named).ends_with("[]") {
        return None;
    }
    let some = case.members(candidate.named, LOOKED_AT);
    let (mut slots, mut used) = (0_u64, 0_u64);
    for record in case.read(&some) {
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

/// Application classes that extend `LinkedHashMap`, as maps do that remove their eldest entry.
fn eldest(case: &Case<'_>) -> Option<String> {
    let above = case.trie().path(case.candidate.at);
    let step = above.into_iter().find(|&s| {
        !names::is_runtime_name(case.class(s)) && case.is_kind(s, "java.util.LinkedHashMap")
    })?;
    Some(format!(
        "{} extends LinkedHashMap, as maps do that remove their eldest entry when they are full",
        case.class(step)
    ))
}

/// Caches and pools of well-known libraries, as far as their objects say that they have a bound.
fn library(case: &Case<'_>) -> Option<String> {
    // Class and the field that has a bound; where it is negative, there is none.
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
    let classes = case.snapshot.classes();
    let above = case.trie().path(case.candidate.at);
    above.into_iter().rev().find_map(|step| {
        let class = case.class_index(step)?;
        let bounded = |name: &str| {
            let known = classes.by_name(name);
            known.iter().any(|&k| classes.is_subclass(class, k))
        };
        let (_, field) = BOUNDED.iter().find(|(name, _)| bounded(name))?;
        let name = case.class(step);
        let Some(field) = field else {
            return Some(format!("{name} has a bound"));
        };
        let one = case.trie()[step].samples.first().copied()?;
        let bound = (*case.number(&[one], field).first()?)?;
        let bound = u64::try_from(bound).ok().filter(|&b| b < i64::MAX as u64)?;
        Some(format!("{name} has a bound: {field} is {}", grouped(bound)))
    })
}

/// A bound in a field of the object that has the holding field, of its class, or of the collection.
fn stated(case: &Case<'_>) -> Option<String> {
    let trie = case.trie();
    let path = trie.path(case.candidate.at);
    let field = case.own_field()?;
    // From the object above the field down to the collection.
    let at = path.iter().position(|&s| s == field).unwrap_or(path.len());
    let holders: u64 = trie[case.candidate.at].objects.max(1);
    let held = case.ends(case.candidate.content[0]).1 / holders;
    // What grew by in the last step, while it may be near its bound: `maxActive` can be the most that there
    // have been so far, which is just what there are now.
    let late = match case.candidate.objects[..] {
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
            let (name, bound) = match case.snapshot.represents(sample) {
                Some(class) => static_bound(case, class, held),
                None => own_bound(case, step, held),
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

/// Of static fields of a class.
fn static_bound(case: &Case<'_>, class: ClassIndex, held: u64) -> Option<(String, u64)> {
    let of = &case.snapshot.classes()[class];
    if names::is_runtime(case.snapshot, class) {
        return None;
    }
    of.statics
        .iter()
        .filter(|f| is_bound(&f.name))
        .find_map(|f| {
            let bound = fits(case.snapshot.static_value(class, &f.name), held)?;
            Some((format!("{}.{}", of.name, f.name), bound))
        })
}

/// Of the fields of the objects of a step, and then of their class.
fn own_bound(case: &Case<'_>, step: StepId, held: u64) -> Option<(String, u64)> {
    let class = case.class_index(step)?;
    let classes = case.snapshot.classes();
    let some: Vec<ObjectIndex> = case.members(step, LOOKED_AT);
    let fields = classes.chain(class).flat_map(|c| {
        let runtime = names::is_runtime(case.snapshot, c);
        let fields = classes[c].fields.iter();
        let own = move |name: &str| match runtime {
            // Of the runtime's classes only those that refuse what is too much.
            true => name == "capacity" && classes[c].name.contains("Blocking"),
            false => is_bound(name),
        };
        fields.filter(move |f| own(&f.name)).map(move |f| (c, f))
    });
    let own = fields.into_iter().find_map(|(c, field)| {
        let values = case.number(&some, &field.name);
        let bounds = values
            .into_iter()
            .map(|v| fits(v.map(Value::Long), held))
            .collect::<Option<Vec<u64>>>()?;
        let bound = bounds.into_iter().max()?;
        Some((format!("{}.{}", classes[c].name, field.name), bound))
    });
    own.or_else(|| static_bound(case, class, held))
}
