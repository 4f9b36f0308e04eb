//! Writes the agent's data into synthetic dumps.

use heapdiff_sites::{
    Batch, CHUNK, CLASS, Counter, FORMAT, MARK_SAMPLE, TOTALS_CHUNK, fields, statics,
};

use crate::writer::{ClassId, Elements, FieldType, HeapBuilder, Obj, Ref, Root, Value};

/// An object of the agent's class `heapdiff.SampleRef`, which describes a sampled object.
#[derive(Debug, Clone, Copy)]
pub struct Sampled {
    /// The referent of this `SampleRef`: the sampled object.
    pub referent: Ref,
    /// The kind of this `SampleRef`: 0 is an unfinished sample, 1 a sample, and 2 a class definition.
    pub mark: i32,
    /// The uid of the sample.
    pub uid: i64,
    /// Size of the object in bytes.
    pub size: i64,
    /// ID of the sample's allocation site.
    pub site: i32,
    /// ID of the object's type.
    pub kind: i32,
    /// ID of the string with the thread's name.
    pub thread: i32,
    /// Milliseconds from the agent's start to the allocation.
    pub time_ms: i32,
}

impl Sampled {
    /// Returns a finished sample of type 1, allocated by thread 1.
    pub fn new(referent: impl Into<Ref>, uid: i64, size: i64, site: i32) -> Self {
        Self {
            referent: referent.into(),
            mark: MARK_SAMPLE,
            uid,
            size,
            site,
            kind: 1,
            thread: THREAD,
            time_ms: 10,
        }
    }
}

/// ID of the string with the thread's name.
const THREAD: i32 = 1;

/// The agent's state in a synthetic dump.
#[derive(Debug, Clone)]
pub struct AgentHeap {
    /// Value of the static field `format`.
    pub format: i32,
    /// Process ID of the JVM.
    pub pid: i64,
    /// Mean bytes between two samples.
    pub interval: i64,
    /// Sampling strategy; 0 is by bytes.
    pub strategy: i32,
    /// The sampling interval at the agent's start, if it differed from `interval`.
    pub first_interval: Option<i64>,
    /// True if the agent was loaded when the JVM started.
    pub from_start: bool,
    /// True if the agent tracks only a few of its samples, but adds all of them to its totals.
    pub few_followed: bool,
    /// The number of samples that were dropped because the table was full, and the number of bytes that they
    /// represented.
    pub lost: (i64, i64),
    /// Samples that have not been collected.
    pub samples: Vec<Sampled>,
    /// Samples whose objects were freed by a GC, each with the time of the GC.
    pub collected: Vec<(Sampled, i32)>,
    /// The encoded table of strings, types and allocation sites.
    pub table: Vec<u8>,
    /// For each site: number of samples, and number of bytes of the sampled objects.
    pub totals: Vec<(i64, i64)>,
    /// Bytes that the samples of each site represent. If this list is empty, the agent's class in the heap lacks the
    /// field.
    pub allocated: Vec<i64>,
    /// The type of each site's last sample. If this list is empty, the agent's class in the heap lacks the field.
    pub site_types: Vec<i64>,
    /// For each type ID, the number and the bytes of all allocated objects. If this list is empty, the array in the
    /// heap is null.
    pub classes: Vec<(i64, i64)>,
    /// Names of static fields to leave out.
    pub without: Vec<&'static str>,
}

