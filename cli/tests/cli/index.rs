//! Tests the index beside a dump. It makes commands faster, and does not change their results.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use testdata::writer::graph::{self, NodeKind};
use testdata::writer::{Elements, FieldType, Options, Rng, Root};

/// A folder with a dump that is large enough for an index, and with a folder for the cache.
struct Place {
    folder: tempfile::TempDir,
}

const DUMP: &str = "heap.hprof";

impl Place {
    fn new() -> Self {
        let mut rng = Rng::new(11);
        let nodes = 300;
        let edges: Vec<(usize, usize)> = (0..700)
            .map(|_| (rng.below(nodes), rng.below(nodes)))
            .collect();
        let (mut heap, _) = graph::heap(
            nodes,
            &edges,
            &[1, 40, 80],
            NodeKind::Mixed,
            Options::default(),
        );
        heap.set_system_properties(&[("java.vm.version", "17.0.15+6")]);
        let large = heap.add_primitive_array(Elements::Zeros(FieldType::Long, 5 << 19));
        heap.add_root(Root::JniGlobal { global_ref: 5 }, large);
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join(DUMP), heap.build()).expect("a dump");
        Self { folder }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = crate::support::heapdiff(self.folder.path(), args);
        command.env("XDG_CACHE_HOME", self.at("cache"));
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("a run")
    }

    /// Returns standard output and standard error of a run that succeeds.
    #[track_caller]
    fn answer(&self, args: &[&str]) -> (String, String) {
        let done = self.run(args);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let stderr = text(&done.stderr);
        assert!(done.status.success(), "{args:?}: {stderr}");
        (text(&done.stdout), stderr)
    }

    /// Returns the names of all files, including those in the cache.
    fn files(&self) -> Vec<String> {
        let mut names = Vec::new();
        for folder in [self.folder.path().to_path_buf(), self.at("cache/heapdiff")] {
            let entries = fs::read_dir(folder).into_iter().flatten();
            let files = entries.map(|e| e.expect("an entry"));
            let files = files.filter(|e| e.path().is_file());
            names.extend(files.map(|e| e.file_name().to_string_lossy().into_owned()));
        }
        names.sort();
        names
    }
}

const COMMANDS: [&[&str]; 12] = [
    &["histo", DUMP],
    &["histo", DUMP, "--retained"],
    &["top", DUMP],
    &["top", DUMP, "--under", "/Object/"],
    &["show", DUMP, "java.lang.String"],
    &["show", DUMP, "class java.lang.Object"],
    &["paths", DUMP, "java.lang.Object[]"],
    &["paths", DUMP, "/./", "--refs", "all"],
    &["sizeof", DUMP, "java.lang.Object[]", "--tree"],
    &["threads", DUMP],
    &["top", DUMP, "--refs", "strong"],
    &["diff", DUMP, DUMP],
];

/// Runs all commands in [`COMMANDS`], and returns their JSON reports.
fn answers(place: &Place, more: &[&str]) -> Vec<String> {
    let json = ["--format", "json"];
    let each = |command: &&[&str]| place.answer(&[command, &json[..], more].concat()).0;
    COMMANDS.iter().map(each).collect()
}

#[test]
fn answers_are_the_same_with_an_index_and_without() {
    let place = Place::new();
    let expected = answers(&place, &["--no-index"]);
    assert_eq!(place.files(), [DUMP], "no index is written");
    assert_eq!(answers(&place, &[]), expected);
    let all = [
        DUMP,
        "heap.hprof.all.hdx",
        "heap.hprof.hds",
        "heap.hprof.hdx",
        "heap.hprof.strong.hdx",
    ];
    assert_eq!(place.files(), all);
    // From now on, each answer comes from an index, and answers of comparisons come from cached summaries.
    for command in COMMANDS {
        let (_, said) = place.answer(&[command, &["-v"]].concat());
        let summary = said.matches("reading the summary").count();
        assert_eq!(summary > 0, command[0] == "diff", "{said}");
        assert!(!said.contains("merging the dominator tree"), "{said}");
        assert!(said.contains("reading the index"), "{command:?}: {said}");
        assert!(!said.contains("writing"), "{command:?}: {said}");
        // Paths to many objects and sizes of large sets need the object graph, which an index does not contain.
        let searches = ["paths", "sizeof"].contains(&command[0])
            || command.contains(&"/Object/")
            || command.contains(&"--retained");
        assert!(searches || !said.contains("linking"), "{command:?}: {said}");
    }
    assert_eq!(answers(&place, &[]), expected);
    let index = fs::read(place.at("heap.hprof.hdx")).expect("the index");
    let section = |number: usize| {
        let offset = index[128 + number * 24..].first_chunk().expect("an entry");
        usize::try_from(u64::from_le_bytes(*offset)).expect("an offset")
    };
    // The sections from number 27 on (referrers and their hashes) are checked for damage only when a command uses them.
    let late = section(27);
    for at in [20, 100, 700, section(1), section(19), late - 64, late + 5] {
        let mut damaged = index.clone();
        damaged[at] ^= 4;
        fs::write(place.at("heap.hprof.hdx"), &damaged).expect("a damaged index");
        let command = if at < late { 2 } else { 4 };
        let more = ["--format", "json", "-v"];
        let (answer, said) = place.answer(&[COMMANDS[command], &more].concat());
        assert_eq!(answer, expected[command], "byte {at}");
        let told = said.contains("heap.hprof.hdx is not used (");
        assert!(
            told && said.contains("writing the index"),
            "byte {at}: {said}"
        );
        let again = fs::read(place.at("heap.hprof.hdx")).expect("the index");
        assert!(again == index, "it is written anew");
    }
}

