//! The rule that decides whether an output may replace an existing file. An output never replaces an input of the
//! command line. It replaces a heap dump, a JFR recording or a trace only with `--force`.
//!
//! An output replaces reports, summaries, indexes and other files without `--force`, because they can be made again.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use flate2::bufread::MultiGzDecoder;

use crate::failure::{Failure, Result};
use crate::job::folder_of;

/// The first bytes of a heap dump.
const DUMP: &[u8] = b"JAVA PROFILE ";
/// Maximum number of gzip layers around a dump.
const LAYERS: usize = 4;
/// Maximum number of links that are followed from a path to its file. Linux has the same limit.
const LINKS: usize = 40;
/// Suffixes of files that belong to another file: the SQLite files of a trace, and the index and summary of a dump. The
/// segments of a dump (`.p0`) are handled separately.
const ENDINGS: [&str; 9] = [
    "-wal",
    "-shm",
    "-journal",
    ".hdx",
    ".hds",
    ".strong.hdx",
    ".strong.hds",
    ".all.hdx",
    ".all.hds",
];
/// Extensions of the files that heapdiff reads in a folder of classes.
const CLASSES: [&str; 3] = ["class", "jar", "jmod"];

/// The inputs of this process, and the rule for replacing existing heap dumps, recordings and traces.
#[derive(Debug, Default)]
pub(crate) struct Rule {
    /// The files and folders to read.
    pub(crate) inputs: Vec<PathBuf>,
    pub(crate) replaces: Replaces,
}

/// The conditions under which a command may replace existing heap dumps, JFR recordings and traces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Replaces {
    #[default]
    Never,
    /// The command has the option `--force`, but the user has not given it. So no dump, recording or trace is replaced.
    WithForce,
    Always,
}

static RULE: OnceLock<Rule> = OnceLock::new();

/// Sets the rule that decides whether an output of this process may replace an existing file. Must be called at most
/// once.
pub(crate) fn set(rule: Rule) {
    let _ = RULE.set(rule);
}

/// The reason why a file is not replaced.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The file is the given input, or a file that belongs to this input, such as its index.
    Input(PathBuf),
    /// The file has a kind of content that must not be replaced, such as a heap dump.
    Content(&'static str),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(input) => {
                write!(f, "it would overwrite the input {}", input.display())
            }
            Self::Content(what) => write!(f, "the file exists and is {what}"),
        }
    }
}

impl From<Refusal> for io::Error {
    fn from(refusal: Refusal) -> Self {
        Self::other(refusal.to_string())
    }
}

/// Returns an error if the output of an option must not be written. Called before any work is done for this output.
pub(crate) fn check(option: &str, output: &Path) -> Result<()> {
    let Some(refusal) = refusal(output) else {
        return Ok(());
    };
    let shown = output.display();
    Err(match refusal {
        Refusal::Input(input) => Failure::usage(format!(
            "{option} {shown} would overwrite the input {}",
            input.display()
        ))
        .with_hint("give another file name"),
        Refusal::Content(what) => {
            let hint = match rule().replaces {
                Replaces::Never => "give another file name, or delete this file first",
                _ => "give another file name, or replace this file with --force",
            };
            let message = format!("{option} {shown}: the file exists and is {what}");
            Failure::usage(message).with_hint(hint)
        }
    })
}

/// Returns the reason why an output must not be written; `None` if it may be written. Special files (pipes,
/// `/dev/null`) may always be written.
pub(crate) fn refusal(output: &Path) -> Option<Refusal> {
    let target = target(output);
    rule().refusal(&target, owning_file(&target).as_deref())
}

/// Returns the reason why the index or summary of a dump must not be written to `index`; `None` if it may be written.
/// For other outputs, use [`refusal`].
pub(crate) fn refusal_of_index(index: &Path) -> Option<Refusal> {
    rule().refusal(&target(index), None)
}

fn rule() -> &'static Rule {
    static NONE: Rule = Rule {
        inputs: Vec::new(),
        replaces: Replaces::Never,
    };
    RULE.get().unwrap_or(&NONE)
}

