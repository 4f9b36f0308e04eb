//! Reads the agent's objects in a dump. `heapdiff_sites` describes their format. The dump is not trusted.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use heapdiff_sites::{
    CLASS, Counter, FORMAT, MARK_CLASS, MARK_SAMPLE, Sampling, SiteTable, Strategy, TOTALS_CHUNK,
    fields, statics,
};
use hprof::answers::{Content, Value};
use hprof::{ClassIndex, ObjectIndex, Snapshot};

use super::{
    Agent, ClassCount, Collected, Cost, NameTable, Origin, Sample, Samples, SiteId, Sites,
    counting, exact, population,
};
use crate::agent_objects::{AgentObjects, agent_class};
use crate::names;
use crate::samples::{OriginalNames, frames};

/// The reason why the samples in a dump cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    #[error("the agent's data has the unknown format version {0}; heapdiff reads version {FORMAT}")]
    Format(i64),
    #[error("the static field `{0}` of {CLASS} is missing or has another type")]
    Static(&'static str),
    #[error("the agent's data names the unknown sampling strategy {0}")]
    Strategy(i64),
    #[error("{0}")]
    Table(#[from] heapdiff_sites::DecodeError),
}

pub(super) type Result<T> = std::result::Result<T, Fault>;

/// Reads samples, and the sites and classes that `which` selects. Returns `None` if the agent was not loaded.
pub(super) fn read(
    snapshot: &Snapshot,
    agent_objects: &AgentObjects,
    which: Which,
) -> Result<Option<Samples>> {
    let Some(class) = agent_class(snapshot) else {
        return Ok(None);
    };
    let reader = Reader { snapshot, class };
    reader.samples(agent_objects, which).map(Some)
}

/// The sites and classes to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    /// The sites and classes of samples that are still in the heap. If the agent tracks only some samples, all sites.
    Remembered,
    /// All sites and classes for which an allocation was sampled or counted.
    All,
}

/// True if a JVM's version, such as `17.0.15+6`, is before 25.
fn is_before_25(version: &str) -> bool {
    let major = version.split(|c: char| !c.is_ascii_digit()).next();
    major
        .and_then(|m| m.parse().ok())
        .is_some_and(|m: u32| m < 25)
}

pub(super) struct Reader<'a> {
    pub(super) snapshot: &'a Snapshot,
    class: ClassIndex,
}

