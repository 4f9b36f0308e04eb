//! Finds reasons why a collection will not grow for ever: references that the JVM may clear, and limits that are stored
//! in fields of the objects.
//!
//! A bound counts only if it belongs to the collection that grows, not to an outer collection. If a known library
//! stores the bound in a field of the collection, the bound is enforced. A number in any other field counts as a bound
//! if the name of the field suggests it, and if the collection has reached the number. Reached means: the collection
//! holds at most 2 % fewer elements, and the elements added since the previous dump are at most 2 % of the number.
//! Before that, the number is only a hint.

use std::borrow::Cow;

use heapdiff_model::diff::{difference, least};
use heapdiff_sites::packages::is_jdk;
use heapdiff_units::Size;
use hprof::answers::{Content, Value};
use hprof::records::{Field, Kind, Reference};
use hprof::{ClassIndex, ObjectIndex, Snapshot};

use crate::evidence::context::{Last, SuspectContext};
use crate::names;
use crate::sentence::Evidence;
use crate::trie::StepId;

/// A bound is ignored if it is larger than this number times the number of objects that the collection holds.
const FAR: u64 = 64;
/// Minimum value of a bound. Smaller numbers are rarely bounds of a collection that grows.
const LEAST: u64 = 16;
/// Maximum number of objects of one trie node that are read, to find the maximum size of a collection or to count empty
/// slots.
const LOOKED_AT: usize = 4;

/// How strong the evidence is that a collection has a bound, which is a limit of its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strength {
    /// The class is known to enforce the bound.
    Enforced,
    /// The number of elements has reached the bound, and has hardly risen since the previous dump.
    Reached,
    /// Only the name of a field suggests that there is a bound.
    Hint,
}

/// A limit, or possible limit, on the growth of a collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bound {
    /// The sentence for the report, with facts that readers can check.
    pub(crate) sentence: Evidence,
    /// The strength of the evidence.
    pub(crate) strength: Strength,
}

impl Bound {
    fn enforced(sentence: Evidence) -> Self {
        Self {
            sentence,
            strength: Strength::Enforced,
        }
    }

    fn hint(sentence: Evidence) -> Self {
        Self {
            sentence,
            strength: Strength::Hint,
        }
    }
}

/// Returns the limit on the growth of a collection. If there is evidence for several limits, returns the one with the
/// strongest evidence. Returns `None` if there is no evidence for a limit.
pub(crate) fn of(context: &SuspectContext<'_>) -> Option<Bound> {
    let softly = || {
        soft_reference_sentence(context)
            .or_else(|| soft_values(context, &soft_reference_steps(context)))
    };
    let enforced = softly()
        .filter(|_| survives_soft_clearing(context).is_none())
        .or_else(|| mostly_empty_sentence(context))
        .or_else(|| library(context));
    enforced
        .map(Bound::enforced)
        .or_else(|| stated_limit(context))
        .or_else(|| weak_hint(context).map(Bound::hint))
        .or_else(|| lru_map_hint(context).map(Bound::hint))
}

/// The JVM may clear all soft references. Then only a part of the growth would stay. This part is ignored if it is less
/// than 1/8 of all growth.
const STAYING_PART: u64 = 8;
/// Name of the reference from a reference object to its referent.
const REFERENT: &str = "java.lang.ref.Reference.referent";

/// Returns the sentence which says that a soft reference holds the growing objects.
fn soft_reference_sentence(context: &SuspectContext<'_>) -> Option<Evidence> {
    let step = context.steps.windows(2).find(|w| {
        context.reference(w[0]) == Some(Reference::Soft) && context.via(w[1]) == REFERENT
    })?;
    Some(Evidence::SoftReferences {
        class: context.class(step[0]).to_owned(),
    })
}

/// True if only soft references lead to a trie node's objects.
pub(crate) fn is_softly_held(context: &SuspectContext<'_>, step: StepId) -> bool {
    let path = context.trie().path(step);
    path.windows(2)
        .any(|w| context.reference(w[0]) == Some(Reference::Soft) && context.via(w[1]) == REFERENT)
}

