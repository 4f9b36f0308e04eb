//! Collection usage that the agent counted (`usage=on`): how many elements were put into a collection, removed and
//! read.

use std::collections::BTreeMap;
use std::time::Duration;

use heapdiff_model::diff::Used;
use heapdiff_sites::statics;
use heapdiff_sites::usage::{BEFORE, CROWDED, CROWDED_LONGS, Kind, LAST, STRIPE, fields};
use heapdiff_units::Span;
use hprof::answers::{Content, Value};
use hprof::index::{Decoder, Encoder};
use hprof::{ObjectIndex, Snapshot};

use crate::agent_objects::agent_class;
use crate::evidence::bounds;
use crate::evidence::context::{Last, SuspectContext};
use crate::sentence::{Evidence, Verdict, Warning};
use crate::trie::StepId;

/// Maximum number of entries to read from the agent's table, and maximum number of counts to read from each entry.
const MOST_PLACES: u32 = 1 << 16;
const MOST_NUMBERS: u32 = 1 << 10;
/// Maximum number of collections of one trie node to search in the agent's table.
const MEMBERS: usize = 1 << 12;
/// Minimum number of puts that is enough evidence of how a collection is used.
const ENOUGH: u64 = 1000;
/// Minimum time of watching, in milliseconds, that is enough evidence of how a collection is used.
const LONG: u64 = 5000;
/// The counts may exceed the change in a collection's size by at most this number of elements. The excess is attributed
/// to calls that were counted, but had not finished when the dump was taken.
const UNDER_WAY: i64 = 256;

/// Counts of one collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    since_ms: u64,
    /// Number of elements at `since_ms`.
    size: Option<i64>,
    put: u64,
    removed: u64,
    read: u64,
    /// Number of elements put after a moment that the agent recorded. The moment is in the first half of the time since
    /// `since_ms`.
    late: u64,
    last_ms: u64,
}

/// The counts of the watched collections of a trie node, added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Watched {
    counted: Counted,
    /// Number of collections that the agent watches.
    pub(crate) collections: u64,
}

/// The collections that the agent watches in a dump.
#[derive(Debug, Default)]
pub(crate) struct Usages {
    by_collection: BTreeMap<ObjectIndex, Counted>,
    /// Number of large collections that the agent did not watch because its table was full. It is a lower bound.
    without_room: u64,
}

impl Watched {
    pub(crate) fn encode(&self, e: &mut Encoder) {
        let counted = &self.counted;
        e.u64(counted.since_ms);
        e.option(counted.size, |e, size| e.u64(size.cast_unsigned()));
        for figure in [
            counted.put,
            counted.removed,
            counted.read,
            counted.late,
            counted.last_ms,
            self.collections,
        ] {
            e.u64(figure);
        }
    }

    pub(crate) fn decode(d: &mut Decoder<'_>) -> Option<Self> {
        Some(Self {
            counted: Counted {
                since_ms: d.u64()?,
                size: d.option(|d| Some(d.u64()?.cast_signed()))?,
                put: d.u64()?,
                removed: d.u64()?,
                read: d.u64()?,
                late: d.u64()?,
                last_ms: d.u64()?,
            },
            collections: d.u64()?,
        })
    }
}

impl Usages {
    /// Returns the counts in the last dump. If the dump is not open, its summary has the counts.
    pub(crate) fn of_last(last: Last<'_>) -> Self {
        match last {
            Last::Dump(snapshot) => Self::of(snapshot),
            Last::Summary(facts) => Self {
                by_collection: BTreeMap::new(),
                without_room: facts.unwatched,
            },
        }
    }

