//! Tests JVMs of other users and in other namespaces, as in containers. Needs root.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;
use testdata::jvm::{Jdk, Launch, Target};

use crate::support::{
    AS_NOBODY, BOX, Done, agent, chmod, files, folder, heapdiff, instances, is_root, jdks,
    public_shelf, ready, run, shelf,
};
use crate::trace::library;

/// Returns `command`, changed so that it runs as another user. heapdiff is copied to the current folder of `command`,
/// where that user may run it.
pub(crate) fn as_nobody(command: &Command) -> Command {
    let home = command.get_current_dir().expect("a folder");
    let program = home.join("heapdiff-copy");
    // Use the program `cp` to copy. If this process wrote the file, another test could fork a child at the same time.
    // The child would inherit the file open for writing, and then nobody could execute the file.
    let copied = Command::new("cp")
        .arg(command.get_program())
        .arg(&program)
        .status();
    assert!(copied.expect("cp").success());
    chmod(&program, 0o755);
    let mut other = Command::new(AS_NOBODY[0]);
    other
        .args(&AS_NOBODY[1..])
        .arg(program)
        .args(command.get_args())
        .current_dir(home);
    other
}

#[test]
fn a_jvm_of_another_user() {
    if !is_root() {
        return;
    }
    for jdk in jdks() {
        let public = folder();
        let mut target = ready(&public_shelf(&jdk, public.path()).through(AS_NOBODY));
        let pid = target.jvm_pid().expect("a JVM").to_string();
        // The private folder can be read and written only by us. The other folder can be written by everybody.
        let private = folder();
        let open = public.path().join("open");
        fs::create_dir(&open).expect("a folder");
        chmod(&open, 0o1777);
        for (home, size) in [(private.path(), 1), (&*open, 1)] {
            let done = run(home, &["dump", &pid, "-o", "a.hprof"]).well();
            assert!(done.stdout.contains("(Shelf)"), "{done:?}");
            let dump = home.join("a.hprof");
            assert_eq!(instances(&dump, &[BOX]), [10_000]);
            assert_eq!(fs::metadata(&dump).expect("it").uid(), 0);
            assert_eq!(files(home).len(), size);
        }
        // The agent is in a folder that the other user cannot read.
        let library = agent(&jdk, private.path());
        chmod(private.path(), 0o700);
        let mark = open.join("mark");
        let options = format!("mark={}", mark.display());
        let args = [
            "attach",
            &pid,
            &options,
            "--agent",
            library.to_str().expect("a name"),
        ];
        run(private.path(), &args).well();
        assert_eq!(fs::metadata(&mark).expect("the mark").uid(), 65_534);
        assert!(target.is_running());
        // A hunt reports that the JVM cannot write its trace to the private folder.
        for (home, kept) in [(private.path(), false), (&*open, true)] {
            let library = library.to_str().expect("a name");
            let hunt = [
                "hunt", &pid, "--agent", library, "--for", "0", "-o", "hunted",
            ];
            if kept {
                fs::create_dir(home.join("hunted")).expect("a folder");
                chmod(&home.join("hunted"), 0o777);
            }
            let done = run(home, &hunt).well();
            let why = "the hunt records no trace and cannot end early: hunted is a folder that the JVM's user may not \
                       write to";
            assert_eq!(done.stderr.contains(why), !kept, "{done:?}");
        }

        // Ordinary users may dump their own JVMs, but not a JVM of root.
        let dump = heapdiff(&open, &["dump", &pid, "-o", "b.hprof"]);
        Done::from(as_nobody(&dump).output().expect("a run")).well();
        assert_eq!(instances(&open.join("b.hprof"), &[BOX]), [10_000]);
        let ours = ready(&shelf(&jdk));
        let dump = heapdiff(&open, &["dump", &ours.pid().to_string(), "-o", "c.hprof"]);
        let done = Done::from(as_nobody(&dump).output().expect("a run"));
        let done = done.failed(3, "(java) belongs to the user root");
        assert!(done.stderr.contains("run `sudo heapdiff dump "), "{done:?}");
    }
}