/// Returns pairs of trie nodes in the suspect's content. The objects of the first node are soft references. The objects
/// of the second node are the referents of these soft references.
fn soft_reference_steps(context: &SuspectContext<'_>) -> Vec<(StepId, StepId)> {
    const LOOKED_AT: usize = 1 << 10;
    let trie = context.trie();
    let mut work: Vec<StepId> = context.candidate.content.clone();
    let mut found = Vec::new();
    let mut at = 0;
    while at < work.len() && work.len() < LOOKED_AT {
        let step = work[at];
        at += 1;
        let children = trie[step].children.iter().copied();
        if context.reference(step) == Some(Reference::Soft) {
            let referents = children.filter(|&c| context.via(c) == REFERENT);
            found.extend(referents.map(|referent| (step, referent)));
        } else {
            work.extend(children);
        }
    }
    found
}

/// Returns the sentence for content that consists mostly of the referents of soft references, as in a cache with soft
/// values.
fn soft_values(context: &SuspectContext<'_>, held: &[(StepId, StepId)]) -> Option<Evidence> {
    let trie = context.trie();
    let content = context.candidate.content.iter();
    let all: u64 = content.map(|&s| trie[s].retained_bytes).sum();
    let softly = held.iter().map(|&(_, s)| trie[s].retained_bytes);
    let softly: u64 = softly.sum();
    let &(of, _) = held.first()?;
    (softly.saturating_mul(2) >= all).then(|| Evidence::MostlySoftReferences {
        class: context.class(of).to_owned(),
    })
}

/// Returns the sentence for content that would still have grown if the JVM had cleared all of its soft references.
/// Applies only to references without a reference queue: the program is not notified when they are cleared, so it
/// cannot remove their entries.
pub(crate) fn survives_soft_clearing(context: &SuspectContext<'_>) -> Option<Evidence> {
    let held = soft_reference_steps(context);
    let &(of, _) = held.first()?;
    if !context.fact(of, |_| lack_queue(context, of), |facts| facts.lack_queue)? {
        return None;
    }
    let figures = |step: StepId| context.aligned.figures(step, |s| s.retained_bytes);
    let growth = |steps: &mut dyn Iterator<Item = StepId>| -> i64 {
        steps.map(|step| difference(&figures(step))).sum()
    };
    let all = growth(&mut context.candidate.content.iter().copied());
    let softly = growth(&mut held.iter().map(|&(_, referent)| referent));
    let reachable = context
        .summaries
        .last()
        .map_or(0, |s| s.info.reachable_bytes);
    let stays = u64::try_from(all.saturating_sub(softly)).ok()?;
    // In a cache with large values, the entries that stay are small compared with the values, so their growth is
    // ignored.
    let is_large = stays >= all.unsigned_abs() / STAYING_PART && stays >= least(reachable);
    is_large.then(|| Evidence::StaysWhenCleared {
        class: context.class(of).to_owned(),
        stays: Size(stays),
    })
}

/// True if no reference queue is registered with the largest reference objects of a trie node. Returns `None` if none
/// of them has an object in the field `queue`.
pub(crate) fn lack_queue(context: &SuspectContext<'_>, step: StepId) -> Option<bool> {
    const NO_QUEUE: &str = "java.lang.ref.ReferenceQueue$Null";
    let snapshot = context.dump()?;
    let samples = &context.trie()[step].samples;
    let queues = context.field(samples, "queue").into_iter().flatten();
    let mut queues = queues.peekable();
    queues.peek()?;
    Some(!queues.any(|queue| snapshot.name(queue) != NO_QUEUE))
}

/// Returns a hint if a `WeakHashMap` holds the suspect's content, or if the content consists of weak references. Such
/// content grows only if other paths keep the keys or referents alive. The hint shows where to look. It is no evidence
/// that the growth ends.
fn weak_hint(context: &SuspectContext<'_>) -> Option<Evidence> {
    let table = context.first_via(|v| v == "java.util.WeakHashMap.table");
    if table.is_some_and(|table| grows_by_elements(context, table)) {
        return Some(Evidence::WeakHashMap);
    }
    // Some subclasses of `WeakReference` also hold other objects, such as the values of thread locals. For them, the
    // report names these other objects, so there is no hint.
    let step = context.candidate.named;
    if context.reference(step) != Some(Reference::Weak) {
        return None;
    }
    // If most weak references are cleared, the growth is in the tables and entries, which stay.
    let are_alive = context.fact(
        step,
        |_| Some(have_referents(context, step)),
        |facts| Some(facts.have_referents),
    );
    are_alive?.then(|| Evidence::WeakReferences {
        class: context.class(step).to_owned(),
    })
}

