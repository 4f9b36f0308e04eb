//! Flat arrays for the analysis, and the memory pool from which they are allocated.

use std::io;
use std::ops::{Deref, DerefMut, Range};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytemuck::Pod;
use memmap2::MmapMut;
use rayon::prelude::*;

use crate::bytes::mapped::MappedFile;
use crate::bytes::mem::{self, Pages};
use crate::error::{Error, Result};

/// The memory of the arrays: anonymous memory up to a limit, and unlinked temporary files above it.
///
/// Memory that an array no longer needs is kept for the next array. The reason: taking a new page from the system takes
/// several times as long as clearing a used one. Kept memory is always used before new memory is taken, so it does not
/// raise the peak.
#[derive(Clone, Debug)]
pub(crate) struct Store(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    limit: u64,
    used: AtomicU64,
    /// Memory to reuse. `None` after the analysis, when no memory is kept for reuse.
    kept: Mutex<Option<Vec<Pages>>>,
    dir: PathBuf,
}

impl Store {
    pub(crate) fn new(limit: Option<u64>) -> Self {
        Self(Arc::new(Shared {
            limit: limit.unwrap_or(u64::MAX),
            used: AtomicU64::new(0),
            kept: Mutex::new(Some(Vec::new())),
            dir: std::env::temp_dir(),
        }))
    }

    /// Returns an array of zeros. New pages take memory when they are written first.
    pub(crate) fn zeroed<T: Pod>(&self, len: usize) -> Result<Array<T>> {
        let bytes = byte_len::<T>(len)?;
        Ok(Array {
            memory: self.take(bytes)?,
            len,
            store: self.clone(),
            charged: bytes as u64,
            _of: std::marker::PhantomData,
        })
    }

    /// Runs `work`, which uses only this thread. Meanwhile, another thread takes up to `bytes` of memory from the
    /// system for the arrays that will be created next. The reason: the first access to a new page takes longer than
    /// all later work on it.
    pub(crate) fn preparing<R>(&self, bytes: u64, work: impl FnOnce() -> R) -> R {
        let used = self.0.used.load(Ordering::Relaxed);
        // Only large pages are kept.
        let is_small = bytes < 2 * Pages::LARGE as u64;
        let is_over_limit = used.saturating_add(bytes) > self.0.limit;
        if is_small || is_over_limit || rayon::current_num_threads() < 2 {
            return work();
        }
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // If there is not enough memory, ignore this here. The arrays that need the memory report the error
                // later.
                if let Ok(pages) = Pages::new(usize::try_from(bytes).unwrap_or(0)) {
                    self.keep(pages.prefault(&done));
                }
            });
            let result = work();
            done.store(true, Ordering::Relaxed);
            result
        })
    }

    /// Returns the total size of all arrays in bytes.
    #[cfg(test)]
    pub(crate) fn used(&self) -> u64 {
        self.0.used.load(Ordering::Relaxed)
    }

    /// Returns kept memory to the system. Call this before a step that does not use the kept memory.
    pub(crate) fn release_kept(&self) {
        if let Some(kept) = &mut *self.lock_kept() {
            kept.clear();
        }
    }

    /// From now on, memory that is dropped is kept for reuse, because another analysis starts and needs it.
    pub(crate) fn start_keeping(&self) {
        self.lock_kept().get_or_insert_default();
    }

    /// Gives the memory that was kept for reuse back to the system. From now on, dropped memory goes back to the system
    /// at once.
    pub(crate) fn stop_keeping(&self) {
        *self.lock_kept() = None;
    }

    fn lock_kept(&self) -> std::sync::MutexGuard<'_, Option<Vec<Pages>>> {
        self.0.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, pages: Pages) {
        if let Some(pages) = pages.large_part()
            && let Some(kept) = &mut *self.lock_kept()
        {
            kept.push(pages);
        }
    }

    /// Allocates zeroed memory.
    fn take(&self, bytes: usize) -> Result<Memory> {
        let before = self.0.used.fetch_add(bytes as u64, Ordering::Relaxed);
        let spill = before.saturating_add(bytes as u64) > self.0.limit;
        let taken = if bytes <= SMALL {
            Ok(Memory::Small(vec![0; bytes.div_ceil(size_of::<u64>())]))
        } else if spill {
            mem::scratch(&self.0.dir, bytes).map(Memory::File)
        } else {
            Pages::new(bytes).and_then(|mut pages| {
                self.reuse_pages(&mut pages, 0, bytes)?;
                Ok(Memory::Pages(pages))
            })
        };
        taken.map_err(|source| {
            self.0.used.fetch_sub(bytes as u64, Ordering::Relaxed);
            Error::Memory {
                bytes: bytes as u64,
                source,
            }
        })
    }

    /// Replaces new pages of the array, after the offset `from`, with memory pages that were kept for reuse. Clears the
    /// reused pages. Replaces only large pages that lie completely within the first `bytes` bytes.
    ///
    /// # Errors
    /// Returns an error if pages cannot be moved and there is no memory to copy them to. The pages before the offset
    /// are not changed.
    fn reuse_pages(&self, pages: &mut Pages, from: usize, bytes: usize) -> io::Result<()> {
        let full = bytes / Pages::LARGE * Pages::LARGE;
        let mut filled = from;
        let mut result = Ok(());
        while pages.is_large() && filled < full {
            let Some(mut piece) = self.lock_kept().as_mut().and_then(Vec::pop) else {
                break;
            };
            let left = full - filled;
            if piece.len() > left {
                let rest = piece.split_off(left);
                self.keep(rest);
            }
            let moved = piece.len();
            result = pages.adopt(filled, piece);
            if result.is_err() {
                break;
            }
            filled += moved;
        }
        pages.bytes_mut()[from..filled]
            .par_chunks_mut(1 << 20)
            .for_each(|part| part.fill(0));
        result
    }
}

