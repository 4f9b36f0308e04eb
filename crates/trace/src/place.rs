//! Detects traces by their first bytes, and file systems that are unsuitable for a trace.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
#[cfg(target_os = "linux")]
use std::path::PathBuf;

use crate::database::{APPLICATION, TraceError};

/// The first bytes of every SQLite database file.
pub const SQLITE_START: &[u8; 16] = b"SQLite format 3\0";

/// Returns true if a file begins like a trace of any version.
///
/// # Errors
/// Returns an error if the file cannot be read.
pub fn is_trace(path: &Path) -> io::Result<bool> {
    Ok(is_start_of_trace(&start(path)?))
}

/// Reads the bytes at the start of a file that are needed to detect a trace. Returns fewer bytes if the file is
/// shorter.
fn start(path: &Path) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    File::open(path)?.take(72).read_to_end(&mut start)?;
    Ok(start)
}

fn is_start_of_trace(start: &[u8]) -> bool {
    start.starts_with(SQLITE_START) && start.get(68..72) == Some(&APPLICATION.to_be_bytes())
}

/// Returns true if a file is a trace, or is empty and may become one.
#[cfg(target_os = "linux")]
fn may_be_trace(path: &Path) -> bool {
    start(path).is_ok_and(|start| start.is_empty() || is_start_of_trace(&start))
}

/// Returns the name of the network file system on which the file is or will be. `None` for local file systems.
///
/// The index of the write-ahead log is memory that writers and readers share by mapping the file `-shm`. This does not
/// work over a network, and the process crashes when a mapped page disappears. On a local disk SQLite reserves each
/// page before it maps it, so only truncating the file is dangerous. A file system that copies on write needs new space
/// for each page ([`disable_index_cow`]).
#[cfg(target_os = "linux")]
pub(crate) fn network(path: &Path) -> Option<&'static str> {
    network_name(kind(path)?)
}

/// Returns the magic number of the file system on which the file is or will be.
#[cfg(target_os = "linux")]
#[allow(
    clippy::useless_conversion,
    reason = "the value has 32 bits on 32-bit machines"
)]
fn kind(path: &Path) -> Option<i64> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
    let place = rustix::fs::statfs(path)
        .or_else(|_| rustix::fs::statfs(folder.unwrap_or_else(|| Path::new("."))));
    Some(place.ok()?.f_type.into())
}