impl Reader<'_> {
    fn samples(&self, agent_objects: &AgentObjects, which: Which) -> Result<Samples> {
        let format = self.integer(statics::FORMAT)?;
        if format != i64::from(FORMAT) {
            return Err(Fault::Format(format));
        }
        let strategy = self.integer(statics::STRATEGY)?;
        let strategy = i32::try_from(strategy).ok().and_then(Strategy::from_code);
        let strategy = strategy.ok_or(Fault::Strategy(self.integer(statics::STRATEGY)?))?;
        let sampling = |interval, rate| -> Result<Sampling> {
            Ok(Sampling {
                strategy,
                interval: self.number(interval)?,
                rate: self.number(rate)?,
            })
        };
        let (table, site_bytes) = self.table(statics::BLOBS)?;
        let counters = self.counters()?;
        let total = agent_objects.total(self.snapshot);
        let mut agent = Agent {
            sampling: sampling(statics::INTERVAL, statics::RATE)?,
            first: sampling(statics::FIRST_INTERVAL, statics::FIRST_RATE)?,
            started_ms: self.number(statics::STARTED)?,
            pid: self.number(statics::PID)?,
            depth: self.number(statics::DEPTH)?,
            last_uid: 0,
            is_before_25: self.snapshot.jvm().is_some_and(|jvm| is_before_25(&jvm)),
            counters,
            cost: Cost {
                objects: total.objects,
                bytes: total.bytes,
                site_bytes,
                sites: table.site_ids().len() as u64,
                ..Cost::default()
            },
        };
        let mut found = SampleBuilder::new(self.snapshot, &table);
        let mut references = BTreeSet::new();
        for name in [statics::SAMPLES, statics::CLASSES] {
            for chunk in self.elements(&self.array_objects(name)?) {
                references.extend(chunk.into_iter().flatten());
            }
        }
        let references: Vec<ObjectIndex> = references.into_iter().collect();
        agent.cost.samples = references.len() as u64;
        agent.cost.sample_bytes = references
            .iter()
            .map(|&r| self.snapshot.shallow_bytes(r))
            .sum();
        let mut live = found.live(&references, &agent);
        live.sort_unstable_by_key(|s| (s.uid, s.object));
        // If one class object is in `live` both as a class definition and as a sampled object, keep only the class
        // definition.
        let defined: BTreeSet<ObjectIndex> = live
            .iter()
            .filter(|s| s.is_definition)
            .map(|s| s.object)
            .collect();
        live.retain(|s| s.is_definition || !defined.contains(&s.object));
        let mut collected = Vec::new();
        for (name, died) in [
            (statics::RECENT, statics::RECENT_DIED),
            (statics::RESERVOIR, statics::RESERVOIR_DIED),
        ] {
            collected.extend(self.collected(&mut found, name, died)?);
        }
        collected.sort_by_key(|c: &Collected| c.uid);
        collected.dedup_by(|again, first| {
            let same = again.uid == first.uid;
            if same {
                first.recent |= again.recent;
                first.chosen |= again.chosen;
            }
            same
        });
        // If the agent tracks only some samples, a site may have no tracked sample. Then only the agent's counts are
        // known for the site.
        let site_types = self.site_types()?;
        if which == Which::All || site_types {
            found.site(0);
            for id in table.site_ids() {
                found.site(id);
            }
        }
        let uids = live.iter().map(|s| s.uid);
        let uids = uids.chain(collected.iter().map(|c| c.uid));
        agent.last_uid = uids.max().unwrap_or(0).max(agent.counter(Counter::Uids));
        let totals = self.by_site::<2>(statics::TOTALS, &found.numbers)?;
        let totals = totals.into_iter().map(|[samples, bytes]| (samples, bytes));
        // Older agents lack this table.
        let allocated = match self.value(statics::ALLOCATED) {
            Ok(_) => self.by_site::<1>(statics::ALLOCATED, &found.numbers)?,
            Err(_) => Vec::new(),
        };
        let site_classes = if site_types {
            let types = self.by_id::<1>(statics::SITE_TYPES, found.numbers.keys().copied())?;
            found.site_classes(types)
        } else {
            Vec::new()
        };
        let classes = match which {
            Which::All => self.class_counts(&table)?,
            Which::Remembered => None,
        };
        let mut at_sites = match which {
            Which::All => self.at_sites()?,
            // Ignore damaged counts, so that the samples can still be used.
            Which::Remembered => self.at_sites().unwrap_or(None),
        };
        let counted = population::count(self.snapshot, agent_objects, &mut live);
        let leaves = counting::leaves(&table, &found.numbers);
        let counting = self.counting(
            at_sites.as_ref(),
            &table,
            &leaves,
            (&agent, &found.names.names),
            (&live, &collected),
        )?;
        if which == Which::Remembered {
            at_sites = None;
        }
        if let Some(at_sites) = &mut at_sites
            && agent.counter(Counter::FromStart) > 0
        {
            at_sites.add_lines(&leaves, found.sites.len());
        }
        let SampleBuilder {
            names,
            sites,
            unfinished,
            unreachable,
            ..
        } = found;
        Ok(Samples {
            origin: Origin::Agent(Box::new(agent)),
            live,
            collected,
            sites,
            totals: totals.collect(),
            allocated: allocated.into_iter().flatten().collect(),
            site_classes,
            classes,
            at_sites,
            counting,
            names: names.names,
            counted,
            unfinished,
            unreachable,
        })
    }

    pub(super) fn value(&self, name: &'static str) -> Result<Value> {
        let value = self.snapshot.static_value(self.class, name);
        value.ok_or(Fault::Static(name))
    }

    fn integer(&self, name: &'static str) -> Result<i64> {
        self.value(name)?.integer().ok_or(Fault::Static(name))
    }

    fn number(&self, name: &'static str) -> Result<u64> {
        u64::try_from(self.integer(name)?).map_err(|_| Fault::Static(name))
    }

    pub(super) fn array(&self, name: &'static str) -> Result<Option<ObjectIndex>> {
        match self.value(name)? {
            Value::Object(id, None) if id.is_null() => Ok(None),
            Value::Object(_, Some(object)) => Ok(Some(object)),
            _ => Err(Fault::Static(name)),
        }
    }

    /// Returns the elements of arrays whose elements are references. Returns no elements for other objects.
    fn elements(&self, arrays: &[ObjectIndex]) -> Vec<Vec<Option<ObjectIndex>>> {
        let records = self.snapshot.read_all(arrays).into_iter();
        let elements = records.map(|record| match record.map(|r| r.content) {
            Some(Content::Array(array)) => {
                array.elements(0..array.len).map(Value::object).collect()
            }
            _ => Vec::new(),
        });
        elements.collect()
    }

    /// Returns the elements of the object array in a static field, in order.
    fn places(&self, name: &'static str) -> Result<Vec<Option<ObjectIndex>>> {
        let outer: Vec<ObjectIndex> = self.array(name)?.into_iter().collect();
        Ok(self.elements(&outer).pop().unwrap_or_default())
    }

    /// Returns the objects in the array of a static field, each only once. In a damaged dump, an array may contain the
    /// same object many times.
    fn array_objects(&self, name: &'static str) -> Result<Vec<ObjectIndex>> {
        let mut seen = BTreeSet::new();
        let objects = self.places(name)?.into_iter().flatten();
        Ok(objects.filter(|&o| seen.insert(o)).collect())
    }

    pub(super) fn table(&self, name: &'static str) -> Result<(SiteTable, u64)> {
        let blobs = self.array_objects(name)?;
        let records = self.snapshot.read_all(&blobs);
        let pieces: Vec<&[u8]> = records
            .iter()
            .map(|record| match record.as_ref().map(|r| &r.content) {
                Some(Content::Array(array)) => array.bytes(),
                _ => &[],
            })
            .collect();
        let bytes = blobs.iter().map(|&b| self.snapshot.shallow_bytes(b)).sum();
        let mut table = SiteTable::decode(pieces)?;
        if let Some(mapping) = self.snapshot.mapping() {
            table.rename(&OriginalNames(mapping.clone()));
        }
        Ok((table, bytes))
    }

    pub(super) fn longs(&self, arrays: &[ObjectIndex]) -> Vec<Vec<i64>> {
        let records = self.snapshot.read_all(arrays).into_iter();
        let longs = records.map(|record| match record.map(|r| r.content) {
            Some(Content::Array(array)) => {
                let values = array.elements(0..array.len);
                values.filter_map(Value::integer).collect()
            }
            _ => Vec::new(),
        });
        longs.collect()
    }

    fn counters(&self) -> Result<Vec<u64>> {
        let array = self.array(statics::COUNTERS)?;
        let array = array.ok_or(Fault::Static(statics::COUNTERS))?;
        let mut values = self.longs(&[array]).pop().unwrap_or_default();
        values.truncate(Counter::ALL.len());
        Ok(values
            .into_iter()
            .map(|v| u64::try_from(v).unwrap_or(0))
            .collect())
    }

    /// Returns the agent's counts for each site that has a number in the model ([`SiteId`]).
    fn by_site<const N: usize>(
        &self,
        name: &'static str,
        numbers: &HashMap<u32, SiteId>,
    ) -> Result<Vec<[u64; N]>> {
        let mut totals: Vec<[u64; N]> = Vec::new();
        for (id, figures) in self.by_id::<N>(name, numbers.keys().copied())? {
            let Some(site) = numbers.get(&id) else {
                continue;
            };
            let at = site.0 as usize;
            if totals.len() <= at {
                totals.resize(at + 1, [0; N]);
            }
            // If two ids of the agent have the same stack, they are one site here. Add their counts up.
            for (total, figure) in totals[at].iter_mut().zip(figures) {
                *total = total.saturating_add(figure);
            }
        }
        Ok(totals)
    }

    /// Returns the agent's counts for the given ids, from a static field with an array of chunks.
    pub(super) fn by_id<const N: usize>(
        &self,
        name: &'static str,
        ids: impl Iterator<Item = u32> + Clone,
    ) -> Result<Vec<(u32, [u64; N])>> {
        let chunks = self.places(name)?;
        let mut wanted: Vec<ObjectIndex> = ids
            .clone()
            .filter_map(|id| *chunks.get(id as usize / TOTALS_CHUNK)?)
            .collect();
        wanted.sort_unstable();
        wanted.dedup();
        let values = self.longs(&wanted);
        let figures = |id: u32| {
            let chunk = chunks.get(id as usize / TOTALS_CHUNK).copied().flatten();
            let chunk = chunk.and_then(|c| values.get(wanted.binary_search(&c).ok()?));
            let at = N * (id as usize % TOTALS_CHUNK);
            let found = chunk.and_then(|c| c.get(at..at + N)).unwrap_or(&[0; N]);
            let figure = |i: usize| u64::try_from(found[i]).unwrap_or(0);
            (id, std::array::from_fn(figure))
        };
        Ok(ids.map(figures).collect())
    }

    /// True if the agent reports the class of the last sample of each site.
    fn site_types(&self) -> Result<bool> {
        match self.value(statics::SITE_TYPES) {
            Ok(_) => Ok(self.array(statics::SITE_TYPES)?.is_some()),
            Err(_) => Ok(false),
        }
    }

    /// Returns the agent's allocation counts for each class, by class name. Returns `None` if the agent does not count
    /// classes.
    fn class_counts(&self, table: &SiteTable) -> Result<Option<Vec<ClassCount>>> {
        if self.array(statics::CLASS_TOTALS)?.is_none() {
            return Ok(None);
        }
        let ids = table.type_ids();
        let mut classes: BTreeMap<&str, ClassCount> = BTreeMap::new();
        let unnamed = std::iter::once(0);
        for (id, [objects, bytes]) in
            self.by_id::<2>(statics::CLASS_TOTALS, unnamed.chain(ids.iter().copied()))?
        {
            if objects == 0 {
                continue;
            }
            let name = table.class(id).unwrap_or("(unknown class)");
            let count = classes.entry(name).or_insert_with(|| ClassCount {
                class: name.to_owned(),
                objects: 0,
                bytes: 0,
            });
            count.objects = count.objects.saturating_add(objects);
            count.bytes = count.bytes.saturating_add(bytes);
        }
        Ok(Some(classes.into_values().collect()))
    }

    fn collected(
        &self,
        found: &mut SampleBuilder<'_>,
        name: &'static str,
        died: &'static str,
    ) -> Result<Vec<Collected>> {
        let references = self.places(name)?;
        let died: Vec<ObjectIndex> = self.array(died)?.into_iter().collect();
        let died = self.longs(&died).pop().unwrap_or_default();
        let (references, died): (Vec<ObjectIndex>, Vec<i64>) = references
            .into_iter()
            .zip(died)
            .filter_map(|(r, d)| Some((r?, d)))
            .unzip();
        let mut collected = found.collected(&references, &died);
        for one in &mut collected {
            one.recent = name == statics::RECENT;
            one.chosen = !one.recent;
        }
        Ok(collected)
    }
}