/// A killed JVM leaves its socket in /tmp. If a later JVM of another user gets the same process ID, it cannot replace
/// the socket, so it never listens. On a machine where these tests ran often, this happened to one process in thirty.
#[test]
fn a_socket_of_another_users_jvm_is_in_the_way() {
    if !is_root() {
        return;
    }
    for jdk in jdks() {
        let public = folder();
        let open = public.path().join("open");
        fs::create_dir(&open).expect("a folder");
        chmod(&open, 0o1777);
        let target = ready(&public_shelf(&jdk, public.path()).through(AS_NOBODY));
        let pid = target.jvm_pid().expect("a JVM").to_string();
        let socket = format!("/tmp/.java_pid{pid}");
        let _ = fs::remove_file(&socket);
        // A regular file cannot be the socket of a JVM. It may be valuable to its owner, so heapdiff does not remove
        // it.
        fs::write(&socket, "").expect("a file");
        let done = run(&open, &["dump", &pid, "-o", "a.hprof"]);
        let done = done.failed(3, "(Shelf): its socket /tmp/.java_pid");
        assert!(
            done.stderr.contains("exists and belongs to the user root"),
            "{done:?}"
        );
        fs::remove_file(&socket).expect("the file");
        let listener = UnixListener::bind(&socket).expect("a socket");
        run(&open, &["dump", &pid, "-o", "a.hprof"]).failed(3, "its socket /tmp");
        drop(listener);
        // A socket on which nobody listens may be removed only by root.
        let dump = heapdiff(&open, &["dump", &pid, "-o", "a.hprof"]);
        let done = Done::from(as_nobody(&dump).output().expect("a run"));
        let done = done.failed(3, "its socket /tmp");
        assert!(done.stderr.contains("or as root"), "{done:?}");
        run(&open, &["dump", &pid, "-o", "a.hprof"]).well();
        assert_eq!(fs::metadata(&socket).expect("its socket").uid(), 65_534);
        assert_eq!(instances(&open.join("a.hprof"), &[BOX]), [10_000]);
    }
}

/// Returns the command for a JVM that is the first process of its PID namespace, and that has its own `/tmp` of the
/// size `tmp`. Also returns the folder with the JVM's classes, which is not in `/tmp`. The command begins with the
/// words of `outer`.
fn in_a_container(jdk: &Jdk, tmp: &str, outer: &[&str], as_user: &[&str]) -> (Launch, TempDir) {
    let classes = tempfile::tempdir_in("/var/tmp").expect("a folder");
    let prepare = format!(
        "mount -t tmpfs -o size={tmp},mode=1777 tmpfs /tmp && exec {} \"$0\" \"$@\"",
        as_user.join(" ")
    );
    let unshare = [
        "unshare",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount",
        "--mount-proc",
    ];
    let launch = public_shelf(jdk, classes.path())
        .through(outer)
        .through(unshare)
        .through(["sh", "-c", &prepare]);
    (launch, classes)
}

/// Starts a JVM with the command of [`in_a_container`], and waits until it has loaded its classes. Returns the JVM with
/// its process ID.
pub(crate) fn contained(jdk: &Jdk, tmp: &str, as_user: &[&str]) -> (Target, u32) {
    let (launch, _classes) = in_a_container(jdk, tmp, &[], as_user);
    let target = ready(&launch);
    let pid = target.jvm_pid().expect("a JVM");
    let inner = fs::read_to_string(format!("/proc/{pid}/status")).expect("its status");
    assert!(inner.contains(&format!("NSpid:\t{pid}\t1\n")), "{inner}");
    (target, pid)
}

