//! How much room a disk has, and how much of it others are left.

use std::fs::File;

/// A disk is never filled beyond this, or, where that is less, beyond a part of it: others need it, too.
const RESERVE: u64 = 1 << 30;
const RESERVE_PART: u64 = 20;

/// Bytes of a disk.
#[derive(Clone, Copy)]
pub(crate) struct Room {
    pub(crate) free: u64,
    pub(crate) total: u64,
}

impl Room {
    /// The bytes of the disk that stay free.
    pub(crate) fn reserve(self) -> u64 {
        RESERVE.min(self.total / RESERVE_PART)
    }
}

/// How much room the disk of a file has; `None` where that cannot be known.
pub(crate) fn room(file: &File) -> Option<Room> {
    #[cfg(unix)]
    {
        let stat = rustix::fs::fstatvfs(file).ok()?;
        let bytes = |blocks: u64| blocks.saturating_mul(stat.f_frsize);
        Some(Room {
            free: bytes(stat.f_bavail),
            total: bytes(stat.f_blocks),
        })
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        None
    }
}

/// Whether so many bytes more leave a file's disk its reserve.
pub(crate) fn leaves_room(file: &File, bytes: u64) -> bool {
    room(file).is_none_or(|room| room.free >= room.reserve().saturating_add(bytes))
}