/// Builds [`Sample`]s from the fields of the agent's objects.
struct SampleBuilder<'a> {
    snapshot: &'a Snapshot,
    table: &'a SiteTable,
    names: NameTable,
    sites: Sites,
    /// Maps site ids of the agent's table to [`SiteId`]s.
    numbers: HashMap<u32, SiteId>,
    classes: HashMap<u32, u32>,
    unfinished: u64,
    unreachable: u64,
}

const FIELDS: [&str; 8] = [
    fields::MARK,
    fields::REFERENT,
    fields::UID,
    fields::SIZE,
    fields::SITE,
    fields::TYPE,
    fields::THREAD,
    fields::TIME,
];

impl<'a> SampleBuilder<'a> {
    fn new(snapshot: &'a Snapshot, table: &'a SiteTable) -> Self {
        Self {
            snapshot,
            table,
            names: NameTable::new(),
            sites: Sites::default(),
            numbers: HashMap::new(),
            classes: HashMap::new(),
            unfinished: 0,
            unreachable: 0,
        }
    }

    fn site(&mut self, id: u32) -> SiteId {
        if let Some(&site) = self.numbers.get(&id) {
            return site;
        }
        let site = self
            .sites
            .add(self.table.frames(id).map(|f| frames::sampled(&f)));
        self.numbers.insert(id, site);
        site
    }

