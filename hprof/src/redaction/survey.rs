//! The first pass of a redaction. It finds the names that must be kept, the fields of instances whose numbers must be
//! replaced, and the offsets at which blocks of records start.

use std::collections::HashSet;

use rayon::prelude::*;

use crate::flaw::Flaw;
use crate::ids::ObjectId;
use crate::progress::Progress;
use crate::records::classes::Classes;
use crate::records::missing_length::has_plausible_length;
use crate::records::outline::{Next, Outline, TopLevel, TopRecord};
use crate::records::record::{ClassDump, Header, Kind, tag};
use crate::records::walk::{self, Damage, Object, Visitor};
use crate::redaction::fields::is_boxed_hash;
use crate::redaction::rules::{Number, Rules};

/// Minimum size of a block (consecutive records of the heap) in bytes. A block ends at the first object after this
/// size.
const BLOCK: usize = 256 << 10;
/// Number of heap segments of the dump that are read between two checks for cancellation.
const BATCH: usize = 1 << 10;
/// Maximum number of consecutive records with an implausible kind or length. If there are more, the file is damaged.
const UNKNOWN_KINDS: usize = 64;
/// If an implausible record is followed by at least this number of plausible records, it does not count as damage.
const FITTING: usize = 8;
/// The rewrite plans of all classes (see [`BodyPlan`]) together have at most this number of fields, plus one field for
/// each byte of the dump.
const SPARE_FIELDS: u64 = 4 << 20;

/// Consecutive records of the heap, and the range of their objects' ids.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) ids: (u64, u64),
}

/// The plan for rewriting the instances of a class: which bytes to keep, and which to replace.
#[derive(Clone, Debug, Default)]
pub(super) struct BodyPlan {
    /// Number of bytes that the fields take in an instance's body.
    pub(super) len: usize,
    /// The fields whose values are replaced. These are all fields except references and the fields whose values are
    /// kept.
    pub(super) blanks: Vec<Blank>,
    /// The numeric fields whose values are kept: offset, type, and true if the user requested to keep the value. The
    /// list is used to count the kept numbers.
    pub(super) numbers: Vec<(u32, Kind, bool)>,
    /// True if a field refers to an object that contains a hash.
    pub(super) has_boxed_hash: bool,
}

impl BodyPlan {
    /// True if instances contain one `int` and nothing else, like instances of `Integer`.
    pub(super) fn is_box(&self) -> bool {
        self.len == 4 && self.numbers.len() + self.blanks.len() == 1
    }

    fn add(&mut self, at: u32, kind: Kind, number: Number) {
        match number {
            Number::Kept => self.numbers.push((at, kind, false)),
            Number::Requested => self.numbers.push((at, kind, true)),
            Number::Hash | Number::Token => self.blanks.push(Blank {
                at,
                kind,
                is_hash: number == Number::Hash,
            }),
        }
    }
}

/// A field whose value a redaction replaces.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blank {
    pub(super) at: u32,
    pub(super) kind: Kind,
    /// True if the value can be a hash of content, so that it is replaced by zero.
    pub(super) is_hash: bool,
}

/// The first damage of a dump.
#[derive(Debug)]
pub(super) struct FirstDamage {
    pub(super) flaw: Flaw,
    /// True if the damaged heap record has no length, so that a reader finds its end from its content.
    pub(super) lacks_length: bool,
}

/// The results of a redaction's first pass over the dump.
#[derive(Debug)]
pub(super) struct Survey {
    pub(super) id_size: usize,
    /// The end of the part of the dump that can be parsed. Nothing after it is copied.
    pub(super) end: usize,
    /// The first damage in the dump. Its offset is `end`.
    pub(super) damage: Option<FirstDamage>,
    pub(super) outline: Outline,
    pub(super) classes: Classes,
    /// Ids of the names of classes, fields, methods and files.
    pub(super) names: HashSet<u64>,
    pub(super) blocks: Vec<Block>,
    /// For each class number, the plan for rewriting the bytes of the class's instances. `None` for a class whose plan
    /// would exceed the limit for all plans together (see [`SPARE_FIELDS`]).
    plans: Vec<Option<BodyPlan>>,
    /// Number of classes without a plan for rewriting their instances ([`BodyPlan`]), because the plans of all classes
    /// together would have too many fields.
    pub(super) unplanned: u64,
}