#[test]
fn a_jvm_in_a_container() {
    if !is_root() {
        return;
    }
    for jdk in jdks() {
        for user in [&[][..], &AS_NOBODY] {
            let (mut target, pid) = contained(&jdk, "200m", user);
            let tmp = format!("/proc/{pid}/root/tmp");
            let pid = pid.to_string();
            let home = folder();
            // Abandoned files are removed with the rights of the JVM's user, because that user may have created them to
            // trick root into following a link.
            let ours = Path::new(&tmp).join(".heapdiff-0123456789abcdef");
            fs::create_dir(&ours).expect("a folder");
            fs::write(ours.join("dump.hprof"), "").expect("a file");
            for path in [ours.join("dump.hprof"), ours.clone()] {
                let mut aged = Command::new("touch");
                aged.args(["-d", "2 minutes ago"]).arg(path);
                assert!(aged.status().expect("touch").success());
            }
            run(home.path(), &["dump", &pid]).well();
            assert_eq!(ours.join("dump.hprof").exists(), !user.is_empty());
            let _ = fs::remove_dir_all(&ours);
            let name = format!("java_pid{pid}.hprof");
            assert_eq!(files(home.path()), [&*name]);
            assert_eq!(instances(&home.path().join(name), &[BOX]), [10_000]);
            let library = agent(&jdk, home.path());
            let library = library.to_str().expect("a name");
            for _ in 0..2 {
                // After the JVM has loaded the library, heapdiff removes the copy of the library. The second attach
                // needs no copy.
                let args = ["attach", &pid, "mark=/tmp/mark", "--agent", library];
                run(home.path(), &args).well();
                let left = files(Path::new(&tmp));
                let of_ours: Vec<&String> =
                    left.iter().filter(|n| n.contains("heapdiff")).collect();
                assert!(of_ours.is_empty(), "{left:?}");
                assert!(left.contains(&"mark".to_owned()), "{left:?}");
                assert!(!left.iter().any(|n| n.starts_with(".attach")), "{left:?}");
            }
            // The agent runs in a container. It could write a trace there, but the user would not look for it in the
            // container. So `hunt` records no trace.
            let hunt = [
                "hunt", &pid, "--agent", library, "--for", "0", "-o", "hunted",
            ];
            let done = run(home.path(), &hunt).well();
            let why = "the hunt records no trace and cannot end early: hunted is not visible to the JVM, which runs in \
                       a container";
            assert!(done.stderr.contains(why), "{done:?}");
            assert!(target.is_running());
        }
    }
}

/// Tests a JVM whose root is one of our folders (chroot). Every command must find the agent again, although `/proc`
/// shows the paths of the JVM's libraries as seen from outside of the chroot.
#[test]
fn a_jvm_in_a_chroot() {
    if !is_root() {
        return;
    }
    // The JVM sees all of our files except `/tmp`, because it has its own `/tmp`.
    let prepare = "mount --rbind / \"$0\" && mount -t tmpfs -o size=50m,mode=1777 tmpfs \"$0/tmp\" && exec chroot \"$0\" \"$@\"";
    let library = library();
    // The first agent library (`seen`) has the same path for the JVM and for heapdiff. The JVM does not see the second
    // library, which is in our `/tmp`. So heapdiff copies the second library to a path that the JVM sees.
    let (seen, home) = (library.to_str().expect("a path"), folder());
    let copied = home.path().join("libheapdiff_agent.so");
    fs::copy(&library, &copied).expect("a copy");
    for jdk in jdks() {
        for agent in [seen, copied.to_str().expect("a path")] {
            let place = tempfile::tempdir_in("/var/tmp").expect("a folder");
            let root = place.path().join("root");
            fs::create_dir(&root).expect("a folder");
            let root = root.to_str().expect("a path");
            let launch = public_shelf(&jdk, place.path())
                .through(["unshare", "--mount", "sh", "-c", prepare, root])
                .flag("-XX:+EnableDynamicAgentLoading");
            let mut target = ready(&launch);
            let pid = target.jvm_pid().expect("a JVM").to_string();
            let maps = || fs::read_to_string(format!("/proc/{pid}/maps")).expect("its maps");
            let with = |args: &[&str]| run(home.path(), &[args, &["--agent", agent]].concat());
            with(&["attach", &pid]).well();
            assert!(maps().contains(&format!("{root}/")), "{}", maps());
            let done = with(&["attach", &pid, "interval=64k"]).well();
            let changed = "the agent uses these options now";
            assert!(done.stdout.contains(changed), "{done:?}");
            with(&["count", &pid, "--for", "0"]).well();
            with(&["dump", &pid, "--fork", "-o", "a.hprof", "--force"]).well();
            assert_eq!(instances(&home.path().join("a.hprof"), &[BOX]), [10_000]);
            run(home.path(), &["detach", &pid]).well();
            with(&["hunt", &pid, "--for", "0", "-o", "hunted"]).well();
            fs::remove_dir_all(home.path().join("hunted")).expect("the folder");
            assert!(target.is_running());
        }
    }
}

