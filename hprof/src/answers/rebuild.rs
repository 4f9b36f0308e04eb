//! Builds the heap graph again, because the dominator computation consumes the first graph.

use rayon::prelude::*;

use crate::answers::objects::object::{Body, Numbering};
use crate::answers::objects::reference::RawVia;
use crate::error::Result;
use crate::graph::build;
use crate::graph::heap_graph::HeapGraph;
use crate::graph::plan::{Context, Plan};
use crate::ids::{NONE, ObjectId};
use crate::options::Options;
use crate::progress::Progress;
use crate::records::classes::Reference;
use crate::records::outline::Segment;
use crate::records::walk::{self, Object, Visitor};
use crate::snapshot::Snapshot;

impl Snapshot {
    /// Builds the heap graph again. Objects have the same numbers as in the snapshot.
    ///
    /// Cost: the passes of [`Snapshot::open`] up to the computation of dominators.
    ///
    /// # Errors
    /// If there is not enough memory for the graph.
    pub fn graph(&self, progress: &dyn Progress) -> Result<HeapGraph> {
        let dump = &self.dump;
        let mut plan = Plan::new(&dump.source, &dump.header, &dump.outline);
        plan.class_references = true;
        plan.bare_leaves = self.derived.bare_leaves;
        plan.late_classes
            .by_loader
            .clone_from(&self.derived.late_classes.by_loader);
        // This graph needs only the targets of references. With `holders`, adjacency lists also have entries for null
        // fields.
        let options = Options {
            holders: false,
            ..self.options.clone()
        };
        let context = Context::new(
            &dump.source,
            &dump.header,
            &dump.outline,
            &options,
            progress,
            &self.store,
        );
        Ok(build::build(&context, &mut plan)?.graph)
    }

    /// Returns the referents of all `java.lang.ref` objects, sorted by reference object. Each element has the reference
    /// object, the referent, and the kind of the reference object.
    ///
    /// Cost: one pass over the file. Memory: twelve bytes for each reference object.
    pub(crate) fn referents(&self) -> Vec<(u32, u32, Reference)> {
        let parts = self.pieces.par_iter().map(|piece| {
            let mut visitor = ReferentVisitor {
                snapshot: self,
                numbering: Numbering::new(self, piece),
                found: Vec::new(),
            };
            let Segment { start, end } = piece.segment;
            self.dump.source.advise_sequential(start, end - start);
            // Errors of the walk are ignored, because this damage was already reported when the dump was opened.
            let id_size = self.dump.header.id_size;
            let _ = walk::walk(&self.dump.source, start, end, id_size, &mut visitor);
            visitor.found
        });
        let mut all: Vec<_> = parts.flatten_iter().collect();
        all.par_sort_unstable_by_key(|r| r.0);
        all
    }

    /// Returns the number of the object with this id. Returns [`NONE`] if no object has the id.
    #[inline]
    pub(crate) fn number_of(&self, id: u64) -> u32 {
        match self.map.by_id(id, self.split) {
            NONE => match self.dump.classes.by_id(ObjectId(id)) {
                Some(class) if class.0 < self.split.classes => class.0,
                _ => NONE,
            },
            number => number,
        }
    }
}

struct ReferentVisitor<'a> {
    snapshot: &'a Snapshot,
    numbering: Numbering<'a>,
    found: Vec<(u32, u32, Reference)>,
}

impl Visitor for ReferentVisitor<'_> {
    #[inline(always)]
    fn instance(&mut self, object: Object, class: u64, body: &[u8]) {
        let (classes, body) = (self.snapshot.classes(), Body::Instance(class, body));
        let class = classes.by_id(ObjectId(class));
        let kind = class.map_or(Reference::No, |c| classes.layout(c.0).reference);
        if kind == Reference::No {
            self.numbering.counted(object.id, body);
            return;
        }
        let source = self.numbering.of(object.id, body);
        self.snapshot.each_in_record(body, |id, way| {
            if let RawVia::Referent = way
                && id != 0
            {
                let target = self.snapshot.number_of(id);
                // A modified index file might not contain the record's id, or might have too few objects.
                let is_known = u64::from(source) < self.snapshot.object_count();
                if target != NONE && is_known {
                    self.found.push((source, target, kind));
                }
            }
        });
    }
    fn object_array(&mut self, object: Object, class: u64, elements: &[u8]) {
        self.numbering
            .counted(object.id, Body::Objects(class, elements));
    }
    fn primitive_array(
        &mut self,
        object: Object,
        kind: crate::records::record::Kind,
        len: u32,
        bytes: &[u8],
    ) {
        self.numbering
            .counted(object.id, Body::Primitives(kind, len, bytes));
    }
}
