//! Reads the agent's data from a dump.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use heapdiff_sites::{
    CLASS, Counter, FORMAT, MARK_CLASS, MARK_SAMPLE, Sampling, SiteTable, Strategy, TOTALS_CHUNK,
    fields, statics,
};
use hprof::answers::{Content, Value};
use hprof::{ObjectIndex, Options, Silent, Snapshot};
use testdata::jvm::{DumpOptions, Target};

/// A sample or a class definition that the agent has recorded.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    pub(crate) uid: i64,
    pub(crate) size: i64,
    pub(crate) mark: i64,
    pub(crate) site: u32,
    pub(crate) kind: String,
    pub(crate) thread: String,
    pub(crate) time: i64,
    /// Class of the object to which the sample refers. If that object is a class object, this is the class that the
    /// class object represents.
    pub(crate) referent: Option<String>,
}

/// The agent's data in a dump.
pub(crate) struct Dumped {
    pub(crate) sampling: Sampling,
    pub(crate) first: Sampling,
    pub(crate) table: SiteTable,
    pub(crate) samples: Vec<Sample>,
    pub(crate) classes: Vec<Sample>,
    pub(crate) recent: Vec<Sample>,
    pub(crate) reservoir: Vec<Sample>,
    /// Number of samples, and their bytes, at each site.
    pub(crate) totals: HashMap<u32, (i64, i64)>,
    /// Number of allocated objects, and their bytes, for each class.
    pub(crate) class_totals: BTreeMap<String, (i64, i64)>,
    counters: Vec<i64>,
    /// Process id and start time, in the same form as the id of a run in a trace.
    pub(crate) run: String,
    /// Total size of all objects of the agent, in bytes.
    pub(crate) bytes: u64,
}

impl Dumped {
    /// Takes a dump and reads it.
    pub(crate) fn of(target: &Target) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("heap.hprof");
        target.dump(&file, DumpOptions::default()).unwrap();
        Self::read(&file).expect("the dump has the agent's class")
    }

    /// Reads a dump. Returns `None` if the dump contains no data of the agent.
    pub(crate) fn read(file: &Path) -> Option<Self> {
        let snapshot = Snapshot::open(file, &Options::default(), &Silent).unwrap();
        let classes = snapshot.classes().by_name(CLASS);
        let class = *classes.first()?;
        assert_eq!(classes.len(), 1);
        let get = |name: &'static str| snapshot.static_value(class, name).unwrap();
        let long = |name| get(name).integer().unwrap();
        let number = |name| u64::try_from(long(name)).unwrap();
        assert_eq!(long(statics::FORMAT), i64::from(FORMAT));
        let strategy = i32::try_from(long(statics::STRATEGY)).unwrap();
        let sampling = |interval, rate| Sampling {
            strategy: Strategy::from_code(strategy).unwrap(),
            interval: number(interval),
            rate: number(rate),
        };
        let array = |name: &'static str| get(name).object();
        let nested = |name| -> Vec<ObjectIndex> {
            // The agent's field `dead` is null until the agent's thread runs.
            let Some(outer) = array(name) else {
                return Vec::new();
            };
            let inner = elements(&snapshot, &[outer]).remove(0);
            inner.into_iter().flatten().collect()
        };
        let pieces: Vec<Vec<u8>> = snapshot
            .read_all(&nested(statics::BLOBS))
            .into_iter()
            .map(|record| match record.unwrap().content {
                Content::Array(bytes) => bytes.bytes().to_vec(),
                other => panic!("{other:?}"),
            })
            .collect();
        let table = SiteTable::decode(pieces.iter().map(Vec::as_slice)).unwrap();
        let longs = |objects: &[ObjectIndex]| -> Vec<Vec<i64>> {
            let records = snapshot.read_all(objects);
            let values = records
                .into_iter()
                .map(|record| match record.unwrap().content {
                    Content::Array(array) => array
                        .elements(0..array.len)
                        .map(|v| v.integer().unwrap())
                        .collect(),
                    other => panic!("{other:?}"),
                });
            values.collect()
        };
        // Chunks that do not exist count as zeros.
        let pairs = |name: &'static str| -> HashMap<u32, (i64, i64)> {
            let Some(outer) = array(name) else {
                return HashMap::new();
            };
            let chunks = elements(&snapshot, &[outer]).remove(0);
            let mut pairs = HashMap::new();
            for (chunk, object) in chunks.into_iter().enumerate() {
                let Some(object) = object else { continue };
                let values = longs(&[object]).remove(0);
                assert_eq!(values.len(), 2 * TOTALS_CHUNK);
                for (place, pair) in values.chunks_exact(2).enumerate() {
                    let id = u32::try_from(chunk * TOTALS_CHUNK + place).unwrap();
                    if pair[0] != 0 {
                        pairs.insert(id, (pair[0], pair[1]));
                    }
                }
            }
            pairs
        };
        let of_chunks = |name| {
            let chunks = nested(name);
            let objects: Vec<ObjectIndex> = elements(&snapshot, &chunks)
                .into_iter()
                .flatten()
                .flatten()
                .collect();
            samples(&snapshot, &table, &objects)
        };
        let (now, first) = (
            sampling(statics::INTERVAL, statics::RATE),
            sampling(statics::FIRST_INTERVAL, statics::FIRST_RATE),
        );
        // Ignore samples that would not have been taken with the current interval or rate. The agent may not have
        // discarded all of them yet.
        let is_kept = |s: &Sample| {
            s.mark == i64::from(MARK_CLASS)
                || now == first
                || now.would_take(&first, s.uid.cast_unsigned(), s.size.cast_unsigned())
        };
        let live = |name| {
            let mut samples: Vec<Sample> = of_chunks(name);
            samples.retain(|sample| sample.referent.is_some() && is_kept(sample));
            samples
        };
        let class_totals = pairs(statics::CLASS_TOTALS)
            .into_iter()
            .map(|(id, pair)| (table.class(id).unwrap_or("?").to_owned(), pair))
            .collect();
        let mut own: Vec<ObjectIndex> = [statics::SAMPLES, statics::CLASSES]
            .into_iter()
            .flat_map(|name| elements(&snapshot, &nested(name)))
            .flatten()
            .flatten()
            .collect();
        for name in [
            statics::SAMPLES,
            statics::CLASSES,
            statics::BLOBS,
            statics::TOTALS,
            statics::RECENT,
            statics::RESERVOIR,
            statics::DEAD,
        ] {
            own.extend(nested(name));
            own.extend(array(name));
        }
        let others = [
            statics::RECENT_DIED,
            statics::RESERVOIR_DIED,
            statics::PLACES,
        ];
        own.extend(others.into_iter().filter_map(array));
        own.sort_unstable();
        own.dedup();
        let bytes = own
            .iter()
            .map(|&object| snapshot.shallow_bytes(object))
            .sum();
        let run = format!("{}-{}", long(statics::PID), long(statics::STARTED));
        Some(Self {
            run,
            sampling: now,
            first,
            samples: live(statics::SAMPLES),
            classes: live(statics::CLASSES),
            recent: samples(&snapshot, &table, &nested(statics::RECENT)),
            reservoir: samples(&snapshot, &table, &nested(statics::RESERVOIR)),
            totals: pairs(statics::TOTALS),
            class_totals,
            counters: longs(&[array(statics::COUNTERS).unwrap()]).remove(0),
            bytes,
            table,
        })
    }

    pub(crate) fn counter(&self, counter: Counter) -> i64 {
        self.counters[counter.index()]
    }

    /// Checks that no sample was lost and that nothing failed.
    pub(crate) fn assert_complete(&self) {
        for counter in [
            Counter::DroppedFull,
            Counter::DroppedFailed,
            Counter::DroppedPending,
            Counter::DroppedClasses,
            Counter::SitesFull,
            Counter::NamesFull,
            Counter::Faults,
        ] {
            assert_eq!(self.counter(counter), 0, "{counter:?}");
        }
    }

    /// Returns a site's frames in the form `com.acme.Foo.add`, innermost first.
    pub(crate) fn frames(&self, site: u32) -> Vec<String> {
        self.table
            .frames(site)
            .map(|frame| format!("{}.{}", frame.class, frame.method))
            .collect()
    }

    /// True if a site's stack contains a method.
    pub(crate) fn through(&self, site: u32, method: &str) -> bool {
        self.frames(site).iter().any(|frame| frame == method)
    }

    /// Returns the samples of a type whose stack contains a method.
    pub(crate) fn of_kind(&self, method: &str, kind: &str) -> Vec<&Sample> {
        let matching = |sample: &&Sample| sample.kind == kind && self.through(sample.site, method);
        self.samples.iter().filter(matching).collect()
    }

    /// Returns the number of samples since the agent's start whose stack contains a method.
    pub(crate) fn taken(&self, method: &str) -> i64 {
        let below = self
            .totals
            .iter()
            .filter(|(site, _)| self.through(**site, method));
        below.map(|(_, (samples, _))| samples).sum()
    }
}