/// Disables copy on write for the mapped index of SQLite's write-ahead log (the file `-shm`) on btrfs. By default,
/// btrfs copies blocks on write. Then a full disk or quota would crash the process at the next write to a mapped page.
/// btrfs accepts the setting only while the file is empty.
///
/// # Errors
/// Returns an error if the file is on btrfs and its copy on write cannot be disabled.
#[cfg(target_os = "linux")]
pub(crate) fn disable_index_cow(path: &Path) -> Result<(), TraceError> {
    const BTRFS: i64 = 0x9123_683e;
    match kind(path) {
        Some(kind) if kind & 0xffff_ffff == BTRFS && may_be_trace(path) => {
            create_without_cow(&index(path)).map_err(|why| TraceError::Copied {
                path: path.to_owned(),
                why,
            })
        }
        _ => Ok(()),
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn disable_index_cow(_: &Path) -> Result<(), TraceError> {
    Ok(())
}

/// Returns the path of the log index (`-shm`), the file that SQLite maps.
#[cfg(target_os = "linux")]
fn index(path: &Path) -> PathBuf {
    let mut index = path.as_os_str().to_owned();
    index.push("-shm");
    index.into()
}

/// Creates a file if it is missing, and excludes it from copy-on-write.
#[cfg(target_os = "linux")]
fn create_without_cow(path: &Path) -> Result<(), String> {
    use rustix::fs::{IFlags, Mode, OFlags};
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)
        .map_err(|error| format!("{}: {error}", path.display()))?;
    let has = rustix::fs::ioctl_getflags(&file).unwrap_or(IFlags::empty());
    if has.contains(IFlags::NOCOW) {
        return Ok(());
    }
    let is_empty = rustix::fs::fstat(&file).is_ok_and(|stat| stat.st_size == 0);
    if is_empty {
        rustix::fs::ioctl_setflags(&file, has | IFlags::NOCOW)
            .map_err(|error| format!("{} cannot be written in place: {error}", path.display()))
    } else {
        Err(format!(
            "another program created the file {}",
            path.display()
        ))
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn network(_: &Path) -> Option<&'static str> {
    None
}

/// Returns the name of a network file system by its number in linux/magic.h.
#[cfg(target_os = "linux")]
fn network_name(kind: i64) -> Option<&'static str> {
    // Some of these file system numbers are at least 2^31. On 32-bit machines, the system returns them as negative
    // numbers. So only the low 32 bits are compared.
    Some(match kind & 0xffff_ffff {
        0x6969 => "NFS",
        0x517b | 0xfe53_4d42 | 0xff53_4d42 => "SMB",
        0x5346_414f | 0x6b41_4653 => "AFS",
        0x00c3_6400 => "Ceph",
        0x0102_1997 => "9p",
        0x6573_5546 => "FUSE",
        0x7375_7245 => "Coda",
        0x0bd0_0bd0 => "Lustre",
        0x4750_4653 => "GPFS",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Database;

    #[test]
    fn traces_are_distinguished_from_other_files() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        drop(Database::create(&at("trace")).unwrap());
        let other = rusqlite::Connection::open(at("other")).unwrap();
        other.execute_batch("CREATE TABLE mine (x)").unwrap();
        drop(other);
        std::fs::write(at("text"), "text").unwrap();
        std::fs::write(at("empty"), "").unwrap();
        let found = ["trace", "other", "text", "empty"].map(|name| is_trace(&at(name)).unwrap());
        assert_eq!(found, [true, false, false, false]);
        assert!(is_trace(&at("none")).is_err());
        #[cfg(target_os = "linux")]
        {
            let found = ["trace", "other", "text", "empty", "none"].map(|n| may_be_trace(&at(n)));
            assert_eq!(found, [true, false, false, true, false]);
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn network_file_systems_are_distinguished_from_local_ones() {
        assert_eq!(network(&std::env::temp_dir().join("t.db")), None);
        assert_eq!(network(Path::new("/proc/none/t.db")), None);
        assert_eq!(network_name(0x6969), Some("NFS"));
        let negative = i64::from(i32::from_ne_bytes(0xff53_4d42_u32.to_ne_bytes()));
        assert_eq!(network_name(negative), Some("SMB"));
        // These are the numbers of ext4, tmpfs, overlay, xfs, btrfs and zfs.
        for local in [
            0xef53,
            0x0102_1994,
            0x794c_7630,
            0x5846_5342,
            0x9123_683e,
            0x2fc1_2fc1,
        ] {
            assert_eq!(network_name(local), None);
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_mapped_index_is_written_in_place_or_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        let index = index(&path);
        assert_eq!(index, folder.path().join("t.db-shm"));
        assert!(
            disable_index_cow(&path).is_ok() && !index.exists(),
            "no file"
        );
        std::fs::write(&path, "").unwrap();
        // `disable_index_cow` creates the file only on btrfs.
        assert_eq!(
            disable_index_cow(&path).is_ok() && index.exists(),
            kind(&path).map(|kind| kind & 0xffff_ffff) == Some(0x9123_683e)
        );
        let is_marked = |path| {
            let file = std::fs::File::open(path).unwrap();
            rustix::fs::ioctl_getflags(&file)
                .is_ok_and(|flags| flags.contains(rustix::fs::IFlags::NOCOW))
        };
        let other = folder.path().join("other");
        assert_eq!(create_without_cow(&other).is_ok(), is_marked(&other));
        let copied = folder.path().join("copied");
        std::fs::write(&copied, "an index").unwrap();
        if !is_marked(&copied) {
            assert!(
                create_without_cow(&copied)
                    .unwrap_err()
                    .contains("another program created")
            );
        }
        assert_eq!(std::fs::read(&copied).unwrap(), b"an index");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&other, &link).unwrap();
        assert!(create_without_cow(&link).is_err());
    }
}
