//! Lists and stacks of unknown length, within the memory limit.

use bytemuck::Pod;

use crate::bytes::array::{Array, Store};
use crate::error::Result;

/// A list to which elements are added one by one, and from whose end they can be removed.
///
/// The last elements are in a `Vec`, so a short list needs nothing else. All elements before them are in an [`Array`],
/// which a [`Store`] allocates within the memory limit.
#[derive(Debug)]
pub(crate) struct List<T: Pod> {
    recent: Vec<T>,
    /// The elements that precede those in `recent`. Only the first `stored` elements of this array are in use.
    array: Array<T>,
    stored: usize,
}

impl<T: Pod> List<T> {
    /// Maximum number of elements in the `Vec` `recent`.
    const RECENT: usize = (32 << 10) / size_of::<T>();

    pub(crate) fn new(store: &Store) -> Result<Self> {
        Ok(Self {
            recent: Vec::new(),
            array: store.zeroed(0)?,
            stored: 0,
        })
    }

    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.stored + self.recent.len()
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, element: T) -> Result<()> {
        if self.recent.len() == self.recent.capacity() {
            self.grow_or_spill()?;
        }
        self.recent.push(element);
        Ok(())
    }

    /// Removes the last element and returns it.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<T> {
        match self.recent.pop() {
            None if self.stored > 0 => {
                self.refill_recent();
                self.recent.pop()
            }
            last => last,
        }
    }

    /// Removes all elements. Their memory is kept for new elements.
    pub(crate) fn clear(&mut self) {
        self.recent.clear();
        self.stored = 0;
    }

    /// Moves all elements to one slice. Call this before [`List::elements`].
    pub(crate) fn make_contiguous(&mut self) -> Result<()> {
        match self.stored {
            0 => Ok(()),
            _ => self.spill_recent(),
        }
    }

    /// Returns all elements, after [`List::make_contiguous`].
    pub(crate) fn elements(&self) -> &[T] {
        debug_assert!(self.stored == 0 || self.recent.is_empty());
        match self.stored {
            0 => &self.recent,
            stored => &self.array[..stored],
        }
    }

    #[inline(always)]
    pub(crate) fn get(&self, at: usize) -> T {
        match at.checked_sub(self.stored) {
            Some(at) => self.recent[at],
            None => self.array[at],
        }
    }

    /// Converts the list to an array of its elements.
    pub(crate) fn into_array(mut self) -> Result<Array<T>> {
        self.spill_recent()?;
        self.array.cut(self.stored)?;
        Ok(self.array)
    }

    #[cold]
    fn grow_or_spill(&mut self) -> Result<()> {
        if self.recent.len() < Self::RECENT {
            let more = self
                .recent
                .len()
                .clamp(16, Self::RECENT - self.recent.len());
            self.recent.reserve_exact(more);
            return Ok(());
        }
        self.spill_recent()
    }

    fn spill_recent(&mut self) -> Result<()> {
        let len = self.len();
        if self.array.len() < len {
            self.array.resize(len)?;
        }
        self.array[self.stored..len].copy_from_slice(&self.recent);
        self.stored = len;
        self.recent.clear();
        Ok(())
    }

    /// Moves the last elements of the array back to the `Vec`. The `Vec` is then at most half full, so that the next
    /// new element does not fill it.
    #[cold]
    fn refill_recent(&mut self) {
        let first = self.stored.saturating_sub(Self::RECENT / 2);
        self.recent
            .extend_from_slice(&self.array[first..self.stored]);
        self.stored = first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_equal_those_of_a_vector() {
        for limit in [None, Some(0)] {
            let store = Store::new(limit);
            let (mut list, mut expected) = (List::new(&store).unwrap(), Vec::new());
            let mut next = 0_u32;
            for round in 0..2 {
                // The list grows and shrinks beyond the capacity of the `Vec`.
                for (pushed, popped) in [(10, 3), (9_000, 1_000), (5_000, 12_000), (30_001, 7)] {
                    for _ in 0..pushed {
                        list.push(next).unwrap();
                        expected.push(next);
                        next += 1;
                    }
                    for _ in 0..popped {
                        assert_eq!(list.pop(), expected.pop());
                    }
                    assert_eq!(list.len(), expected.len());
                    for at in (0..expected.len()).step_by(997) {
                        assert_eq!(list.get(at), expected[at]);
                    }
                }
                list.make_contiguous().unwrap();
                assert_eq!(list.elements(), expected);
                if round == 0 {
                    list.clear();
                    expected.clear();
                    assert_eq!(list.pop(), None);
                }
            }
            list.push(1).unwrap();
            expected.push(1);
            assert_eq!(list.into_array().unwrap()[..], expected);
        }
    }

    #[test]
    fn only_long_lists_are_charged_to_the_store() {
        let store = Store::new(None);
        let mut list: List<[u32; 3]> = List::new(&store).unwrap();
        let recent = List::<[u32; 3]>::RECENT;
        assert!(!recent.is_power_of_two());
        for n in 0..recent as u32 {
            list.push([n; 3]).unwrap();
        }
        list.make_contiguous().unwrap();
        assert_eq!((store.used(), list.recent.capacity()), (0, recent));
        for n in 0..100_000_u32 {
            list.push([n; 3]).unwrap();
        }
        assert!(store.used() >= 90_000 * 12, "{}", store.used());
        while list.pop().is_some() {}
        assert_eq!(list.recent.capacity(), recent);
        drop(list);
        assert_eq!(store.used(), 0);
    }
}
