//! An analysed dump with what queries need besides, each made when it is first asked for.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use heapdiff_diff::samples::{AgentObjects, AtSites, ClassCount, Samples};
use hprof::answers::{Ids, Link, Numbers, Place, Thread};
use hprof::sizes::ClassTotal;
use hprof::{ObjectId, ObjectIndex, Snapshot};

use crate::error::{Error, Result};

/// The most parts of the file whose records are cached.
const PARTS: usize = 32;
/// The most references of a part that are cached; a part with more (a huge array's) is read each time.
const LINKS: usize = 1 << 20;

/// An analysed dump that can be queried and exported.
///
/// The agent's own objects are in none of its tables.
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
    /// A dump, without the agent's objects.
    #[must_use]
    pub fn new(snapshot: impl Into<Arc<Snapshot>>) -> Self {
        let snapshot = snapshot.into();
        let own = AgentObjects::of(&snapshot);
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

    /// The dump.
    #[must_use]
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The agent's objects.
    #[must_use]
    pub const fn own(&self) -> &AgentObjects {
        &self.own
    }

    /// The id of every object.
    pub(crate) fn ids(&self) -> Result<&Ids> {
        match self.ids.get() {
            Some(ids) => Ok(ids),
            None => {
                let ids = self.snapshot.parts().ids()?;
                Ok(self.ids.get_or_init(|| ids))
            }
        }
    }

    /// The ids of some objects. Those of few objects are looked up one by one, unless all ids are known.
    pub(crate) fn ids_of(&self, objects: &[ObjectIndex], few: bool) -> Result<Vec<ObjectId>> {
        if few && self.ids.get().is_none() {
            let ids = self.snapshot.ids(objects).into_iter();
            return Ok(ids.map(Option::unwrap_or_default).collect());
        }
        let ids = self.ids()?;
        Ok(objects.iter().map(|&o| ids.of(o)).collect())
    }

    /// All objects by the name of their class.
    pub(crate) fn sorted(&self) -> Result<&Numbers> {
        match self.sorted.get() {
            Some(sorted) => Ok(sorted),
            None => {
                let sorted = self.snapshot.parts().sorted_by_class(self.ranks())?;
                Ok(self.sorted.get_or_init(|| sorted))
            }
        }
    }

    /// Each class's rank among the names of all classes, by bytes, as SQLite compares texts.
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

    /// The histogram.
    pub(crate) fn totals(&self) -> &[ClassTotal] {
        self.totals.get_or_init(|| {
            let mut totals = self.snapshot.histogram();
            self.own.take_from(&self.snapshot, &mut totals);
            totals
        })
    }

    /// The objects of each class and their bytes; perhaps nothing of what is reachable or retained.
    pub(crate) fn sums(&self) -> &[ClassTotal] {
        if self.own.is_empty() && self.totals.get().is_none() {
            self.counts()
        } else {
            self.totals()
        }
    }

    /// About how many instances each class has; the agent's objects count, too.
    pub(crate) fn counts(&self) -> &[ClassTotal] {
        self.counts.get_or_init(|| self.snapshot.totals())
    }

    pub(crate) fn unwritten(&self) -> &[Link] {
        self.unwritten.get_or_init(|| {
            let mut links = self.snapshot.parts().implicit_links();
            links.retain(|link| self.shows(link));
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

    /// The agent's samples, if it was there, and what is wrong with them.
    fn read_samples(&self) -> &(Option<Samples>, Option<String>) {
        self.samples.get_or_init(|| {
            // In a dump that names the stack of each object, every object would be a sample.
            if self.own.is_empty() {
                return (None, None);
            }
            let (samples, doubt) = Samples::with_all_sites(&self.snapshot, &self.own);
            (samples.filter(|s| s.agent().is_some()), doubt)
        })
    }

    /// The agent's samples; `None` where it was not there.
    pub(crate) fn samples(&self) -> Result<Option<&Samples>> {
        match self.read_samples() {
            (None, Some(fault)) => Err(Error::Samples(fault.clone())),
            (samples, _) => Ok(samples.as_ref()),
        }
    }

    /// What the agent counted of each class, by name; none where it does not count classes.
    pub(crate) fn class_counts(&self) -> Result<&[ClassCount]> {
        let counts = self.samples()?.and_then(|s| s.classes.as_deref());
        Ok(counts.unwrap_or_default())
    }

    /// What the agent counted at each line of code; `None` where it does not count.
    pub(crate) fn at_sites(&self) -> Result<Option<&AtSites>> {
        Ok(self.samples()?.and_then(|s| s.at_sites.as_ref()))
    }

    /// What is wrong with the agent's samples, if it was there: why the table `samples` cannot be read
    /// ([`Error::Samples`]), or what is missing in it.
    #[must_use]
    pub fn doubt_of_samples(&self) -> Option<&str> {
        self.read_samples().1.as_deref()
    }

    /// Whether a reference is of the program's.
    pub(crate) fn shows(&self, link: &Link) -> bool {
        let own = |object| self.own.contains(object);
        self.own.is_empty() || !own(link.from) && !link.to.is_some_and(own)
    }

    /// The references of one object.
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
                .links(part, 0, LINKS, &|l| self.shows(l));
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
        let wanted = |l: &Link| l.from == object && self.shows(l);
        self.snapshot
            .parts()
            .links(part, 0, usize::MAX, &wanted)
            .list
    }

    /// Where an object's record is; `None` for class objects.
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
    // The lock protects finished values only, so a panic leaves nothing half done.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The records of the parts that were used last, the latest first.
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
    fn the_parts_used_last_are_at_hand() {
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
