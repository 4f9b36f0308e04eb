//! Mapped memory: files, scratch files and anonymous pages, slices viewed as atomics, prefetches.
//!
//! This is the one module of the crate with `unsafe` code. Everything it hands out is safe to use,
//! with one stated exception that no program can rule out: a dump file that another process
//! truncates while it is mapped raises SIGBUS, which [`faults`] turns into an error where it is asked to.

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
    // SAFETY: the mapping is private to this process and read-only. That the file does not change
    // beneath us is assumed, as by every tool that maps its input; a change can garble what is
    // read (which the parser must survive anyway) or, on truncation, raise SIGBUS (see `faults`).
    unsafe { Mmap::map(file) }
}

/// Maps so many zeroes in a new file without a name, in a folder. The file has its place on the disk from the
/// begin.
pub(crate) fn scratch(dir: &Path, bytes: usize) -> std::io::Result<MmapMut> {
    let file = disk::reserved_file(dir, bytes.max(1) as u64)?;
    // SAFETY: the file was made just now and has no name, so no other process changes it; it is mapped
    // only here.
    unsafe { MmapMut::map_mut(&file) }
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
    const { assert!(align_of::<AtomicU32>() == align_of::<u32>()) }
    // SAFETY: AtomicU32 has the size and the bits of u32, and its alignment, as asserted. The exclusive borrow
    // guarantees that for its duration every access goes through the returned view.
    unsafe { &*(std::ptr::from_mut(slice) as *const [AtomicU32]) }
}

/// As [`as_atomic_u32`], for `u16`.
pub(crate) fn as_atomic_u16(slice: &mut [u16]) -> &[AtomicU16] {
    const { assert!(align_of::<AtomicU16>() == align_of::<u16>()) }
    // SAFETY: as for u32.
    unsafe { &*(std::ptr::from_mut(slice) as *const [AtomicU16]) }
}