impl AgentHeap {
    /// Returns the state of an agent in process 4711 that samples every allocation. The agent's table contains one type
    /// (number 1, `byte[]`) and the given sites, numbered from 1. Each site is a stack of `class.method` frames,
    /// innermost first. All frames are at line 7.
    pub fn new(sites: &[&[&str]]) -> Self {
        let mut batch = Batch::new();
        let mut next = 1;
        let mut string = |batch: &mut Batch, text: &str| {
            batch.string(next, text);
            next += 1;
            next - 1
        };
        string(&mut batch, "worker-1");
        let bytes = string(&mut batch, "byte[]");
        batch.class(1, bytes);
        let mut frame = 0;
        for (site, frames) in (1..).zip(sites) {
            let mut ids = Vec::new();
            for text in *frames {
                let (class, method) = text.rsplit_once('.').unwrap_or(("", text));
                let simple = class.rsplit('.').next().unwrap_or(class);
                let class = string(&mut batch, class);
                let method = string(&mut batch, method);
                let file = string(&mut batch, &format!("{simple}.java"));
                frame += 1;
                batch.method(frame, class, method, file);
                batch.frame(frame, frame, 7);
                ids.push(frame);
            }
            batch.site(site, &ids, false);
        }
        Self {
            format: FORMAT,
            pid: 4711,
            interval: 0,
            strategy: 0,
            first_interval: None,
            from_start: false,
            few_followed: false,
            lost: (0, 0),
            samples: Vec::new(),
            collected: Vec::new(),
            table: batch.finish(),
            totals: vec![(0, 0); sites.len() + 1],
            allocated: Vec::new(),
            site_types: Vec::new(),
            classes: Vec::new(),
            without: Vec::new(),
        }
    }

    /// Adds a sample, and adds it to the totals of its site.
    pub fn sample(&mut self, sample: Sampled) {
        if let Some(total) = self.totals.get_mut(sample.site as usize) {
            *total = (total.0 + 1, total.1 + sample.size);
        }
        self.samples.push(sample);
    }