impl Survey {
    pub(super) fn new(
        bytes: &[u8],
        header: &Header,
        rules: &Rules<'_>,
        progress: &dyn Progress,
    ) -> Self {
        let id_size = header.id_size;
        let TopRecords {
            heap: segments,
            frames,
            damage,
        } = TopRecords::read(bytes, header);
        let mut end = damage.as_ref().map_or(bytes.len(), |d| d.offset);
        let mut damage = damage.map(|d| FirstDamage {
            flaw: d.flaw,
            lacks_length: false,
        });
        progress.phase("finding the names to keep", bytes.len() as u64);
        let mut blocks = Vec::new();
        let mut dumps = Vec::new();
        'segments: for batch in segments.chunks(BATCH) {
            let found: Vec<SegmentVisitor> = batch
                .par_iter()
                .map(|segment| {
                    let found = SegmentVisitor::from_segment(bytes, segment, id_size);
                    progress.advance((segment.end - segment.start) as u64);
                    found
                })
                .collect();
            for (segment, found) in batch.iter().zip(found) {
                blocks.extend(found.blocks);
                dumps.extend(found.classes);
                if let Some(first) = found.damage {
                    end = first.offset;
                    damage = Some(FirstDamage {
                        flaw: first.flaw,
                        lacks_length: segment.lacks_length,
                    });
                    break 'segments;
                }
            }
        }
        // Records after the damage are not trusted, so no class or name comes from there.
        let outline = Outline::read_to(bytes, header, 0, end);
        let mut names: HashSet<u64> = outline.loads.iter().map(|l| l.name).collect();
        names.extend(outline.recorded.map(|recorded| recorded.name));
        names.extend(outline.repaired.map(|(name, _)| name));
        for frame in frames.iter().take_while(|frame| frame.at < end) {
            names.extend(frame_names(&bytes[frame.start..frame.end], id_size));
        }
        for dump in &dumps {
            names.extend(dump.statics.iter().map(|s| s.0));
            names.extend(dump.fields.iter().map(|f| f.0));
        }
        let classes = Classes::new(bytes, id_size, &outline, &dumps);
        let mut this = Self {
            id_size,
            end,
            damage,
            outline,
            classes,
            names,
            blocks,
            plans: Vec::new(),
            unplanned: 0,
        };
        this.plan(bytes.len(), rules);
        this
    }

    fn plan(&mut self, bytes: usize, rules: &Rules<'_>) {
        let mut spare = SPARE_FIELDS + bytes as u64;
        let classes = &self.classes;
        for (index, _) in classes.iter().take(classes.dumped()) {
            let fields: u64 = classes
                .chain(index)
                .map(|c| classes[c].fields.len() as u64)
                .sum();
            let Some(left) = spare.checked_sub(fields) else {
                self.unplanned += 1;
                self.plans.push(None);
                continue;
            };
            spare = left;
            let mut plan = BodyPlan::default();
            for c in classes.chain(index) {
                let of = &classes[c];
                for field in &of.fields {
                    let at = plan.len as u32;
                    if field.kind == Kind::Object {
                        plan.has_boxed_hash |= is_boxed_hash(of, &field.name);
                    } else {
                        let number = rules.number(of, &field.name, field.kind);
                        plan.add(at, field.kind, number);
                    }
                    plan.len += field.kind.size(self.id_size);
                }
            }
            self.plans.push(Some(plan));
        }
    }

    /// Returns the plan for rewriting instances of the class with this id.
    #[inline]
    pub(super) fn plan_of(&self, class: u64) -> Option<&BodyPlan> {
        let class = self.classes.by_id(ObjectId(class))?;
        self.plans.get(class.index())?.as_ref()
    }
}

/// Returns the ids of method, signature and file in a stack frame's record.
fn frame_names(body: &[u8], id_size: usize) -> impl Iterator<Item = u64> {
    let ids = body.chunks_exact(id_size).skip(1).take(3);
    ids.map(|id| id.iter().fold(0, |v, &b| v << 8 | u64::from(b)))
}

/// The records at the top level of the file: heap records, and stack frames. The list ends at the first damage outside
/// of the heap records.
#[derive(Default)]
struct TopRecords {
    heap: Vec<TopRecord>,
    frames: Vec<TopRecord>,
    damage: Option<Damage>,
}

