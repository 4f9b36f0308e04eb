//! Finds hashes that are stored in objects of their own: a field of a JDK class refers to an `Integer` with the hash.

use rayon::prelude::*;

use crate::ids::ObjectId;
use crate::records::id_table::IdTable;
use crate::records::record::Kind;
use crate::records::walk::{self, Object, Visitor};
use crate::redaction::fields::is_boxed_hash;
use crate::redaction::survey::Survey;

/// The ids of the objects that contain only the hash code of another object.
#[derive(Debug, Default)]
pub(super) struct HashBoxes(Option<IdTable>);

impl HashBoxes {
    /// Finds the objects that contain only the hash code of another object.
    ///
    /// Cost: a walk over the heap, if the dump has a class that stores its hash in such an object.
    pub(super) fn find(bytes: &[u8], survey: &Survey) -> Self {
        let classes = &survey.classes;
        let declares = |index| {
            let class = &classes[index];
            class.fields.iter().any(|f| is_boxed_hash(class, &f.name))
        };
        if !classes.iter().any(|(index, _)| declares(index)) {
            return Self::default();
        }
        let boxes: Vec<u64> = survey
            .blocks
            .par_iter()
            .flat_map_iter(|block| {
                let mut visitor = BoxVisitor {
                    survey,
                    boxes: Vec::new(),
                };
                // The walk cannot fail, because blocks (groups of records) end before the first damage.
                let _ = walk::walk(bytes, block.start, block.end, survey.id_size, &mut visitor);
                visitor.boxes
            })
            .collect();
        Self(Some(IdTable::new(boxes.into_iter())))
    }

    /// True if the object with this id contains only a hash code.
    #[inline]
    pub(super) fn has(&self, id: u64) -> bool {
        self.0.as_ref().is_some_and(|ids| ids.get(id).is_some())
    }
}

struct BoxVisitor<'s> {
    survey: &'s Survey,
    boxes: Vec<u64>,
}

impl BoxVisitor<'_> {
    /// Returns the id of the object in which an instance stores a hash. (A field of the instance refers to this
    /// object.)
    fn hash(&self, class: u64, body: &[u8]) -> Option<u64> {
        let classes = &self.survey.classes;
        let id_size = self.survey.id_size;
        let mut at = 0;
        for index in classes.chain(classes.by_id(ObjectId(class))?) {
            let class = &classes[index];
            for field in &class.fields {
                if field.kind == Kind::Object && is_boxed_hash(class, &field.name) {
                    let id = body.get(at..at + id_size)?;
                    return Some(id.iter().fold(0, |v, &b| v << 8 | u64::from(b)));
                }
                at += field.kind.size(id_size);
            }
        }
        None
    }
}

impl Visitor for BoxVisitor<'_> {
    fn instance(&mut self, _: Object, class: u64, body: &[u8]) {
        let plan = self.survey.plan_of(class);
        if plan.is_some_and(|plan| plan.has_boxed_hash) {
            let id = self.hash(class, body).filter(|&id| id != 0);
            self.boxes.extend(id);
        }
    }
}
