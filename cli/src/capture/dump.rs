//! `heapdiff dump`: the JVM writes its heap to a temporary file, which gets its final name when it is complete.
//!
//! If the JVM can write to the folder of the requested file, the temporary file is in that folder. If the dump is for
//! standard output, the file is unlinked before the first byte is written to standard output. So no file remains even
//! if heapdiff is killed while it writes.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use flate2::Compression;
use flate2::write::GzEncoder;
use hprof::Progress;
use rustix::fs::{CWD, OFlags, RenameFlags, renameat_with};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::child::Child;
use super::deadline::Sign;
use super::folder::Folder;
use super::fork::{self, Refused};
use super::library::Library;
use super::places;
use super::process::{bytes_of, unusable_failure};
use super::protocol::{Answer, Jvm};
use super::request::{LONGEST_ARGUMENT, What};
use crate::failure::{Failure, Result, system_message};
use crate::interrupt::Unfinished;
use crate::leftovers;
use crate::progress::{Meter, Wanted};
use crate::write::failed as failed_to_write;

/// Part of the JVM's answer after a successful dump.
const CREATED: &str = "Heap dump file created";

/// The path to which a dump is written.
#[derive(Clone, Debug)]
pub(crate) struct DumpPlace {
    /// The path as the user wrote it.
    pub(super) file: PathBuf,
    /// The folder without symbolic links, and the file name in it.
    pub(super) folder: PathBuf,
    name: PathBuf,
    replace: bool,
}

impl DumpPlace {
    /// Checks the path as far as possible before a request is sent to the JVM.
    pub(crate) fn new(file: &Path, replace: bool) -> Result<Self> {
        let shown = file.display();
        let bad = |why: String| Failure::usage(format!("-o {shown}: {why}"));
        let Some(name) = file.file_name() else {
            return Err(bad("this is not the name of a file".to_owned()));
        };
        let parent = match file.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let folder = fs::canonicalize(parent)
            .map_err(|_| bad(format!("the folder {} does not exist", parent.display())))?;
        match fs::symlink_metadata(folder.join(name)) {
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            Err(e) => return Err(bad(system_message(&e))),
            Ok(meta) if !meta.is_file() => {
                return Err(bad("this path exists and is not a file".to_owned()));
            }
            Ok(_) if replace => {}
            Ok(_) => return Err(exists(file)),
        }
        Folder::open(&folder)
            .and_then(|folder| folder.is_writable())
            .map_err(|e| {
                bad(format!(
                    "cannot write to {}: {}",
                    parent.display(),
                    system_message(&e)
                ))
            })?;
        Ok(Self {
            file: file.to_owned(),
            name: name.into(),
            folder,
            replace,
        })
    }

    fn target(&self) -> PathBuf {
        self.folder.join(&self.name)
    }
}

fn exists(file: &Path) -> Failure {
    Failure::usage(format!("-o {}: the file exists", file.display()))
        .with_hint("give another file name, or replace this file with --force")
}

/// Returns the current time in milliseconds since 1970.
pub(super) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    i64::try_from(since.unwrap_or_default().as_millis()).unwrap_or(i64::MAX)
}

/// A dump that was taken.
#[derive(Debug)]
pub(crate) struct DumpResult {
    pub(crate) file: PathBuf,
    /// The file's absolute path.
    pub(super) target: PathBuf,
    /// When the dump was requested from the JVM, in milliseconds since 1970.
    pub(super) asked_ms: i64,
    /// Number of bytes written, after any compression.
    pub(crate) bytes: u64,
    /// The reason why the JVM itself wrote the dump although the user requested a child process; `None` if there is no
    /// such reason.
    pub(super) not_forked: Option<String>,
}

/// The kind of a dump: the objects that it contains, and the process that writes it (the JVM or a forked child).
#[derive(Clone, Copy, Debug)]
pub(super) struct How<'a> {
    pub(super) what: What,
    /// The agent that forks the JVM, if a forked child is to write the dump; `None` if the JVM itself writes the dump.
    pub(super) forker: Option<Forker<'a>>,
}

/// The agent that forks the JVM.
#[derive(Clone, Copy, Debug)]
pub(super) struct Forker<'a> {
    pub(super) library: &'a Library,
    /// True if the command fails when forking fails. If false, the JVM itself writes the dump when forking fails.
    pub(super) only: bool,
}

