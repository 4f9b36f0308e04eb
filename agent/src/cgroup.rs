//! Reads the memory of this process's control group (container). Supports versions 1 and 2.

use std::fs;
use std::path::Path;

/// A limit of at least this number of bytes means that no limit is set. Control groups of version 1 show a very large
/// number in that case.
const NO_LIMIT: u64 = 1 << 60;

/// The memory of a control group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Memory {
    /// Bytes in use, without the part of the file cache that the kernel reclaims first (`inactive_file`).
    pub(crate) used: u64,
    pub(crate) limit: u64,
    /// Number of times that the limit was reached, so that the kernel had to reclaim memory.
    pub(crate) limit_hits: u64,
    /// Percentage of the last ten seconds in which all tasks waited for memory.
    pub(crate) stalled: f64,
}

impl Memory {
    pub(crate) fn left(&self) -> u64 {
        self.limit.saturating_sub(self.used)
    }
}

/// Returns the memory of the group that has the least memory left: this process's control group or one of its
/// ancestors. Groups without a limit are ignored. Returns `None` if no group has a limit.
pub(crate) fn memory() -> Option<Memory> {
    own_groups().into_iter().min_by_key(Memory::left)
}

/// Returns the smallest limit of this process's control group and of its ancestors.
pub(crate) fn limit() -> Option<u64> {
    own_groups().iter().map(|group| group.limit).min()
}

fn own_groups() -> Vec<Memory> {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    groups_in(Path::new("/sys/fs/cgroup"), &groups)
}

/// Returns the control groups that have a memory limit, each before its ancestors. `root` is the folder where control
/// groups are mounted, and `groups` is the text of `/proc/self/cgroup`.
fn groups_in(root: &Path, groups: &str) -> Vec<Memory> {
    let mut found = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        let read: fn(&Path) -> Option<Memory> = match controllers {
            "" => version_2,
            c if c.split(',').any(|c| c == "memory") => version_1,
            _ => continue,
        };
        let mount = match controllers {
            "" => root.to_owned(),
            _ => root.join("memory"),
        };
        let groups = Path::new(path.trim_start_matches('/')).ancestors();
        found.extend(groups.filter_map(|group| read(&mount.join(group))));
    }
    found
}

fn version_2(group: &Path) -> Option<Memory> {
    let read = |name: &str| fs::read_to_string(group.join(name)).ok();
    let events = read("memory.events").unwrap_or_default();
    Some(Memory {
        used: used(read("memory.current")?, read("memory.stat"))?,
        limit: read_limit(&read("memory.max")?)?,
        limit_hits: field(&events, "max").unwrap_or(0),
        stalled: read("memory.pressure").map_or(0.0, |text| stalled(&text)),
    })
}

fn version_1(group: &Path) -> Option<Memory> {
    let read = |name: &str| fs::read_to_string(group.join(name)).ok();
    let hits = read("memory.failcnt").and_then(|text| text.trim().parse().ok());
    Some(Memory {
        used: used(read("memory.usage_in_bytes")?, read("memory.stat"))?,
        limit: read_limit(&read("memory.limit_in_bytes")?)?,
        limit_hits: hits.unwrap_or(0),
        stalled: 0.0,
    })
}

/// Returns the bytes in use. The kernel's number (`text`) includes the file cache. The kernel reclaims the inactive
/// part of the file cache before memory runs out, so this function subtracts that part.
fn used(text: String, stat: Option<String>) -> Option<u64> {
    let all: u64 = text.trim().parse().ok()?;
    let stat = stat.unwrap_or_default();
    let files = field(&stat, "total_inactive_file").or_else(|| field(&stat, "inactive_file"));
    Some(all.saturating_sub(files.unwrap_or(0)))
}

fn read_limit(text: &str) -> Option<u64> {
    let limit = text.trim().parse().ok()?;
    (limit < NO_LIMIT).then_some(limit)
}

/// Returns the number that follows `key` in a line such as `inactive_file 123`.
fn field(text: &str, key: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
    line?.trim().parse().ok()
}

