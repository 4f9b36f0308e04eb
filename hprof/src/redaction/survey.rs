//! The first pass of a redaction: which names are needed, which bytes of instances are numbers made of content, and
//! where records begin.

use std::collections::HashSet;

use rayon::prelude::*;

use crate::ids::ObjectId;
use crate::progress::Progress;
use crate::records::classes::Classes;
use crate::records::outline::{Next, Outline, TopLevel, TopRecord};
use crate::records::record::{ClassDump, Header, Kind, tag};
use crate::records::walk::{self, Object, Visitor};
use crate::redaction::rules::{Rules, is_hash};

/// Bytes after which a block ends with the next object.
const BLOCK: usize = 256 << 10;
/// Segments surveyed between two looks at whether the work is given up.
const BATCH: usize = 1 << 10;
/// Fields that plans may list beyond one for each byte of the file.
const SPARE_FIELDS: u64 = 4 << 20;

/// Records of the heap that follow each other, and the range of their objects' ids.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) ids: (u64, u64),
}

/// Which bytes of an instance's body are what.
#[derive(Clone, Debug, Default)]
pub(super) struct BodyPlan {
    /// Bytes that the fields take.
    pub(super) len: usize,
    /// Where fields are that hold no reference and are not kept, by offset.
    pub(super) blanks: Vec<Blank>,
    /// Where fields are whose numbers are kept, in a check.
    pub(super) numbers: Vec<(u32, Kind)>,
}

/// A field that is not kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blank {
    pub(super) at: u32,
    pub(super) kind: Kind,
    /// Whether it is made of content, and becomes zero.
    pub(super) is_hash: bool,
}

/// What the first pass finds.
#[derive(Debug)]
pub(super) struct Survey {
    pub(super) id_size: usize,
    pub(super) outline: Outline,
    pub(super) classes: Classes,
    /// Ids of the names of classes, fields, methods and files.
    pub(super) names: HashSet<u64>,
    pub(super) blocks: Vec<Block>,
    /// By the class's number; those that cannot be planned for have none.
    plans: Vec<Option<BodyPlan>>,
    /// Classes with more fields than can be planned for.
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
        let outline = Outline::read(bytes, header, 0);
        let mut names: HashSet<u64> = outline.loads.iter().map(|l| l.name).collect();
        names.extend(outline.recorded.map(|recorded| recorded.name));
        let mut segments = Vec::new();
        for next in TopLevel::after(bytes, header) {
            let Next::Record(r) = next else { continue };
            if r.is_heap() {
                segments.push(r);
            } else if r.tag == tag::STACK_FRAME {
                names.extend(frame_names(&bytes[r.start..r.end], id_size));
            }
        }
        progress.phase("looking for what to keep", bytes.len() as u64);
        let mut blocks = Vec::new();
        let mut dumps = Vec::new();
        for batch in segments.chunks(BATCH) {
            let found: Vec<SegmentVisitor> = batch
                .par_iter()
                .map(|segment| {
                    let found = SegmentVisitor::of(bytes, segment, id_size);
                    progress.advance((segment.end - segment.start) as u64);
                    found
                })
                .collect();
            for found in found {
                blocks.extend(found.blocks);
                dumps.extend(found.classes);
            }
        }
        for dump in &dumps {
            names.extend(dump.statics.iter().map(|s| s.0));
            names.extend(dump.fields.iter().map(|f| f.0));
        }
        let classes = Classes::new(bytes, id_size, &outline, &dumps);
        let mut this = Self {
            id_size,
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
                    } else if rules.keeps_number(of, &field.name, field.kind) {
                        plan.numbers.push((at, field.kind));
                    } else {
                        plan.blanks.push(Blank {
                            at,
                            kind: field.kind,
                            is_hash: is_hash(of, &field.name, field.kind),
                        });
                    }
                    plan.len += field.kind.size(self.id_size);
                }
            }
            self.plans.push(Some(plan));
        }
    }

    /// How the instances of the class with this id are rewritten.
    #[inline]
    pub(super) fn plan_of(&self, class: u64) -> Option<&BodyPlan> {
        let class = self.classes.by_id(ObjectId(class))?;
        self.plans.get(class.index())?.as_ref()
    }
}

/// The ids of method, signature and file in a stack frame's record.
fn frame_names(body: &[u8], id_size: usize) -> impl Iterator<Item = u64> {
    let ids = body.chunks_exact(id_size).skip(1).take(3);
    ids.map(|id| id.iter().fold(0, |v, &b| v << 8 | u64::from(b)))
}

struct SegmentVisitor {
    blocks: Vec<Block>,
    classes: Vec<ClassDump>,
}

impl SegmentVisitor {
    fn of(bytes: &[u8], segment: &TopRecord, id_size: usize) -> Self {
        let first = Block {
            start: segment.start,
            end: segment.end,
            ids: (u64::MAX, 0),
        };
        let mut this = Self {
            blocks: vec![first],
            classes: Vec::new(),
        };
        // Damage is met, and told, when the block is written.
        let _ = walk::walk(bytes, segment.start, segment.end, id_size, &mut this);
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
