//! Flattened values. HotSpot stores a small value of a value class (JEP 401) inside its container, which is an object
//! or an array. It writes the value as a record with a made-up id: 1, 2, 3, ...

use super::PieceVisitor;
use crate::graph::targets::Targets;
use crate::records::walk::read_id;
use crate::sizes::shape::OF_VALUES;

impl<T: Targets, const ID: usize> PieceVisitor<'_, '_, T, ID> {
    /// Counts a flattened value (a value that is stored inside another object), and returns its shape (encoded class).
    #[cold]
    pub(super) fn flattened(&mut self, id: u64, class: u32) -> u32 {
        let stats = &mut self.worker.stats;
        stats.classes[class as usize].flattened += 1;
        stats.low_ids.add_instance(id);
        self.shapes.flattened(class)
    }

    /// Records that instances of the class have a flattened value in a field, if this instance has one.
    #[cold]
    pub(super) fn note_flattened_fields(&mut self, class: u32, offsets: &[u32], body: &[u8]) {
        let ids = offsets.iter().map(|&at| read_id::<ID>(body, at as usize));
        let below = self.job.flattened_below;
        self.worker.stats.classes[class as usize].holds_flattened |=
            ids.into_iter().any(|id| id != 0 && id < below);
    }

    /// Measures an array whose elements may be flattened values, and returns its shape (encoded class and length).
    #[cold]
    pub(super) fn array_with_values(&mut self, class: u32, array: u32, elements: &[u8]) -> u32 {
        let (mut are_flattened, mut are_references) = (false, false);
        for element in elements.chunks_exact(ID) {
            match read_id::<ID>(element, 0) {
                0 => {}
                id if id < self.job.flattened_below => are_flattened = true,
                _ => are_references = true,
            }
        }
        let len = (elements.len() / ID) as u32;
        let stats = &mut self.worker.stats;
        if are_references || len == 0 {
            stats.array(array, len);
            return self.array_shape(class, array, len);
        }
        stats.elements[array as usize].are_flattened |= are_flattened;
        *stats.value_arrays.entry((array, len)).or_default() += 1;
        self.part.longs.push((class, len | OF_VALUES));
        self.shapes.long_array(self.part.longs.len() as u32 - 1)
    }
}