    /// Returns the collections that the agent watches.
    pub(crate) fn collections(&self) -> impl Iterator<Item = ObjectIndex> + '_ {
        self.by_collection.keys().copied()
    }

    /// Returns the number of collections that the agent did not watch because its table was full.
    pub(crate) const fn unwatched(&self) -> u64 {
        self.without_room
    }

    /// Returns the counts of the collections of a trie node. Returns `None` if the agent watches none of them.
    pub(crate) fn of_step(&self, context: &SuspectContext<'_>, step: StepId) -> Option<Watched> {
        let members = context.members(step, MEMBERS);
        let watched: Vec<(ObjectIndex, Counted)> = members
            .into_iter()
            .filter_map(|o| Some((o, *self.by_collection.get(&o)?)))
            .collect();
        let mut all = watched
            .iter()
            .map(|&(object, counted)| counted.completed(size(context, object)));
        let mut counted = all.next()?;
        all.for_each(|other| counted.merge(&other));
        Some(Watched {
            counted,
            collections: watched.len() as u64,
        })
    }

    /// Reads the counts of the agent. Returns no counts if `usage=on` was not set. The dump is not trusted.
    pub(crate) fn of(snapshot: &Snapshot) -> Self {
        Self::read(snapshot).unwrap_or_default()
    }

    fn read(snapshot: &Snapshot) -> Option<Self> {
        let class = agent_class(snapshot)?;
        let table = snapshot.static_value(class, statics::USAGE)?.object()?;
        let record = snapshot.read_all(&[table]).pop()??;
        let Content::Array(table) = record.content else {
            return None;
        };
        let places = table.elements(0..table.len.min(MOST_PLACES));
        let all: Vec<ObjectIndex> = places.filter_map(Value::object).collect();
        let names = ["referent", fields::COUNTS, fields::SINCE, fields::SIZE];
        let values = snapshot.field_values(&all, names);
        let mut crowded = values.iter().flatten().filter_map(|values| {
            let [referent, counts, _, size] = *values;
            let is_it = referent?.object().is_none() && size?.integer()? == i64::from(CROWDED);
            counts?.object().filter(|_| is_it)
        });
        let without_room = crowded
            .next_back()
            .map_or(0, |counts| bits(snapshot, counts));
        let found: Vec<(ObjectIndex, ObjectIndex, Counted)> = values
            .into_iter()
            .filter_map(|values| {
                let [referent, counts, since, size] = values?;
                let counted = Counted {
                    since_ms: u64::try_from(since?.integer()?).ok()?,
                    size: Some(size?.integer()?).filter(|&size| size >= 0),
                    ..Counted::default()
                };
                Some((referent?.object()?, counts?.object()?, counted))
            })
            .collect();
        let arrays: Vec<ObjectIndex> = found.iter().map(|one| one.1).collect();
        let records = snapshot.read_all(&arrays);
        let mut all: BTreeMap<ObjectIndex, Counted> = BTreeMap::new();
        for ((collection, _, mut counted), record) in found.into_iter().zip(records) {
            if let Some(Content::Array(array)) = record.map(|r| r.content) {
                let numbers = array.elements(0..array.len.min(MOST_NUMBERS));
                let numbers = numbers.map(|n| n.integer().and_then(|n| u64::try_from(n).ok()));
                counted.add(&numbers.map(|n| n.unwrap_or(0)).collect::<Vec<u64>>());
            }
            let known = all.entry(collection);
            known
                .and_modify(|known| known.merge(&counted))
                .or_insert(counted);
        }
        Some(Self {
            by_collection: all,
            without_room,
        })
    }

    /// Returns a warning if some collections were not watched.
    pub(crate) fn warning(&self) -> Option<String> {
        let collections = self.without_room;
        (collections > 0).then(|| Warning::Unwatched { collections }.to_string())
    }
}

/// Returns the number of bits that are set in an array of numbers.
fn bits(snapshot: &Snapshot, array: ObjectIndex) -> u64 {
    let record = snapshot.read_all(&[array]).pop().flatten();
    let Some(Content::Array(array)) = record.map(|record| record.content) else {
        return 0;
    };
    let numbers = array.elements(0..array.len.min(CROWDED_LONGS.into()));
    let numbers = numbers.filter_map(Value::integer);
    numbers.map(|number| u64::from(number.count_ones())).sum()
}