fn byte_len<T>(len: usize) -> Result<usize> {
    len.checked_mul(size_of::<T>())
        .filter(|&b| b <= isize::MAX as usize / 2)
        .ok_or(Error::Limit {
            what: "array elements",
            count: len as u64,
            limit: isize::MAX as u64 / 2,
        })
}

/// The maximum size in bytes of an array in the Rust heap. Mapping memory for it would take longer than most work on it.
const SMALL: usize = 1 << 12;

/// The memory of the elements.
#[derive(Debug)]
enum Memory {
    Pages(Pages),
    /// At most [`SMALL`] bytes.
    Small(Vec<u64>),
    File(MmapMut),
    /// A part of a read-only file, for a [`Column`] (an array that is only read).
    Part(Arc<MappedFile>, Range<usize>),
}

impl Memory {
    #[inline(always)]
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Pages(pages) => pages.bytes(),
            Self::Small(words) => bytemuck::cast_slice(words),
            Self::File(map) => map,
            Self::Part(map, range) => &map[range.start..range.end],
        }
    }

    #[inline(always)]
    fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Pages(pages) => pages.bytes_mut(),
            Self::Small(words) => bytemuck::cast_slice_mut(words),
            Self::File(map) => map,
            // A column is read-only.
            Self::Part(..) => &mut [],
        }
    }
}

/// A flat array. A large array is in mapped memory, and grows without a copy if the system can move pages.
#[derive(Debug)]
pub(crate) struct Array<T: Pod> {
    memory: Memory,
    len: usize,
    store: Store,
    charged: u64,
    _of: std::marker::PhantomData<T>,
}

impl<T: Pod> Array<T> {
    /// Changes the length. New elements are zero.
    pub(crate) fn resize(&mut self, len: usize) -> Result<()> {
        let bytes = byte_len::<T>(len)?;
        let capacity = self.memory.bytes().len();
        if bytes > capacity {
            // The capacity grows by at least half. Anonymous pages take memory only when they are written.
            self.grow(bytes.max(capacity + capacity / 2).max(1 << 16))?;
        } else if len < self.len {
            let old = self.len * size_of::<T>();
            self.memory.bytes_mut()[bytes..old].fill(0);
        }
        self.len = len;
        Ok(())
    }

    /// Frees the memory after the last element.
    pub(crate) fn shrink_to_fit(&mut self) -> Result<()> {
        self.cut(self.len)
    }

    /// Shortens the array to at most `len` elements, and frees the memory after these elements without clearing it
    /// first.
    pub(crate) fn cut(&mut self, len: usize) -> Result<()> {
        let old = byte_len::<T>(self.len)?;
        self.len = self.len.min(len);
        let bytes = byte_len::<T>(self.len)?;
        match &mut self.memory {
            Memory::Pages(pages) => {
                // The pages after the old end of the array were never written, so they take no memory. There is nothing
                // to keep for reuse.
                drop(pages.split_off(old));
                let rest = pages.split_off(bytes);
                // Clear the bytes after the last element in its page, because they become elements again if the array
                // grows.
                let shared = old.min(pages.len());
                pages.bytes_mut()[bytes..shared.max(bytes)].fill(0);
                self.adjust_charge(bytes as u64);
                self.store.keep(rest);
                Ok(())
            }
            Memory::Small(_) | Memory::File(_) | Memory::Part(..) => self.copy_to(bytes),
        }
    }

