//! Mapped memory: the dump's bytes and the analysis' flat arrays.
//!
//! This is the one module of the crate with `unsafe` code. Everything it hands out is safe to use,
//! with one stated exception that no program can rule out: a dump file that another process
//! truncates while it is mapped ends this process with SIGBUS.

use std::fs::File;
use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

use bytemuck::Pod;
use memmap2::{Advice, Mmap, MmapMut};

use crate::error::{Error, Result};

/// Maps a whole file for reading.
pub(crate) fn map_file(file: &File) -> std::io::Result<Mmap> {
    // SAFETY: the mapping is private to this process and read-only. That the file does not change
    // beneath us is assumed, as by every tool that maps its input; a change can garble what is
    // read (which the parser must survive anyway) or, on truncation, raise SIGBUS.
    unsafe { Mmap::map(file) }
}

/// Asks the kernel to map a range of the dump at once instead of by one fault for each few pages.
pub(crate) fn populate(map: &Mmap, offset: usize, len: usize) {
    #[cfg(target_os = "linux")]
    {
        // An older kernel says no, and the pages then come one fault at a time.
        let _ = map.advise_range(Advice::PopulateRead, offset, len);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (map, offset, len);
}

/// Views a slice as atomics, for passes in which several threads write to scattered places.
pub(crate) fn as_atomic_u32(slice: &mut [u32]) -> &[AtomicU32] {
    // SAFETY: AtomicU32 has the size and alignment of u32, and the exclusive borrow guarantees
    // that for its duration every access goes through the returned view.
    unsafe { &*(std::ptr::from_mut(slice) as *const [AtomicU32]) }
}

/// As [`as_atomic_u32`], for `u16`.
pub(crate) fn as_atomic_u16(slice: &mut [u16]) -> &[AtomicU16] {
    // SAFETY: as for u32.
    unsafe { &*(std::ptr::from_mut(slice) as *const [AtomicU16]) }
}

/// As [`as_atomic_u32`], for `u64`.
pub(crate) fn as_atomic_u64(slice: &mut [u64]) -> &[AtomicU64] {
    // SAFETY: as for u32; on the targets this builds for, u64 in a mapping is 8-byte aligned.
    unsafe { &*(std::ptr::from_mut(slice) as *const [AtomicU64]) }
}

/// Asks for an element to be brought into the cache, for loops that know early which they will need.
/// On these heaps a miss costs what a hundred instructions do.
#[inline(always)]
pub(crate) fn prefetch<T>(slice: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing and never faults, whatever the address; the address is
    // formed without dereferencing it.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(slice.as_ptr().wrapping_add(index).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slice, index);
}

/// Where the analysis' arrays live: anonymous memory up to a limit, unlinked temporary files
/// beyond it.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    limit: u64,
    used: Arc<AtomicU64>,
    dir: PathBuf,
}

impl Store {
    pub(crate) fn new(limit: Option<u64>) -> Self {
        Self {
            limit: limit.unwrap_or(u64::MAX),
            used: Arc::new(AtomicU64::new(0)),
            dir: std::env::temp_dir(),
        }
    }

    /// An array of zeroes. Pages are taken from the system only when first written.
    pub(crate) fn zeroed<T: Pod>(&self, len: usize) -> Result<Array<T>> {
        let bytes = byte_len::<T>(len)?;
        let (map, spilled) = self.map(bytes)?;
        let charged = bytes as u64;
        Ok(Array {
            map,
            len,
            spilled,
            store: self.clone(),
            charged,
            _of: std::marker::PhantomData,
        })
    }

    /// A mapping, and whether it lives in a file.
    fn map(&self, bytes: usize) -> Result<(MmapMut, bool)> {
        let fail = |source| Error::Memory {
            bytes: bytes as u64,
            source,
        };
        let before = self.used.fetch_add(bytes as u64, Ordering::Relaxed);
        let spilled = before.saturating_add(bytes as u64) > self.limit;
        let mapped = if !spilled {
            MmapMut::map_anon(bytes.max(1)).inspect(|map| {
                // Random access over gigabytes: large pages save most of the address look-ups.
                #[cfg(target_os = "linux")]
                if bytes >= 4 << 20 {
                    let _ = map.advise(Advice::HugePage);
                }
                #[cfg(not(target_os = "linux"))]
                let _ = map;
            })
        } else {
            self.map_spilled(bytes)
        };
        mapped.map(|map| (map, spilled)).map_err(|source| {
            self.used.fetch_sub(bytes as u64, Ordering::Relaxed);
            fail(source)
        })
    }