/// Takes a dump.
pub(super) fn take(
    jvm: &Jvm<'_>,
    place: &DumpPlace,
    how: How<'_>,
    wanted: Wanted,
) -> Result<DumpResult> {
    let meter = Meter::new(wanted, &place.file);
    let mut written = Written::create(jvm, &place.folder, &place.file, how, &meter)?;
    let asked_ms = written.asked_ms;
    let not_forked = written.not_forked.take();
    let bytes = written
        .finish_at(place, &meter)
        .map_err(|e| match e.kind() {
            ErrorKind::AlreadyExists => exists(&place.file),
            _ => write_failure(&place.file, &e),
        })?;
    Ok(DumpResult {
        file: place.file.clone(),
        target: place.target(),
        asked_ms,
        bytes,
        not_forked,
    })
}

/// Takes a dump and writes it to `out`. Returns the number of bytes. If this process is killed while it writes to
/// `out`, no file remains.
pub(super) fn stream(jvm: &Jvm<'_>, how: How<'_>, wanted: Wanted, out: impl Write) -> Result<u64> {
    let meter = Meter::new(wanted, Path::new("dump"));
    let folder = std::env::temp_dir();
    let written = Written::create(jvm, &folder, &folder, how, &meter)?;
    written
        .stream_to(out, &meter)
        .map_err(|e| failed_to_write("standard output", &e))
}

fn write_failure(shown: &Path, error: &io::Error) -> Failure {
    failed_to_write(shown.display(), error)
}

/// A dump that the JVM, or a child of it, has written to a temporary file.
#[derive(Debug)]
pub(super) struct Written {
    part: PartialDump,
    file: File,
    bytes: u64,
    /// The gzip level, if heapdiff still has to compress the file. A forked child does not compress the dump, and JVMs
    /// before JDK 16 ignore the request to compress.
    to_compress: Option<u8>,
    asked_ms: i64,
    not_forked: Option<String>,
}

impl Written {
    /// Makes the JVM, or a child of it, write its heap to `folder`. If the JVM cannot write there, it writes to its own
    /// `/tmp`. Messages call the folder `shown`.
    fn create(
        jvm: &Jvm<'_>,
        folder: &Path,
        shown: &Path,
        how: How<'_>,
        meter: &Meter,
    ) -> Result<Self> {
        meter.begin_unbounded_phase("dumping");
        let part = PartialDump::new(jvm, folder)?;
        let Some(forker) = how.forker else {
            return Self::by_jvm(jvm, part, shown, how.what, meter);
        };
        let asked_ms = now_ms();
        let mut child = Child::for_jvm(jvm.process);
        let tick = || {
            let bytes = part.size();
            meter.set_done(bytes);
            meter.print_above_bar(child.new_wait_message(bytes));
            jvm.process.check_alive().map(|()| child.sign(bytes))
        };
        let refused = match fork::request_dump(jvm, forker, &part.name_for_jvm, tick)? {
            None if forker.only || part.file.exists() => {
                return Self::read(jvm, (part, asked_ms), shown, how.what, meter);
            }
            refused => refused.unwrap_or_else(Refused::missing_dump_refusal),
        };
        // The child does not compress the dump. So even if the disk is too full for the child's dump, there may be room
        // for a compressed dump by the JVM.
        if forker.only || !(refused.ordinary || how.what.gzip.is_some()) {
            return Err(refused.failure(jvm.process));
        }
        // Remove the child's incomplete file before the JVM starts to write.
        drop(part);
        let part = PartialDump::new(jvm, folder)?;
        Ok(Self {
            not_forked: Some(refused.why),
            ..Self::by_jvm(jvm, part, shown, how.what, meter)?
        })
    }

    fn by_jvm(
        jvm: &Jvm<'_>,
        mut part: PartialDump,
        shown: &Path,
        what: What,
        meter: &Meter,
    ) -> Result<Self> {
        let mut asked_ms = now_ms();
        let mut answer = request_dump(jvm, &part, what, meter)?;
        if part.folder.is_none() && answer.text.contains("Unable to create") {
            // The folder is mounted read-only for the JVM, or a security policy forbids writing.
            part = PartialDump::in_tmp(jvm)?;
            asked_ms = now_ms();
            answer = request_dump(jvm, &part, what, meter)?;
        }
        if answer.code != 0 || !answer.text.contains(CREATED) {
            return Err(failed(jvm, &part, shown, &answer));
        }
        Self::read(jvm, (part, asked_ms), shown, what, meter)
    }