/// As [`as_atomic_u32`], for `u64`. On 32-bit x86, where `u64` is aligned to less than `AtomicU64`, this does
/// not compile.
pub(crate) fn as_atomic_u64(slice: &mut [u64]) -> &[AtomicU64] {
    const { assert!(align_of::<AtomicU64>() == align_of::<u64>()) }
    // SAFETY: as for u32.
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

/// Work in whose loops bits are counted.
pub(crate) trait BitCounting {
    /// Does it. To be inlined, so that it is compiled for where it is called.
    fn run(self);
}

/// Does work with the processor's own instruction for counting bits, where it has one. What is compiled for every
/// processor of a kind takes a dozen instructions in its place.
#[inline]
pub(crate) fn counting_bits(work: impl BitCounting) {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "popcnt")]
        fn with_instruction(work: impl BitCounting) {
            work.run();
        }
        if std::arch::is_x86_feature_detected!("popcnt") {
            // SAFETY: the processor has what the function is compiled for, as asked just now.
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

    /// Anonymous memory, mapped. It can be cut apart and put together, since the system moves
    /// pages between addresses without touching them.
    #[derive(Debug)]
    pub(crate) struct Pages {
        at: NonNull<u8>,
        /// Bytes mapped, a multiple of [`Pages::SMALL`]; nothing is mapped when zero.
        len: usize,
        /// Places where stretches from other mappings begin, ascending: the system moves each
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
                // The last large page would be taken whole for a few elements.
                let full = bytes / Self::LARGE * Self::LARGE;
                // SAFETY: the range is this value's. Advice that is not taken changes nothing.
                unsafe {
                    libc::madvise(pages.at.as_ptr().cast(), full, libc::MADV_HUGEPAGE);
                }
                // What is advised differently is a mapping of its own.
                pages.seams.extend([full].into_iter().filter(|&f| f < len));
            }
            Ok(pages)
        }

        /// Touches the pages one after the other, until told to stop; gives the rest back.
        pub(crate) fn touched(mut self, stop: &AtomicBool) -> Self {
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

        pub(crate) fn len(&self) -> usize {
            self.len
        }

        #[inline(always)]
        pub(crate) fn bytes(&self) -> &[u8] {
            // SAFETY: `len` bytes are mapped and readable, and zero or written since; when nothing
            // is mapped the pointer is at least not null.
            unsafe { std::slice::from_raw_parts(self.at.as_ptr(), self.len) }
        }

        #[inline(always)]
        pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
            // SAFETY: as above, and the exclusive borrow keeps all others away.
            unsafe { std::slice::from_raw_parts_mut(self.at.as_ptr(), self.len) }
        }

        /// Cuts the pages off that lie wholly beyond `bytes`.
        pub(crate) fn split_off(&mut self, bytes: usize) -> Self {
            let unit = if bytes >= Self::LARGE && self.is_aligned() {
                Self::LARGE
            } else {
                Self::page()
            };
            self.split_at(bytes.next_multiple_of(unit).min(self.len))
        }

        /// Cuts the pages off beyond `keep` bytes, which are whole pages and no more than there are.
        fn split_at(&mut self, keep: usize) -> Self {
            assert!(keep <= self.len && keep.is_multiple_of(Self::page()));
            let index = self.seams.partition_point(|&s| s < keep);
            let seams = self.seams.split_off(index);
            let rest = Self {
                // SAFETY: `keep` is within the mapping or its end, as asserted.
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
        pub(crate) fn is_large(&self) -> bool {
            self.len >= Self::LARGE * 2 && self.len.is_multiple_of(Self::LARGE) && self.is_aligned()
        }

        /// The part that is made of large pages; the rest is given back.
        pub(crate) fn large_part(mut self) -> Option<Self> {
            let skip = self.at.as_ptr().align_offset(Self::LARGE).min(self.len);
            let mut part = self.split_off(skip);
            drop(part.split_off(part.len / Self::LARGE * Self::LARGE));
            part.is_large().then_some(part)
        }

        /// Moves another mapping's pages here, in the place of those at an offset. Where the system refuses,
        /// everything is copied to new pages.
        ///
        /// # Errors
        /// When there is no memory to copy to: then nothing is left here from some place at or after the
        /// offset on.
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
            // From the last stretch to the first, so that what is left of `from` stays one range.
            let mut starts = std::mem::take(&mut from.seams);
            starts.insert(0, 0);
            for &start in starts.iter().rev() {
                let len = from.len - start;
                at -= len;
                // SAFETY: the source range is mapped and `from`'s alone, and is taken off it below; the
                // target range is ours, exclusively borrowed, and given up below if it could not be moved to.
                let moved = unsafe {
                    move_pages(from.at.as_ptr().add(start), len, self.at.as_ptr().add(at))
                };
                if !moved {
                    return self.copy_elsewhere(offset, at..at + len, &from);
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

        /// Copies everything to new pages, and to an offset what is in `from`, when the system refused to
        /// move pages to `refused`. Before that it may have unmapped what was there, and another thread may
        /// have mapped something in its place: so that range is neither touched nor unmapped any more. Where
        /// it is still mapped it is lost, but was never written to, and so takes addresses only.
        fn copy_elsewhere(
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

        /// Maps more pages at the end, elsewhere if need be.
        ///
        /// # Errors
        /// When there is no memory. Where the old pages were moved or copied in part, none are left.
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
                // SAFETY: the range is mapped and this value's alone.
                unsafe {
                    libc::munmap(self.at.as_ptr().cast(), self.len);
                }
            }
        }
    }

    /// Moves pages to another address; `false` when the system refuses, which it may do before or after it has
    /// unmapped what is there. The source is then as it was.
    ///
    /// # Safety
    /// Both ranges are whole pages, do not overlap, and are the caller's alone. The source is of one mapping.
    // SAFETY: what is unsafe in it says so where it stands.
    unsafe fn move_pages(source: *mut u8, len: usize, target: *mut u8) -> bool {
        #[cfg(test)]
        if refusals::refuses(target, len) {
            return false;
        }
        // SAFETY: the caller's promise.
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

    /// Makes the system refuse, for tests.
    #[cfg(test)]
    pub(crate) mod refusals {
        use std::cell::Cell;
        use std::io::{ErrorKind, Result};

        /// The state of the target when a move is refused.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum Target {
            Kept,
            Unmapped,
            /// Another thread has mapped something there.
            Taken,
        }

        /// The bytes that another thread would have mapped.
        pub(crate) const TAKEN: u8 = 0x5a;

        thread_local! {
            /// How many moves are made before one is refused, and how.
            pub(crate) static MOVE: Cell<Option<(usize, Target)>> = const { Cell::new(None) };
            /// The range where something else was mapped.
            pub(crate) static FOREIGN: Cell<Option<(*mut u8, usize)>> = const { Cell::new(None) };
            /// How many mappings are made before one is refused.
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
                // SAFETY: the range is the caller's of `move_pages`, who gives it up after a refusal.
                assert_eq!(unsafe { libc::munmap(target.cast(), len) }, 0);
            }
            if how == Target::Taken {
                // SAFETY: as above.
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
                // SAFETY: mapped just now, and nobody else's.
                unsafe { target.write_bytes(TAKEN, len) };
                FOREIGN.set(Some((target, len)));
            }
            true
        }

        /// Whether what was mapped in between is as it was; unmaps it.
        pub(crate) fn foreign_is_whole() -> bool {
            let Some((at, len)) = FOREIGN.take() else {
                return true;
            };
            // SAFETY: mapped by `refuses`. Were it unmapped since, the test would end with a signal.
            let whole = unsafe { std::slice::from_raw_parts(at, len) }
                .iter()
                .all(|&b| b == TAKEN);
            // SAFETY: as above, and nobody uses it.
            whole && unsafe { libc::munmap(at.cast(), len) } == 0
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
    pub(crate) struct Pages(Option<MmapMut>);

    impl Pages {
        pub(crate) const LARGE: usize = usize::MAX;

        pub(crate) fn new(bytes: usize) -> Result<Self> {
            MmapMut::map_anon(bytes.max(1)).map(|map| Self(Some(map)))
        }

        /// Nothing is prepared where nothing is kept.
        pub(crate) fn touched(self, _: &AtomicBool) -> Self {
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

    /// Pages of two other mappings, one after the other.
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
                assert!(refusals::foreign_is_whole(), "{how:?}, {moves} moves");
            }
        }
    }

    #[test]
    fn pages_without_memory_to_copy_to_end_where_they_are_certain() {
        for how in [Target::Kept, Target::Unmapped, Target::Taken] {
            let mut pages = filled(6, 9);
            let from = of_two_stretches();
            refusals::MOVE.set(Some((0, how)));
            refusals::MEMORY.set(Some(0));
            assert!(pages.adopt(2 * PAGE, from).is_err());
            refusals::MEMORY.set(None);
            // The second stretch would have been first.
            assert_eq!(values(&pages), [9, 9, 9, 9], "{how:?}");
            drop(pages);
            assert!(refusals::foreign_is_whole(), "{how:?}");
        }
    }

    #[test]
    fn pages_grow_where_none_can_be_moved() {
        for how in [Target::Kept, Target::Unmapped, Target::Taken] {
            let mut pages = of_two_stretches();
            refusals::MOVE.set(Some((1, how)));
            pages.grow(5 * PAGE).unwrap();
            assert_eq!(values(&pages), [1, 1, 2, 0, 0], "{how:?}");
            assert!(refusals::foreign_is_whole(), "{how:?}");
        }
    }
}