#[test]
fn a_damaged_index_is_reported_and_a_stale_one_is_not() {
    let place = Place::new();
    let said = |args: &[&str]| place.answer(args).1;
    assert_eq!(said(&["top", DUMP]), "");
    assert_eq!(said(&["top", DUMP]), "");
    let index = place.at("heap.hprof.hdx");
    let whole = fs::read(&index).expect("the index");
    fs::write(&index, &whole[..whole.len() / 2]).expect("half an index");
    let line = said(&["histo", DUMP]);
    assert!(line.ends_with(
        "is not used (damaged: the file is truncated); heapdiff reads the dump instead\n"
    ));
    assert_eq!(line.lines().count(), 1, "{line}");
    assert_eq!(said(&["histo", DUMP, "-q"]), "");
    fs::write(&index, &whole).expect("the index");
    // If the dump is replaced, its old index is not an error.
    let mut other = fs::read(place.at(DUMP)).expect("the dump");
    other.truncate(other.len() - 1);
    fs::write(place.at(DUMP), other).expect("another dump");
    let line = said(&["top", DUMP, "-v"]);
    assert!(
        line.contains("the file belongs to another dump, or the dump has changed"),
        "{line}"
    );
    assert!(!said(&["top", DUMP]).contains("hdx"));
    // The index must still record that the dump is damaged.
    let strict = place.run(&["top", DUMP, "--strict"]);
    assert_eq!(strict.status.code(), Some(3));
    let (json, _) = place.answer(&["top", DUMP, "--format", "json"]);
    assert!(json.contains("\"partial\": true") || json.contains("\"partial\":true"));
}

#[test]
fn the_cache_is_used_if_the_folder_is_not_writable() {
    let place = Place::new();
    // A folder has the name of the index, so that even root cannot create the file.
    fs::create_dir_all(place.at("heap.hprof.hdx/taken")).expect("a folder");
    let (first, said) = place.answer(&["top", DUMP, "-v"]);
    assert!(said.contains("heap.hprof.hdx was not written: "), "{said}");
    let files = place.files();
    assert_eq!(files.len(), 2, "{files:?}");
    let cached = files
        .iter()
        .find(|f| f.ends_with(".hdx"))
        .expect("an index");
    assert!(cached.starts_with("heap.hprof-"), "{cached}");
    let (second, said) = place.answer(&["top", DUMP, "-v"]);
    assert!(!said.contains("linking"), "{said}");
    assert_eq!(first, second);
    let (cleaned, _) = place.answer(&["index", "clean"]);
    assert!(cleaned.contains(cached.as_str()), "{cleaned}");
    assert_eq!(place.files(), [DUMP]);
}

#[cfg(unix)]
#[test]
fn links_share_the_index_of_their_target() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let (dump, link) = (place.at(DUMP), place.at("cache/link"));
    fs::create_dir_all(place.at("cache")).expect("a folder");
    std::os::unix::fs::symlink(&dump, &link).expect("a link");
    fs::set_permissions(&dump, fs::Permissions::from_mode(0o640)).expect("permissions");
    place.answer(&["top", "cache/link"]);
    assert_eq!(place.files(), [DUMP, "heap.hprof.hdx"]);
    let meta = fs::metadata(place.at("heap.hprof.hdx")).expect("the index");
    assert_eq!(meta.permissions().mode() & 0o777, 0o640, "as the dump");
    let (_, said) = place.answer(&["top", DUMP, "-v"]);
    assert!(!said.contains("linking"), "{said}");
    // A symbolic link in place of the index is not followed.
    fs::rename(place.at("heap.hprof.hdx"), place.at("moved")).expect("a renamed file");
    std::os::unix::fs::symlink(place.at("moved"), place.at("heap.hprof.hdx")).expect("a link");
    let (_, said) = place.answer(&["top", DUMP, "-v"]);
    assert!(said.contains("linking"), "{said}");
}

#[test]
fn small_and_compressed_dumps_get_no_index() {
    let place = Place::new();
    crate::support::prepare(place.folder.path());
    let before = place.files();
    place.answer(&["top", "cut.hprof"]);
    place.answer(&["top", "testdata/before.hprof.gz"]);
    assert_eq!(place.files(), before);
}

