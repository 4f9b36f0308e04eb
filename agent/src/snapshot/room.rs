//! Checks whether a forked child can write a dump: the heap's memory must be private, and enough memory must be free.

use std::fs;
use std::path::Path;

use heapdiff_sites::attach;
use heapdiff_units::Size;

use crate::cgroup;

/// Minimum free memory in bytes before the fork. While the child runs, half of this amount is enough.
const LEAST: u64 = 64 << 20;

/// Checks that the kernel copies the heap's pages when they are modified after a fork. Only private memory mappings are
/// copied, so this function checks the mappings that contain `addresses`, which are addresses of heap objects. If the
/// check fails, returns one of [`attach`]'s codes and the reason.
pub(super) fn heap_is_private(addresses: &[u64]) -> Result<(), (i32, String)> {
    let maps = fs::read_to_string("/proc/self/maps")
        .map_err(|e| (attach::FAILED, format!("/proc/self/maps: {e}")))?;
    check_private_mappings(&maps, addresses)
}

fn check_private_mappings(maps: &str, addresses: &[u64]) -> Result<(), (i32, String)> {
    for address in addresses {
        match mapping_of(maps, *address) {
            Some((_, false)) => {}
            Some((name, true)) => {
                let why = format!(
                    "the heap is in shared memory ({name}), so a forked child would see it change"
                );
                return Err((attach::SHARED_HEAP, why));
            }
            None => {
                let why = "the memory of the heap was not found in /proc/self/maps";
                return Err((attach::FAILED, why.to_owned()));
            }
        }
    }
    Ok(())
}

/// Returns the mappings of the JVM's `jstat` counters (hsperfdata), which other processes read. The child must replace
/// these mappings with private copies, because otherwise its thread would change the JVM's counters. Other shared
/// mappings belong to the program, and the program does not run in the child.
pub(super) fn shared_files() -> Vec<(usize, usize)> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    shared_mappings(&maps)
}

fn shared_mappings(maps: &str) -> Vec<(usize, usize)> {
    let range = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let (from, to) = words.next()?.split_once('-')?;
        let number = |text| usize::from_str_radix(text, 16).ok();
        let (from, length) = (number(from)?, number(to)?.checked_sub(number(from)?)?);
        let is_writable = words.next()?.starts_with("rw-s");
        (is_writable && line.contains("/hsperfdata_")).then_some((from, length))
    };
    maps.lines().filter_map(range).collect()
}

/// Returns the name of the mapping that contains an address. The flag is true if the mapping is shared.
fn mapping_of(maps: &str, address: u64) -> Option<(&str, bool)> {
    maps.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let (from, to) = words.next()?.split_once('-')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        if !(number(from)?..number(to)?).contains(&address) {
            return None;
        }
        let is_shared = words.next()?.contains('s');
        Some((words.nth(3).unwrap_or("no name"), is_shared))
    })
}

/// Checks that there is enough memory for the pages that the kernel must copy after a fork.
///
/// The kernel copies the pages into which the child writes its tags, and each page that the JVM modifies while the
/// child runs. The number of these pages is not known in advance. So the free memory must be at least a part of the
/// JVM's resident memory ([`required_memory`]). If memory still becomes scarce, `watch` ends the child.
///
/// If `marks_objects` is true, the heap walk marks objects in their headers, so the pages that contain these objects
/// are copied, too. If `is_dying` is true, the JVM will soon run out of memory in any case, so a quarter of [`LEAST`]
/// is enough.
pub(super) fn check_memory_before_fork(marks_objects: bool, is_dying: bool) -> Result<(), String> {
    if is_dying {
        return require(LEAST / 4);
    }
    let resident = fs::read_to_string("/proc/self/status")
        .ok()
        .and_then(|status| kilobytes(&status, "VmRSS:"))
        .unwrap_or(0);
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let together = is_oom_group(Path::new("/sys/fs/cgroup"), &groups);
    require(required_memory(resident, marks_objects, together))
}

/// Returns the free memory that a fork requires if the JVM has `resident` bytes of resident memory.
fn required_memory(resident: u64, marks_objects: bool, killed_together: bool) -> u64 {
    let share = match (marks_objects, killed_together) {
        (true, _) => resident,
        (false, true) => resident / 2,
        (false, false) => resident / 20,
    };
    LEAST.max(share)
}