    /// Opens a completely written dump.
    pub(super) fn read(
        jvm: &Jvm<'_>,
        (part, asked_ms): (PartialDump, i64),
        shown: &Path,
        what: What,
        meter: &Meter,
    ) -> Result<Self> {
        let broken = |e| write_failure(shown, &e);
        let (mut file, bytes) = part.open(jvm).map_err(broken)?;
        meter.set_done(bytes);
        let mut magic = [0; 2];
        file.read_exact(&mut magic).map_err(broken)?;
        file.seek(SeekFrom::Start(0)).map_err(broken)?;
        Ok(Self {
            part,
            file,
            bytes,
            to_compress: what.gzip.filter(|_| magic != [0x1f, 0x8b]),
            asked_ms,
            not_forked: None,
        })
    }

    /// Moves the dump to its final name and makes the user who requested it the owner. Returns its size.
    pub(super) fn finish_at(self, place: &DumpPlace, meter: &Meter) -> io::Result<u64> {
        let target = place.target();
        let is_ours = match make_private(&self.file) {
            // The file system belongs to a user namespace that has no id for our user, so we cannot own this file. The
            // code below copies the file.
            Err(e) if Errno::from_io_error(&e) == Some(Errno::OVERFLOW) => false,
            owned => owned.map(|()| true)?,
        };
        if is_ours && self.to_compress.is_none() {
            if self.part.folder.is_none() {
                let rename = |path: &Path| rename_own(&self.file, path, &target, place.replace);
                return self.part.unfinished.finish(rename).map(|()| self.bytes);
            }
            // The folder is usually on another file system. A rename then fails, and the file has to be copied.
            match rename_own(&self.file, &self.part.file, &target, place.replace) {
                Err(e) if e.kind() == ErrorKind::CrossesDevices => {}
                done => return done.map(|()| self.bytes),
            }
        }
        let (copy, to) = Unfinished::new(|| {
            let path = place.folder.join(unused_name());
            let mut new = OpenOptions::new();
            let to = new.write(true).create_new(true).mode(0o600).open(&path)?;
            Ok((path, to))
        })?;
        let bytes = copied(self.file, self.bytes, self.to_compress, to, meter)?;
        copy.finish(|path| rename(path, &target, place.replace))?;
        Ok(bytes)
    }

    /// Unlinks the file of the dump, and then writes the content of the open file to `out`.
    fn stream_to(self, out: impl Write, meter: &Meter) -> io::Result<u64> {
        drop(self.part);
        copied(self.file, self.bytes, self.to_compress, out, meter)
    }
}

/// Copies a file of `bytes` bytes, compressed if `level` is given. Returns the number of bytes written.
fn copied(
    from: impl Read,
    bytes: u64,
    level: Option<u8>,
    to: impl Write,
    meter: &Meter,
) -> io::Result<u64> {
    let mut to = Counted { to, bytes: 0 };
    match level {
        None => {
            meter.phase("copying", bytes);
            copy_whole(from, bytes, &mut to, meter)?;
        }
        Some(level) => {
            meter.phase("compressing", bytes);
            let mut packed = GzEncoder::new(&mut to, Compression::new(level.into()));
            copy_whole(from, bytes, &mut packed, meter)?;
            packed.finish()?;
        }
    }
    to.flush()?;
    Ok(to.bytes)
}

fn copy_whole(
    mut from: impl Read,
    bytes: u64,
    to: &mut impl Write,
    meter: &Meter,
) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 20];
    let mut left = bytes;
    while left > 0 {
        let wanted = buffer
            .len()
            .min(usize::try_from(left).unwrap_or(usize::MAX));
        let read = from.read(&mut buffer[..wanted])?;
        if read == 0 {
            return Err(io::Error::other(
                "the dump that the JVM wrote became shorter while heapdiff copied it",
            ));
        }
        to.write_all(&buffer[..read])?;
        left -= read as u64;
        meter.set_done(bytes - left);
    }
    Ok(())
}

