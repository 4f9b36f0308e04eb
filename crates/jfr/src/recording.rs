//! What a recording says of memory: allocations, live objects, collections, and the JVM.
//!
//! # What the figures mean
//!
//! Sources: the JDK's `metadata.xml` (names and descriptions of fields), HotSpot's `objectSampler.cpp` and
//! `eventEmitter.cpp`, async-profiler's `objectSampler.cpp`.
//!
//! - `jdk.ObjectAllocationSample` (JDK 16 and later): some of the allocations that need a new buffer or go past it, as many
//!   in a second as its throttle allows. `weight` is what its thread allocated since its last sample, so
//!   weights add up to what was allocated.
//! - `jdk.ObjectAllocationInNewTLAB`, `jdk.ObjectAllocationOutsideTLAB`: every such allocation. One in a new buffer stands
//!   for the buffer, one outside for itself. async-profiler writes the same events of samples that are taken in
//!   mean every so many bytes (`jdk.ActiveSetting` `alloc`): then an object's weight follows from its size,
//!   as for the agent's.
//! - `jdk.OldObjectSample`: objects of a list of 256 (`old-object-queue-size`) that were alive when the recording was dumped or
//!   stopped, and older than the last collection that found one of the list dead. Large ones are likelier to be and to stay
//!   in the list, and no event says how likely: nothing can be said of the heap as a whole. The same objects come again
//!   in each dump.
//! - `profiler.LiveObject`: async-profiler's samples (option `live`) that are alive when its recording ends, 1,024 at
//!   most. Their weights are known, but not how many found no place.

use std::path::Path;

use heapdiff_sites::Originals;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::chunk::{Chunk, Record};
use crate::chunks::Chunks;
use crate::error::{Damage, JfrError};
use crate::names::{Keys, NameId, Names, StackId};

/// Damage that is kept in words; the rest is counted.
const MOST_DAMAGE: usize = 100;
/// Characters of command lines and the like.
const MOST_CHARS: usize = 1 << 16;
/// What async-profiler samples every so many bytes, unless told.
const DEFAULT_INTERVAL: u64 = 524_287;

/// With so many [`Event::Old`] the JVM's list of them, of 256 places, is taken to have been full: others of it
/// died meanwhile, and what was allocated late is hardly in it.
pub const MANY_OLD: u64 = 128;

/// Maximum number of live objects that async-profiler tracks. A recording with as many lacks the others.
pub const MOST_LIVE: u64 = 1024;

/// The sentence for a recording with [`MOST_LIVE`] live objects.
pub const LIVE_TABLE_FULL: &str =
    "the recorder's table of live objects was full (1,024 entries): live bytes are a lower bound";

/// Constants that are looked up.
const KINDS: [&str; 10] = [
    "java.lang.String",
    "java.lang.Class",
    "java.lang.Thread",
    "jdk.types.Symbol",
    "jdk.types.Method",
    "jdk.types.StackTrace",
    "jdk.types.FrameType",
    "jdk.types.GCName",
    "jdk.types.GCCause",
    "jdk.types.GCWhen",
];
const OLD_OBJECT: &str = "jdk.types.OldObject";

/// Which event a sample comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Event {
    /// `jdk.OldObjectSample`.
    Old,
    /// `profiler.LiveObject`.
    Live,
    /// `jdk.ObjectAllocationSample`.
    Allocation,
    /// `jdk.ObjectAllocationInNewTLAB`.
    InBuffer,
    /// `jdk.ObjectAllocationOutsideTLAB`.
    Outside,
}

impl Event {
    const ALL: [Self; 5] = [
        Self::Old,
        Self::Live,
        Self::Allocation,
        Self::InBuffer,
        Self::Outside,
    ];

    /// Its name in recordings.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Old => "jdk.OldObjectSample",
            Self::Live => "profiler.LiveObject",
            Self::Allocation => "jdk.ObjectAllocationSample",
            Self::InBuffer => "jdk.ObjectAllocationInNewTLAB",
            Self::Outside => "jdk.ObjectAllocationOutsideTLAB",
        }
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|e| e.name() == name)
    }

    /// Whether the event is of a live object, not of an allocation.
    #[must_use]
    pub const fn is_of_live(self) -> bool {
        matches!(self, Self::Old | Self::Live)
    }
}

