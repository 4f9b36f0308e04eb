//! The memory events of a recording: allocations, live objects, garbage collections, and information about the JVM.
//!
//! # Meaning of the figures
//!
//! Sources: the JDK's `metadata.xml` (names and descriptions of fields), HotSpot's `objectSampler.cpp` and
//! `eventEmitter.cpp`, async-profiler's `objectSampler.cpp`.
//!
//! - `jdk.ObjectAllocationSample` (JDK 16 and later): some of the allocations that need a new TLAB or do not fit into
//!   one. The throttle of the event limits their number per second. `weight` is the number of bytes that the thread
//!   allocated since its last sample, so the sum of all weights is the total allocation.
//! - `jdk.ObjectAllocationInNewTLAB`, `jdk.ObjectAllocationOutsideTLAB`: every allocation that needs a new TLAB or does
//!   not fit into one. An allocation in a new TLAB represents the whole TLAB. An allocation outside represents only its
//!   own object. async-profiler writes the same events for samples that it takes at a mean interval in bytes (`alloc`
//!   in `jdk.ActiveSetting`). The weight of such a sample follows from the size of the object, as for samples of the
//!   heapdiff agent.
//! - `jdk.OldObjectSample`: objects in a list of 256 (`old-object-queue-size`) that were alive when the recording was
//!   dumped or stopped. They are older than the last GC that found a dead object in the list. Large objects are more
//!   likely to enter the list and to stay in it, and no event contains the probability. So these samples cannot be
//!   extrapolated to the whole heap. If a recording is dumped several times, each dump contains the same objects again.
//! - `profiler.LiveObject`: samples of async-profiler (option `live`) that are alive when its recording ends, at most
//!   1,024. Their weights follow from the sizes of the objects. The recording does not contain the number of samples
//!   that were dropped because the table was full.

use std::path::Path;

use heapdiff_sites::Originals;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::chunk::{Chunk, Record};
use crate::chunks::Chunks;
use crate::error::{Damage, JfrError};
use crate::names::{ChainId, Keys, NameId, Names, StackId};

/// Maximum number of damage entries that are stored. Further damage is only counted.
const MOST_DAMAGE: usize = 100;
/// Maximum number of characters in command lines and similar strings.
const MOST_CHARS: usize = 1 << 16;
/// Default sampling interval of async-profiler, in allocated bytes.
const DEFAULT_INTERVAL: u64 = 524_287;

/// If a recording has at least this many [`Event::Old`] samples, the JVM's list of 256 objects is assumed to have been
/// full. A full list leads to fewer than 256 samples, because samples of objects that died before the recording was
/// written are missing. Objects that were allocated late had little chance to enter a full list.
pub const MANY_OLD: u64 = 128;

/// Maximum number of live objects that async-profiler tracks. If a recording has this many, further live objects are
/// missing.
pub const MOST_LIVE: u64 = 1024;

/// The message for a recording with [`MOST_LIVE`] live objects.
pub const LIVE_TABLE_FULL: &str =
    "the recorder's table of live objects was full (1,024 entries): live bytes are a lower bound";

/// The types of constants that are read.
const KINDS: [&str; 12] = [
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
    "jdk.types.Reference",
    "jdk.types.OldObjectField",
];
const OLD_OBJECT: &str = "jdk.types.OldObject";

/// The event that a sample comes from.
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

    /// Returns the name of the event in recordings.
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

    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|e| e.name() == name)
    }

    /// Returns true if the event describes a live object, not an allocation.
    #[must_use]
    pub const fn describes_live_object(self) -> bool {
        matches!(self, Self::Old | Self::Live)
    }
}

/// An allocated object or a live object. Times are nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The event that recorded the object.
    pub event: Event,
    /// The time of the event. All `Old` samples of one dump have the same time.
    pub time_ns: i64,
    /// The time of the allocation.
    pub allocated_ns: i64,
    /// Name of the class, in the form `com.acme.Foo$Bar` or `byte[]`.
    pub class: NameId,
    /// The allocating stack.
    pub stack: StackId,
    /// The allocating thread.
    pub thread: NameId,
    /// The size of the object in bytes, or 0 if the event does not contain it. JDK 17 does not record the sizes of
    /// `Old` samples. For these samples, this is the minimum size: a header, and the elements of an array.
    pub size: u64,
    /// The number of bytes that the sample represents, if the event contains it: `weight`, the size of the TLAB, or the
    /// size of an object outside a TLAB. Otherwise 0.
    pub weight: u64,
    /// The number of elements of an array, if the event contains it (`Old`).
    pub elements: Option<u32>,
    /// The references that keep an `Old` object alive. Only recordings with `path-to-gc-roots=true` have them.
    pub chain: ChainId,
}

