//! References that a search for paths ignores.

use crate::answers::objects::reference::Via;
use crate::graph::bits::Bits;
use crate::ids::{ClassIndex, ObjectIndex};
use crate::snapshot::Snapshot;

/// The references of ignored fields.
#[derive(Debug)]
pub(super) struct Cut {
    /// Each reference, as its source and its target, sorted.
    list: Vec<(u32, u32)>,
    sources: Bits,
}

impl Cut {
    /// Collects the references of `fields`.
    ///
    /// Cost: nothing if `fields` is empty. Otherwise reads all objects that have one of the fields.
    pub(super) fn new(snapshot: &Snapshot, fields: &[Via]) -> Self {
        let mut list = Vec::new();
        for field in fields {
            match *field {
                Via::Static(class, _) => {
                    let source = ObjectIndex(class.0);
                    snapshot.each_of_class(class, |id, way| {
                        if snapshot.via(source, way).0 == *field {
                            list.push((source.0, snapshot.number_of(id)));
                        }
                    });
                }
                Via::Field(class, _) => list.extend(of_instances(snapshot, class, *field)),
                _ => {}
            }
        }
        list.sort_unstable();
        let objects = snapshot.object_count() as usize;
        let mut sources = Bits::new(if list.is_empty() { 0 } else { objects });
        list.iter().for_each(|cut| sources.set(cut.0));
        Self { list, sources }
    }

    /// Returns the ignored references of an object.
    #[inline(always)]
    pub(super) fn references(&self, source: u32) -> &[(u32, u32)] {
        if !self.sources.has(source) {
            return &[];
        }
        let first = self.list.partition_point(|cut| cut.0 < source);
        let own = self.list[first..].partition_point(|cut| cut.0 == source);
        &self.list[first..first + own]
    }
}

/// Returns the references of an instance field, from all objects that have the field.
fn of_instances(snapshot: &Snapshot, class: ClassIndex, field: Via) -> Vec<(u32, u32)> {
    /// Number of records that are read at a time.
    const CHUNK: usize = 1 << 18;
    let classes = snapshot.classes();
    let own = classes.iter().map(|(index, _)| index);
    let own: Vec<ClassIndex> = own.filter(|c| classes.is_subclass(*c, class)).collect();
    let mut list = Vec::new();
    for sources in snapshot.instances(&own).chunks(CHUNK) {
        for (source, raw) in sources.iter().zip(snapshot.records_of(sources)) {
            let Some(raw) = raw else { continue };
            snapshot.each_in_record(raw.body, |id, way| {
                if id != 0 && snapshot.via(*source, way).0 == field {
                    list.push((source.0, snapshot.number_of(id)));
                }
            });
        }
    }
    list
}