/// True if most of a trie node's reference objects are not cleared.
pub(crate) fn have_referents(context: &SuspectContext<'_>, step: StepId) -> bool {
    let some = context.members(step, 64);
    let referents = context.field(&some, "referent");
    let alive = referents.iter().flatten().count();
    alive * 2 > some.len()
}

/// True if the collection at a trie node grows by its elements, rather than by something that one of its elements
/// holds.
pub(crate) fn grows_by_elements(context: &SuspectContext<'_>, collection: StepId) -> bool {
    let path = context.trie().path(context.candidate.at);
    let Some(at) = path.iter().position(|&s| s == collection) else {
        return false;
    };
    // On the path, everything below a node or an entry of the collection belongs to one element. Another collection
    // inside the collection is also an element. There is one exception: a set or a cache contains an internal map, and
    // this map is not an element.
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

/// True if a class is a node or an entry of a collection.
fn is_entry(class: &str) -> bool {
    let name = class.rsplit(['.', '$']).next().unwrap_or(class);
    !class.ends_with("[]") && (name.contains("Entry") || name.contains("Node"))
}

/// True if the objects of a trie node are collections that a program uses directly, rather than internal parts of a
/// collection.
fn is_collection(context: &SuspectContext<'_>, step: StepId) -> bool {
    let class = context.class(step);
    class.starts_with("java.util.") && !class.ends_with("[]") && !class.contains('$')
}

fn shares_package(one: &str, other: &str) -> bool {
    let package = |class: &str| class.rsplit_once('.').map(|c| c.0.to_owned());
    package(one).is_some() && package(one) == package(other)
}

/// Returns the sentence for a growing array of references whose slots are mostly empty. The size of a mostly empty
/// array does not show how many elements it will hold.
fn mostly_empty_sentence(context: &SuspectContext<'_>) -> Option<Evidence> {
    let candidate = context.candidate;
    if !candidate.in_place || !context.class(candidate.named).ends_with("[]") {
        return None;
    }
    let [empty, slots] = context.fact(
        candidate.named,
        |_| empty_slots(context, candidate.named),
        |facts| facts.empty_slots,
    )?;
    Some(Evidence::EmptySlots { empty, slots })
}

/// Returns the number of empty slots and of all slots of a trie node's largest arrays. Returns `None` unless more than
/// 3/4 of the slots are empty.
pub(crate) fn empty_slots(context: &SuspectContext<'_>, arrays: StepId) -> Option<[u64; 2]> {
    /// Maximum number of elements to read of each array.
    const ELEMENTS: u32 = 1 << 20;
    let some = context.members(arrays, LOOKED_AT);
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
    (used * 4 < slots).then_some([slots - used, slots])
}

/// Returns the hint that an application's subclass of `LinkedHashMap` holds the suspect's content. Such maps often
/// remove their eldest entry. The dump does not show whether this map ever removes one.
fn lru_map_hint(context: &SuspectContext<'_>) -> Option<Evidence> {
    let above = context.trie().path(context.candidate.at);
    let step = above
        .into_iter()
        .rev()
        .find(|&s| !is_jdk(context.class(s)) && context.is_kind(s, "java.util.LinkedHashMap"))?;
    grows_by_elements(context, step).then(|| Evidence::EldestEntry {
        class: context.class(step).to_owned(),
    })
}

/// Returns the sentence for a cache, queue or pool of a well-known library whose objects contain their maximum size.
fn library(context: &SuspectContext<'_>) -> Option<Evidence> {
    let above = context.trie().path(context.candidate.at);
    above.into_iter().rev().find_map(|step| {
        let Maximum {
            field,
            bound,
            is_weighed,
        } = context.fact(
            step,
            |_| library_maximum(context, step),
            |facts| facts.maximum.clone(),
        )?;
        // A cache that weighs its entries can use any unit of weight, so its bound can be far above the number of
        // entries. If a collection holds more than one and a half times its bound, the bound does not limit the number
        // of entries.
        let holders = context.trie()[step].objects.max(1);
        let held = context.ends(context.candidate.content[0]).1 / holders;
        let is_bounded =
            grows_by_elements(context, step) && held <= bound.saturating_add(bound / 2);
        is_bounded.then(|| Evidence::LibraryBound {
            class: context.class(step).to_owned(),
            field,
            bound,
            is_weighed,
        })
    })
}

/// The maximum size of a cache, queue or pool of a well-known library, read from one of its objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Maximum {
    pub(crate) field: String,
    pub(crate) bound: u64,
    /// True if the cache weighs its entries, so that the maximum is not a number of entries.
    pub(crate) is_weighed: bool,
}