impl Rule {
    /// Returns the reason why `output` must not be written; `None` if it may be written. Links in `output` are already
    /// resolved. `whole` is the file to which `output` belongs. For example, a segment belongs to its dump.
    fn refusal(&self, output: &Path, whole: Option<&Path>) -> Option<Refusal> {
        if is_special(output) {
            return None;
        }
        let is_read = |input: &&PathBuf| {
            let read = target(input);
            if read.is_dir() {
                return is_class_in(&read, output);
            }
            let read_whole = self::owning_file(&read);
            let mut outputs = [Some(output), whole].into_iter().flatten();
            outputs.any(|output| {
                let inputs = [Some(&read), read_whole.as_ref()];
                let mut inputs = inputs.into_iter().flatten();
                inputs.any(|input| is_same_file(output, input))
            })
        };
        if let Some(input) = self.inputs.iter().find(is_read) {
            return Some(Refusal::Input(input.clone()));
        }
        if self.replaces == Replaces::Always {
            return None;
        }
        content_of(output).map(Refusal::Content).or_else(|| {
            // An index can be made again, so an output may replace it. The content of a SQLite log or a dump segment
            // exists nowhere else. So it is protected like the trace or dump to which it belongs.
            let is_index = INDEXES
                .iter()
                .any(|e| output.extension() == Some(e.as_ref()));
            let whole = whole.filter(|_| output.is_file() && !is_index)?;
            content_of(whole).map(|_| Refusal::Content(PART))
        })
    }
}

/// Extensions of files that heapdiff makes from a dump.
const INDEXES: [&str; 2] = ["hdx", "hds"];
const PART: &str = "part of a heap dump or a trace";

fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| !meta.is_file())
}

/// Returns the kind of a file that outputs replace only with `--force`; `None` for other files.
fn content_of(path: &Path) -> Option<&'static str> {
    if !path.is_file() {
        return None;
    }
    if is_dump(path).unwrap_or(false) {
        Some("a heap dump")
    } else if heapdiff_jfr::is_recording(path).unwrap_or(false) {
        Some("a JFR recording")
    } else if heapdiff_trace::is_trace(path).unwrap_or(false) {
        Some("a trace")
    } else {
        None
    }
}

/// True if a file starts like a heap dump, compressed or not.
pub(crate) fn is_dump(path: &Path) -> io::Result<bool> {
    let mut content: Box<dyn io::BufRead> = Box::new(BufReader::new(File::open(path)?));
    for _ in 0..LAYERS {
        if !content.fill_buf()?.starts_with(&[0x1f, 0x8b]) {
            break;
        }
        content = Box::new(BufReader::with_capacity(64, MultiGzDecoder::new(content)));
    }
    let mut start = [0; DUMP.len()];
    content.read_exact(&mut start)?;
    Ok(start == DUMP)
}

/// Returns the path with all links resolved. The file need not exist, because a link can lead to a path at which a file
/// is only created later.
fn target(path: &Path) -> PathBuf {
    let mut path = path.to_path_buf();
    for _ in 0..LINKS {
        if let Ok(found) = fs::canonicalize(&path) {
            return found;
        }
        let folder = folder_of(&path).to_path_buf();
        match fs::read_link(&path) {
            Ok(link) => path = folder.join(link),
            Err(_) => break,
        }
    }
    match (fs::canonicalize(folder_of(&path)), path.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => path,
    }
}

/// Returns the file that a file belongs to, according to its name. A SQLite log belongs to its trace. A segment, an
/// index or a summary belongs to its dump.
fn owning_file(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let segment = name.rsplit_once(".p").filter(|(_, n)| is_number(n));
    let segment = segment.map(|(name, _)| name);
    // Several suffixes may match. The longest one is removed.
    let ended = ENDINGS
        .iter()
        .filter_map(|ending| name.strip_suffix(ending));
    let name = segment.or_else(|| ended.min_by_key(|name| name.len()))?;
    let whole = path.with_file_name(name);
    (!name.is_empty() && whole.is_file()).then_some(whole)
}

/// True if `file` is in the folder of classes `folder`, and has a name or an extension that heapdiff reads from such a
/// folder.
fn is_class_in(folder: &Path, file: &Path) -> bool {
    let is_class = CLASSES.iter().any(|e| file.extension() == Some(e.as_ref()));
    let is_image = file.ends_with("lib/modules");
    file.is_file() && file.starts_with(folder) && (is_class || is_image)
}

/// True if two paths lead to the same file, which may not exist yet.
fn is_same_file(a: &Path, b: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        if let (Ok(a), Ok(b)) = (fs::metadata(a), fs::metadata(b)) {
            return (a.dev(), a.ino()) == (b.dev(), b.ino());
        }
    }
    a == b
}

