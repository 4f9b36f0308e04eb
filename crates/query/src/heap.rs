//! An analyzed dump with additional data for queries. This data is computed when it is first used.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use heapdiff_diff::samples::{AgentObjects, AtSites, ClassCount, Samples};
use hprof::answers::{Ids, Link, Numbers, Place, Thread};
use hprof::sizes::ClassTotal;
use hprof::{ObjectId, ObjectIndex, Snapshot};

use crate::error::{Error, Result};

/// Maximum number of file parts whose records are cached. A part is a range of consecutive records in the dump file.
const PARTS: usize = 32;
/// Maximum number of references in a file part that is cached. A part with more references, for example with a huge
/// array, is read again each time.
const LINKS: usize = 1 << 20;

/// An analyzed dump that can be queried and exported.
///
/// Its tables do not contain the agent's own objects.
#[derive(Debug)]
pub struct Heap {
    snapshot: Arc<Snapshot>,
    own: AgentObjects,
    ids: OnceLock<Ids>,
    sorted: OnceLock<Numbers>,
    ranks: OnceLock<Vec<u32>>,
    totals: OnceLock<Vec<ClassTotal>>,
    counts: OnceLock<Vec<ClassTotal>>,
    unwritten: OnceLock<Vec<Link>>,
    threads: OnceLock<Vec<Thread>>,
    samples: OnceLock<(Option<Samples>, Option<String>)>,
    links: Mutex<Recent<Option<Arc<Vec<Link>>>>>,
    places: Mutex<Recent<Arc<Vec<Place>>>>,
}

impl Heap {
    /// Creates the heap of a dump, and finds the agent's own objects, which the tables leave out.
    #[must_use]
    pub fn new(snapshot: impl Into<Arc<Snapshot>>) -> Self {
        let snapshot = snapshot.into();
        let own = AgentObjects::find(&snapshot);
        Self {
            snapshot,
            own,
            ids: OnceLock::new(),
            sorted: OnceLock::new(),
            ranks: OnceLock::new(),
            totals: OnceLock::new(),
            counts: OnceLock::new(),
            unwritten: OnceLock::new(),
            threads: OnceLock::new(),
            samples: OnceLock::new(),
            links: Mutex::new(Recent::new()),
            places: Mutex::new(Recent::new()),
        }
    }

    /// Returns the dump.
    #[must_use]
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Returns the agent's objects.
    #[must_use]
    pub const fn own(&self) -> &AgentObjects {
        &self.own
    }

    /// Returns the ids of all objects.
    pub(crate) fn ids(&self) -> Result<&Ids> {
        match self.ids.get() {
            Some(ids) => Ok(ids),
            None => {
                let ids = self.snapshot.parts().ids()?;
                Ok(self.ids.get_or_init(|| ids))
            }
        }
    }

    /// Returns the ids of the given objects. If `few` is true and the ids of all objects are not in memory yet, looks
    /// up the ids one by one.
    pub(crate) fn ids_of(&self, objects: &[ObjectIndex], few: bool) -> Result<Vec<ObjectId>> {
        if few && self.ids.get().is_none() {
            let ids = self.snapshot.ids(objects).into_iter();
            return Ok(ids.map(Option::unwrap_or_default).collect());
        }
        let ids = self.ids()?;
        Ok(objects.iter().map(|&o| ids.of(o)).collect())
    }

    /// Returns all objects, sorted by the names of their classes.
    pub(crate) fn sorted(&self) -> Result<&Numbers> {
        match self.sorted.get() {
            Some(sorted) => Ok(sorted),
            None => {
                let sorted = self.snapshot.parts().sorted_by_class(self.ranks())?;
                Ok(self.sorted.get_or_init(|| sorted))
            }
        }
    }

    /// Returns for each class the position of its name in a sorted list of all class names. Names are compared byte by
    /// byte, as SQLite compares strings. Classes with the same name have the same position.
    fn ranks(&self) -> &[u32] {
        self.ranks.get_or_init(|| {
            let classes = self.snapshot.classes();
            let mut names: Vec<&str> = classes.iter().map(|(_, c)| &*c.name).collect();
            names.sort_unstable();
            names.dedup();
            let rank = |name: &str| names.partition_point(|&n| n < name) as u32;
            classes.iter().map(|(_, c)| rank(&c.name)).collect()
        })
    }

    /// Returns the histogram, without the agent's objects.
    pub(crate) fn totals(&self) -> &[ClassTotal] {
        self.totals.get_or_init(|| {
            let mut totals = self.snapshot.histogram();
            self.own.subtract_from(&self.snapshot, &mut totals);
            totals
        })
    }

    /// Returns the number and bytes of each class's objects. Figures of reachable and retained objects may be missing.
    pub(crate) fn sums(&self) -> &[ClassTotal] {
        if self.own.is_empty() && self.totals.get().is_none() {
            self.counts()
        } else {
            self.totals()
        }
    }

    /// Returns the approximate number of instances of each class, including the agent's objects.
    pub(crate) fn counts(&self) -> &[ClassTotal] {
        self.counts.get_or_init(|| self.snapshot.totals())
    }

    pub(crate) fn unwritten(&self) -> &[Link] {
        self.unwritten.get_or_init(|| {
            let mut links = self.snapshot.parts().implicit_references();
            links.retain(|link| self.is_link_visible(link));
            links
        })
    }