/// True if the kernel also kills the JVM when it kills the child for lack of memory. This happens if the control group
/// or one of its ancestors has `memory.oom.group` set. Version 1 of control groups has no such setting.
fn is_oom_group(root: &Path, groups: &str) -> bool {
    let Some(path) = groups.lines().find_map(|line| line.strip_prefix("0::")) else {
        return false;
    };
    let path = Path::new(path.trim_start_matches('/'));
    path.ancestors().any(|group| {
        fs::read_to_string(root.join(group).join("memory.oom.group"))
            .is_ok_and(|text| text.trim() == "1")
    })
}

/// Checks that there is still enough memory while the child runs.
pub(super) fn check_memory_during_dump() -> Result<(), String> {
    require(LEAST / 2)
}

fn require(wanted: u64) -> Result<(), String> {
    match memory_left() {
        Some((available, place)) if available < wanted => Err(format!(
            "{place} has {} of memory left, but {} are needed",
            Size(available),
            Size(wanted)
        )),
        _ => Ok(()),
    }
}

/// Returns the number of bytes that this process can still allocate, and a description of the limit that allows the
/// least: "the machine" or "the container". Returns `None` if no limit is known.
#[must_use]
pub fn memory_left() -> Option<(u64, &'static str)> {
    let machine = fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|info| kilobytes(&info, "MemAvailable:"));
    let places = [
        (machine, "the machine"),
        (
            cgroup::memory().map(|memory| memory.left()),
            "the container",
        ),
    ];
    let known = places
        .into_iter()
        .filter_map(|(left, place)| Some((left?, place)));
    known.min_by_key(|&(left, _)| left)
}

fn kilobytes(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    let number: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
    number.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_heaps_are_detected_by_their_mappings() {
        let maps = "\
700000000-740000000 rw-p 00000000 00:00 0 
4000000000-4010000000 rw-s 00000000 00:01 77 /memfd:java_heap (deleted)
7f0000000000-7f0000001000 r--p 00000000 08:01 9 /lib/libjvm.so
";
        assert_eq!(
            check_private_mappings(maps, &[0x7_0000_0000, 0x7_3fff_fff8]),
            Ok(())
        );
        let (code, why) =
            check_private_mappings(maps, &[0x7_0000_0000, 0x40_0000_0010]).unwrap_err();
        assert_eq!(code, attach::SHARED_HEAP);
        assert!(why.contains("shared memory (/memfd:java_heap"), "{why}");
        let (code, why) = check_private_mappings(maps, &[0x7_4000_0000]).unwrap_err();
        assert_eq!(code, attach::FAILED, "in no mapping");
        assert!(
            why.contains("the memory of the heap was not found"),
            "{why}"
        );
        assert!(shared_mappings(maps).is_empty(), "not the JVM's counters");
        let counters = "7f0000000000-7f0000008000 rw-s 00000000 08:01 9 /tmp/hsperfdata_a/1\n";
        assert_eq!(shared_mappings(counters), [(0x7f00_0000_0000, 0x8000)]);
    }

    #[test]
    fn riskier_snapshots_require_more_memory() {
        let resident = 10 << 30;
        assert_eq!(required_memory(resident, false, false), resident / 20);
        assert_eq!(required_memory(resident, false, true), resident / 2);
        assert_eq!(required_memory(resident, true, true), resident);
        assert_eq!(required_memory(1 << 20, true, false), LEAST);
    }

    #[test]
    fn an_oom_group_is_found_from_a_child_cgroup() {
        let root = tempfile::tempdir().unwrap();
        let inner = root.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        fs::write(inner.join("memory.oom.group"), "0\n").unwrap();
        let groups = "1:memory:/other\n0::/a/b\n";
        assert!(!is_oom_group(root.path(), groups));
        fs::write(root.path().join("a/memory.oom.group"), "1\n").unwrap();
        assert!(is_oom_group(root.path(), groups));
        assert!(!is_oom_group(root.path(), "0::/\n"), "it is above");
        assert!(!is_oom_group(root.path(), "4:memory:/a/b\n"));
        fs::write(root.path().join("memory.oom.group"), "1\n").unwrap();
        assert!(is_oom_group(root.path(), "0::/\n"), "a container's own");
    }

    #[test]
    fn figures_of_memory_are_read() {
        let info = "MemTotal:  100 kB\nMemAvailable:   12 kB\n";
        assert_eq!(kilobytes(info, "MemAvailable:"), Some(12 * 1024));
        assert_eq!(kilobytes(info, "VmRSS:"), None);
        assert!(require(0).is_ok());
        assert!(require(u64::MAX).unwrap_err().contains("of memory left"));
    }
}
