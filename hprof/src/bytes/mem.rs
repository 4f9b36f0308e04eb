//! Mapped memory (files, scratch files, anonymous pages), slices as atomics, and prefetching.
//!
//! This module has all `unsafe` code of the crate. Its functions are safe to use, with one exception that no program
//! can exclude: if another process truncates a dump file while it is mapped, reading it raises SIGBUS. [`faults`] can
//! convert the signal to an error.

use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64};

use memmap2::{Mmap, MmapMut};

use crate::bytes::disk;

pub(crate) mod faults;

pub(crate) use self::pages::Pages;
#[cfg(all(test, target_os = "linux"))]
pub(crate) use self::pages::refusals;

/// Maps a whole file for reading.
pub(crate) fn map_file(file: &File) -> std::io::Result<Mmap> {
    // SAFETY: the mapping is private to this process and read-only. We assume that the file does not change, like every
    // tool that maps its input. A change can garble the data, which the parser must survive anyway. A truncation can
    // raise SIGBUS (see `faults`).
    unsafe { Mmap::map(file) }
}

/// Maps `bytes` zeros in a new file without a name. The space on the disk is reserved from the start.
pub(crate) fn scratch(dir: &Path, bytes: usize) -> std::io::Result<MmapMut> {
    let file = disk::reserved_file(dir, bytes.max(1) as u64)?;
    // SAFETY: the file is new and has no name, so no other process can change it. It is mapped only here.
    unsafe { MmapMut::map_mut(&file) }
}

/// Asks the kernel to map the pages of a range of the dump in one call. Without this call, every few pages that are
/// read cause a page fault.
pub(crate) fn populate(map: &Mmap, offset: usize, len: usize) {
    #[cfg(target_os = "linux")]
    {
        // Older kernels return an error. Then the pages are mapped one fault at a time.
        let _ = map.advise_range(memmap2::Advice::PopulateRead, offset, len);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (map, offset, len);
}

/// Returns free memory of the general allocator to the system.
pub(crate) fn trim_heap() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: `malloc_trim` only returns memory that is not in use.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Views a slice as atomics, so that several threads can write to scattered elements.
pub(crate) fn as_atomic_u32(slice: &mut [u32]) -> &[AtomicU32] {
    const { assert!(align_of::<AtomicU32>() == align_of::<u32>()) }
    // SAFETY: `AtomicU32` has the size and the representation of `u32`. The assertion shows that it has the same
    // alignment. Because of the exclusive borrow, all accesses go through the returned view while it exists.
    unsafe { &*(std::ptr::from_mut(slice) as *const [AtomicU32]) }
}

/// Views a slice of `u16` as atomics, like [`as_atomic_u32`].
pub(crate) fn as_atomic_u16(slice: &mut [u16]) -> &[AtomicU16] {
    const { assert!(align_of::<AtomicU16>() == align_of::<u16>()) }
    // SAFETY: `AtomicU16` has the size, the representation and, as asserted, the alignment of `u16`. The borrow is
    // exclusive.
    unsafe { &*(std::ptr::from_mut(slice) as *const [AtomicU16]) }
}

/// Views a slice of `u64` as atomics, like [`as_atomic_u32`]. Does not compile on 32-bit x86, where the alignment of
/// `u64` is smaller than that of `AtomicU64`.
pub(crate) fn as_atomic_u64(slice: &mut [u64]) -> &[AtomicU64] {
    const { assert!(align_of::<AtomicU64>() == align_of::<u64>()) }
    // SAFETY: `AtomicU64` has the size, the representation and, as asserted, the alignment of `u64`. The borrow is
    // exclusive.
    unsafe { &*(std::ptr::from_mut(slice) as *const [AtomicU64]) }
}

/// Prefetches an element into the cache, for loops that know early which elements they need. On large heaps, a cache
/// miss takes as long as a hundred instructions.
#[inline(always)]
pub(crate) fn prefetch<T>(slice: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch does not access memory in a way that can fault, whatever the address is. `wrapping_add`
    // computes the address without dereferencing it.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(slice.as_ptr().wrapping_add(index).cast());
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a prefetch cannot fault, whatever the address is. `wrapping_add` computes the address without
    // dereferencing it. The instruction changes neither memory nor flags.
    unsafe {
        std::arch::asm!(
            "prfm pldl1keep, [{0}]",
            in(reg) slice.as_ptr().wrapping_add(index),
            options(nostack, preserves_flags, readonly),
        );
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = (slice, index);
}

/// A computation whose loops count the one bits in words. See [`with_popcnt`].
pub(crate) trait BitCounting {
    /// Does the work. Implementations are inlined, so that the compiler can use the same processor instructions as in
    /// the caller.
    fn run(self);
}

/// Does the work with the processor's instruction for counting bits, if it has one. Code that is compiled for all
/// processors of the architecture takes a dozen instructions to count bits.
#[inline]
pub(crate) fn with_popcnt(work: impl BitCounting) {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "popcnt")]
        fn with_instruction(work: impl BitCounting) {
            work.run();
        }
        if std::arch::is_x86_feature_detected!("popcnt") {
            // SAFETY: the processor supports `popcnt`, as checked above.
            unsafe { with_instruction(work) };
            return;
        }
    }
    work.run();
}