/// A writer that counts the bytes written.
#[derive(Debug)]
struct Counted<W> {
    to: W,
    bytes: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let written = self.to.write(buffer)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Makes the JVM write a dump, and waits until it has finished.
fn request_dump(jvm: &Jvm<'_>, part: &PartialDump, what: What, meter: &Meter) -> Result<Answer> {
    let tick = || {
        let bytes = part.size();
        meter.set_done(bytes);
        jvm.process.check_alive()?;
        // An empty file also shows that the dump has begun: the JVM creates the file first, and then runs a GC.
        let has_begun = bytes > 0 || fs::symlink_metadata(&part.file).is_ok();
        Ok(if has_begun {
            Sign::Dump(bytes)
        } else {
            Sign::Nothing
        })
    };
    let level = what.gzip.map(|level| level.to_string()).unwrap_or_default();
    let arguments = [
        &*part.name_for_jvm,
        if what.all { b"-all" } else { b"-live" },
        level.as_bytes(),
    ];
    jvm.execute("dumpheap", arguments, tick)
}

fn failed(jvm: &Jvm<'_>, part: &PartialDump, shown: &Path, answer: &Answer) -> Failure {
    let said: String = answer
        .text
        .lines()
        .filter(|line| !line.starts_with("Dumping heap to"))
        .collect::<Vec<_>>()
        .join(" ");
    let process = jvm.process;
    if said.contains("No space left")
        || said.contains("Disk quota")
        || said.contains("File too large")
    {
        let shown = match part.folder {
            None => shown.display().to_string(),
            Some(_) => "the JVM's /tmp".to_owned(),
        };
        return unusable_failure(format!(
            "{process}: no space for the dump in {shown}: the JVM gave up after {}",
            heapdiff_units::Size(part.size())
        ))
        .with_hint("the incomplete dump was deleted; --gz 1 makes dumps several times smaller");
    }
    let said = if said.is_empty() {
        answer.line()
    } else {
        said.chars().filter(|c| !c.is_control()).collect()
    };
    unusable_failure(format!("{process} did not write a dump: {said}"))
}

/// The temporary file that the JVM writes: a dump or a recording.
#[derive(Debug)]
pub(super) struct PartialDump {
    /// Removes the file, or the folder that contains it, if the dump fails.
    unfinished: Unfinished,
    file: PathBuf,
    pub(super) name_for_jvm: Vec<u8>,
    /// The folder in the JVM's `/tmp` that contains the file, as a path that this process can use. `None` if the file
    /// is in the requested folder.
    pub(super) folder: Option<PathBuf>,
}

impl PartialDump {
    /// Chooses the path of a new dump file: in `folder` if the JVM can write there, or else in the `/tmp` that the JVM
    /// sees.
    pub(super) fn new(jvm: &Jvm<'_>, folder: &Path) -> Result<Self> {
        // Remove the files that killed runs left in either folder. The JVM's user may have put anything in these
        // folders. So this code runs only with the rights of that user.
        let user = &jvm.process.user;
        let tmp = jvm.tmp.path(".");
        let _ = user.run_as(|| [folder, &tmp].map(leftovers::remove_leftovers));
        // Also remove leftover copies of dumps. They belong to the user who runs heapdiff, so this call runs with the
        // rights of that user.
        leftovers::remove_leftovers(folder);
        places::remove_leftover_copies(jvm);
        Self::in_requested_folder(jvm, folder).map_or_else(|| Self::in_tmp(jvm), Ok)
    }

    /// Chooses a file in the requested folder. Returns `None` unless the JVM sees the same folder under that path and
    /// the JVM's user may write to the folder.
    fn in_requested_folder(jvm: &Jvm<'_>, folder: &Path) -> Option<Self> {
        let theirs = jvm.root.open_in_root(folder).ok()?;
        let ours = Folder::open(folder).ok()?;
        if theirs.identity().ok()? != ours.identity().ok()? {
            return None;
        }
        jvm.process.user.run_as(|| ours.is_writable()).ok()?.ok()?;
        let file = folder.join(unused_name());
        let name_for_jvm = bytes_of(&file);
        if name_for_jvm.len() >= LONGEST_ARGUMENT {
            return None;
        }
        let (unfinished, ()) = Unfinished::new(|| Ok((file.clone(), ()))).ok()?;
        Some(Self {
            unfinished,
            file,
            name_for_jvm,
            folder: None,
        })
    }