    fn map_spilled(&self, bytes: usize) -> std::io::Result<MmapMut> {
        let file = tempfile::tempfile_in(&self.dir)?;
        file.set_len(bytes.max(1) as u64)?;
        // SAFETY: the file was made just now and has no name, so no other process can change it.
        unsafe { MmapMut::map_mut(&file) }
    }
}

fn byte_len<T>(len: usize) -> Result<usize> {
    len.checked_mul(size_of::<T>())
        .filter(|&b| b <= isize::MAX as usize)
        .ok_or(Error::Limit {
            what: "array elements",
            count: len as u64,
            limit: isize::MAX as u64,
        })
}

/// A flat array in mapped memory. It grows and shrinks in place, without a copy where the system
/// can move pages.
#[derive(Debug)]
pub(crate) struct Array<T: Pod> {
    map: MmapMut,
    len: usize,
    spilled: bool,
    store: Store,
    charged: u64,
    _of: std::marker::PhantomData<T>,
}

impl<T: Pod> Array<T> {
    /// Changes the length; new elements are zero.
    pub(crate) fn resize(&mut self, len: usize) -> Result<()> {
        let bytes = byte_len::<T>(len)?;
        let capacity = self.map.len();
        if bytes > capacity {
            // Half as much again: reserved addresses, not memory, until it is written.
            self.remap(bytes.max(capacity + capacity / 2).max(1 << 16))?;
        } else if len < self.len {
            let old = self.len * size_of::<T>();
            self.map[bytes..old].fill(0);
        }
        self.len = len;
        Ok(())
    }

    /// Gives the memory beyond the length back.
    pub(crate) fn shrink_to_fit(&mut self) -> Result<()> {
        let bytes = byte_len::<T>(self.len)?.max(1);
        if bytes < self.map.len() {
            self.remap(bytes)
        } else {
            Ok(())
        }
    }

    /// Cuts the array and gives the memory back, without clearing it first.
    pub(crate) fn cut(&mut self, len: usize) -> Result<()> {
        self.len = self.len.min(len);
        self.shrink_to_fit()
    }

    /// Appends the elements of `more`.
    pub(crate) fn extend(&mut self, more: &[T]) -> Result<()> {
        let at = self.len;
        self.resize(at + more.len())?;
        self[at..].copy_from_slice(more);
        Ok(())
    }

    #[cfg(target_os = "linux")]
    fn remap(&mut self, bytes: usize) -> Result<()> {
        let limit = self.store.limit;
        let used = self.store.used.load(Ordering::Relaxed) - self.charged;
        if self.spilled || (limit != u64::MAX && used.saturating_add(bytes as u64) > limit) {
            return self.copy_to(bytes);
        }
        // SAFETY: the mapping is anonymous or of an unlinked file made by us; the exclusive borrow
        // guarantees that no slice of it is alive while it moves.
        let done = unsafe {
            self.map
                .remap(bytes, memmap2::RemapOptions::new().may_move(true))
        };
        match done {
            Ok(()) => {
                self.recharge(bytes as u64);
                #[cfg(target_os = "linux")]
                if bytes >= 4 << 20 {
                    let _ = self.map.advise(Advice::HugePage);
                }
                Ok(())
            }
            Err(_) => self.copy_to(bytes),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn remap(&mut self, bytes: usize) -> Result<()> {
        self.copy_to(bytes)
    }

    fn copy_to(&mut self, bytes: usize) -> Result<()> {
        let (mut map, spilled) = self.store.map(bytes)?;
        let keep = (self.len * size_of::<T>()).min(bytes);
        map[..keep].copy_from_slice(&self.map[..keep]);
        self.map = map;
        self.spilled = spilled;
        self.store.used.fetch_sub(self.charged, Ordering::Relaxed);
        self.charged = bytes as u64;
        Ok(())
    }

    fn recharge(&mut self, bytes: u64) {
        self.store.used.fetch_add(bytes, Ordering::Relaxed);
        self.store.used.fetch_sub(self.charged, Ordering::Relaxed);
        self.charged = bytes;
    }
}

impl<T: Pod> Drop for Array<T> {
    fn drop(&mut self) {
        self.store.used.fetch_sub(self.charged, Ordering::Relaxed);
    }
}

impl<T: Pod> Deref for Array<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        bytemuck::cast_slice(&self.map[..self.len * size_of::<T>()])
    }
}

impl<T: Pod> DerefMut for Array<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        let bytes = self.len * size_of::<T>();
        bytemuck::cast_slice_mut(&mut self.map[..bytes])
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
    fn arrays_past_the_limit_live_in_files() {
        let store = Store::new(Some(100_000));
        grows_and_keeps(&store);
        assert_eq!(store.used.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn empty_arrays_are_allowed() {
        assert!(Store::new(None).zeroed::<u64>(0).unwrap().is_empty());
    }
}