#[cfg(target_os = "linux")]
mod pages {
    use std::io::{Error, ErrorKind, Result};
    use std::ops::Range;
    use std::ptr::NonNull;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Anonymous mapped memory. It can be split and joined, because the system can move pages to other addresses
    /// without copying them.
    #[derive(Debug)]
    pub(crate) struct Pages {
        at: NonNull<u8>,
        /// Number of mapped bytes, a multiple of [`Pages::SMALL`]. If zero, nothing is mapped.
        len: usize,
        /// The boundaries between the kernel's mappings of which this memory consists, as ascending offsets. The system
        /// can move only one mapping at a time.
        seams: Vec<usize>,
    }

    // SAFETY: this value owns the memory exclusively, like a `Vec`.
    unsafe impl Send for Pages {}
    // SAFETY: no method writes through a shared reference.
    unsafe impl Sync for Pages {}

    impl Pages {
        /// Large mappings consist of large pages and are aligned to them. Random access to gigabytes then needs far
        /// fewer address translations.
        pub(crate) const LARGE: usize = 2 << 20;
        const SMALL: usize = 4096;

        pub(crate) fn new(bytes: usize) -> Result<Self> {
            let large = bytes >= Self::LARGE * 2;
            let unit = if large { Self::LARGE } else { Self::page() };
            // No slice is longer than `isize::MAX` bytes.
            let len = bytes
                .max(1)
                .checked_next_multiple_of(unit)
                .filter(|&len| len <= isize::MAX as usize - Self::LARGE)
                .ok_or(ErrorKind::OutOfMemory)?;
            #[cfg(test)]
            refusals::memory()?;
            let whole = if large { len + Self::LARGE } else { len };
            // SAFETY: this creates a new anonymous mapping at an address that the system chooses, so no existing memory
            // is affected.
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
                // A large page takes 2 MiB even if it has only a few elements. So large pages are requested only for
                // the part of the memory that fills them. The remaining memory consists of small pages.
                let full = bytes / Self::LARGE * Self::LARGE;
                // SAFETY: this value owns the range. The advice does not change the content.
                unsafe {
                    libc::madvise(pages.at.as_ptr().cast(), full, libc::MADV_HUGEPAGE);
                }
                // The kernel treats a range with different advice as a separate mapping.
                pages.seams.extend([full].into_iter().filter(|&f| f < len));
            }
            Ok(pages)
        }

        /// Writes to the pages in order until `stop` is set, so that the system provides memory for them. Unmaps the
        /// pages that were not reached.
        pub(crate) fn prefault(mut self, stop: &AtomicBool) -> Self {
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
            // SAFETY: `sysconf` only reads a constant of the system.
            let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
            usize::try_from(page)
                .unwrap_or(Self::SMALL)
                .max(Self::SMALL)
        }

        pub(crate) fn len(&self) -> usize {
            self.len
        }

        #[inline(always)]
        pub(crate) fn bytes(&self) -> &[u8] {
            // SAFETY: `len` bytes are mapped, readable and initialized, as new pages are zero. If nothing is mapped,
            // `len` is zero and the pointer is not null.
            unsafe { std::slice::from_raw_parts(self.at.as_ptr(), self.len) }
        }

