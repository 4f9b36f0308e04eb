//! Reads a few fields of many objects at once.

use std::collections::HashMap;

use crate::answers::objects::object::{Body, Value};
use crate::ids::{ClassIndex, ObjectId, ObjectIndex};
use crate::records::record::Kind;
use crate::snapshot::Snapshot;

impl Snapshot {
    /// Returns the values of the fields with these names, for many instances. If an object has several fields with the
    /// same name, the field of the class nearest to the object's own class is read. The value is `None` if the field
    /// does not exist, or if the object is not an instance.
    ///
    /// Cost: as [`Snapshot::ids`]. Unlike [`Snapshot::read_all`], this allocates nothing for each object.
    #[must_use]
    pub fn field_values<const N: usize>(
        &self,
        objects: &[ObjectIndex],
        names: [&str; N],
    ) -> Vec<Option<[Option<Value>; N]>> {
        // For each class found so far, the offset and type of each field.
        let mut places: HashMap<u64, [Option<(usize, Kind)>; N]> = HashMap::new();
        let raws = self.records_of(objects).into_iter();
        let values = raws.map(|raw| {
            let Body::Instance(class, body) = raw?.body else {
                return None;
            };
            let places = places
                .entry(class)
                .or_insert_with(|| names.map(|name| self.place_of(ObjectId(class), name)));
            Some(places.map(|place| {
                let (at, kind) = place?;
                let size = kind.size(self.header().id_size);
                Some(self.value(kind, body.get(at..at + size)?))
            }))
        });
        values.collect()
    }

    /// Returns the values of one field for many objects. The class `declaring` declares the field, and the objects are
    /// instances of this class or of its subclasses.
    ///
    /// The result leaves out objects without the field. If a subclass declares another field with the same name, that
    /// field is not read.
    pub(crate) fn values_of_field(
        &self,
        objects: &[ObjectIndex],
        declaring: ClassIndex,
        name: &str,
    ) -> Vec<Value> {
        let mut places: HashMap<u64, Option<(usize, Kind)>> = HashMap::new();
        let raws = self.records_of(objects).into_iter();
        let values = raws.filter_map(|raw| {
            let Body::Instance(class, body) = raw?.body else {
                return None;
            };
            let place = places.entry(class);
            let place = place.or_insert_with(|| {
                self.place_declared_by(ObjectId(class), name, |c| c == declaring)
            });
            let (at, kind) = (*place)?;
            let size = kind.size(self.header().id_size);
            Some(self.value(kind, body.get(at..at + size)?))
        });
        values.collect()
    }

    /// Returns the offset of a field in an instance's body, and the field's type.
    fn place_of(&self, class: ObjectId, name: &str) -> Option<(usize, Kind)> {
        self.place_declared_by(class, name, |_| true)
    }

    /// Returns the offset of a field in an instance's body, and the field's type, as [`Snapshot::place_of`]. Considers
    /// only fields of classes for which `declares` returns true.
    fn place_declared_by(
        &self,
        class: ObjectId,
        name: &str,
        declares: impl Fn(ClassIndex) -> bool,
    ) -> Option<(usize, Kind)> {
        let classes = self.classes();
        let id_size = self.header().id_size;
        let mut at = 0;
        for class in classes.chain(classes.by_id(class)?) {
            for field in &classes[class].fields {
                if &*field.name == name && declares(class) {
                    return Some((at, field.kind));
                }
                at += field.kind.size(id_size);
            }
        }
        None
    }
}