/// Returns the maximum size of the collections of a trie node, if a well-known library enforces it.
pub(crate) fn library_maximum(context: &SuspectContext<'_>, step: StepId) -> Option<Maximum> {
    // Pairs of a class and the field with the maximum size of an instance. If a cache has no maximum, Caffeine uses
    // another class, which lacks the field. The other libraries then use the same class and store a value in the field
    // that is not a maximum: negative, 0, or the largest number.
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
    let class = context.class_index(step)?;
    let extends = |name: &str| context.extends(class, name);
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
                u64::from(context.dump()?.array_length(items)?),
                "items.length",
            )
        }
        None => return None,
    };
    Some(Maximum {
        field: field.to_owned(),
        bound,
        is_weighed: is_weighed(context, step),
    })
}

/// True if a cache of Guava or Caffeine weighs its entries, so that its bound is not a number of entries.
fn is_weighed(context: &SuspectContext<'_>, cache: StepId) -> bool {
    const COUNTING: [&str; 2] = [
        "com.google.common.cache.CacheBuilder$OneWeigher",
        "com.github.benmanes.caffeine.cache.SingletonWeigher",
    ];
    let one = context.trie()[cache].samples.first();
    let weigher = one.and_then(|&one| context.field(&[one], "weigher").pop()?);
    let name = weigher.and_then(|weigher| Some(context.dump()?.name(weigher)));
    name.is_some_and(|name| !COUNTING.contains(&&*name))
}

/// Returns the limit of a collection, read from a field with a name such as `maxSize`. Searches the object that holds
/// the collection, the static fields of its class, and the collection.
fn stated_limit(context: &SuspectContext<'_>) -> Option<Bound> {
    let trie = context.trie();
    let path = trie.path(context.candidate.at);
    let field = context.application_field_step()?;
    // Search the object that has the holding field first, and then the trie nodes down to the collection.
    let at = path.iter().position(|&s| s == field).unwrap_or(path.len());
    let collection = path
        .get(at)
        .copied()
        .unwrap_or(context.candidate.content[0]);
    if path.contains(&collection) && !grows_by_elements(context, collection) {
        return None;
    }
    let content = context.objects(context.candidate.content[0]);
    let holders: u64 = trie[context.candidate.at].objects.max(1);
    let owner = at.checked_sub(1).map(|i| path[i]);
    owner
        .into_iter()
        .chain(path[at..].iter().copied())
        .find_map(|step| {
            let of_step = trie[step].objects.max(1);
            match context.represents(step) {
                // A limit in a static field may apply to the sum of all collections, or to each of them.
                Some(class) => [1, holders].into_iter().find_map(|holders| {
                    let held = Held::new(&content, holders);
                    held.bound(static_bound(context, class, held.now)?)
                }),
                None => {
                    let held = Held::new(&content, of_step);
                    held.bound(bound_from_fields(context, step, held.now)?)
                }
            }
        })
        .or_else(|| bound_of_segmented(context, &path[..at], &content))
}