/// An object that was allocated, or found alive. Times are nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The event that it was recorded by.
    pub event: Event,
    /// When it was recorded. All `Old` of one look at the heap have the same.
    pub time_ns: i64,
    /// When it was allocated.
    pub allocated_ns: i64,
    /// Its class, as in Java source.
    pub class: NameId,
    /// What allocated it.
    pub stack: StackId,
    /// The thread that did.
    pub thread: NameId,
    /// Bytes of the object; 0 where the event does not say. An `Old` of a JVM that does not record sizes (17)
    /// has at least so many: a header, and an array its elements.
    pub size: u64,
    /// Bytes that it stands for, where the event says so: `weight`, or the buffer's size.
    pub weight: u64,
}

/// A collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "the fields have the same names as in the JFR event"
)]
pub struct Collection {
    /// The JVM's number for it.
    pub gc_id: i64,
    /// Its end.
    pub time_ns: i64,
    pub name: NameId,
    pub cause: NameId,
    pub sum_of_pauses_ns: i64,
}

/// The heap's state beside a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "the fields have the same names as in the JFR event"
)]
pub struct HeapSummary {
    pub gc_id: i64,
    pub time_ns: i64,
    /// Else it was before the collection.
    pub is_after: bool,
    pub heap_used: u64,
    pub heap_committed: u64,
}

/// The state of the metaspace or of classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "the fields have the same names as in the JFR events"
)]
pub enum State {
    Metaspace { used: u64, committed: u64 },
    Classes { loaded: u64 },
}

/// `jdk.JVMInformation`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "the fields have the same names as in the JFR event"
)]
pub struct Jvm {
    pub name: String,
    pub version: String,
    /// Arguments of the JVM, and its flags from elsewhere.
    pub arguments: String,
    pub flags: String,
    /// Main class or jar, with arguments.
    pub command: String,
    pub start_ms: i64,
    pub pid: i64,
}

impl Jvm {
    /// The JVM in a line: its name and the number of its version.
    #[must_use]
    pub fn title(&self) -> String {
        // The version repeats the name, and has who built it.
        let version = self.version.split(" for ").next().unwrap_or_default();
        let number = version
            .split_once('(')
            .map_or(version, |(_, rest)| rest.split(')').next().unwrap_or(rest));
        format!("{} {number}", self.name)
    }
}

/// What recordings of one JVM say.
#[derive(Debug, Default)]
pub struct Recording {
    /// Everything that has a name.
    pub names: Names,
    /// In order of their time.
    pub samples: Vec<Sample>,
    /// In order of their time.
    pub collections: Vec<Collection>,
    /// In order of their time.
    pub heap: Vec<HeapSummary>,
    /// In order of their time.
    pub states: Vec<(i64, State)>,
    /// The JVM; none if it is not told.
    pub jvm: Option<Jvm>,
    /// Mean bytes between the samples of async-profiler; none if another recorded.
    pub interval: Option<u64>,
    /// Whether sizes of `Old` are only known from below.
    pub lacks_sizes: bool,
    /// Chunks that were read.
    pub chunks: u64,
    /// Chunks that were in another of the files as well.
    pub repeated: u64,
    /// From when on, in nanoseconds since 1970.
    pub from_ns: i64,
    /// Until when.
    pub to_ns: i64,
    /// What is damaged and left out, or missing.
    pub damage: Vec<Damage>,
    /// How many more of the kind there are.
    pub more_damage: u64,
    seen: FxHashSet<(i64, u64)>,
}

impl Recording {
    /// Reads a recording, gzipped or not.
    ///
    /// Cost: time for each event; memory for the largest chunk, twice 40 bytes for each sample, and names.
    ///
    /// # Errors
    /// The file cannot be opened, is not a recording, or none of its chunks can be read. Damage further on
    /// is in [`Recording::damage`].
    pub fn open(path: &Path) -> Result<Self, JfrError> {
        let mut recording = Self::default();
        recording.add(path)?;
        Ok(recording)
    }

    /// Reads another recording of the same JVM. Chunks that were read before are left out, so that
    /// dumps of a recording that goes on may overlap.
    ///
    /// # Errors
    /// As [`Recording::open`].
    pub fn add(&mut self, path: &Path) -> Result<(), JfrError> {
        self.read(Chunks::open(path)?)
    }

    /// Gives classes and frames the names that they had before a shrinker shortened them.
    pub fn rename(&mut self, originals: &dyn Originals) {
        let stacks = self.names.rename(originals);
        let mut classes: FxHashMap<NameId, NameId> = FxHashMap::default();
        for sample in &mut self.samples {
            let stack = stacks.get(sample.stack.0 as usize);
            sample.stack = stack.copied().unwrap_or_default();
            let names = &mut self.names;
            let class = classes.entry(sample.class);
            sample.class = *class.or_insert_with_key(|&id| {
                let original = originals.class(names.text(id));
                original.map_or(id, |original| names.name(&original))
            });
        }
    }