/// A `jdk.HeapDump` event: the JVM wrote a heap dump. JDK 17 and later record this event by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeapDump {
    /// Time at which the JVM began to write, in nanoseconds since 1970.
    pub from_ns: i64,
    /// Time at which the dump was complete, in nanoseconds since 1970.
    pub to_ns: i64,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// The path of the file as the JVM knows it.
    pub destination: String,
}

/// A garbage collection that the JVM recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "the fields have the same names as in the JFR event"
)]
pub struct Collection {
    /// The JVM's id of the GC.
    pub gc_id: i64,
    /// The end of the GC.
    pub time_ns: i64,
    pub name: NameId,
    pub cause: NameId,
    pub sum_of_pauses_ns: i64,
}

/// The state of the heap before or after a GC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "the fields have the same names as in the JFR event"
)]
pub struct HeapSummary {
    pub gc_id: i64,
    pub time_ns: i64,
    /// True after the GC, false before it.
    pub is_after: bool,
    pub heap_used: u64,
    pub heap_committed: u64,
}

/// The state of the metaspace or of class loading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "the fields have the same names as in the JFR events"
)]
pub enum State {
    Metaspace { used: u64, committed: u64 },
    Classes { loaded: u64 },
}

/// The JVM, from a `jdk.JVMInformation` event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "the fields have the same names as in the JFR event"
)]
pub struct Jvm {
    pub name: String,
    pub version: String,
    /// The arguments of the JVM.
    pub arguments: String,
    pub flags: String,
    /// The main class or jar, with its arguments.
    pub command: String,
    pub start_ms: i64,
    pub pid: i64,
}

impl Jvm {
    /// Returns the name and the version number of the JVM in one line.
    #[must_use]
    pub fn title(&self) -> String {
        // The version string repeats the name of the JVM, and contains the build host after ` for `. Leave out both.
        let version = self.version.split(" for ").next().unwrap_or_default();
        let number = version
            .split_once('(')
            .map_or(version, |(_, rest)| rest.split(')').next().unwrap_or(rest));
        format!("{} {number}", self.name)
    }
}

/// The memory events of one JVM, from one or several recordings.
#[derive(Debug, Default)]
pub struct Recording {
    /// The names, frames and stacks.
    pub names: Names,
    /// The samples, ordered by time.
    pub samples: Vec<Sample>,
    /// The GCs, ordered by time.
    pub collections: Vec<Collection>,
    /// The states of the heap, ordered by time.
    pub heap: Vec<HeapSummary>,
    /// The states of metaspace and class loading, ordered by time.
    pub states: Vec<(i64, State)>,
    /// The JVM, if the recording describes it.
    pub jvm: Option<Jvm>,
    /// The heap dumps that the JVM wrote during the recording.
    pub heap_dumps: Vec<HeapDump>,
    /// Number of bytes of events that the JVM could not store (`jdk.DataLoss`).
    pub lost_bytes: u64,
    /// The start and the end of each chunk, in nanoseconds since 1970.
    pub(crate) spans: Vec<(i64, i64)>,
    /// The mean sampling interval of async-profiler in bytes. `None` if async-profiler did not make the recording.
    pub interval: Option<u64>,
    /// True if sizes of `Old` samples are only minimum sizes.
    pub lacks_sizes: bool,
    /// Number of chunks that were read.
    pub chunks: u64,
    /// The number of chunks that were also in an earlier file, and were skipped.
    pub repeated: u64,
    /// The start of the recording, in nanoseconds since 1970.
    pub from_ns: i64,
    /// The end of the recording, in nanoseconds since 1970.
    pub to_ns: i64,
    /// The damaged or missing parts of the recording. Events in these parts are not in the other fields.
    pub damage: Vec<Damage>,
    /// Number of further damaged parts, which are not in `damage`.
    pub more_damage: u64,
    seen: FxHashSet<(i64, u64)>,
}

impl Recording {
    /// Reads a recording, gzipped or not.
    ///
    /// Cost: time linear in the number of events. The memory contains the largest chunk, 80 bytes for each sample, and
    /// all names.
    ///
    /// # Errors
    /// Returns an error if the file cannot be opened, is not a recording, or has no chunk that can be read. If a chunk
    /// can be read, damage is no error, but is stored in [`Recording::damage`].
    pub fn open(path: &Path) -> Result<Self, JfrError> {
        let mut recording = Self::default();
        recording.add(path)?;
        Ok(recording)
    }

    /// Reads another recording of the same JVM. Chunks that were read before are skipped, so several dumps of one
    /// continuous recording may overlap.
    ///
    /// # Errors
    /// Returns the errors of [`Recording::open`].
    pub fn add(&mut self, path: &Path) -> Result<(), JfrError> {
        self.read(Chunks::open(path)?)
    }