    /// Shortens the array. If it is in anonymous memory, returns the pages after the new end to the system. Copies no
    /// elements. This is for an array that is consumed from its end while other arrays grow.
    pub(crate) fn truncate_and_release(&mut self, len: usize) {
        let old = self.len * size_of::<T>();
        self.len = self.len.min(len);
        let bytes = self.len * size_of::<T>();
        match &mut self.memory {
            Memory::Pages(pages) => {
                drop(pages.split_off(bytes));
                let shared = old.min(pages.len()).max(bytes);
                pages.bytes_mut()[bytes..shared].fill(0);
                self.adjust_charge(bytes as u64);
            }
            memory => {
                if let Some(rest) = memory.bytes_mut().get_mut(bytes..old) {
                    rest.fill(0);
                }
            }
        }
    }

    /// Appends elements.
    pub(crate) fn extend(&mut self, more: &[T]) -> Result<()> {
        let at = self.len;
        self.resize(at + more.len())?;
        self[at..].copy_from_slice(more);
        Ok(())
    }

    fn grow(&mut self, bytes: usize) -> Result<()> {
        let used = self.store.0.used.load(Ordering::Relaxed) - self.charged;
        let fits = used.saturating_add(bytes as u64) <= self.store.0.limit;
        if fits && let Memory::Pages(pages) = &mut self.memory {
            let old = pages.len();
            // Memory that is kept for reuse consists of large pages, which must start at a multiple of their size. So
            // nothing is reused if the array's old pages end inside a large page.
            let filled = pages.grow(bytes).and_then(|()| {
                if old.is_multiple_of(Pages::LARGE) {
                    self.store.reuse_pages(pages, old, bytes)
                } else {
                    Ok(())
                }
            });
            match filled {
                Ok(()) => {
                    self.adjust_charge(bytes as u64);
                    return Ok(());
                }
                Err(source) if pages.len() < old => {
                    // Growing failed, and the elements of the array are lost.
                    self.len = 0;
                    return Err(Error::Memory {
                        bytes: bytes as u64,
                        source,
                    });
                }
                Err(_) => {}
            }
        }
        self.copy_to(bytes)
    }

    fn copy_to(&mut self, bytes: usize) -> Result<()> {
        let mut memory = self.store.take(bytes)?;
        let keep = (self.len * size_of::<T>()).min(bytes);
        memory.bytes_mut()[..keep].copy_from_slice(&self.memory.bytes()[..keep]);
        self.memory = memory;
        self.store.0.used.fetch_sub(self.charged, Ordering::Relaxed);
        self.charged = bytes as u64;
        Ok(())
    }

    fn adjust_charge(&mut self, bytes: u64) {
        self.store.0.used.fetch_add(bytes, Ordering::Relaxed);
        self.store.0.used.fetch_sub(self.charged, Ordering::Relaxed);
        self.charged = bytes;
    }
}

impl<T: Pod> Drop for Array<T> {
    fn drop(&mut self) {
        self.store.0.used.fetch_sub(self.charged, Ordering::Relaxed);
        let written = self.len * size_of::<T>();
        if let Memory::Pages(pages) = &mut self.memory {
            drop(pages.split_off(written));
            let all = pages.split_off(0);
            self.store.keep(all);
        }
    }
}

impl<T: Pod> Deref for Array<T> {
    type Target = [T];
    #[inline(always)]
    fn deref(&self) -> &[T] {
        bytemuck::cast_slice(&self.memory.bytes()[..self.len * size_of::<T>()])
    }
}

impl<T: Pod> DerefMut for Array<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        let bytes = self.len * size_of::<T>();
        bytemuck::cast_slice_mut(&mut self.memory.bytes_mut()[..bytes])
    }
}

/// A finished array, which is only read. Its elements may be part of a mapped file.
#[derive(Debug)]
pub(crate) struct Column<T: Pod>(Array<T>);

impl<T: Pod> Column<T> {
    /// Returns a column whose elements are a part of a mapped file. Returns `None` if the range is not within the file.
    /// Also returns `None` if the length of the range is not a multiple of the element size, or if the elements would
    /// not be aligned.
    pub(crate) fn part(map: &Arc<MappedFile>, range: Range<usize>, store: &Store) -> Option<Self> {
        let elements: &[T] = bytemuck::try_cast_slice(map.get(range.clone())?).ok()?;
        Some(Self(Array {
            len: elements.len(),
            memory: Memory::Part(map.clone(), range),
            store: store.clone(),
            charged: 0,
            _of: std::marker::PhantomData,
        }))
    }
}

