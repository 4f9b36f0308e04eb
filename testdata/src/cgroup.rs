//! Creates control groups that limit memory, like those of containers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// A control group. Dropping this value removes the group.
pub struct Group {
    folder: PathBuf,
    /// Names of the two files in the control group's folder that contain its memory limit and its used memory.
    names: [&'static str; 2],
}

impl Group {
    /// Creates a control group with a memory limit of `bytes`, as a child of the control group of this process. If the
    /// kernel does not allow this, prints a message and returns `None`.
    #[expect(clippy::print_stderr, reason = "what is left out is said")]
    pub fn of(bytes: u64) -> Option<Self> {
        let made = made(bytes);
        if made.is_none() {
            eprintln!("no control group can be made here: room in a container is left out");
        }
        made
    }

    /// Returns the first words of a command line, such as `sh -c ...`. The command that is appended to them runs in the
    /// control group.
    pub fn entrance(&self) -> [String; 3] {
        let procs = self.folder.join("cgroup.procs");
        let join = format!("echo $$ > {} && exec \"$0\" \"$@\"", procs.display());
        ["sh", "-c", &join].map(str::to_owned)
    }

    /// Sets the memory limit so that the group can use `bytes` more memory. Inactive file pages do not count as used
    /// memory, because the kernel reclaims them first.
    pub fn leave(&self, bytes: u64) {
        let [limit, used] = self.names.map(|name| self.folder.join(name));
        let used = fs::read_to_string(used).expect("a figure");
        let used: u64 = used.trim().parse().expect("a number");
        let stat = fs::read_to_string(self.folder.join("memory.stat")).expect("figures");
        let files = stat
            .lines()
            .find_map(|line| line.strip_prefix("inactive_file "));
        let files: u64 = files.and_then(|n| n.parse().ok()).expect("a number");
        fs::write(limit, (used - files + bytes).to_string()).expect("a limit");
    }

    /// Sets whether the kernel kills all processes of the group if it kills one for lack of memory. Returns false if
    /// control groups have no such setting.
    pub fn kill_together(&self, is_so: bool) -> bool {
        let setting = self.folder.join("memory.oom.group");
        setting.exists() && fs::write(setting, u8::from(is_so).to_string()).is_ok()
    }

    /// Kills all processes of the group with SIGKILL.
    pub fn kill(&self) {
        let ids = fs::read_to_string(self.folder.join("cgroup.procs")).unwrap_or_default();
        // Ignore errors, because a process may have ended meanwhile.
        let _ = Command::new("kill").arg("-9").args(ids.lines()).status();
    }

    /// Returns a command that enters the control group and then runs `plain`.
    pub fn within(&self, plain: &Command) -> Command {
        let [shell, option, join] = self.entrance();
        let mut command = Command::new(shell);
        command
            .args([option, join])
            .arg(plain.get_program())
            .args(plain.get_args());
        command
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The group can be removed only after its last process has ended.
        let start = Instant::now();
        while fs::remove_dir(&self.folder).is_err() && start.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Number of groups that this process has created.
static NUMBER: AtomicU32 = AtomicU32::new(0);

fn made(bytes: u64) -> Option<Group> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let of = |line: &str| -> Option<(PathBuf, [&'static str; 2])> {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let below = |root: &str| Path::new(root).join(path.trim_start_matches('/'));
        match controllers {
            "" => Some((below("/sys/fs/cgroup"), ["memory.max", "memory.current"])),
            "memory" => Some((
                below("/sys/fs/cgroup/memory"),
                ["memory.limit_in_bytes", "memory.usage_in_bytes"],
            )),
            _ => None,
        }
    };
    let make = |(above, names): (PathBuf, [&'static str; 2])| {
        let (pid, number) = (std::process::id(), NUMBER.fetch_add(1, Relaxed));
        let folder = above.join(format!("heapdiff-test-{pid}-{number}"));
        fs::create_dir(&folder).ok()?;
        let group = Group { folder, names };
        fs::write(group.folder.join(names[0]), bytes.to_string()).ok()?;
        Some(group)
    };
    groups.lines().filter_map(of).find_map(make)
}