        #[inline(always)]
        pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
            // SAFETY: as in the method `bytes`, `len` bytes are mapped and initialized. The exclusive borrow excludes
            // other accesses.
            unsafe { std::slice::from_raw_parts_mut(self.at.as_ptr(), self.len) }
        }

        /// Splits off the pages that are completely after the first `bytes` bytes.
        pub(crate) fn split_off(&mut self, bytes: usize) -> Self {
            let unit = if bytes >= Self::LARGE && self.is_aligned() {
                Self::LARGE
            } else {
                Self::page()
            };
            self.split_at(bytes.next_multiple_of(unit).min(self.len))
        }

        /// Splits off the pages after the first `keep` bytes. `keep` is a multiple of the page size and at most the
        /// length.
        fn split_at(&mut self, keep: usize) -> Self {
            assert!(keep <= self.len && keep.is_multiple_of(Self::page()));
            let index = self.seams.partition_point(|&s| s < keep);
            let seams = self.seams.split_off(index);
            let rest = Self {
                // SAFETY: `keep` is at most the length of the mapping, as asserted.
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

        /// Returns true if these are large pages.
        pub(crate) fn is_large(&self) -> bool {
            self.len >= Self::LARGE * 2 && self.len.is_multiple_of(Self::LARGE) && self.is_aligned()
        }

        /// Returns the part that consists of large pages. Unmaps the other pages.
        pub(crate) fn large_part(mut self) -> Option<Self> {
            let skip = self.at.as_ptr().align_offset(Self::LARGE).min(self.len);
            let mut part = self.split_off(skip);
            drop(part.split_off(part.len / Self::LARGE * Self::LARGE));
            part.is_large().then_some(part)
        }

        /// Moves the pages of `from` to an offset, where they replace the pages of this value. If the system cannot
        /// move them, copies everything to new pages.
        ///
        /// # Errors
        /// Returns an error if there is no memory for the copy. Then this value has lost some or all of its pages after
        /// the offset.
        pub(crate) fn adopt(&mut self, offset: usize, mut from: Self) -> Result<()> {
            let fits = offset <= self.len && from.len <= self.len - offset;
            if !fits || !offset.is_multiple_of(Self::page()) {
                return Err(Error::from(ErrorKind::InvalidInput));
            }
            if from.len == 0 {
                return Ok(());
            }
            let mut at = offset + from.len;
            let end = at;
            // `from` may consist of several mappings. Move the last mapping first, so that the mappings that stay in
            // `from` form one address range.
            let mut starts = std::mem::take(&mut from.seams);
            starts.insert(0, 0);
            for &start in starts.iter().rev() {
                let len = from.len - start;
                at -= len;
                // SAFETY: the source range is mapped, and only `from` owns it. It is removed from `from` below. The
                // target range is ours and exclusively borrowed. If the move fails, the target range is given up below.
                let moved = unsafe {
                    move_pages(from.at.as_ptr().add(start), len, self.at.as_ptr().add(at))
                };
                if !moved {
                    return self.copy_to_new_pages(offset, at..at + len, &from);
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

        /// Copies all pages to new ones, with the content of `from` at an offset, after the system refused to move
        /// pages to the range `refused`. The system may already have unmapped this range, and another thread may have
        /// mapped something else there. So the range is neither read nor unmapped. If it is still mapped, it is leaked.
        /// It was never written, so the leak takes addresses but no memory.
        fn copy_to_new_pages(
            &mut self,
            offset: usize,
            refused: Range<usize>,
            from: &Self,
        ) -> Result<()> {
            let len = self.len;
            let after = self.split_at(refused.end);
            self.split_at(refused.start).len = 0;
            let mut copy = Self::new(len)?;
            let bytes = copy.bytes_mut();
            bytes[..refused.start].copy_from_slice(self.bytes());
            bytes[offset..offset + from.len].copy_from_slice(from.bytes());
            bytes[refused.end..len].copy_from_slice(after.bytes());
            *self = copy;
            Ok(())
        }

        /// Adds pages at the end. Moves to another address if necessary.
        ///
        /// # Errors
        /// Returns an error if there is not enough memory. If moving or copying the old pages had already begun, this
        /// value has no pages afterwards.
        pub(crate) fn grow(&mut self, bytes: usize) -> Result<()> {
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
                // SAFETY: the range is mapped, and only this value owns it.
                unsafe {
                    libc::munmap(self.at.as_ptr().cast(), self.len);
                }
            }
        }
    }

    /// Moves pages to another address. Returns false if the system refuses. Then the source is unchanged, but the
    /// system may have unmapped the target.
    ///
    /// # Safety
    /// Both ranges must consist of whole pages, must not overlap, and must belong to the caller alone. The source must
    /// be part of one mapping.
    // SAFETY: `mremap` with MREMAP_FIXED unmaps the target range, so callers have to own it (see above).
    unsafe fn move_pages(source: *mut u8, len: usize, target: *mut u8) -> bool {
        #[cfg(test)]
        if refusals::refuses(target, len) {
            return false;
        }
        // SAFETY: the caller guarantees the conditions under `# Safety`.
        let moved = unsafe {
            libc::mremap(
                source.cast(),
                len,
                len,
                libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED,
                target.cast::<libc::c_void>(),
            )
        };
        moved != libc::MAP_FAILED
    }

    /// Simulates that the system refuses to move or to map memory, for tests.
    #[cfg(test)]
    pub(crate) mod refusals {
        use std::cell::Cell;
        use std::io::{ErrorKind, Result};

        /// The state of the target address range after the system has refused to move memory there.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum Target {
            Kept,
            Unmapped,
            /// The target was unmapped, and then another thread has mapped other memory at the same address.
            Taken,
        }

        /// The value of each byte in the memory that a test maps, as another thread would (see [`Target::Taken`]).
        pub(crate) const TAKEN: u8 = 0x5a;

        thread_local! {
            /// The number of moves of memory that succeed before one is refused, and the state of the target after the
            /// refusal.
            pub(crate) static MOVE: Cell<Option<(usize, Target)>> = const { Cell::new(None) };
            /// The address range that a test has mapped, as another thread would (see [`Target::Taken`]).
            pub(crate) static FOREIGN: Cell<Option<(*mut u8, usize)>> = const { Cell::new(None) };
            /// The number of memory mappings that succeed before the next one is refused.
            pub(crate) static MEMORY: Cell<Option<usize>> = const { Cell::new(None) };
        }

        pub(super) fn memory() -> Result<()> {
            match MEMORY.get() {
                Some(0) => Err(ErrorKind::OutOfMemory.into()),
                left => {
                    MEMORY.set(left.map(|n| n - 1));
                    Ok(())
                }
            }
        }

        pub(super) fn refuses(target: *mut u8, len: usize) -> bool {
            let Some((moves, how)) = MOVE.get() else {
                return false;
            };
            if moves > 0 {
                MOVE.set(Some((moves - 1, how)));
                return false;
            }
            MOVE.set(None);
            if how == Target::Unmapped {
                // SAFETY: the caller of `move_pages` owns the range, and no longer uses it if the move is refused.
                assert_eq!(unsafe { libc::munmap(target.cast(), len) }, 0);
            }
            if how == Target::Taken {
                // SAFETY: the caller of `move_pages` owns the range, and no longer uses it if the move is refused.
                let at = unsafe {
                    libc::mmap(
                        target.cast(),
                        len,
                        libc::PROT_READ | libc::PROT_WRITE,
                        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
                        -1,
                        0,
                    )
                };
                assert_eq!(at, target.cast());
                // SAFETY: the range was just mapped, and nothing else uses it.
                unsafe { target.write_bytes(TAKEN, len) };
                FOREIGN.set(Some((target, len)));
            }
            true
        }

        /// Unmaps the memory that represents another thread's memory in a test. Returns true if this memory was not
        /// changed.
        pub(crate) fn is_foreign_memory_unchanged() -> bool {
            let Some((at, len)) = FOREIGN.take() else {
                return true;
            };
            // SAFETY: `refuses` mapped the range. If it had been unmapped since, the test would end with a signal.
            let whole = unsafe { std::slice::from_raw_parts(at, len) }
                .iter()
                .all(|&b| b == TAKEN);
            // SAFETY: `refuses` mapped the range, and nothing uses it any more.
            whole && unsafe { libc::munmap(at.cast(), len) } == 0
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod pages {
    use std::io::{Error, ErrorKind, Result};
    use std::sync::atomic::AtomicBool;

    use memmap2::MmapMut;

    /// Anonymous mapped memory. Pages cannot be moved on this system, so this is never split and nothing is kept for
    /// reuse.
    #[derive(Debug)]
    pub(crate) struct Pages(Option<MmapMut>);

    impl Pages {
        pub(crate) const LARGE: usize = usize::MAX;

        pub(crate) fn new(bytes: usize) -> Result<Self> {
            MmapMut::map_anon(bytes.max(1)).map(|map| Self(Some(map)))
        }

        /// Does nothing, because no memory is kept for reuse.
        pub(crate) fn prefault(self, _: &AtomicBool) -> Self {
            self
        }

        pub(crate) fn len(&self) -> usize {
            self.bytes().len()
        }

        #[inline(always)]
        pub(crate) fn bytes(&self) -> &[u8] {
            self.0.as_deref().unwrap_or_default()
        }

        #[inline(always)]
        pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
            self.0.as_deref_mut().unwrap_or_default()
        }

        pub(crate) fn split_off(&mut self, _: usize) -> Self {
            Self(None)
        }

        pub(crate) fn is_large(&self) -> bool {
            false
        }

        pub(crate) fn large_part(self) -> Option<Self> {
            None
        }

        pub(crate) fn adopt(&mut self, _: usize, _: Self) -> Result<()> {
            Err(Error::from(ErrorKind::Unsupported))
        }

        pub(crate) fn grow(&mut self, _: usize) -> Result<()> {
            Err(Error::from(ErrorKind::Unsupported))
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::Pages;
    use super::refusals::{self, Target};

    const PAGE: usize = 64 << 10;

    fn filled(pages: usize, value: u8) -> Pages {
        let mut filled = Pages::new(pages * PAGE).unwrap();
        filled.bytes_mut().fill(value);
        filled
    }

    fn values(pages: &Pages) -> Vec<u8> {
        let each = pages.bytes().chunks(PAGE);
        each.map(|page| {
            assert!(page.iter().all(|b| b == &page[0]));
            page[0]
        })
        .collect()
    }

    /// Returns three pages that were moved from two other mappings.
    fn of_two_stretches() -> Pages {
        let mut pages = filled(3, 0);
        pages.adopt(0, filled(2, 1)).unwrap();
        pages.adopt(2 * PAGE, filled(1, 2)).unwrap();
        pages
    }

    #[test]
    fn pages_that_cannot_be_moved_are_copied() {
        for how in [Target::Kept, Target::Unmapped, Target::Taken] {
            for moves in 0..2 {
                let mut pages = filled(6, 9);
                let from = of_two_stretches();
                refusals::MOVE.set(Some((moves, how)));
                pages.adopt(2 * PAGE, from).unwrap();
                assert_eq!(refusals::MOVE.get(), None, "{how:?}: no move was refused");
                assert_eq!(values(&pages), [9, 9, 1, 1, 2, 9], "{how:?}, {moves} moves");
                pages.bytes_mut().fill(3);
                drop(pages);
                assert!(
                    refusals::is_foreign_memory_unchanged(),
                    "{how:?}, {moves} moves"
                );
            }
        }
    }

    #[test]
    fn pages_stay_intact_without_memory_for_a_copy() {
        for how in [Target::Kept, Target::Unmapped, Target::Taken] {
            let mut pages = filled(6, 9);
            let from = of_two_stretches();
            refusals::MOVE.set(Some((0, how)));
            refusals::MEMORY.set(Some(0));
            assert!(pages.adopt(2 * PAGE, from).is_err());
            refusals::MEMORY.set(None);
            // The last part of `from` is moved first, and the system refused this move. So the pages before the target
            // of this move are unchanged.
            assert_eq!(values(&pages), [9, 9, 9, 9], "{how:?}");
            drop(pages);
            assert!(refusals::is_foreign_memory_unchanged(), "{how:?}");
        }
    }

    #[test]
    fn pages_grow_if_none_can_be_moved() {
        for how in [Target::Kept, Target::Unmapped, Target::Taken] {
            let mut pages = of_two_stretches();
            refusals::MOVE.set(Some((1, how)));
            pages.grow(5 * PAGE).unwrap();
            assert_eq!(values(&pages), [1, 1, 2, 0, 0], "{how:?}");
            assert!(refusals::is_foreign_memory_unchanged(), "{how:?}");
        }
    }
}