impl TopRecords {
    fn read(bytes: &[u8], header: &Header) -> Self {
        let mut this = Self::default();
        // The damage that the first implausible record may indicate. Reset to `None` when enough plausible records
        // follow.
        let mut doubtful: Option<Damage> = None;
        let (mut fitting, mut others) = (0, 0);
        for next in TopLevel::after(bytes, header) {
            let damage = match next {
                Next::Dump(_) => None,
                Next::Record(r) if r.is_heap() => {
                    doubtful = None;
                    this.heap.push(r);
                    continue;
                }
                Next::Record(r) if is_cut_off(&r) => Some(Flaw::TruncatedRecord { kind: r.tag }),
                Next::Record(r) if includes_header(bytes, &r, header.id_size) => {
                    Some(Flaw::NameWithHeader)
                }
                Next::Record(r) if has_plausible_length(r.tag, r.length, header.id_size) => {
                    (fitting, others) = (fitting + 1, 0);
                    if fitting == FITTING {
                        doubtful = None;
                    }
                    if r.tag == tag::STACK_FRAME {
                        this.frames.push(r);
                    }
                    continue;
                }
                Next::Record(r) => {
                    (fitting, others) = (0, others + 1);
                    let no_record = Flaw::NotARecord { kind: r.tag };
                    doubtful.get_or_insert_with(|| Damage {
                        offset: r.at,
                        flaw: no_record.clone(),
                    });
                    if others < UNKNOWN_KINDS {
                        continue;
                    }
                    Some(no_record)
                }
                Next::Rest(_) => Some(Flaw::TruncatedHeader),
            };
            let here = damage.map(|flaw| Damage {
                offset: next.at(),
                flaw,
            });
            // If the length of a record is wrong, the next bytes are read as records, too. At first, these records are
            // only implausible, and damage is found later. So the damage begins at the first implausible record.
            this.damage = here.map(|here| doubtful.unwrap_or(here));
            break;
        }
        this
    }
}

/// True if the file ends inside a record.
const fn is_cut_off(record: &TopRecord) -> bool {
    record.length > (record.end - record.start) as u64
}

/// True if a name has a wrong length and so includes the header of the next record. This header has zero bytes, but a
/// name has none, unless a redaction replaced all of its bytes by zeros.
fn includes_header(bytes: &[u8], record: &TopRecord, id_size: usize) -> bool {
    let body = &bytes[record.start..record.end];
    let text = body.get(id_size..).unwrap_or_default();
    record.tag == tag::UTF8
        && has_plausible_length(record.tag, record.length, id_size)
        && memchr::memchr(0, text).is_some()
        && text.iter().any(|&b| b != 0)
}

struct SegmentVisitor {
    blocks: Vec<Block>,
    classes: Vec<ClassDump>,
    damage: Option<Damage>,
}

impl SegmentVisitor {
    fn from_segment(bytes: &[u8], segment: &TopRecord, id_size: usize) -> Self {
        let first = Block {
            start: segment.start,
            end: segment.end,
            ids: (u64::MAX, 0),
        };
        let mut this = Self {
            blocks: vec![first],
            classes: Vec::new(),
            damage: None,
        };
        let walked = walk::walk(bytes, segment.start, segment.end, id_size, &mut this);
        if let Err(damage) = walked {
            if let Some(last) = this.blocks.last_mut() {
                last.end = damage.offset;
            }
            this.damage = Some(damage);
        }
        this
    }

    #[inline(always)]
    fn object(&mut self, object: Object) {
        let Some(block) = self.blocks.last_mut() else {
            return;
        };
        if object.at - block.start >= BLOCK {
            let next = Block {
                start: object.at,
                end: block.end,
                ids: (object.id, object.id),
            };
            block.end = object.at;
            self.blocks.push(next);
        } else {
            block.ids = (block.ids.0.min(object.id), block.ids.1.max(object.id));
        }
    }
}

impl Visitor for SegmentVisitor {
    #[inline(always)]
    fn instance(&mut self, object: Object, _: u64, _: &[u8]) {
        self.object(object);
    }
    #[inline(always)]
    fn object_array(&mut self, object: Object, _: u64, _: &[u8]) {
        self.object(object);
    }
    #[inline(always)]
    fn primitive_array(&mut self, object: Object, _: Kind, _: u32, _: &[u8]) {
        self.object(object);
    }
    fn class_dump(&mut self, _: usize, class: ClassDump) {
        self.classes.push(class);
    }
}