    /// Adds the objects of this agent to a heap. As in a real heap, static fields and JNI references hold them.
    pub fn add_to(&self, heap: &mut HeapBuilder) -> ClassId {
        let boot = heap.boot();
        let ints = [fields::SITE, fields::TYPE, fields::THREAD];
        let mut declared = vec![
            (fields::UID, FieldType::Long),
            (fields::SIZE, FieldType::Long),
        ];
        declared.extend(ints.map(|name| (name, FieldType::Int)));
        declared.extend([
            (fields::TIME, FieldType::Int),
            (fields::MARK, FieldType::Int),
        ]);
        let of_sites = [
            (statics::STARTED, Value::Long(1_700_000_000_000)),
            (statics::PID, Value::Long(self.pid)),
            (statics::STRATEGY, Value::Int(self.strategy)),
            (statics::INTERVAL, Value::Long(self.interval)),
            (statics::RATE, Value::Long(0)),
            (
                statics::FIRST_INTERVAL,
                Value::Long(self.first_interval.unwrap_or(self.interval)),
            ),
            (statics::FIRST_RATE, Value::Long(0)),
            (statics::DEPTH, Value::Int(64)),
            (statics::VERBOSITY, Value::Int(0)),
        ];
        let arrays = [
            statics::COUNTERS,
            statics::SAMPLES,
            statics::CLASSES,
            statics::BLOBS,
            statics::TOTALS,
            statics::CLASS_TOTALS,
            statics::ALLOCATED,
            statics::SITE_TYPES,
            statics::RECENT,
            statics::RECENT_DIED,
            statics::RESERVOIR,
            statics::RESERVOIR_DIED,
        ];
        let mut all = vec![(statics::FORMAT, Value::Int(self.format))];
        all.extend(of_sites);
        all.extend(arrays.map(|name| (name, Value::NULL)));
        let by_site = [
            (statics::ALLOCATED, &self.allocated),
            (statics::SITE_TYPES, &self.site_types),
        ];
        let is_out = |name: &str| {
            let mut empty = by_site.iter().filter(|(_, figures)| figures.is_empty());
            self.without.contains(&name) || empty.any(|(of, _)| *of == name)
        };
        all.retain(|(name, _)| !is_out(name));
        let class = heap.add_class(CLASS, Some(boot.phantom_reference), &declared, &all);
        let samples: Vec<Obj> = self.samples.iter().map(|s| add(heap, class, s)).collect();
        let chunks: Vec<Obj> = samples
            .chunks(CHUNK)
            .map(|chunk| array(heap, boot.object, chunk.iter().map(|&o| o.into()).collect()))
            .collect();
        let collected = self.collected.iter();
        let dead: Vec<Ref> = collected.map(|(s, _)| add(heap, class, s).into()).collect();
        let died = self.collected.iter().map(|&(_, died)| died).collect();
        let blob = heap.add_primitive_array(Elements::Byte(self.table.clone()));
        let mut totals = vec![0; 2 * TOTALS_CHUNK];
        for (pair, &(samples, bytes)) in totals.chunks_exact_mut(2).zip(&self.totals) {
            pair.copy_from_slice(&[samples, bytes]);
        }
        let totals = heap.add_primitive_array(Elements::Long(totals));
        let mut counters = vec![0_i64; Counter::ALL.len()];
        let uids = self.samples.iter().map(|s| s.uid).max();
        counters[Counter::Uids.index()] = uids.unwrap_or(0);
        counters[Counter::FromStart.index()] = i64::from(self.from_start);
        counters[Counter::FewFollowed.index()] = i64::from(self.few_followed);
        counters[Counter::DroppedFull.index()] = self.lost.0;
        counters[Counter::DroppedBytes.index()] = self.lost.1;
        counters[Counter::BlobBytes.index()] = self.table.len() as i64;
        let values = [
            (
                statics::COUNTERS,
                heap.add_primitive_array(Elements::Long(counters)),
            ),
            (
                statics::SAMPLES,
                array(
                    heap,
                    boot.object,
                    chunks.iter().map(|&c| c.into()).collect(),
                ),
            ),
            (statics::CLASSES, array(heap, boot.object, vec![Ref::Null])),
            (
                statics::BLOBS,
                array(heap, boot.object, vec![Ref::Null, blob.into()]),
            ),
            (
                statics::TOTALS,
                array(heap, boot.object, vec![totals.into(), Ref::Null]),
            ),
            (statics::RECENT, array(heap, boot.object, dead)),
            (
                statics::RECENT_DIED,
                heap.add_primitive_array(Elements::Int(died)),
            ),
            (statics::RESERVOIR, array(heap, boot.object, Vec::new())),
            (
                statics::RESERVOIR_DIED,
                heap.add_primitive_array(Elements::Int(Vec::new())),
            ),
        ];
        let mut values = values.to_vec();
        for (name, figures) in by_site.into_iter().filter(|(name, _)| !is_out(name)) {
            let mut chunk = figures.clone();
            chunk.resize(TOTALS_CHUNK, 0);
            let chunk = heap.add_primitive_array(Elements::Long(chunk));
            values.push((name, array(heap, boot.object, vec![chunk.into()])));
        }
        if !self.classes.is_empty() {
            let mut counts = vec![0; 2 * TOTALS_CHUNK];
            for (pair, &(objects, bytes)) in counts.chunks_exact_mut(2).zip(&self.classes) {
                pair.copy_from_slice(&[objects, bytes]);
            }
            let counts = heap.add_primitive_array(Elements::Long(counts));
            let outer = array(heap, boot.object, vec![counts.into()]);
            values.push((statics::CLASS_TOTALS, outer));
        }
        for (name, value) in values {
            if !is_out(name) {
                heap.set_static(class, name, value);
            }
            let global_ref = 0x9000;
            heap.add_root(Root::JniGlobal { global_ref }, value);
        }
        for chunk in chunks {
            let global_ref = 0x9008;
            heap.add_root(Root::JniGlobal { global_ref }, chunk);
        }
        class
    }
}

fn array(heap: &mut HeapBuilder, object: ClassId, elements: Vec<Ref>) -> Obj {
    heap.add_object_array(object, elements)
}

fn add(heap: &mut HeapBuilder, class: ClassId, sample: &Sampled) -> Obj {
    let reference = heap.add_reference_of(class, sample.referent);
    let ints = [
        (fields::SITE, sample.site),
        (fields::TYPE, sample.kind),
        (fields::THREAD, sample.thread),
        (fields::TIME, sample.time_ms),
        (fields::MARK, sample.mark),
    ];
    for (name, value) in ints {
        heap.set_field(reference, name, Value::Int(value));
    }
    heap.set_field(reference, fields::UID, Value::Long(sample.uid));
    heap.set_field(reference, fields::SIZE, Value::Long(sample.size));
    reference
}