/// Returns the maximum number of elements of a collection that consists of parts, such as segments. Each part
/// has its own collection. The objects at the end of `path` are the parts. The maximum applies to the elements of all
/// parts together.
fn bound_of_segmented(
    context: &SuspectContext<'_>,
    path: &[StepId],
    content: &[u64],
) -> Option<Bound> {
    let (whole, parts) = enclosing_collection(context, path)?;
    let held = Held::new(content, context.trie()[whole].objects.max(1));
    let (name, bound) = match context.represents(whole) {
        Some(class) => static_bound(context, class, held.now)?,
        None => bound_from_fields(context, whole, held.now)?,
    };
    // A field such as `maxSegments` limits the number of segments, not of elements.
    let limits_parts = have_common_word(&name, context.via(parts));
    held.bound((name, bound)).filter(|_| !limits_parts)
}

/// Finds the collection to which the last trie node of a path belongs as a part, for example a cache with segments.
/// Returns two trie nodes: that of the cache, and that of its field that holds the segments. Returns `None` if the
/// class name of the last trie node contains no word for a part.
fn enclosing_collection(context: &SuspectContext<'_>, path: &[StepId]) -> Option<(StepId, StepId)> {
    const PARTS: [&str; 5] = ["segment", "shard", "stripe", "partition", "bucket"];
    let (&part, above) = path.split_last()?;
    let class = context.class(part).rsplit(['.', '$']).next()?;
    if !words(class).iter().any(|word| PARTS.contains(&&**word)) {
        return None;
    }
    let is_keeper = |&&step: &&StepId| names::is_collection_part(context.class(step));
    let between = above.iter().rev().take_while(is_keeper).count();
    let (above, parts) = above.split_at(above.len() - between);
    Some((*above.last()?, parts.first().copied().unwrap_or(part)))
}

/// The number of elements that each holder has. It is compared with a possible limit.
struct Held {
    now: u64,
    /// Number of elements added since the previous dump. It shows whether a field such as `maxActive` is a limit or a
    /// high-water mark. If many elements were added, and the field is still about equal to the number of elements, the
    /// field is a high-water mark.
    late: u64,
    is_one: bool,
}

impl Held {
    fn new(content: &[u64], holders: u64) -> Self {
        let each: Vec<u64> = content.iter().map(|n| n / holders).collect();
        Self {
            now: each.last().copied().unwrap_or(0),
            late: match each[..] {
                [.., before, last] => last.saturating_sub(before),
                _ => 0,
            },
            is_one: holders == 1,
        }
    }

    /// Returns the limit that a field with this name and value states. Returns `None` in two cases. In the first case,
    /// the field is a high-water mark. In the second case, the number of elements exceeds the value, and rose by more
    /// than [`noise`] since the previous dump.
    fn bound(&self, (field, bound): (String, u64)) -> Option<Bound> {
        let Self { now, late, is_one } = *self;
        let room = bound.saturating_sub(now);
        let noise = noise(bound);
        let is_noise = room <= noise && late <= noise;
        if !is_noise && (now > bound || room.saturating_mul(8) < late) {
            return None;
        }
        let is_full = room <= bound / 50 && late <= bound / 50;
        Some(Bound {
            sentence: Evidence::StatedBound {
                field,
                bound,
                held: now,
                is_full,
                is_one,
            },
            strength: if is_full {
                Strength::Reached
            } else {
                Strength::Hint
            },
        })
    }
}

/// True if a field of this name limits a number of elements.
fn is_bound(name: &str) -> bool {
    const WORDS: [&str; 4] = ["max", "limit", "capacity", "bound"];
    // These words name limits on something other than the number of elements: bytes, time, attempts, threads.
    const UNITS: [&str; 12] = [
        "byte", "memory", "heap", "weight", "time", "milli", "second", "minute", "delay",
        "attempt", "retr", "thread",
    ];
    let lower = name.to_ascii_lowercase();
    let words = words(name);
    let is_unit = |word: &String| {
        matches!(word.as_str(), "age" | "ttl" | "wait" | "interval")
            || UNITS.iter().any(|unit| word.starts_with(unit))
    };
    let is_limit = lower == "cap" || WORDS.iter().any(|word| lower.contains(word));
    is_limit && !words.iter().any(is_unit)
}

/// Returns the words of a name in lower case: `MAX_USERS` and `maxUsers` have the words `max` and `users`.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut before = '_';
    for letter in name.chars() {
        let begins = letter.is_uppercase() && before.is_lowercase();
        if words.is_empty() || begins || !before.is_alphanumeric() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| letter.is_alphanumeric()) {
            word.extend(letter.to_lowercase());
        }
        before = letter;
    }
    words.retain(|word| !word.is_empty());
    words
}