    fn class(&mut self, id: u32) -> u32 {
        if let Some(&number) = self.classes.get(&id) {
            return number;
        }
        let name = self.table.class(id).unwrap_or("(unknown class)");
        let number = self.names.number(name);
        self.classes.insert(id, number);
        number
    }

    /// Returns the class of each site's last sample, from the agent's type ids.
    fn site_classes(&mut self, types: Vec<(u32, [u64; 1])>) -> Vec<u32> {
        let mut classes = vec![0; self.sites.len()];
        for (id, [kind]) in types {
            let Some(&site) = self.numbers.get(&id) else {
                continue;
            };
            let kind = u32::try_from(kind).unwrap_or(0);
            if kind != 0 && self.table.class(kind).is_some() {
                classes[site.0 as usize] = self.class(kind);
            }
        }
        classes
    }

    fn live(&mut self, references: &[ObjectIndex], agent: &Agent) -> Vec<Sample> {
        let sampling = &agent.sampling;
        let mut live = Vec::with_capacity(references.len());
        let values = self.snapshot.field_values(references, FIELDS);
        for values in values.into_iter().flatten() {
            let Some(fields) = Fields::from_values(values) else {
                self.unfinished += 1;
                continue;
            };
            let Some(object) = fields.referent else {
                continue;
            };
            // The agent may have made its sampling coarser shortly before the dump. It may not yet have dropped all
            // samples that the coarser sampling would not take. Ignore these samples.
            let is_kept = fields.is_class
                || *sampling == agent.first
                || sampling.would_take(&agent.first, fields.uid, fields.size);
            if !is_kept {
                continue;
            }
            if !self.snapshot.tree().is_reachable(object) {
                self.unreachable += 1;
                continue;
            }
            let (class, size, weight) = match self.snapshot.represents(object) {
                Some(class) if fields.is_class => {
                    let bytes = self.snapshot.shallow_bytes(object);
                    let name = &self.snapshot.classes()[class].name;
                    let name = format!("class {}", names::stable(name));
                    (self.names.number(&name), bytes, exact(1, bytes))
                }
                _ if fields.is_class => continue,
                _ => {
                    // A sample that was taken by time has no known weight. It represents only itself.
                    let weight = sampling.weight(fields.size);
                    let weight = weight.unwrap_or_else(|| exact(1, fields.size));
                    (self.class(fields.kind), fields.size, weight)
                }
            };
            live.push(Sample {
                object,
                uid: fields.uid,
                size,
                site: self.site(fields.site),
                class,
                thread: self
                    .names
                    .number(self.table.string(fields.thread).unwrap_or("")),
                time_ms: fields.time,
                is_definition: fields.is_class,
                weight,
                counted: u32::MAX,
            });
        }
        live
    }