#[test]
fn concurrent_writers_leave_one_complete_index() {
    let place = Place::new();
    let runs: Vec<_> = (0..4)
        .map(|_| {
            let mut command = place.command(&["top", DUMP, "-q"]);
            command.stdout(std::process::Stdio::null());
            command.spawn().expect("a run")
        })
        .collect();
    for mut run in runs {
        assert!(run.wait().expect("its end").success());
    }
    assert_eq!(place.files(), [DUMP, "heap.hprof.hdx"]);
    let (_, said) = place.answer(&["top", DUMP, "-v"]);
    assert!(!said.contains("linking"), "{said}");
}

/// True if the folder contains a file that is being written.
#[cfg(target_os = "linux")]
fn is_being_written(folder: &Path) -> bool {
    let entries = fs::read_dir(folder).expect("the folder");
    let mut names = entries.map(|e| e.expect("an entry").file_name());
    names.any(|name| name.to_string_lossy().starts_with(".heapdiff-"))
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupted_run_leaves_no_partial_index() {
    use rustix::process::{Pid, Signal, kill_process};
    let place = Place::new();
    let mut caught = 0;
    for _ in 0..200 {
        let mut command = place.command(&["top", DUMP, "-q"]);
        command.stdout(std::process::Stdio::null());
        let mut run = command.spawn().expect("a run");
        while run.try_wait().expect("its state").is_none() {
            if is_being_written(place.folder.path()) {
                let pid = Pid::from_child(&run);
                // The process may have ended in the meantime.
                let _ = kill_process(pid, Signal::TERM);
                break;
            }
        }
        let end = run.wait().expect("its end");
        let files = place.files();
        let index = files.iter().any(|f| f == "heap.hprof.hdx");
        assert_eq!(files.len(), 1 + usize::from(index), "{files:?}");
        if index {
            let (_, said) = place.answer(&["top", DUMP, "-v"]);
            assert!(!said.contains("linking"), "{said}");
            fs::remove_file(place.at("heap.hprof.hdx")).expect("a removed file");
        }
        caught += usize::from(!end.success() && !index);
        if caught == 3 {
            return;
        }
    }
    panic!("no run was interrupted while it wrote");
}

#[test]
fn clean_deletes_only_indexes() {
    let place = Place::new();
    place.answer(&["top", DUMP]);
    place.answer(&["top", DUMP, "--refs", "all"]);
    place.answer(&[DUMP, DUMP]);
    fs::write(place.at("mine.hdx"), "my own file").expect("a file");
    fs::write(place.at("half.hdx"), "").expect("a file");
    let (said, _) = place.answer(&["index", "clean", "mine.hdx"]);
    assert_eq!(said, "no index found\n");
    let (said, _) = place.answer(&["index", "clean", DUMP]);
    assert_eq!(said.lines().count(), 4, "{said}");
    assert_eq!(place.files(), ["half.hdx", DUMP, "mine.hdx"]);
    place.answer(&["top", DUMP]);
    place.answer(&[DUMP, DUMP, "--refs", "strong"]);
    fs::remove_file(place.at(DUMP)).expect("a removed dump");
    // This file has the name of an unfinished index that a killed run leaves behind.
    fs::copy(place.at("heap.hprof.hdx"), place.at(".heapdiff-x.hdx")).expect("a copy");
    let (said, _) = place.answer(&["index", "clean", "."]);
    assert!(said.starts_with("removed ./.heapdiff-x.hdx  "), "{said}");
    assert_eq!(place.files(), ["half.hdx", "mine.hdx"]);
    let unfinished = [
        ".heapdiff-Ab12xY",
        ".heapdiff-Cd34zW.hdx",
        ".heapdiff-Ef56vU.hds",
        ".heapdiff-0123456789abcdef",
    ];
    let others = [".heapdiff-notes", ".heapdiff-new456", ".heapdiff-held78"];
    for name in unfinished.iter().chain(&others) {
        fs::write(place.at(name), "half").expect("a file");
        if *name != others[1] {
            let file = fs::File::options().write(true).open(place.at(name));
            let before = std::time::SystemTime::now() - std::time::Duration::from_secs(600);
            file.and_then(|f| f.set_modified(before))
                .expect("an old file");
        }
    }
    let held = fs::File::open(place.at(others[2])).expect("a file");
    held.lock().expect("a lock");
    let (said, _) = place.answer(&["index", "clean", "."]);
    assert_eq!(said.lines().count(), 5, "{said}");
    for name in others {
        fs::remove_file(place.at(name)).expect("a file that is left");
    }
    assert_eq!(place.files(), ["half.hdx", "mine.hdx"]);
    let (said, _) = place.answer(&["index", "clean"]);
    assert_eq!(said, "no index found\n");
    let none = place.run(&["index", "clean", "nowhere.hprof"]);
    assert_eq!(none.status.code(), Some(2));
}