fn elements(snapshot: &Snapshot, arrays: &[ObjectIndex]) -> Vec<Vec<Option<ObjectIndex>>> {
    let records = snapshot.read_all(arrays);
    let objects = records
        .into_iter()
        .map(|record| match record.unwrap().content {
            Content::Array(array) => array.elements(0..array.len).map(Value::object).collect(),
            other => panic!("{other:?}"),
        });
    objects.collect()
}

fn samples(snapshot: &Snapshot, table: &SiteTable, objects: &[ObjectIndex]) -> Vec<Sample> {
    let records = snapshot.read_all(objects);
    let sample = |record: Option<hprof::answers::Record<'_>>| {
        let Content::Instance(values) = record.unwrap().content else {
            panic!("no instance");
        };
        let value = |name: &str| {
            let field = values.iter().find(|field| field.name == name);
            field.unwrap().value.unwrap()
        };
        let long = |name| value(name).integer().unwrap();
        let id = |name| i32::try_from(long(name)).unwrap().cast_unsigned();
        let referent = value(fields::REFERENT).object();
        let referent = referent.map(|object| match snapshot.represents(object) {
            Some(class) => snapshot.classes()[class].name.to_string(),
            None => snapshot.class(object).unwrap().name.to_string(),
        });
        Sample {
            uid: long(fields::UID),
            size: long(fields::SIZE),
            mark: long(fields::MARK),
            site: id(fields::SITE),
            kind: table.class(id(fields::TYPE)).unwrap_or("?").to_owned(),
            thread: table.string(id(fields::THREAD)).unwrap_or("?").to_owned(),
            time: long(fields::TIME),
            referent,
        }
    };
    let all: Vec<Sample> = records.into_iter().map(sample).collect();
    let marks = [i64::from(MARK_SAMPLE), i64::from(MARK_CLASS)];
    // The table of samples never contains an unfinished sample.
    assert!(all.iter().all(|sample| marks.contains(&sample.mark)));
    all
}