    fn collected(&mut self, references: &[ObjectIndex], died: &[i64]) -> Vec<Collected> {
        let values = self.snapshot.field_values(references, FIELDS);
        let mut collected = Vec::with_capacity(values.len());
        for (values, &died) in values.into_iter().zip(died) {
            let Some(fields) = values.and_then(Fields::from_values) else {
                continue;
            };
            collected.push(Collected {
                uid: fields.uid,
                size: fields.size,
                site: self.site(fields.site),
                class: self.class(fields.kind),
                thread: self
                    .names
                    .number(self.table.string(fields.thread).unwrap_or("")),
                time_ms: fields.time,
                died_ms: unsigned(died),
                recent: false,
                chosen: false,
                is_definition: fields.is_class,
            });
        }
        collected
    }
}

/// The fields of an agent's object that represents one sample.
struct Fields {
    is_class: bool,
    referent: Option<ObjectIndex>,
    uid: u64,
    size: u64,
    site: u32,
    kind: u32,
    thread: u32,
    time: u32,
}

impl Fields {
    /// Returns the fields. Returns `None` if the agent had not finished writing the sample.
    fn from_values(values: [Option<Value>; 8]) -> Option<Self> {
        let [mark, referent, rest @ ..] = values;
        let [uid, size, site, kind, thread, time] =
            rest.map(|v| v.and_then(Value::integer).unwrap_or(0));
        let mark = mark?.integer()?;
        let is_class = mark == i64::from(MARK_CLASS);
        if !is_class && mark != i64::from(MARK_SAMPLE) {
            return None;
        }
        Some(Self {
            is_class,
            referent: referent?.object(),
            uid: u64::try_from(uid).ok()?,
            size: u64::try_from(size).ok()?,
            site: unsigned(site),
            kind: unsigned(kind),
            thread: unsigned(thread),
            time: unsigned(time),
        })
    }
}

/// Returns the value of an `int` field, read as an unsigned number.
#[allow(clippy::cast_possible_truncation, reason = "the field has 32 bits")]
fn unsigned(value: i64) -> u32 {
    (value as i32).cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::is_before_25;

    #[test]
    fn jdk_versions_before_25_are_recognized() {
        for (version, before) in [
            ("11.0.27+6", true),
            ("17.0.15+6-Debian-1deb12u1", true),
            ("24", true),
            ("25.0.3+9-LTS", false),
            ("26-ea", false),
            ("vm", false),
            ("", false),
        ] {
            assert_eq!(is_before_25(version), before, "{version}");
        }
    }
}