    /// Chooses a file in a new folder of the JVM's `/tmp`. The folder belongs to the JVM's user.
    pub(super) fn in_tmp(jvm: &Jvm<'_>) -> Result<Self> {
        let name = unused_name();
        let folder = jvm.tmp.path(&name);
        let user = &jvm.process.user;
        let made = Unfinished::new(|| {
            user.create_as(|| fs::DirBuilder::new().mode(0o700).create(&folder))?;
            if fs::symlink_metadata(&folder)?.uid() != user.uid.as_raw() {
                let (uid, gid) = (user.uid.as_raw(), user.gid.as_raw());
                std::os::unix::fs::lchown(&folder, Some(uid), Some(gid))?;
            }
            Ok((folder.clone(), ()))
        });
        let (unfinished, ()) = made.map_err(|e| {
            unusable_failure(format!(
                "{}: cannot write to the JVM's /tmp: {}",
                jvm.process,
                system_message(&e)
            ))
        })?;
        Ok(Self {
            unfinished,
            file: folder.join("dump.hprof"),
            name_for_jvm: bytes_of(&Path::new("/tmp").join(&name).join("dump.hprof")),
            folder: Some(folder),
        })
    }

    /// Returns the number of bytes written so far. Some JVMs (for example JDK 25) write one part per thread (`.p0`,
    /// `.p1`, ...). They then join the parts into the file, so bytes exist twice for a while. Therefore the result is
    /// the larger of two sizes: the size of the file, and the sum of the sizes of the parts.
    pub(super) fn size(&self) -> u64 {
        let size = |path: &Path| fs::symlink_metadata(path).ok().map(|meta| meta.len());
        let parts = (0..1024).map_while(|thread| {
            let mut name = self.file.clone().into_os_string();
            name.push(format!(".p{thread}"));
            size(Path::new(&name))
        });
        let parts: u64 = parts.sum();
        size(&self.file).unwrap_or_default().max(parts)
    }

    /// Opens the file that the JVM wrote, and checks that it was not replaced: the JVM's user could put any file in its
    /// place.
    fn open(&self, jvm: &Jvm<'_>) -> io::Result<(File, u64)> {
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(flags)
            .open(&self.file)?;
        let meta = file.metadata()?;
        let owner = jvm.process.user.uid.as_raw();
        if !meta.is_file() || meta.nlink() != 1 || meta.uid() != owner {
            return Err(replaced());
        }
        Ok((file, meta.len()))
    }
}

/// Makes the user who takes the dump the owner of the file, and forbids other users to read or write it. This is
/// necessary because the JVM's user chose the owner and mode of the file.
fn make_private(file: &File) -> io::Result<()> {
    let us = geteuid().as_raw();
    let is_foreign = file.metadata()?.uid() != us;
    if is_foreign {
        std::os::unix::fs::fchown(file, Some(us), Some(rustix::process::getegid().as_raw()))?;
    }
    // From here on, the previous owner can no longer change the mode. The mode is set through the open file and not
    // through its name, so no other file can get this mode.
    match file.set_permissions(fs::Permissions::from_mode(0o600)) {
        Err(e) if is_foreign => Err(e),
        // Ignore other errors, because some file systems have no file modes.
        _ => Ok(()),
    }
}

/// Renames a dump. If the JVM's user has put another file in the place of the dump, removes the renamed file and
/// returns an error.
fn rename_own(file: &File, from: &Path, to: &Path, replace: bool) -> io::Result<()> {
    rename(from, to, replace)?;
    let (ours, there) = (file.metadata()?, fs::symlink_metadata(to)?);
    if (ours.dev(), ours.ino()) == (there.dev(), there.ino()) {
        return Ok(());
    }
    fs::remove_file(to)?;
    Err(replaced())
}

fn replaced() -> io::Error {
    io::Error::other("another file replaced the dump that the JVM wrote")
}

/// Renames a file. An existing file is replaced only if `replace` is set.
fn rename(from: &Path, to: &Path, replace: bool) -> io::Result<()> {
    if replace {
        return fs::rename(from, to);
    }
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Some file systems do not support the flag `NOREPLACE`. In this case, create a hard link, which fails if `to`
        // exists already.
        Err(Errno::INVAL | Errno::NOSYS) => {
            fs::hard_link(from, to)?;
            fs::remove_file(from)
        }
        done => Ok(done?),
    }
}