/// Shell commands that enter a user namespace whose root is an ordinary user outside, as in rootless containers.
const AS_INNER_ROOT: &str = "\
holder=$(unshare --user sleep 20 </dev/null >/dev/null 2>&1 & echo $!)
tries=0
while [ \"$(readlink /proc/$holder/ns/user)\" = \"$(readlink /proc/self/ns/user)\" ] && [ $tries -lt 500 ]; do
    sleep 0.01
    tries=$((tries + 1))
done
echo 0 100000 65536 > /proc/$holder/gid_map && echo 0 100000 65536 > /proc/$holder/uid_map &&
exec nsenter --target $holder --user --setuid 0 --setgid 0 \"$0\" \"$@\"";

/// True if the kernel allows us to create user namespaces. In some containers even root may not.
#[expect(clippy::print_stderr, reason = "what is left out is said")]
fn has_user_namespaces() -> bool {
    let tried = Command::new("sh")
        .args(["-c", AS_INNER_ROOT, "true"])
        .output();
    let tried = tried.expect("a shell");
    let said = String::from_utf8_lossy(&tried.stderr);
    if !tried.status.success() {
        eprintln!("the kernel forbids user namespaces, which are left out: {said}");
    }
    tried.status.success()
}

#[test]
fn a_jvm_in_a_user_namespace() {
    if !is_root() || !has_user_namespaces() {
        return;
    }
    for jdk in jdks() {
        let outer = ["sh", "-c", AS_INNER_ROOT];
        let (launch, _classes) = in_a_container(&jdk, "100m", &outer, &[]);
        let mut target = ready(&launch);
        let pid = target.jvm_pid().expect("a JVM");
        let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("its status");
        assert!(status.contains("Uid:\t100000\t"), "{status}");
        let pid = pid.to_string();
        let home = folder();
        // Root cannot create files in the /tmp of this JVM.
        let library = library();
        let agent = library.to_str().expect("a path");
        for fork in [&[][..], &["--fork", "--agent", agent]] {
            let args = [&["dump", &pid, "-o", "a.hprof", "--force"], fork].concat();
            run(home.path(), &args).well();
            let dump = home.path().join("a.hprof");
            assert_eq!(instances(&dump, &[BOX]), [10_000]);
            assert_eq!(fs::metadata(&dump).expect("it").uid(), 0);
        }
        run(home.path(), &["attach", &pid, "--agent", agent]).well();
        let hunt = ["hunt", &pid, "--agent", agent, "--for", "0"];
        run(home.path(), &[&hunt[..], &["-o", "hunted"]].concat()).well();
        run(home.path(), &[&hunt[..], &["--no-files"]].concat()).well();
        let left = files(Path::new(&format!("/proc/{pid}/root/tmp")));
        assert!(
            !left.iter().any(|name| name.contains("heapdiff")),
            "{left:?}"
        );
        assert!(target.is_running());
    }
}

#[test]
fn a_small_tmp_in_a_container() {
    if !is_root() {
        return;
    }
    for jdk in jdks() {
        let (mut target, pid) = contained(&jdk, "1m", &[]);
        let home = folder();
        let done = run(home.path(), &["dump", &pid.to_string()]);
        done.failed(3, "no space for the dump in the JVM's /tmp");
        assert_eq!(files(home.path()), [] as [&str; 0]);
        let left = files(Path::new(&format!("/proc/{pid}/root/tmp")));
        assert!(
            !left.iter().any(|name| name.contains("heapdiff")),
            "{left:?}"
        );
        assert!(target.is_running());
    }
}

/// heapdiff copies the agent's library to a folder with enough room. If a JVM cannot create its socket, heapdiff
/// reports this at once.
#[test]
fn a_tmp_without_room_for_the_agent() {
    if !is_root() {
        return;
    }
    for jdk in jdks() {
        for user in [&[][..], &AS_NOBODY] {
            let (mut target, pid) = contained(&jdk, "1m", user);
            let (pid, home) = (pid.to_string(), folder());
            let library = library();
            let agent = library.to_str().expect("a path");
            let copies = || {
                let folders = ["/tmp", "/var/tmp", "/dev/shm", "/run"];
                let all =
                    folders.map(|below| files(Path::new(&format!("/proc/{pid}/root{below}"))));
                let mut names = all.concat();
                names.retain(|name| name.contains("heapdiff_agent-"));
                names
            };
            let before = copies();
            run(home.path(), &["attach", &pid, "--agent", agent]).well();
            assert_eq!(copies(), before);
            let hunt = ["hunt", &pid, "--no-files", "--for", "0", "--agent", agent];
            run(home.path(), &hunt).well();
            assert_eq!(copies(), before);
            // The new `/tmp` hides the socket of the JVM. The JVM cannot create another socket, because this `/tmp` is
            // read-only.
            let mut mount = Command::new("nsenter");
            mount.args(["--target", &pid, "--mount", "mount", "-t", "tmpfs"]);
            let mounted = mount.args(["-o", "ro", "tmpfs", "/tmp"]).status();
            assert!(mounted.expect("nsenter").success());
            let done = run(home.path(), &["attach", &pid, "--agent", agent]);
            let done = done.failed(3, "(Shelf): the JVM cannot write to its /tmp: ");
            assert!(
                done.stderr
                    .contains("in a Kubernetes pod: an emptyDir volume"),
                "{done:?}"
            );
            assert!(target.is_running());
        }
    }
}

#[test]
fn a_container_cannot_replace_the_copied_library() {
    if !is_root() {
        return;
    }
    let jdk = jdks().remove(0);
    // A user with write access to the JVM's `/tmp` cannot prepare another library under the name of heapdiff's copy,
    // because each copy has a different name.
    let home = folder();
    let library = agent(&jdk, home.path());
    let library = library.to_str().expect("a name");
    let copied = |pid: u32| {
        let args = ["attach", &pid.to_string(), "--agent", library];
        run(home.path(), &args).well();
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).expect("maps");
        let line = maps.lines().find(|line| line.contains("heapdiff_agent"));
        let path = line.map(|line| line.trim_end_matches(" (deleted)").to_owned());
        let name = path.and_then(|path| path.rsplit('/').next().map(str::to_owned));
        name.expect("a copy")
    };
    let (open, pid) = contained(&jdk, "10m", &[]);
    let name = copied(pid);
    drop(open);
    let (mut target, pid) = contained(&jdk, "10m", &[]);
    let taken = Path::new(&format!("/proc/{pid}/root/tmp")).join(&name);
    fs::write(&taken, "something else").expect("a file");
    assert_ne!(copied(pid), name);
    assert_eq!(fs::read(&taken).expect("a file"), b"something else");
    assert!(target.is_running());
}