/// Returns the value `avg10` in the line `full` of a file with pressure stall information.
fn stalled(text: &str) -> f64 {
    let full = text.lines().find_map(|line| line.strip_prefix("full "));
    let mut words = full.unwrap_or_default().split_ascii_whitespace();
    let share = words.find_map(|word| word.strip_prefix("avg10="));
    share.and_then(|share| share.parse().ok()).unwrap_or(0.0)
}

/// Writes files like those in the kernel's folder of a control group, for tests.
#[cfg(test)]
pub(crate) fn write_group(folder: &Path, files: &[(&str, &str)]) {
    fs::create_dir_all(folder).unwrap();
    for (name, text) in files {
        fs::write(folder.join(name), text).unwrap();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory_in(root: &Path, groups: &str) -> Option<Memory> {
        groups_in(root, groups).into_iter().min_by_key(Memory::left)
    }

    /// Files of a control group, recorded from a pod with a limit of 256 MiB.
    const POD: [(&str, &str); 5] = [
        ("memory.max", "268435456\n"),
        ("memory.current", "201326592\n"),
        (
            "memory.stat",
            "anon 180000000\nfile 20000000\ninactive_file 16777216\nactive_file 9\n",
        ),
        (
            "memory.events",
            "low 0\nhigh 0\nmax 17\noom 1\noom_kill 1\noom_group_kill 0\n",
        ),
        (
            "memory.pressure",
            "some avg10=12.50 avg60=4.00 avg300=1.00 total=123456\nfull avg10=7.25 avg60=2.00 avg300=0.50 total=65432\n",
        ),
    ];

    #[test]
    fn the_memory_of_a_group_of_version_2_is_read() {
        let root = tempfile::tempdir().unwrap();
        write_group(&root.path().join("kubepods/pod1"), &POD);
        write_group(
            &root.path().join("kubepods"),
            &[("memory.max", "max\n"), ("memory.current", "9\n")],
        );
        let memory = memory_in(root.path(), "0::/kubepods/pod1\n").unwrap();
        let expected = Memory {
            used: 201_326_592 - 16_777_216,
            limit: 256 << 20,
            limit_hits: 17,
            stalled: 7.25,
        };
        assert_eq!(memory, expected);
        assert_eq!(memory.left(), (256 << 20) - expected.used);
    }

    #[test]
    fn the_ancestor_with_the_least_memory_left_counts() {
        let root = tempfile::tempdir().unwrap();
        write_group(
            &root.path().join("a/b"),
            &[("memory.max", "1000\n"), ("memory.current", "100\n")],
        );
        write_group(
            &root.path().join("a"),
            &[("memory.max", "500\n"), ("memory.current", "450\n")],
        );
        let memory = memory_in(root.path(), "0::/a/b\n").unwrap();
        assert_eq!((memory.used, memory.limit), (450, 500));
        // In a container, `/proc/self/cgroup` may contain the group's path on the host, which the container does not
        // have.
        let memory = memory_in(root.path(), "0::/a/unknown/path\n").unwrap();
        assert_eq!(memory.limit, 500);
    }

    #[test]
    fn a_group_of_version_1_is_read() {
        let root = tempfile::tempdir().unwrap();
        write_group(
            &root.path().join("memory/app"),
            &[
                ("memory.limit_in_bytes", "1048576\n"),
                ("memory.usage_in_bytes", "524288\n"),
                ("memory.stat", "inactive_file 1\ntotal_inactive_file 4096\n"),
                ("memory.failcnt", "3\n"),
            ],
        );
        let unlimited = [
            ("memory.limit_in_bytes", "9223372036854771712\n"),
            ("memory.usage_in_bytes", "1\n"),
        ];
        write_group(&root.path().join("memory"), &unlimited);
        let groups = "5:cpu:/app\n4:memory,hugetlb:/app\n";
        let memory = memory_in(root.path(), groups).unwrap();
        assert_eq!(
            (memory.used, memory.limit, memory.limit_hits),
            (520_192, 1 << 20, 3)
        );
        assert_eq!(memory_in(root.path(), "4:memory:/\n"), None, "no limit");
        assert_eq!(memory_in(root.path(), "damaged\n"), None);
    }
}