impl Counted {
    /// Adds the counts of a collection. `numbers` has [`STRIPE`] numbers for each group of threads. The counts of all
    /// groups are added up.
    fn add(&mut self, numbers: &[u64]) {
        for stripe in numbers.chunks_exact(STRIPE) {
            let of = |kind: Kind| usize::try_from(kind.code()).map_or(0, |at| stripe[at]);
            let put = of(Kind::Put);
            self.put = self.put.saturating_add(put);
            self.removed = self.removed.saturating_add(of(Kind::Removed));
            self.read = self.read.saturating_add(of(Kind::Read));
            self.last_ms = self.last_ms.max(stripe[LAST]);
            if stripe[BEFORE] > 0 {
                let late = put.saturating_sub(stripe[BEFORE + 1]);
                self.late = self.late.saturating_add(late);
            }
        }
    }

    /// Adds the counts in `other`. They are further counts of the same collection, or the counts of another collection
    /// of the same trie node.
    fn merge(&mut self, other: &Self) {
        if (other.since_ms, other.size) < (self.since_ms, self.size) {
            (self.since_ms, self.size) = (other.since_ms, other.size);
        }
        self.put = self.put.saturating_add(other.put);
        self.removed = self.removed.saturating_add(other.removed);
        self.read = self.read.saturating_add(other.read);
        self.late = self.late.saturating_add(other.late);
        self.last_ms = self.last_ms.max(other.last_ms);
    }

    /// Adds elements that were added or removed by calls that the agent does not count, such as `addAll` of a list. The
    /// change of the collection's size shows their number.
    fn completed(mut self, now: Option<i64>) -> Self {
        let (Some(now), Some(then)) = (now, self.size) else {
            return self;
        };
        let signed = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let grown = now.saturating_sub(then);
        let net = signed(self.put).saturating_sub(signed(self.removed));
        if let Ok(unseen) = u64::try_from(grown.saturating_sub(net)) {
            self.put = self.put.saturating_add(unseen);
        } else if grown.saturating_add(UNDER_WAY) < net {
            let unseen = u64::try_from(net.saturating_sub(grown)).unwrap_or(0);
            self.removed = self.removed.saturating_add(unseen);
        }
        self
    }
}

/// Usage of a suspect's collections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    counted: Counted,
    /// Time of the last dump.
    taken_ms: u64,
    /// Number of the suspect's collections that the agent watches, and number of all collections of the suspect.
    watched: u64,
    collections: u64,
    /// Number of elements added between the first dump and the last, minus the number of elements removed.
    grown: u64,
}

/// Returns the usage of the collections in which a suspect's objects accumulate. Includes only collections whose calls
/// the agent counts.
pub(crate) fn of(context: &SuspectContext<'_>, usages: &Usages) -> Option<Usage> {
    if context.dump().is_some() && usages.by_collection.is_empty() {
        return None;
    }
    let trie = context.trie();
    let path = trie.path(context.candidate.at);
    let own = context.application_field_step();
    let from = path.iter().position(|&s| Some(s) == own).unwrap_or(0);
    path[from..].iter().rev().find_map(|&step| {
        if !bounds::grows_by_elements(context, step) {
            return None;
        }
        let (first, last) = context.ends(*context.candidate.content.first()?);
        let Watched {
            counted,
            collections,
        } = context.fact(
            step,
            |_| usages.of_step(context, step),
            |facts| facts.watched,
        )?;
        Some(Usage {
            counted,
            taken_ms: context.summaries.last().map_or(0, |s| s.info.taken_ms),
            watched: collections,
            collections: trie[step].objects,
            grown: last.saturating_sub(first),
        })
    })
}