    /// Restores the original names of classes and frames if a shrinker, such as ProGuard, had renamed them.
    pub fn rename(&mut self, originals: &dyn Originals) {
        let stacks = self.names.rename(originals);
        self.names.rename_chains(originals);
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

    /// Reads a recording from memory.
    ///
    /// # Errors
    /// Returns the errors of [`Recording::open`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, JfrError> {
        let mut recording = Self::default();
        recording.read(Chunks::new(std::io::Cursor::new(bytes))?)?;
        Ok(recording)
    }

    /// Returns true if a part of the recording could not be read.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        !self.damage.is_empty()
    }

    /// Returns the samples that come from this kind of event.
    pub fn of(&self, event: Event) -> impl Iterator<Item = &Sample> {
        self.samples.iter().filter(move |s| s.event == event)
    }

    /// Returns the number of gaps of more than a second between consecutive chunks. In each gap, chunks were lost or
    /// nothing was recorded.
    #[must_use]
    pub fn gaps(&self) -> u64 {
        const LEAST_NS: i64 = 1_000_000_000;
        let mut spans = self.spans.clone();
        spans.sort_unstable();
        let mut end = spans.first().map_or(0, |span| span.1);
        let mut gaps = 0;
        for (from, to) in spans {
            gaps += u64::from(from.saturating_sub(end) > LEAST_NS);
            end = end.max(to);
        }
        gaps
    }

    /// Returns the times at which the JVM searched for live objects, oldest first.
    #[must_use]
    pub fn search_times(&self) -> Vec<i64> {
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
        self.heap_dumps.sort_by_key(|dump| dump.from_ns);
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
        self.spans.push((from, to));
        self.chunks += 1;
        let mut keys = Keys::default();
        let mut named_interval = None;
        let mut is_async = chunk.types.find_by_name(Event::Live.name()).is_some();
        let wanted = |name: &str| Event::from_name(name).is_some() || OTHERS.contains(&name);
        chunk.events(wanted, |chunk, record| {
            let name = chunk.name(record.index);
            match Event::from_name(name) {
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
        let allocated_ns = if event.describes_live_object() {
            chunk.header.time_ns(record.int(chunk, "allocationTime"))
        } else {
            time_ns
        };
        let mut elements = None;
        let mut chain = ChainId::default();
        let class = match event {
            Event::Old => {
                // The field has a negative number for objects that are no arrays.
                let array = record.get(chunk, "arrayElements");
                elements =
                    array.and_then(|_| u32::try_from(record.int(chunk, "arrayElements")).ok());
                let mut values = Vec::new();
                let object = record.constant(chunk, "object");
                match object {
                    Some((index, key)) if chunk.constant(index, key, &mut values) => {
                        let object = Record::new(index, &values);
                        chain = keys.chain(chunk, names, &object);
                        keys.class(chunk, names, &object, "type")
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
                        min_object_size(names.text(class), elements)
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
            elements,
            chain,
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
                    name: keys.find_by_name(chunk, names, record, "name"),
                    cause: keys.find_by_name(chunk, names, record, "cause"),
                    sum_of_pauses_ns: chunk.header.span_ns(pauses),
                });
            }
            "jdk.GCHeapSummary" => {
                let when = keys.find_by_name(chunk, names, record, "when");
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
            HEAP_DUMP => {
                if self.heap_dumps.len() < MOST_HEAP_DUMPS {
                    let end = ticks.saturating_add(record.int(chunk, "duration"));
                    let destination = record.text(chunk, "destination", MOST_CHARS);
                    self.heap_dumps.push(HeapDump {
                        from_ns: time_ns,
                        to_ns: chunk.header.time_ns(end),
                        bytes: record.size(chunk, "size"),
                        destination: destination.unwrap_or_default(),
                    });
                }
            }
            DATA_LOSS => {
                let lost = record.size(chunk, "amount");
                self.lost_bytes = self.lost_bytes.saturating_add(lost);
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

/// Returns the minimum size of an object in bytes. `elements` is the number of elements of an array.
fn min_object_size(class: &str, elements: u64) -> u64 {
    let width = match class.strip_suffix("[]") {
        None => return 16,
        Some("boolean" | "byte") => 1,
        Some("char" | "short") => 2,
        Some("long" | "double") => 8,
        // Compressed references have four bytes.
        Some(_) => 4,
    };
    let bytes = elements.saturating_mul(width).saturating_add(16);
    bytes.saturating_add(7) & !7
}

const SETTING: &str = "jdk.ActiveSetting";
const HEAP_DUMP: &str = "jdk.HeapDump";
const DATA_LOSS: &str = "jdk.DataLoss";
/// Maximum number of `jdk.HeapDump` events that are stored.
const MOST_HEAP_DUMPS: usize = 1 << 12;
/// The events that are read in addition to the samples.
const OTHERS: [&str; 8] = [
    SETTING,
    HEAP_DUMP,
    DATA_LOSS,
    "jdk.GarbageCollection",
    "jdk.GCHeapSummary",
    "jdk.MetaspaceSummary",
    "jdk.ClassLoadingStatistics",
    "jdk.JVMInformation",
];