/// True if a constant may limit the collection in a field. If the class has several collections, the name of the
/// constant has to share a word with that of the field: `MAX_USERS` limits `users`, and not `sessions`. `statics` is
/// the number of collections in static fields of the class.
fn may_limit_collection(
    context: &SuspectContext<'_>,
    class: ClassIndex,
    statics: u64,
    constant: &str,
) -> bool {
    let instance = context
        .steps
        .iter()
        .find(|&&s| context.class_index(s) == Some(class));
    let of_instance = instance.and_then(|&step| {
        context.fact(
            step,
            |_| Some(collections_of_instance(context, step)),
            |facts| Some(facts.collections),
        )
    });
    let Some(field) = context.application_field_step() else {
        return true;
    };
    let shares = || have_common_word(constant, context.via(field));
    statics.saturating_add(of_instance.unwrap_or(0)) <= 1 || shares()
}

/// Returns the number of collections in the fields of a trie node's largest object.
pub(crate) fn collections_of_instance(context: &SuspectContext<'_>, step: StepId) -> u64 {
    let sample = context.trie()[step].samples.first().copied();
    let record = sample.and_then(|sample| context.read(&[sample]).into_iter().next());
    match (
        record.as_ref().map(|record| &record.content),
        context.dump(),
    ) {
        (Some(Content::Instance(fields)), Some(snapshot)) => {
            let values = fields.iter().filter_map(|f| f.value?.object());
            let is_collection = |o: &ObjectIndex| names::is_collection_part(&snapshot.name(*o));
            values.filter(is_collection).count() as u64
        }
        _ => 0,
    }
}

/// True if the names of two fields share a word, in singular or plural.
fn have_common_word(one: &str, other: &str) -> bool {
    let stems = |field: &str| -> Vec<String> {
        let name = field.rsplit('.').next().unwrap_or_default();
        let stem = |word: String| word.trim_end_matches('s').to_owned();
        words(name).into_iter().map(stem).collect()
    };
    let other = stems(other);
    stems(one).iter().any(|word| other.contains(word))
}

/// The size of a full cache varies by 1/1000 of its limit between dumps, because entries are added before others are
/// evicted.
const NOISE_PART: u64 = 1000;

fn noise(bound: u64) -> u64 {
    bound / NOISE_PART
}

/// True if a limit is plausible for a collection with `held` elements: it is at least [`LEAST`] and at most [`FAR`]
/// times `held`, and it is not exceeded by more than [`noise`].
fn fits(value: u64, held: u64) -> bool {
    value.saturating_add(noise(value)) >= held
        && value >= LEAST
        && value <= held.saturating_mul(FAR)
}

/// The numbers in static fields of a class whose names suggest a limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StaticLimits {
    /// Names and values of the fields.
    pub(crate) fields: Vec<(String, u64)>,
    /// Number of collections in static fields of the class.
    pub(crate) collections: u64,
}

/// Returns the numbers in static fields of a class that may be limits. Returns `None` for JDK classes and collection
/// libraries, and if there are no such fields.
pub(crate) fn static_limits(snapshot: &Snapshot, class: ClassIndex) -> Option<StaticLimits> {
    let of = &snapshot.classes()[class];
    if names::is_passive_container(snapshot, class) {
        return None;
    }
    let limits = of.statics.iter().filter(|f| is_bound(&f.name));
    let fields: Vec<(String, u64)> = limits
        .filter_map(|f| {
            let value = snapshot.static_value(class, &f.name)?.integer()?;
            let value = u64::try_from(value).ok().filter(|&v| v >= LEAST)?;
            Some((f.name.to_string(), value))
        })
        .collect();
    if fields.is_empty() {
        return None;
    }
    let collections = of.statics.iter().filter(|field| {
        let value = snapshot.static_value(class, &field.name);
        let object = value.and_then(Value::object);
        object.is_some_and(|object| names::is_collection_part(&snapshot.name(object)))
    });
    let collections = collections.count() as u64;
    Some(StaticLimits {
        fields,
        collections,
    })
}