/// Returns a name that nobody can guess. So nobody can create a file of that name before heapdiff does.
fn unused_name() -> String {
    use std::hash::{BuildHasher, RandomState};
    let random = RandomState::new().hash_one(std::process::id());
    format!(".heapdiff-{random:016x}")
}

/// Returns the name that the JVM itself would choose, `java_pid4711.hprof`, with a number if that file exists.
pub(super) fn default_name(folder: &Path, pid: u32, gzip: bool) -> PathBuf {
    let suffix = if gzip { ".hprof.gz" } else { ".hprof" };
    let first = folder.join(format!("java_pid{pid}{suffix}"));
    std::iter::once(first)
        .chain((2_u32..).map(|n| folder.join(format!("java_pid{pid}-{n}{suffix}"))))
        .find(|path| fs::symlink_metadata(path).is_err())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::When;

    fn quiet() -> Meter {
        let wanted = Wanted {
            when: When::Never,
            quiet: true,
            verbose: false,
        };
        Meter::new(wanted, Path::new("dump"))
    }

    #[test]
    fn uncompressed_dumps_are_compressed() {
        let dump = vec![7; 3 << 20];
        let mut packed = Vec::new();
        let bytes = copied(&dump[..], dump.len() as u64, Some(1), &mut packed, &quiet()).unwrap();
        assert_eq!(bytes, packed.len() as u64);
        assert!(bytes < 100_000);
        let mut again = Vec::new();
        let mut reader = flate2::read::GzDecoder::new(&packed[..]);
        reader.read_to_end(&mut again).unwrap();
        assert_eq!(again, dump);
        let mut plain = Vec::new();
        let bytes = copied(&dump[..], dump.len() as u64, None, &mut plain, &quiet()).unwrap();
        assert_eq!((bytes, plain), (dump.len() as u64, dump.clone()));
        // A file that becomes shorter during the copy is an error.
        assert!(copied(&dump[1..], dump.len() as u64, None, io::sink(), &quiet()).is_err());
    }

    #[test]
    fn nobody_else_may_open_a_dump() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("dump");
        fs::write(&path, "dump").unwrap();
        for mode in [0o666, 0o777, 0o4755, 0o400, 0o600] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            make_private(&File::open(&path).unwrap()).unwrap();
            let now = fs::metadata(&path).unwrap().mode() & 0o7777;
            assert_eq!(now, 0o600, "of a file with mode {mode:o}");
        }
    }

    #[test]
    fn a_file_that_replaces_the_dump_is_not_accepted() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("dump"), "dump").unwrap();
        let file = File::open(at("dump")).unwrap();
        rename_own(&file, &at("dump"), &at("taken"), false).unwrap();
        fs::write(at("other"), "other").unwrap();
        std::os::unix::fs::symlink(at("taken"), at("link")).unwrap();
        for put in ["other", "link"] {
            let error = rename_own(&file, &at(put), &at("target"), false).unwrap_err();
            assert_eq!(
                error.to_string(),
                "another file replaced the dump that the JVM wrote"
            );
            assert!(fs::symlink_metadata(at("target")).is_err(), "{put}");
        }
        assert_eq!(fs::read(at("taken")).unwrap(), b"dump");
    }

    #[test]
    fn files_are_replaced_only_on_request() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("old"), "old").unwrap();
        fs::write(at("new"), "new").unwrap();
        let refused = rename(&at("new"), &at("old"), false).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::AlreadyExists);
        assert!(DumpPlace::new(&at("old"), false).is_err());
        rename(&at("new"), &at("free"), false).unwrap();
        rename(&at("free"), &at("old"), true).unwrap();
        assert_eq!(fs::read(at("old")).unwrap(), b"new");
        assert!(DumpPlace::new(&at("old"), true).is_ok());
        assert!(DumpPlace::new(folder.path(), true).is_err(), "a folder");
        assert!(DumpPlace::new(&at("none/x"), true).is_err());
    }

    #[test]
    fn a_free_name_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let name = |gzip| {
            let path = default_name(folder.path(), 7, gzip);
            path.file_name().unwrap().to_string_lossy().into_owned()
        };
        assert_eq!(name(false), "java_pid7.hprof");
        assert_eq!(name(true), "java_pid7.hprof.gz");
        fs::write(folder.path().join("java_pid7.hprof"), "").unwrap();
        assert_eq!(name(false), "java_pid7-2.hprof");
    }
}