/// Returns the number of elements of a collection, from the fields of its class. Returns `None` for classes that the
/// agent does not watch.
pub(crate) fn size(context: &SuspectContext<'_>, object: ObjectIndex) -> Option<i64> {
    let number = |of: ObjectIndex, name| context.number(&[of], name).pop().flatten();
    let inner = |name| context.field(&[object], name).pop().flatten();
    let plain = ["size", "count", "elementCount"].into_iter();
    if let Some(size) = plain.filter_map(|name| number(object, name)).next() {
        return Some(size);
    }
    // The queue stores its size in an atomic number.
    if let Some(count) = inner("count") {
        return number(count, "value");
    }
    let length = |array| context.dump()?.array_length(array).map(i64::from);
    if let Some(array) = inner("array") {
        return length(array);
    }
    // The collection is a ring buffer.
    let length = length(inner("elements")?)?;
    let (head, tail) = (number(object, "head")?, number(object, "tail")?);
    tail.checked_sub(head)?.checked_rem_euclid(length)
}

impl Usage {
    fn watched_ms(&self) -> u64 {
        self.taken_ms.saturating_sub(self.counted.since_ms)
    }

    /// True if elements were only put into the collections, and none was removed or read. At least [`ENOUGH`] elements
    /// were put, over at least [`LONG`] milliseconds. The put elements make up most of the growth, and elements were
    /// still put recently.
    pub(crate) fn only_fills(&self) -> bool {
        let Counted {
            put,
            removed,
            read,
            late,
            last_ms,
            ..
        } = self.counted;
        let time = self.watched_ms();
        put >= ENOUGH
            && (removed, read) == (0, 0)
            && put.saturating_mul(2) >= self.grown
            && time >= LONG
            && late.saturating_mul(4) >= put
            && self.taken_ms.saturating_sub(last_ms) <= time / 4
    }

    /// Returns the sentence with the counts.
    pub(crate) fn sentence(&self) -> Evidence {
        Evidence::Usage {
            span: Span(Duration::from_millis(self.watched_ms())),
            watched: self.watched,
            collections: self.collections.max(self.watched),
            put: self.counted.put,
            removed: self.counted.removed,
            read: self.counted.read,
        }
    }

    /// Returns a reason to doubt that the suspect is a leak. Such a reason does not rule out a leak.
    pub(crate) fn doubt(&self) -> Option<Verdict> {
        let Counted {
            put, removed, read, ..
        } = self.counted;
        if put < ENOUGH {
            return None;
        }
        if removed.saturating_mul(4) >= put.saturating_mul(3) {
            return Some(Verdict::CountedRemovals);
        }
        (read >= put).then_some(Verdict::CountedReads)
    }