    pub(crate) fn threads(&self) -> &[Thread] {
        self.threads.get_or_init(|| {
            let mut threads = self.snapshot.threads();
            threads.retain(|t| t.object.is_none_or(|o| !self.own.contains(o)));
            threads
        })
    }

    /// Returns the agent's samples, and a description of their faults. The samples are `None` if the dump has no agent,
    /// or if they cannot be read. The description is `None` if there are no faults.
    fn read_samples(&self) -> &(Option<Samples>, Option<String>) {
        self.samples.get_or_init(|| {
            // Without an agent, the dump has no samples. Return here, because allocation stacks in the dump would be
            // mistaken for samples.
            if self.own.is_empty() {
                return (None, None);
            }
            let (samples, doubt) = Samples::with_all_sites(&self.snapshot, &self.own);
            (samples.filter(|s| s.agent().is_some()), doubt)
        })
    }

    /// Returns the agent's samples, or `None` if there was no agent.
    pub(crate) fn samples(&self) -> Result<Option<&Samples>> {
        match self.read_samples() {
            (None, Some(fault)) => Err(Error::Samples(fault.clone())),
            (samples, _) => Ok(samples.as_ref()),
        }
    }

    /// Returns the agent's counts by class, sorted by name. Empty if the agent did not count classes.
    pub(crate) fn class_counts(&self) -> Result<&[ClassCount]> {
        let counts = self.samples()?.and_then(|s| s.classes.as_deref());
        Ok(counts.unwrap_or_default())
    }

    /// Returns the agent's counts by line of code, or `None` if the agent did not count allocations by line.
    pub(crate) fn at_sites(&self) -> Result<Option<&AtSites>> {
        Ok(self.samples()?.and_then(|s| s.at_sites.as_ref()))
    }

    /// Returns a description of the problem with the agent's samples, or `None` if there is no problem. The description
    /// is the reason why the table `samples` cannot be read ([`Error::Samples`]), or the data that the table lacks.
    #[must_use]
    pub fn doubt_of_samples(&self) -> Option<&str> {
        self.read_samples().1.as_deref()
    }

    /// Returns true if neither the source nor the target of a reference is an object of the agent.
    pub(crate) fn is_link_visible(&self, link: &Link) -> bool {
        let own = |object| self.own.contains(object);
        self.own.is_empty() || !own(link.from) && !link.to.is_some_and(own)
    }

    /// Returns the references of an object.
    pub(crate) fn links_of(&self, object: ObjectIndex) -> Vec<Link> {
        let mut found = self.written_links_of(object);
        let unwritten = self.unwritten();
        let first = unwritten.partition_point(|l| l.from < object);
        let own = unwritten[first..].iter().take_while(|l| l.from == object);
        found.extend(own.copied());
        found
    }

    fn written_links_of(&self, object: ObjectIndex) -> Vec<Link> {
        let Some(part) = self.snapshot.parts().part_of(object) else {
            return Vec::new();
        };
        let known = locked(&self.links).get(part);
        let known = known.unwrap_or_else(|| {
            let read = self
                .snapshot
                .parts()
                .links(part, 0, LINKS, &|l| self.is_link_visible(l));
            let whole = read.next.is_none().then(|| {
                let mut list = read.list;
                list.sort_by_key(|l| l.from);
                Arc::new(list)
            });
            locked(&self.links).put(part, whole.clone());
            whole
        });
        if let Some(list) = known {
            let first = list.partition_point(|l| l.from < object);
            let own = list[first..].iter().take_while(|l| l.from == object);
            return own.copied().collect();
        }
        let wanted = |l: &Link| l.from == object && self.is_link_visible(l);
        self.snapshot
            .parts()
            .links(part, 0, usize::MAX, &wanted)
            .list
    }

    /// Returns the position of an object's record, or `None` for a class object.
    pub(crate) fn place_of(&self, object: ObjectIndex) -> Option<Place> {
        let part = self.snapshot.parts().part_of(object)?;
        let known = locked(&self.places).get(part);
        let places = known.unwrap_or_else(|| {
            let places = Arc::new(self.snapshot.parts().places(part));
            locked(&self.places).put(part, places.clone());
            places
        });
        let at = places.binary_search_by_key(&object, |p| p.object).ok()?;
        Some(places[at])
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // The lock protects only complete values, so the values are valid even if a thread panicked while it had the lock.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A cache of data by file part. It keeps the [`PARTS`] file parts that were used most recently, the latest first.
#[derive(Debug)]
struct Recent<T>(Vec<(u32, T)>);

impl<T: Clone> Recent<T> {
    const fn new() -> Self {
        Self(Vec::new())
    }

    fn get(&mut self, part: u32) -> Option<T> {
        let at = self.0.iter().position(|(p, _)| *p == part)?;
        self.0[..=at].rotate_right(1);
        Some(self.0[0].1.clone())
    }

    fn put(&mut self, part: u32, what: T) {
        self.0.truncate(PARTS - 1);
        self.0.insert(0, (part, what));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_used_last_are_cached() {
        let mut recent = Recent::new();
        for part in 0..PARTS as u32 {
            recent.put(part, part * 2);
        }
        assert_eq!(recent.get(0), Some(0));
        recent.put(99, 198);
        assert_eq!(recent.get(0), Some(0));
        assert_eq!(recent.get(1), None);
        assert_eq!(recent.get(99), Some(198));
        assert_eq!(recent.0.len(), PARTS);
    }
}
