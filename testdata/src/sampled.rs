//! What the agent leaves in a heap, in synthetic dumps.

use heapdiff_sites::{
    Batch, CHUNK, CLASS, Counter, FORMAT, MARK_SAMPLE, TOTALS_CHUNK, fields, statics,
};

use crate::writer::{ClassId, Elements, FieldType, HeapBuilder, Obj, Ref, Root, Value};

/// A `heapdiff.SampleRef`.
#[derive(Debug, Clone, Copy)]
pub struct Sampled {
    /// What it refers to.
    pub referent: Ref,
    /// 0 unfinished, 1 a sample, 2 a class definition.
    pub mark: i32,
    /// Its uid.
    pub uid: i64,
    /// Bytes of the object.
    pub size: i64,
    /// Its site.
    pub site: i32,
    /// The type of the object.
    pub kind: i32,
    /// The string that is the thread's name.
    pub thread: i32,
    /// Milliseconds from the agent's start to the allocation.
    pub time_ms: i32,
}

impl Sampled {
    /// A finished sample of type 1 by thread 1.
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

/// The string with the thread's name.
const THREAD: i32 = 1;

/// The agent's state.
#[derive(Debug, Clone)]
pub struct AgentHeap {
    /// Static `format`.
    pub format: i32,
    /// The JVM's process.
    pub pid: i64,
    /// Mean bytes between samples.
    pub interval: i64,
    /// How it chooses what it samples: 0 by bytes.
    pub strategy: i32,
    /// What it was at first, if not that.
    pub first_interval: Option<i64>,
    /// Whether it was there when the JVM started.
    pub from_start: bool,
    /// Whether few of its samples are followed, and all are counted.
    pub few_followed: bool,
    /// Samples that found no place, and the bytes that they stood for.
    pub lost: (i64, i64),
    /// Samples.
    pub samples: Vec<Sampled>,
    /// Collected samples, with the time they died.
    pub collected: Vec<(Sampled, i32)>,
    /// The site table.
    pub table: Vec<u8>,
    /// Samples and bytes of each site.
    pub totals: Vec<(i64, i64)>,
    /// Bytes that each site's samples stood for; the field is left out where there are none.
    pub allocated: Vec<i64>,
    /// The type of each site's last sample; the field is left out where there are none.
    pub site_types: Vec<i64>,
    /// What was allocated of each type, objects and bytes, by type id; the array is null where there are none.
    pub classes: Vec<(i64, i64)>,
    /// Static fields to leave out.
    pub without: Vec<&'static str>,
}

impl AgentHeap {
    /// An agent that samples every allocation, of process 4711. Its table has type 1, `byte[]`, and these
    /// sites, numbered from 1: each a stack of `class.method`s, the leaf first, all at line 7.
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

    /// Adds a sample and counts it.
    pub fn sample(&mut self, sample: Sampled) {
        if let Some(total) = self.totals.get_mut(sample.site as usize) {
            *total = (total.0 + 1, total.1 + sample.size);
        }
        self.samples.push(sample);
    }

    /// Adds all this to a heap, held as the agent holds it: by static fields and by JNI.
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