    /// Returns the counts in the form that the report uses.
    pub(crate) fn to_report(self) -> Used {
        Used {
            since_ms: self.counted.since_ms,
            put: self.counted.put,
            removed: self.counted.removed,
            read: self.counted.read,
            watched: self.watched,
            collections: self.collections.max(self.watched),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns the usage of a collection over one minute, with all calls evenly spread. The collection grew by the
    /// number of elements put minus the number removed.
    pub(crate) fn usage(put: u64, removed: u64, read: u64) -> Usage {
        let mut counted = Counted {
            since_ms: 1_000_000,
            size: Some(256),
            ..Counted::default()
        };
        counted.add(&[
            put,
            removed,
            read,
            1_059_000,
            1_040_000,
            put / 2,
            1_020_000,
            put / 4,
        ]);
        Usage {
            counted,
            taken_ms: 1_060_000,
            watched: 1,
            collections: 1,
            grown: put.saturating_sub(removed),
        }
    }

    #[test]
    fn unwatched_collections_are_reported_if_there_are_any() {
        let with = |without_room| Usages {
            without_room,
            ..Usages::default()
        };
        assert_eq!(with(0).warning(), None);
        let says = |n, part| with(n).warning().is_some_and(|told| told.contains(part));
        assert!(says(
            1,
            "had no room to watch at least 1 more large collection"
        ));
        assert!(says(
            5904,
            "had no room to watch at least 5,904 more large collections"
        ));
    }

    #[test]
    fn filling_is_distinguished_from_use() {
        assert!(usage(5000, 0, 0).only_fills());
        for other in [usage(5000, 1, 0), usage(5000, 0, 1), usage(999, 0, 0)] {
            assert!(!other.only_fills(), "{other:?}");
        }
        // Most of the growth was not counted: it happened before counting began, or in other collections.
        let elsewhere = Usage {
            grown: 10_001,
            ..usage(5000, 0, 0)
        };
        assert!(!elsewhere.only_fills());
        // The elements were put mostly at the start. In the first case, less than a quarter of them was put after the
        // moment that the agent recorded (see `Counted::late`). In the second case, none was put in the last quarter of
        // the time.
        let with = |change: fn(&mut Counted)| {
            let mut usage = usage(5000, 0, 0);
            change(&mut usage.counted);
            usage.only_fills()
        };
        assert!(with(|_| {}));
        assert!(!with(|counted| counted.late = 1249));
        assert!(!with(|counted| counted.last_ms = 1_044_999));
        // Counting has only begun.
        assert!(!with(|counted| counted.since_ms = 1_055_001));
    }

    #[test]
    fn stripes_and_entries_of_a_collection_add_up() {
        let mut counted = Counted::default();
        counted.add(&[10, 2, 3, 900, 800, 8, 700, 4, 1, 0, 7, 950, 0, 0, 0, 0]);
        let all = (counted.put, counted.removed, counted.read);
        assert_eq!((all, counted.late, counted.last_ms), ((11, 2, 10), 6, 950));
        let mut earlier = Counted {
            since_ms: 5,
            size: Some(300),
            put: 1,
            ..Counted::default()
        };
        counted.since_ms = 9;
        earlier.merge(&counted);
        assert_eq!(
            (earlier.since_ms, earlier.size, earlier.put),
            (5, Some(300), 12)
        );
        // An incomplete group of numbers is left out.
        counted.add(&[1, 1, 1]);
        assert_eq!(counted.put, 11);
    }

    #[test]
    fn the_size_corrects_for_uncounted_calls() {
        let counted = Counted {
            size: Some(300),
            put: 50,
            removed: 20,
            ..Counted::default()
        };
        let with = |now| {
            let counted = counted.completed(now);
            (counted.put, counted.removed)
        };
        assert_eq!(with(Some(330)), (50, 20));
        assert_eq!(with(None), (50, 20));
        // One call added a hundred elements.
        assert_eq!(with(Some(430)), (150, 20));
        // An excess of at most [`UNDER_WAY`] elements is tolerated: some calls may not have finished when the dump was
        // taken.
        assert_eq!(with(Some(320)), (50, 20));
        assert_eq!(with(Some(0)), (50, 350));
        let unknown = Counted {
            size: None,
            ..counted
        };
        assert_eq!(unknown.completed(Some(9000)).put, 50);
    }

    #[test]
    fn the_sentence_contains_the_counts() {
        assert_eq!(
            usage(5000, 0, 0).sentence().to_string(),
            "during the last 1m before the dump, the agent counted 5,000 puts, 0 removals and 0 reads"
        );
        assert_eq!(
            usage(0, 1, 1).sentence().to_string(),
            "during the last 1m before the dump, the agent counted 0 puts, 1 removal and 1 read"
        );
        let several = Usage {
            watched: 3,
            collections: 7,
            ..usage(1, 2000, 3000)
        };
        assert_eq!(
            several.sentence().to_string(),
            "during the last 1m before the dump, the agent counted 1 put, 2,000 removals and 3,000 reads (in 3 of 7 collections)"
        );
    }

    #[test]
    fn removals_and_reads_are_reported_as_doubts() {
        let doubt = |put, removed, read| usage(put, removed, read).doubt();
        assert_eq!(doubt(5000, 3750, 0), Some(Verdict::CountedRemovals));
        assert_eq!(doubt(5000, 3749, 0), None);
        assert_eq!(doubt(5000, 0, 5000), Some(Verdict::CountedReads));
        assert_eq!(doubt(5000, 0, 4999), None);
        assert_eq!(doubt(5000, 3750, 9000), Some(Verdict::CountedRemovals));
        assert_eq!(doubt(999, 999, 999), None);
    }
}
