//! The agent's own library file, which the agent keeps open in a JVM with musl.
//!
//! A later command makes the JVM load the library again, to reach the agent that is already loaded. The dynamic linker
//! of musl recognizes a loaded library only by its inode. (The linker of glibc also recognizes the library's path.)
//!
//! Meanwhile, the file may have been deleted (a copy for a container) or replaced (an upgrade). While the file is open,
//! `/proc/self/fd` has a path to its inode.

use std::fs::{self, File};
use std::sync::OnceLock;

/// Opens the agent's library file, unless it is already open. If the file cannot be opened, later commands use the path
/// of the library.
pub(crate) fn keep_open() {
    static FILE: OnceLock<Option<File>> = OnceLock::new();
    if cfg!(target_env = "musl") {
        FILE.get_or_init(open);
    }
}

fn open() -> Option<File> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let here: fn() = keep_open;
    File::open(path_at(&maps, here as usize)?).ok()
}

/// Returns the path of the file that is mapped at this address, from the text of `/proc/self/maps`.
fn path_at(maps: &str, address: usize) -> Option<&str> {
    maps.lines().find_map(|line| {
        let (range, _) = line.split_once(' ')?;
        let (from, to) = range.split_once('-')?;
        let bound = |text| usize::from_str_radix(text, 16).ok();
        if !(bound(from)?..bound(to)?).contains(&address) {
            return None;
        }
        line.find('/').and_then(|at| line.get(at..))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn the_file_at_an_address_is_found() {
        let maps = "\
1000-2000 r--p 00000000 fe:00 7 /lib/one
2000-3000 r-xp 00001000 fe:00 8 /tmp/with space.so
3000-4000 rw-p 00000000 00:00 0
";
        assert_eq!(path_at(maps, 0x1fff), Some("/lib/one"));
        assert_eq!(path_at(maps, 0x2000), Some("/tmp/with space.so"));
        assert_eq!(path_at(maps, 0x3000), None);
        assert_eq!(path_at(maps, 0x4000), None);
    }

    #[test]
    fn the_file_of_this_program_is_opened() {
        let inode = |meta: fs::Metadata| (meta.dev(), meta.ino());
        let this = std::env::current_exe().and_then(fs::metadata).unwrap();
        let open = open().unwrap().metadata().unwrap();
        assert_eq!(inode(open), inode(this));
    }
}