/// Returns the first static field of a class whose value is a bound that fits the number of elements held.
fn static_bound(
    context: &SuspectContext<'_>,
    class: ClassIndex,
    held: u64,
) -> Option<(String, u64)> {
    let (name, limits) = match context.last {
        Last::Dump(snapshot) => {
            let name = &*snapshot.classes()[class].name;
            (name, Cow::Owned(static_limits(snapshot, class)?))
        }
        Last::Summary(facts) => {
            let class = facts.class(class)?;
            (&*class.name, Cow::Borrowed(class.limits.as_ref()?))
        }
    };
    let mut fields = limits.fields.iter();
    let (field, bound) = fields.find(|(field, value)| {
        fits(*value, held) && may_limit_collection(context, class, limits.collections, field)
    })?;
    Some((format!("{name}.{field}"), *bound))
}

/// The numbers in a field of several objects, if the name of the field suggests a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FieldLimit {
    /// Name of the field, with its class.
    pub(crate) field: String,
    pub(crate) smallest: u64,
    pub(crate) largest: u64,
}

/// Returns the numbers in the fields of a trie node's objects that may be limits.
pub(crate) fn field_limits(context: &SuspectContext<'_>, step: StepId) -> Vec<FieldLimit> {
    let (Some(snapshot), Some(class)) = (context.dump(), context.class_index(step)) else {
        return Vec::new();
    };
    let classes = snapshot.classes();
    let fields = classes.chain(class).flat_map(|c| {
        let runtime = names::is_runtime(snapshot, c);
        let fields = classes[c].fields.iter();
        let own = move |name: &str| {
            // In JDK classes, only the field `capacity` of blocking queues counts as a bound, because only these
            // classes enforce a capacity.
            if runtime {
                name == "capacity" && classes[c].name.contains("Blocking")
            } else {
                is_bound(name)
            }
        };
        fields.filter(move |f| own(&f.name)).map(move |f| (c, f))
    });
    let mut fields = fields.peekable();
    if fields.peek().is_none() {
        return Vec::new();
    }
    let some: Vec<ObjectIndex> = context.members(step, LOOKED_AT);
    let limit = |(c, field): (ClassIndex, &Field)| {
        let values = context.number(&some, &field.name).into_iter();
        let values: Option<Vec<u64>> = values.map(|v| u64::try_from(v?).ok()).collect();
        let values = values?;
        Some(FieldLimit {
            field: format!("{}.{}", classes[c].name, field.name),
            smallest: values.iter().copied().min()?,
            largest: values.iter().copied().max()?,
        })
    };
    fields.filter_map(limit).collect()
}

/// Returns the field that limits the number of elements, and its value. Searches the instance fields of the trie node's
/// objects first, and then the static fields of their class.
fn bound_from_fields(
    context: &SuspectContext<'_>,
    step: StepId,
    held: u64,
) -> Option<(String, u64)> {
    let class = context.class_index(step)?;
    let limits = context.fact(
        step,
        |_| Some(Cow::Owned(field_limits(context, step))),
        |facts| Some(Cow::Borrowed(&facts.limits[..])),
    );
    let limits = limits.unwrap_or_default();
    let fitting = limits
        .iter()
        .find(|limit| fits(limit.smallest, held) && fits(limit.largest, held));
    let own = fitting.map(|limit| (limit.field.clone(), limit.largest));
    own.or_else(|| static_bound(context, class, held))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_limits_in_elements_are_bounds() {
        for name in [
            "MAX_USERS",
            "maxSize",
            "limit",
            "capacity",
            "maximumEntries",
            "upperBound",
            "cap",
        ] {
            assert!(is_bound(name), "{name}");
        }
        for name in [
            "maxBytes",
            "MAX_MEMORY_MB",
            "maxAgeMillis",
            "limitSeconds",
            "MAX_RETRIES",
            "users",
            "capture",
        ] {
            assert!(!is_bound(name), "{name}");
        }
        assert_eq!(words("MAX_USERS"), ["max", "users"]);
        assert_eq!(words("maxOpenFiles2"), ["max", "open", "files2"]);
        assert!(words("_").is_empty());
    }
}
