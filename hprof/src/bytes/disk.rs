//! Free space on disks, and the reserve that is left to other programs.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// Free space that heapdiff leaves to other programs: [`RESERVE`] bytes, or one [`RESERVE_PART`]th of the disk if that
/// is less.
const RESERVE: u64 = 1 << 30;
const RESERVE_PART: u64 = 20;

/// The environment variable with the folder for temporary files.
pub const TEMPORARY_FOLDER: &str = if cfg!(windows) { "TMP" } else { "TMPDIR" };

/// The size of a disk and its free space, in bytes.
#[derive(Clone, Copy)]
pub(crate) struct Room {
    pub(crate) free: u64,
    pub(crate) total: u64,
}

impl Room {
    /// Returns the number of bytes on this disk that are left free for other programs.
    pub(crate) fn reserve(self) -> u64 {
        RESERVE.min(self.total / RESERVE_PART)
    }
}

/// Returns the size and the free space of the disk on which a file is; `None` if the system does not report it.
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

/// Returns true if the disk still has its reserve for other programs after `bytes` more bytes are written.
pub(crate) fn leaves_reserve(file: &File, bytes: u64) -> bool {
    room(file).is_none_or(|room| room.free >= room.reserve().saturating_add(bytes))
}

/// Creates a file of zeros without a name in a folder, and reserves its space on the disk. So writing to a mapping of
/// it cannot fail because the disk is full.
///
/// # Errors
/// Returns an error if the folder is not writable, or if the disk has less free space than `bytes` plus its reserve.
pub(crate) fn reserved_file(dir: &Path, bytes: u64) -> io::Result<File> {
    reserved_within(dir, bytes, room)
}

fn reserved_within(dir: &Path, bytes: u64, room: fn(&File) -> Option<Room>) -> io::Result<File> {
    let named = |e: io::Error| {
        let text = format!(
            "cannot create a temporary file in {}: {e}; set {TEMPORARY_FOLDER} to a folder on a larger disk, or allow more memory with --max-memory",
            dir.display()
        );
        io::Error::new(e.kind(), text)
    };
    let mut file = tempfile::tempfile_in(dir).map_err(named)?;
    if let Some(room) = room(&file)
        && room.free < room.reserve().saturating_add(bytes)
    {
        let (free, reserve) = (room.free, room.reserve());
        let text =
            format!("the disk has {free} bytes left, but heapdiff keeps {reserve} bytes free");
        return Err(named(io::Error::new(io::ErrorKind::StorageFull, text)));
    }
    fill(&mut file, bytes).map_err(named)?;
    Ok(file)
}

/// Fills a file with zeros, so that its space on the disk is reserved.
fn fill(file: &mut File, bytes: u64) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{FallocateFlags, fallocate};
        use rustix::io::Errno;

        match fallocate(&*file, FallocateFlags::empty(), 0, bytes) {
            Ok(()) => return Ok(()),
            // Not every file system supports `fallocate`. If it is not supported, the code after this `match` writes
            // zeros.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
            Err(e) => return Err(e.into()),
        }
    }
    io::copy(&mut io::repeat(0).take(bytes), file).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_reserved_file_has_allocated_disk_blocks() {
        use std::os::unix::fs::MetadataExt;

        let file = reserved_file(&std::env::temp_dir(), 3 << 20).unwrap();
        let meta = file.metadata().unwrap();
        assert_eq!(meta.len(), 3 << 20);
        assert!(meta.blocks() * 512 >= 3 << 20, "{} blocks", meta.blocks());
    }

    #[test]
    fn a_disk_is_not_filled_beyond_its_reserve() {
        let dir = std::env::temp_dir();
        let small: fn(&File) -> Option<Room> = |_| {
            let total = 20_000_000;
            Some(Room {
                free: 3_000_000,
                total,
            })
        };
        assert!(reserved_within(&dir, 2_000_000, small).is_ok());
        let error = reserved_within(&dir, 2_000_001, small).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        let text = error.to_string();
        assert!(text.contains(&dir.display().to_string()) && text.contains(TEMPORARY_FOLDER));
        assert!(
            text.contains("the disk has 3000000 bytes left, but heapdiff keeps 1000000 bytes free")
        );
    }

    #[test]
    fn a_missing_folder_is_named() {
        let text = reserved_file(Path::new("/no/such/folder"), 1).unwrap_err();
        assert!(text.to_string().contains("/no/such/folder"));
    }
}