/// Returns the first output that leads to the same file as an earlier output in the list.
pub(crate) fn find_duplicate(outputs: &[PathBuf]) -> Option<&Path> {
    let mut rest = outputs.iter().enumerate();
    let found = rest.find(|(at, output)| {
        let mut earlier = outputs.iter().take(*at);
        earlier.any(|earlier| {
            let is_same = || is_same_file(&target(earlier), &target(output));
            earlier == *output || !is_special(output) && is_same()
        })
    });
    found.map(|(_, output)| output.as_path())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(bytes).unwrap();
        packed.finish().unwrap()
    }

    #[test]
    fn dumps_recordings_and_traces_are_recognized_by_content() {
        let folder = tempfile::tempdir().unwrap();
        let dump = b"JAVA PROFILE 1.0.2\0and more".to_vec();
        let recording = b"FLR\0and more".to_vec();
        let mut trace = heapdiff_trace::SQLITE_START.to_vec();
        trace.resize(100, 0);
        let text = b"JAVA PROFIL".to_vec();
        for (name, bytes, what) in [
            ("a", dump.clone(), Some("a heap dump")),
            ("b", packed(&dump), Some("a heap dump")),
            ("c", packed(&packed(&dump)), Some("a heap dump")),
            ("d", recording.clone(), Some("a JFR recording")),
            ("e", packed(&recording), Some("a JFR recording")),
            ("f", trace, None),
            ("g", text, None),
            ("h", Vec::new(), None),
            ("i", vec![0x1f, 0x8b], None),
        ] {
            let path = folder.path().join(name);
            fs::write(&path, bytes).unwrap();
            assert_eq!(content_of(&path), what, "{name}");
        }
        let path = folder.path().join("t.db");
        let scene = heapdiff_trace::synthetic::Scene::default();
        heapdiff_trace::synthetic::write(&path, &scene).unwrap();
        assert_eq!(content_of(&path), Some("a trace"));
        assert_eq!(content_of(folder.path()), None);
        assert_eq!(content_of(&folder.path().join("none")), None);
    }

    #[test]
    fn files_that_belong_to_an_input_are_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["t.db", "t.db-wal", "a.hprof", "a.hprof.p0", "a.hprof.p1"] {
            fs::write(at(name), "").unwrap();
        }
        fs::write(at("a.hprof.strong.hdx"), "").unwrap();
        let refused = |inputs: &[&str], output: &str| {
            let inputs = inputs.iter().map(|name| at(name)).collect();
            let rule = Rule {
                inputs,
                replaces: Replaces::Always,
            };
            let output = target(&at(output));
            rule.refusal(&output, owning_file(&output).as_deref())
                .is_some()
        };
        for (input, output) in [
            ("t.db", "t.db"),
            ("t.db", "t.db-wal"),
            ("t.db-wal", "t.db"),
            ("a.hprof", "a.hprof.p1"),
            ("a.hprof", "a.hprof.strong.hdx"),
            ("a.hprof.p0", "a.hprof"),
            ("a.hprof.p0", "a.hprof.p1"),
            ("none.json", "none.json"),
        ] {
            assert!(refused(&[input], output), "{input} {output}");
        }
        for (input, output) in [
            ("t.db", "a.hprof"),
            ("t.db", "b.json"),
            ("a.hprof", "b.hprof.p0"),
            ("a.hprof", "a.hprof.json"),
            ("a.hprof", "/dev/null"),
        ] {
            assert!(!refused(&[input], output), "{input} {output}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_to_future_outputs_are_resolved() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        symlink("b.json", at("a.json")).unwrap();
        symlink("a.json", at("c.json")).unwrap();
        symlink("loop", at("loop")).unwrap();
        let outputs = |names: &[&str]| -> Vec<PathBuf> { names.iter().map(|n| at(n)).collect() };
        for (names, found) in [
            (&["a.json", "b.json"][..], Some("b.json")),
            (&["b.json", "d.json", "c.json"], Some("c.json")),
            (&["d.json", "./d.json"], Some("./d.json")),
            (&["d.json", "e.json", "loop"], None),
        ] {
            let outputs = outputs(names);
            assert_eq!(
                find_duplicate(&outputs).map(Path::to_owned),
                found.map(at),
                "{names:?}"
            );
        }
        let null = PathBuf::from("/dev/null");
        symlink(&null, at("null")).unwrap();
        assert_eq!(find_duplicate(&[null, at("null")]), None);
    }

    #[test]
    fn class_files_of_a_folder_are_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("com/acme")).unwrap();
        for name in ["com/acme/A.class", "a.jar", "com/report.json"] {
            fs::write(at(name), "").unwrap();
        }
        let rule = Rule {
            inputs: vec![folder.path().to_owned()],
            replaces: Replaces::Always,
        };
        let refused = |name: &str| rule.refusal(&target(&at(name)), None).is_some();
        assert!(refused("com/acme/A.class") && refused("a.jar"));
        assert!(!refused("com/report.json") && !refused("com/acme/B.class"));
    }
}