    /// A recording in memory.
    ///
    /// # Errors
    /// As [`Recording::open`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, JfrError> {
        let mut recording = Self::default();
        recording.read(Chunks::of(std::io::Cursor::new(bytes))?)?;
        Ok(recording)
    }

    /// Whether some of it could not be read.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        !self.damage.is_empty()
    }

    /// Samples of one event.
    pub fn of(&self, event: Event) -> impl Iterator<Item = &Sample> {
        self.samples.iter().filter(move |s| s.event == event)
    }

    /// The times at which live objects were looked for, the oldest first.
    #[must_use]
    pub fn looks(&self) -> Vec<i64> {
        let live = self.samples.iter().filter(|s| s.event == Event::Old);
        let mut times: Vec<i64> = live.map(|s| s.time_ns).collect();
        times.dedup();
        times
    }

    fn read(&mut self, mut chunks: Chunks) -> Result<(), JfrError> {
        let mut damage = Vec::new();
        let (before, repeated) = (self.chunks, self.repeated);
        while let Some((bytes, base)) = chunks.next(&mut damage) {
            match Chunk::open(bytes, base, &[&KINDS[..], &[OLD_OBJECT]].concat()) {
                Ok(chunk) => self.chunk(chunk, &mut damage),
                Err(found) => damage.push(found),
            }
        }
        if self.chunks == before && self.repeated == repeated {
            if let Some(first) = damage.into_iter().next() {
                return Err(JfrError::Unreadable(first));
            }
            return Ok(());
        }
        let room = MOST_DAMAGE.saturating_sub(self.damage.len());
        self.more_damage += damage.len().saturating_sub(room) as u64;
        damage.truncate(room);
        self.damage.append(&mut damage);
        self.samples.sort_by_key(|s| s.time_ns);
        self.collections.sort_by_key(|c| c.time_ns);
        self.heap.sort_by_key(|h| h.time_ns);
        self.states.sort_by_key(|s| s.0);
        Ok(())
    }

    fn chunk(&mut self, mut chunk: Chunk<'_>, damage: &mut Vec<Damage>) {
        let header = chunk.header;
        if !self.seen.insert((header.start_ns, header.size)) {
            self.repeated += 1;
            return;
        }
        let from = header.start_ns;
        let to = from.saturating_add(header.duration_ns.max(0));
        self.from_ns = match self.chunks {
            0 => from,
            _ => self.from_ns.min(from),
        };
        self.to_ns = self.to_ns.max(to);
        self.chunks += 1;
        let mut keys = Keys::default();
        let mut named_interval = None;
        let mut is_async = chunk.types.named(Event::Live.name()).is_some();
        let wanted = |name: &str| Event::named(name).is_some() || OTHERS.contains(&name);
        chunk.events(wanted, |chunk, record| {
            let name = chunk.name(record.index);
            match Event::named(name) {
                Some(event) => self.sample(chunk, &mut keys, event, &record),
                None if name == SETTING => {
                    if &*record.text(chunk, "name", 16).unwrap_or_default() == "alloc" {
                        let value = record.text(chunk, "value", 32).unwrap_or_default();
                        named_interval = value.parse().ok();
                        is_async = true;
                    }
                    Ok(())
                }
                None => {
                    self.other(chunk, &mut keys, name, &record);
                    Ok(())
                }
            }
        });
        if is_async {
            let named = named_interval.filter(|&interval| interval > 0);
            self.interval = named.or(self.interval).or(Some(DEFAULT_INTERVAL));
        }
        damage.append(&mut chunk.damage);
    }

    fn sample(
        &mut self,
        chunk: &Chunk<'_>,
        keys: &mut Keys,
        event: Event,
        record: &Record<'_, '_>,
    ) -> Result<(), Damage> {
        let names = &mut self.names;
        let time_ns = chunk.header.time_ns(record.int(chunk, "startTime"));
        let allocated_ns = if event.is_of_live() {
            chunk.header.time_ns(record.int(chunk, "allocationTime"))
        } else {
            time_ns
        };
        let class = match event {
            Event::Old => {
                let mut values = Vec::new();
                let object = record.constant(chunk, "object");
                match object {
                    Some((index, key)) if chunk.constant(index, key, &mut values) => {
                        keys.class(chunk, names, &Record::new(index, &values), "type")
                    }
                    _ => NameId::default(),
                }
            }
            _ => keys.class(chunk, names, record, "objectClass"),
        };
        let (size, weight) = match event {
            Event::Old => {
                let elements = record.size(chunk, "arrayElements");
                let size = match record.get(chunk, "objectSize") {
                    Some(_) => record.size(chunk, "objectSize"),
                    None => {
                        self.lacks_sizes = true;
                        least(names.text(class), elements)
                    }
                };
                (size, 0)
            }
            Event::Live => (record.size(chunk, "allocationSize"), 0),
            Event::Allocation => (0, record.size(chunk, "weight")),
            Event::InBuffer => (
                record.size(chunk, "allocationSize"),
                record.size(chunk, "tlabSize"),
            ),
            Event::Outside => {
                let size = record.size(chunk, "allocationSize");
                (size, size)
            }
        };
        let stack = keys.stack(chunk, names, record, "stackTrace");
        self.samples.push(Sample {
            event,
            time_ns,
            allocated_ns,
            class,
            stack: stack.clone().unwrap_or_default(),
            thread: keys.thread(chunk, names, record, "eventThread"),
            size,
            weight,
        });
        self.to_ns = self.to_ns.max(time_ns);
        stack.map(|_| ())
    }

    fn other(&mut self, chunk: &Chunk<'_>, keys: &mut Keys, name: &str, record: &Record<'_, '_>) {
        let names = &mut self.names;
        let ticks = record.int(chunk, "startTime");
        let time_ns = chunk.header.time_ns(ticks);
        match name {
            "jdk.GarbageCollection" => {
                let end = ticks.saturating_add(record.int(chunk, "duration"));
                let pauses = record.int(chunk, "sumOfPauses");
                self.collections.push(Collection {
                    gc_id: record.int(chunk, "gcId"),
                    time_ns: chunk.header.time_ns(end),
                    name: keys.named(chunk, names, record, "name"),
                    cause: keys.named(chunk, names, record, "cause"),
                    sum_of_pauses_ns: chunk.header.span_ns(pauses),
                });
            }
            "jdk.GCHeapSummary" => {
                let when = keys.named(chunk, names, record, "when");
                self.heap.push(HeapSummary {
                    gc_id: record.int(chunk, "gcId"),
                    time_ns,
                    is_after: &**names.text(when) == "After GC",
                    heap_used: record.size(chunk, "heapUsed"),
                    heap_committed: record.size(chunk, "heapSpace.committedSize"),
                });
            }
            "jdk.MetaspaceSummary" => {
                let state = State::Metaspace {
                    used: record.size(chunk, "metaspace.used"),
                    committed: record.size(chunk, "metaspace.committed"),
                };
                self.states.push((time_ns, state));
            }
            "jdk.ClassLoadingStatistics" => {
                let loaded = record.size(chunk, "loadedClassCount");
                let unloaded = record.size(chunk, "unloadedClassCount");
                let loaded = loaded.saturating_sub(unloaded);
                self.states.push((time_ns, State::Classes { loaded }));
            }
            _ => {
                let text = |field| record.text(chunk, field, MOST_CHARS).unwrap_or_default();
                self.jvm = Some(Jvm {
                    name: text("jvmName"),
                    version: text("jvmVersion"),
                    arguments: text("jvmArguments"),
                    flags: text("jvmFlags"),
                    command: text("javaArguments"),
                    start_ms: record.int(chunk, "jvmStartTime"),
                    pid: record.int(chunk, "pid"),
                });
            }
        }
    }
}

/// Bytes that an object has at least.
fn least(class: &str, elements: u64) -> u64 {
    let width = match class.strip_suffix("[]") {
        None => return 16,
        Some("boolean" | "byte") => 1,
        Some("char" | "short") => 2,
        Some("long" | "double") => 8,
        // References are of four bytes where they are compressed.
        Some(_) => 4,
    };
    let bytes = elements.saturating_mul(width).saturating_add(16);
    bytes.saturating_add(7) & !7
}

const SETTING: &str = "jdk.ActiveSetting";
/// Events besides samples.
const OTHERS: [&str; 6] = [
    SETTING,
    "jdk.GarbageCollection",
    "jdk.GCHeapSummary",
    "jdk.MetaspaceSummary",
    "jdk.ClassLoadingStatistics",
    "jdk.JVMInformation",
];
