//! Mapped memory: the dump's bytes and the analysis' flat arrays.
//!
//! This is the one module of the crate with `unsafe` code. Everything it hands out is safe to use,
//! with one stated exception that no program can rule out: a dump file that another process
//! truncates while it is mapped ends this process with SIGBUS.

use std::fs::File;
use std::ops::{Deref, DerefMut, Range};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytemuck::Pod;
use memmap2::{Mmap, MmapMut};
use rayon::prelude::*;

use self::pages::Pages;
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
        let _ = map.advise_range(memmap2::Advice::PopulateRead, offset, len);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (map, offset, len);
}

/// Gives memory that the general allocator holds for later back to the system.
pub(crate) fn trim_heap() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: the allocator's own function; it touches no memory in use.
    unsafe {
        libc::malloc_trim(0);
    }
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
///
/// Memory that an array no longer needs is kept for the next one: taking a page from the system
/// for the first time costs several times what clearing it costs. Kept memory is always used up
/// before new memory is taken, so it never raises the peak.
#[derive(Clone, Debug)]
pub(crate) struct Store(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    limit: u64,
    used: AtomicU64,
    /// `None` when the analysis is over and nothing is kept any more.
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

    /// An array of zeroes. Fresh pages are taken from the system only when first written.
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

    /// Does `work`, which keeps one core busy, and meanwhile takes up to `bytes` of memory from the
    /// system for the arrays that come next: a page's first touch takes longer than its use.
    pub(crate) fn preparing<R>(&self, bytes: u64, work: impl FnOnce() -> R) -> R {
        let used = self.0.used.load(Ordering::Relaxed);
        if used.saturating_add(bytes) > self.0.limit || rayon::current_num_threads() < 2 {
            return work();
        }
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // Without memory to prepare the arrays will say so themselves.
                if let Ok(pages) = Pages::new(usize::try_from(bytes).unwrap_or(0)) {
                    self.keep(pages.touched(&done));
                }
            });
            let result = work();
            done.store(true, Ordering::Relaxed);
            result
        })
    }

    /// From now on keeps what is dropped, for another analysis.
    pub(crate) fn keep_again(&self) {
        self.kept().get_or_insert_default();
    }

    /// Gives kept memory back to the system, and from now on what is dropped, too.
    pub(crate) fn stop_keeping(&self) {
        *self.kept() = None;
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Option<Vec<Pages>>> {
        self.0.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, pages: Pages) {
        if let Some(pages) = pages.large_part()
            && let Some(kept) = &mut *self.kept()
        {
            kept.push(pages);
        }
    }

    /// Memory of zeroes.
    fn take(&self, bytes: usize) -> Result<Memory> {
        let before = self.0.used.fetch_add(bytes as u64, Ordering::Relaxed);
        let spill = before.saturating_add(bytes as u64) > self.0.limit;
        let taken = if spill {
            self.spilled(bytes).map(Memory::File)
        } else {
            Pages::new(bytes).map(|mut pages| {
                self.fill_from_kept(&mut pages, 0);
                Memory::Pages(pages)
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

    /// Puts kept pages, cleared, in the place of those from an offset on, which are fresh.
    fn fill_from_kept(&self, pages: &mut Pages, from: usize) {
        let mut filled = from;
        while pages.is_large() && filled < pages.len() {
            let Some(mut piece) = self.kept().as_mut().and_then(Vec::pop) else {
                break;
            };
            let left = pages.len() - filled;
            if piece.len() > left {
                let rest = piece.split_off(left);
                self.keep(rest);
            }
            let moved = piece.len();
            if pages.adopt(filled, piece).is_err() {
                break;
            }
            filled += moved;
        }
        pages.bytes_mut()[from..filled]
            .par_chunks_mut(1 << 20)
            .for_each(|part| part.fill(0));
    }

    fn spilled(&self, bytes: usize) -> std::io::Result<MmapMut> {
        let file = tempfile::tempfile_in(&self.0.dir)?;
        file.set_len(bytes.max(1) as u64)?;
        // SAFETY: the file was made just now and has no name, so no other process can change it.
        unsafe { MmapMut::map_mut(&file) }
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

/// What an array's elements are in.
#[derive(Debug)]
enum Memory {
    Pages(Pages),
    File(MmapMut),
    /// Part of a file that is only read, of a [`Column`].
    Part(Arc<Mmap>, Range<usize>),
}

impl Memory {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Pages(pages) => pages.bytes(),
            Self::File(map) => map,
            Self::Part(map, range) => &map[range.start..range.end],
        }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Pages(pages) => pages.bytes_mut(),
            Self::File(map) => map,
            // A column is never written to.
            Self::Part(..) => &mut [],
        }
    }
}

/// A flat array in mapped memory. It grows without a copy where the system can move pages.
#[derive(Debug)]
pub(crate) struct Array<T: Pod> {
    memory: Memory,
    len: usize,
    store: Store,
    charged: u64,
    _of: std::marker::PhantomData<T>,
}

impl<T: Pod> Array<T> {
    /// Changes the length; new elements are zero.
    pub(crate) fn resize(&mut self, len: usize) -> Result<()> {
        let bytes = byte_len::<T>(len)?;
        let capacity = self.memory.bytes().len();
        if bytes > capacity {
            // Half as much again: reserved addresses, not memory, until it is written.
            self.grow(bytes.max(capacity + capacity / 2).max(1 << 16))?;
        } else if len < self.len {
            let old = self.len * size_of::<T>();
            self.memory.bytes_mut()[bytes..old].fill(0);
        }
        self.len = len;
        Ok(())
    }

    /// Gives the memory beyond the length back.
    pub(crate) fn shrink_to_fit(&mut self) -> Result<()> {
        self.cut(self.len)
    }

    /// Cuts the array and gives the memory back, without clearing it first.
    pub(crate) fn cut(&mut self, len: usize) -> Result<()> {
        let old = byte_len::<T>(self.len)?;
        self.len = self.len.min(len);
        let bytes = byte_len::<T>(self.len)?;
        match &mut self.memory {
            Memory::Pages(pages) => {
                // What lies beyond the old length was never written, so it is no memory to keep.
                drop(pages.split_off(old));
                let rest = pages.split_off(bytes);
                // What shares the last page with the elements may become elements again.
                let shared = old.min(pages.len());
                pages.bytes_mut()[bytes..shared.max(bytes)].fill(0);
                self.recharge(bytes as u64);
                self.store.keep(rest);
                Ok(())
            }
            Memory::File(_) | Memory::Part(..) => self.copy_to(bytes),
        }
    }

    /// Appends the elements of `more`.
    pub(crate) fn extend(&mut self, more: &[T]) -> Result<()> {
        let at = self.len;
        self.resize(at + more.len())?;
        self[at..].copy_from_slice(more);
        Ok(())
    }

    fn grow(&mut self, bytes: usize) -> Result<()> {
        let used = self.store.0.used.load(Ordering::Relaxed) - self.charged;
        let fits = used.saturating_add(bytes as u64) <= self.store.0.limit;
        if fits
            && let Memory::Pages(pages) = &mut self.memory
            && let old = pages.len()
            && pages.grow(bytes).is_ok()
        {
            // Only what large pages hold is kept, so nothing is where the old pages end within one.
            if old.is_multiple_of(Pages::LARGE) {
                self.store.fill_from_kept(pages, old);
            }
            self.recharge(bytes as u64);
            return Ok(());
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

    fn recharge(&mut self, bytes: u64) {
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
    fn deref(&self) -> &[T] {
        bytemuck::cast_slice(&self.memory.bytes()[..self.len * size_of::<T>()])
    }
}

impl<T: Pod> DerefMut for Array<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        let bytes = self.len * size_of::<T>();
        bytemuck::cast_slice_mut(&mut self.memory.bytes_mut()[..bytes])
    }
}

/// An array that is finished: read, and no longer changed. Its elements may be part of a mapped file.
#[derive(Debug)]
pub(crate) struct Column<T: Pod>(Array<T>);

impl<T: Pod> Column<T> {
    /// Elements that are part of a mapped file; `None` when the range is not within it, or not of whole
    /// and aligned elements.
    pub(crate) fn part(map: &Arc<Mmap>, range: Range<usize>, store: &Store) -> Option<Self> {
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
    fn deref(&self) -> &[T] {
        &self.0
    }
}

#[cfg(target_os = "linux")]
mod pages {
    use std::io::{Error, Result};
    use std::ptr::NonNull;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Anonymous memory, mapped. It can be cut apart and put together, since the system moves
    /// pages between addresses without touching them.
    #[derive(Debug)]
    pub(super) struct Pages {
        at: NonNull<u8>,
        /// Bytes mapped, a multiple of [`Pages::SMALL`]; nothing is mapped when zero.
        len: usize,
        /// Where stretches begin that came from other mappings, ascending: the system moves each
        /// only by itself.
        seams: Vec<usize>,
    }

    // SAFETY: the memory belongs to this value alone, like a Vec's.
    unsafe impl Send for Pages {}
    // SAFETY: shared access only reads.
    unsafe impl Sync for Pages {}

    impl Pages {
        /// Large mappings are of and aligned to large pages: random access over gigabytes then
        /// spares most address look-ups.
        pub(super) const LARGE: usize = 2 << 20;
        const SMALL: usize = 4096;

        pub(super) fn new(bytes: usize) -> Result<Self> {
            let large = bytes >= Self::LARGE * 2;
            let unit = if large { Self::LARGE } else { Self::page() };
            let len = bytes.max(1).next_multiple_of(unit);
            let whole = if large { len + Self::LARGE } else { len };
            // SAFETY: a new anonymous mapping at an address of the system's choice.
            let at = unsafe {
                libc::mmap(
                    std::ptr::null_mut(),
                    whole,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                    -1,
                    0,
                )
            };
            if at == libc::MAP_FAILED {
                return Err(Error::last_os_error());
            }
            let at = NonNull::new(at.cast::<u8>()).ok_or_else(Error::last_os_error)?;
            let mut pages = Self {
                at,
                len: whole,
                seams: Vec::new(),
            };
            if large {
                let skip = at.as_ptr().align_offset(Self::LARGE);
                pages = pages.split_off(skip);
                drop(pages.split_off(len));
                // SAFETY: the range is this value's. Advice that is not taken changes nothing.
                unsafe {
                    libc::madvise(pages.at.as_ptr().cast(), pages.len, libc::MADV_HUGEPAGE);
                }
            }
            Ok(pages)
        }

        /// Touches the pages one after the other, until told to stop; gives the rest back.
        pub(super) fn touched(mut self, stop: &AtomicBool) -> Self {
            let mut touched = 0;
            for large in self.bytes_mut().chunks_mut(Self::LARGE) {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                touched += large.len();
                for page in large.chunks_mut(Self::SMALL) {
                    page[0] = 0;
                }
            }
            drop(self.split_off(touched));
            self
        }

        fn page() -> usize {
            // SAFETY: reads a constant of the system.
            let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
            usize::try_from(page)
                .unwrap_or(Self::SMALL)
                .max(Self::SMALL)
        }

        pub(super) fn len(&self) -> usize {
            self.len
        }

        pub(super) fn bytes(&self) -> &[u8] {
            // SAFETY: `len` bytes are mapped and readable, and zero or written since; when nothing
            // is mapped the pointer is at least not null.
            unsafe { std::slice::from_raw_parts(self.at.as_ptr(), self.len) }
        }

        pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
            // SAFETY: as above, and the exclusive borrow keeps all others away.
            unsafe { std::slice::from_raw_parts_mut(self.at.as_ptr(), self.len) }
        }

        /// Cuts the pages off that lie wholly beyond `bytes`.
        pub(super) fn split_off(&mut self, bytes: usize) -> Self {
            let unit = if bytes >= Self::LARGE && self.is_aligned() {
                Self::LARGE
            } else {
                Self::page()
            };
            let keep = bytes.next_multiple_of(unit).min(self.len);
            let index = self.seams.partition_point(|&s| s < keep);
            let seams = self.seams.split_off(index);
            let rest = Self {
                // SAFETY: `keep` is within the mapping or its end.
                at: unsafe { self.at.add(keep) },
                len: self.len - keep,
                seams: seams
                    .into_iter()
                    .filter(|&s| s > keep)
                    .map(|s| s - keep)
                    .collect(),
            };
            self.len = keep;
            rest
        }

        fn is_aligned(&self) -> bool {
            self.at.as_ptr().align_offset(Self::LARGE) == 0
        }

        /// Whether this is made of large pages.
        pub(super) fn is_large(&self) -> bool {
            self.len >= Self::LARGE * 2 && self.len.is_multiple_of(Self::LARGE) && self.is_aligned()
        }

        /// The part that is made of large pages; the rest is given back.
        pub(super) fn large_part(mut self) -> Option<Self> {
            let skip = self.at.as_ptr().align_offset(Self::LARGE).min(self.len);
            let mut part = self.split_off(skip);
            drop(part.split_off(part.len / Self::LARGE * Self::LARGE));
            part.is_large().then_some(part)
        }

        /// Moves another mapping's pages here, in the place of those at an offset.
        pub(super) fn adopt(&mut self, offset: usize, mut from: Self) -> Result<()> {
            if !offset.is_multiple_of(Self::page()) || from.len > self.len - offset {
                return Err(Error::from(std::io::ErrorKind::InvalidInput));
            }
            let mut at = offset + from.len;
            let end = at;
            // From the last stretch to the first, so that what is left of `from` stays one range.
            let mut starts = std::mem::take(&mut from.seams);
            starts.insert(0, 0);
            for &start in starts.iter().rev() {
                let len = from.len - start;
                at -= len;
                // SAFETY: the source range is mapped and `from`'s alone, and is taken off it; the
                // target range is mapped and ours, and exclusively borrowed.
                let moved = unsafe {
                    libc::mremap(
                        from.at.as_ptr().add(start).cast(),
                        len,
                        len,
                        libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED,
                        self.at.as_ptr().add(at).cast::<libc::c_void>(),
                    )
                };
                if moved == libc::MAP_FAILED {
                    // Rare (too many mappings): copy what is left.
                    let left = from.len;
                    self.bytes_mut()[offset..offset + left].copy_from_slice(from.bytes());
                    break;
                }
                from.len = start;
            }
            self.seams.retain(|&s| s < offset || s > end);
            self.seams
                .extend(starts.iter().map(|s| offset + s).filter(|&s| s > 0));
            self.seams
                .extend([end].into_iter().filter(|&e| e < self.len));
            self.seams.sort_unstable();
            self.seams.dedup();
            Ok(())
        }

        /// Maps more pages at the end, elsewhere if need be.
        pub(super) fn grow(&mut self, bytes: usize) -> Result<()> {
            let mut larger = Self::new(bytes)?;
            let none = Self {
                at: self.at,
                len: 0,
                seams: Vec::new(),
            };
            larger.adopt(0, std::mem::replace(self, none))?;
            *self = larger;
            Ok(())
        }
    }

    impl Drop for Pages {
        fn drop(&mut self) {
            if self.len > 0 {
                // SAFETY: the range is mapped and this value's alone.
                unsafe {
                    libc::munmap(self.at.as_ptr().cast(), self.len);
                }
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod pages {
    use std::io::{Error, ErrorKind, Result};
    use std::sync::atomic::AtomicBool;

    use memmap2::MmapMut;

    /// Anonymous memory, mapped. Where pages cannot be moved it is never cut apart, and nothing
    /// is kept.
    #[derive(Debug)]
    pub(super) struct Pages(Option<MmapMut>);

    impl Pages {
        pub(super) const LARGE: usize = usize::MAX;

        pub(super) fn new(bytes: usize) -> Result<Self> {
            MmapMut::map_anon(bytes.max(1)).map(|map| Self(Some(map)))
        }

        /// Nothing is prepared where nothing is kept.
        pub(super) fn touched(self, _: &AtomicBool) -> Self {
            self
        }

        pub(super) fn len(&self) -> usize {
            self.bytes().len()
        }

        pub(super) fn bytes(&self) -> &[u8] {
            self.0.as_deref().unwrap_or_default()
        }

        pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
            self.0.as_deref_mut().unwrap_or_default()
        }

        pub(super) fn split_off(&mut self, _: usize) -> Self {
            Self(None)
        }

        pub(super) fn is_large(&self) -> bool {
            false
        }

        pub(super) fn large_part(self) -> Option<Self> {
            None
        }

        pub(super) fn adopt(&mut self, _: usize, _: Self) -> Result<()> {
            Err(Error::from(ErrorKind::Unsupported))
        }

        pub(super) fn grow(&mut self, _: usize) -> Result<()> {
            Err(Error::from(ErrorKind::Unsupported))
        }
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
        assert_eq!(store.0.used.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn dropped_memory_serves_the_next_arrays_cleared() {
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

    #[test]
    fn empty_arrays_are_allowed() {
        assert!(Store::new(None).zeroed::<u64>(0).unwrap().is_empty());
    }
}