impl<T: Pod> From<Array<T>> for Column<T> {
    fn from(array: Array<T>) -> Self {
        Self(array)
    }
}

impl<T: Pod> Deref for Column<T> {
    type Target = [T];
    #[inline(always)]
    fn deref(&self) -> &[T] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grows_and_keeps(store: &Store) {
        let mut a = store.zeroed::<u32>(0).unwrap();
        for i in 0..300_000_u32 {
            if i % 1000 == 0 {
                a.extend(&(i..i + 1000).collect::<Vec<_>>()).unwrap();
            }
        }
        assert_eq!(a.len(), 300_000);
        assert!(a.iter().enumerate().all(|(i, &v)| i as u32 == v));
        a.resize(10).unwrap();
        a.resize(20).unwrap();
        assert_eq!(&a[8..12], &[8, 9, 0, 0]);
        a.shrink_to_fit().unwrap();
        assert_eq!(a[9], 9);
    }

    #[test]
    fn anonymous_arrays_grow_in_place() {
        grows_and_keeps(&Store::new(None));
    }

    #[test]
    fn arrays_beyond_the_limit_are_stored_in_files() {
        let store = Store::new(Some(100_000));
        grows_and_keeps(&store);
        assert_eq!(store.0.used.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn dropped_memory_is_cleared_and_reused() {
        let store = Store::new(None);
        let lens = [3_000_000_usize, 1_200_000, 5_000_000, 2_500_001, 100_000];
        let mut held = Vec::new();
        for (round, &len) in lens.iter().cycle().take(20).enumerate() {
            let mut array = store.zeroed::<u32>(len).unwrap();
            assert!(array.iter().all(|&v| v == 0), "round {round}");
            array.fill(round as u32 + 1);
            array.cut(len - len / 3).unwrap();
            held.push((round as u32 + 1, array));
            if round % 3 == 2 {
                held.remove(0);
            }
            let grown = &mut held[0].1;
            let more = grown.len() + 700_000;
            grown.resize(more).unwrap();
            assert!(grown[more - 700_000..].iter().all(|&v| v == 0));
            let value = grown[0];
            grown[more - 700_000..].fill(value);
            for (value, array) in &held {
                assert!(array.iter().all(|v| v == value), "round {round}");
            }
        }
        drop(held);
        assert_eq!(store.0.used.load(Ordering::Relaxed), 0);
        store.stop_keeping();
    }

    /// If the system refuses to move the pages of an array, the array keeps its elements. If the elements are lost, the
    /// array is empty.
    #[cfg(target_os = "linux")]
    #[test]
    fn arrays_grow_if_pages_cannot_be_moved() {
        use crate::bytes::mem::refusals::{self, Target};
        for how in [Target::Kept, Target::Unmapped, Target::Taken] {
            for len in [30_000_u32, 3_000_000] {
                let store = Store::new(None);
                let mut array = store.zeroed::<u32>(0).unwrap();
                array.extend(&(0..len).collect::<Vec<_>>()).unwrap();
                let capacity = array.memory.bytes().len();
                refusals::MOVE.set(Some((0, how)));
                array.resize(capacity).unwrap();
                assert_eq!(refusals::MOVE.get(), None, "no move was refused");
                let (old, new) = array.split_at(len as usize);
                assert!((0..len).eq(old.iter().copied()), "{how:?}");
                assert!(new.iter().all(|&v| v == 0), "{how:?}");
                assert!(refusals::is_foreign_memory_unchanged(), "{how:?}");
                let capacity = array.memory.bytes().len();
                refusals::MOVE.set(Some((0, how)));
                refusals::MEMORY.set(Some(1));
                assert!(array.resize(capacity).is_err());
                refusals::MEMORY.set(None);
                assert!(array.is_empty(), "{how:?}");
                array.extend(&[7]).unwrap();
                assert_eq!(array[..], [7]);
                drop(array);
                assert_eq!(store.0.used.load(Ordering::Relaxed), 0);
                assert!(refusals::is_foreign_memory_unchanged(), "{how:?}");
            }
        }
    }

    #[test]
    fn empty_arrays_are_allowed() {
        assert!(Store::new(None).zeroed::<u64>(0).unwrap().is_empty());
    }
}
