//! Arranges the files of a release and packs them: a tarball or zip file to unpack anywhere, and a package for Debian
//! and Ubuntu.
//!
//! The same sources give the same bytes: names are sorted, root owns every file, and all times are the time of the last
//! commit.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use flate2::{Compression, GzBuilder};
use zip::write::SimpleFileOptions;

use super::licences;
use crate::cross::{GLIBC, Target};
use crate::tryout::output;
use heapdiff_lab::run::{self, run};

const DESCRIPTION: &str = "finds memory leaks in JVM programs\n \
    heapdiff compares two or more heap dumps (HPROF) of a Java program. It names\n \
    the field whose content grows, the path that keeps it alive and, with its\n \
    agent, the stacks that allocated it.";
const MAINTAINER: &str = "The heapdiff developers <heapdiff@users.noreply.github.com>";

const COPYRIGHT: &str = "\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: heapdiff
Source: https://github.com/heapdiff/heapdiff
Comment: THIRD-PARTY.txt.gz has the licences of the libraries that the program contains.

Files: *
Copyright: the heapdiff developers
License: Apache-2.0 or Expat

License: Apache-2.0
 On Debian systems, /usr/share/common-licenses/Apache-2.0 has the text of the Apache License 2.0.

License: Expat
";

/// Exceptions from lintian's rules. The program is one static file, so that it starts on every system. Therefore it
/// contains its libraries.
const LINTIAN: &str = "\
# One static program starts on every system, with glibc and with musl, and contains its libraries.
heapdiff: statically-linked-binary *
heapdiff: embedded-library *
";

/// The files of a release that are the same for all systems.
#[derive(Debug)]
pub(super) struct Documents {
    folder: tempfile::TempDir,
}

impl Documents {
    /// Lets `program`, which this machine can run, write its man pages and completions. Also collects the licences.
    pub(super) fn new(program: &Path) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let made = |below: &str| -> Result<PathBuf> {
            let path = folder.path().join(below);
            fs::create_dir_all(&path).with_context(|| path.display().to_string())?;
            Ok(path)
        };
        run(Command::new(program).arg("man").arg(made("man")?))?;
        let completions = made("completions")?;
        for (shell, name) in [
            ("bash", "heapdiff"),
            ("zsh", "_heapdiff"),
            ("fish", "heapdiff.fish"),
            ("powershell", "heapdiff.ps1"),
        ] {
            let script = output(Command::new(program).args(["completions", shell]))?;
            fs::write(completions.join(name), script)?;
        }
        let doc = made("doc")?;
        for name in ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"] {
            copy(&run::root().join(name), &doc.join(name))?;
        }
        fs::write(doc.join("THIRD-PARTY.txt"), licences::text()?)?;
        Ok(Self { folder })
    }

    fn at(&self, below: &str) -> PathBuf {
        self.folder.path().join(below)
    }
}

/// The files of a release for one system. On Unix, they are arranged as they are installed below `/usr`.
#[derive(Debug)]
pub(super) struct Tree {
    folder: PathBuf,
    target: Target,
    version: &'static str,
    /// The time of all files, in seconds since 1970.
    time: u64,
}

impl Tree {
    /// Copies each file to its folder in the release. `agent` is the library for JVMs that are linked to glibc.
    pub(super) fn lay_out(
        folder: &Path,
        target: Target,
        version: &'static str,
        program: &Path,
        agent: Option<&Path>,
        documents: &Documents,
    ) -> Result<Self> {
        let place = |from: &Path, to: &str| -> Result<()> {
            let to = folder.join(to);
            let parent = to.parent().context("a folder")?;
            fs::create_dir_all(parent).with_context(|| parent.display().to_string())?;
            if from.is_dir() {
                copy_all(from, &to)
            } else {
                copy(from, &to)
            }
        };
        let completions = |name| documents.at("completions").join(name);
        if target == Target::Windows {
            place(program, target.program())?;
            place(&completions("heapdiff.ps1"), "heapdiff.ps1")?;
            place(&documents.at("doc"), "doc")?;
        } else {
            place(program, "bin/heapdiff")?;
            if let Some(agent) = agent {
                place(agent, &format!("lib/heapdiff/{}", run::AGENT))?;
            }
            place(&documents.at("man"), "share/man/man1")?;
            for (name, to) in [
                ("heapdiff", "share/bash-completion/completions/heapdiff"),
                ("_heapdiff", "share/zsh/site-functions/_heapdiff"),
                (
                    "heapdiff.fish",
                    "share/fish/vendor_completions.d/heapdiff.fish",
                ),
            ] {
                place(&completions(name), to)?;
            }
            place(&documents.at("doc"), "share/doc/heapdiff")?;
        }
        Ok(Self {
            folder: folder.to_owned(),
            target,
            version,
            time: committed()?,
        })
    }

    /// Writes the archive, such as `heapdiff-0.2.0-x86_64-linux.tar.gz`. It contains one folder of that name.
    pub(super) fn archive(&self, to: &Path) -> Result<PathBuf> {
        let name = file_name(self.target, self.version);
        let prefix = Path::new(&name);
        if self.target == Target::Windows {
            let file = to.join(format!("{name}.zip"));
            let out = BufWriter::new(create(&file)?);
            zip(&self.folder, prefix, out).with_context(|| file.display().to_string())?;
            return Ok(file);
        }
        let file = to.join(format!("{name}.tar.gz"));
        fs::write(&file, tar_gz(&self.folder, prefix, self.time)?)
            .with_context(|| file.display().to_string())?;
        Ok(file)
    }

    /// Writes `heapdiff_0.2.0_amd64.deb`: an `ar` archive that contains the number of the format version, the control
    /// files, and the installed files.
    pub(super) fn deb(&self, to: &Path) -> Result<PathBuf> {
        let architecture = match self.target {
            Target::LinuxX86 => "amd64",
            Target::LinuxArm => "arm64",
            other => bail!("there is no Debian package for {}", other.triple()),
        };
        let scratch = tempfile::tempdir()?;
        let root = scratch.path().join("root");
        self.debian_files(&root)?;
        let files = files_below(&root)?;
        let sums = output(
            Command::new("md5sum")
                .current_dir(&root)
                .args(files.iter().filter(|file| root.join(file).is_file())),
        )?;
        let bytes = files.iter().map(|file| fs::metadata(root.join(file)));
        let bytes: u64 = bytes
            .map(|meta| meta.map(|meta| if meta.is_file() { meta.len() } else { 1024 }))
            .sum::<io::Result<u64>>()?;
        let control = scratch.path().join("control");
        fs::create_dir(&control)?;
        fs::write(control.join("md5sums"), sums)?;
        let version = self.debian_version();
        let says = format!(
            "Package: heapdiff\nVersion: {version}\nArchitecture: {architecture}\n\
             Maintainer: {MAINTAINER}\nDepends: libc6 (>= {}.{})\n\
             Installed-Size: {}\nSection: devel\nPriority: optional\n\
             Homepage: https://github.com/heapdiff/heapdiff\nDescription: {DESCRIPTION}\n",
            GLIBC.0,
            GLIBC.1,
            bytes.div_ceil(1024)
        );
        fs::write(control.join("control"), says)?;
        let here = Path::new(".");
        let file = to.join(format!("heapdiff_{version}_{architecture}.deb"));
        let members = [
            ("debian-binary", b"2.0\n".to_vec()),
            ("control.tar.gz", tar_gz(&control, here, self.time)?),
            ("data.tar.gz", tar_gz(&root, here, self.time)?),
        ];
        fs::write(&file, ar(&members, self.time))?;
        Ok(file)
    }

    /// Arranges the files as Debian's policy requires.
    fn debian_files(&self, root: &Path) -> Result<()> {
        let usr = root.join("usr");
        fs::create_dir_all(root)?;
        copy_all(&self.folder, &usr)?;
        for page in fs::read_dir(usr.join("share/man/man1"))? {
            gzip_file(&page?.path())?;
        }
        let zsh = usr.join("share/zsh");
        fs::rename(zsh.join("site-functions"), zsh.join("vendor-completions"))?;
        let doc = usr.join("share/doc/heapdiff");
        let expat = fs::read_to_string(doc.join("LICENSE-MIT"))?;
        let mut copyright = COPYRIGHT.to_owned();
        for line in expat.lines() {
            copyright.push_str(if line.is_empty() { " ." } else { " " });
            copyright.push_str(line);
            copyright.push('\n');
        }
        fs::write(doc.join("copyright"), copyright)?;
        for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
            fs::remove_file(doc.join(licence))?;
        }
        fs::write(doc.join("changelog"), self.debian_changelog()?)?;
        for name in ["changelog", "CHANGELOG.md", "THIRD-PARTY.txt"] {
            gzip_file(&doc.join(name))?;
        }
        let overrides = usr.join("share/lintian/overrides");
        fs::create_dir_all(&overrides)?;
        fs::write(overrides.join("heapdiff"), LINTIAN)?;
        Ok(())
    }

    /// Returns a changelog in Debian's format, which names the file with the real changes.
    fn debian_changelog(&self) -> Result<String> {
        let at = format!("@{}", self.time);
        let date = output(Command::new("date").args(["--utc", "--rfc-email", "--date", &at]))?;
        Ok(format!(
            "heapdiff ({}) stable; urgency=medium\n\n  * CHANGELOG.md.gz lists the changes.\n\n -- {MAINTAINER}  {date}",
            self.debian_version()
        ))
    }

    /// Returns the version for Debian. A `~` before the pre-release makes Debian sort a pre-release before its release.
    fn debian_version(&self) -> String {
        self.version.replace('-', "~")
    }
}

/// Returns the name of the release files for a system, such as `heapdiff-0.2.0-x86_64-linux`.
pub(super) fn file_name(target: Target, version: &str) -> String {
    format!(
        "heapdiff-{version}-{}-{}",
        target.processor(),
        target.system()
    )
}

fn create(file: &Path) -> Result<File> {
    File::create(file).with_context(|| format!("cannot create {}", file.display()))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
    Ok(())
}

/// Copies a folder with its content.
fn copy_all(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for below in files_below(from)? {
        let (from, to) = (from.join(&below), to.join(&below));
        if from.is_dir() {
            fs::create_dir_all(&to)?;
        } else {
            copy(&from, &to)?;
        }
    }
    Ok(())
}

/// Returns the paths of all files and folders in a folder, relative to it, sorted. A folder comes before its content.
fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(below) = folders.pop() {
        let path = folder.join(&below);
        for entry in fs::read_dir(&path).with_context(|| path.display().to_string())? {
            let below = below.join(entry?.file_name());
            if folder.join(&below).is_dir() {
                folders.push(below.clone());
            }
            found.push(below);
        }
    }
    found.sort();
    Ok(found)
}

/// Compresses a file, and adds `.gz` to its name.
fn gzip_file(file: &Path) -> Result<()> {
    let mut name = file.as_os_str().to_owned();
    name.push(".gz");
    fs::write(name, gzipped(&fs::read(file)?)?)?;
    fs::remove_file(file)?;
    Ok(())
}

fn gzipped(bytes: &[u8]) -> io::Result<Vec<u8>> {
    // Set the operating system in the header, because the default of `GzEncoder` depends on the system.
    let mut encoder = GzBuilder::new()
        .operating_system(255)
        .write(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    encoder.finish()
}

/// True if a file of a release is a program.
fn is_program(file: &Path) -> bool {
    file.parent().is_some_and(|folder| folder.ends_with("bin"))
}

/// Packs the content of a folder below `prefix`.
fn tar_gz(folder: &Path, prefix: &Path, time: u64) -> Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    let all = std::iter::once(PathBuf::new()).chain(files_below(folder)?);
    for below in all {
        let path = folder.join(&below);
        let mut header = tar::Header::new_gnu();
        header.set_uid(0);
        header.set_gid(0);
        header.set_username("root")?;
        header.set_groupname("root")?;
        header.set_mtime(time);
        // The name of a folder ends with a slash.
        let name = format!("{}/", prefix.join(&below).display()).replace("//", "/");
        if path.is_dir() {
            header.set_entry_type(tar::EntryType::Directory);
            header.set_mode(0o755);
            header.set_size(0);
            append(&mut archive, header, &name, io::empty())?;
        } else {
            let content = fs::read(&path)?;
            header.set_mode(if is_program(&below) { 0o755 } else { 0o644 });
            header.set_size(content.len() as u64);
            append(&mut archive, header, name.trim_end_matches('/'), &*content)?;
        }
    }
    Ok(gzipped(&archive.into_inner()?)?)
}

/// Adds an entry to the tar archive. The name is stored unchanged. The crate `tar` would remove the `./` with which
/// names in a Debian package begin.
fn append(
    archive: &mut tar::Builder<Vec<u8>>,
    mut header: tar::Header,
    name: &str,
    content: impl Read,
) -> Result<()> {
    let field = &mut header.as_gnu_mut().context("a GNU header")?.name;
    let place = field
        .get_mut(..name.len())
        .with_context(|| format!("{name} is too long"))?;
    place.copy_from_slice(name.as_bytes());
    header.set_cksum();
    Ok(archive.append(&header, content)?)
}

/// Packs the content of a folder below `prefix`.
fn zip(folder: &Path, prefix: &Path, out: impl Write + Seek) -> Result<()> {
    let mut archive = zip::ZipWriter::new(out);
    // Set no time for the entries, because zip files store local time. Programs then show 1980-01-01.
    let options = SimpleFileOptions::default()
        .last_modified_time(zip::DateTime::default())
        .compression_level(Some(9))
        .unix_permissions(0o644);
    for below in files_below(folder)? {
        let path = folder.join(&below);
        let name = prefix.join(&below);
        let name = name.to_str().context("a name")?;
        if path.is_dir() {
            archive.add_directory(name, options.unix_permissions(0o755))?;
        } else {
            archive.start_file(name, options)?;
            io::copy(&mut File::open(&path)?, &mut archive)?;
        }
    }
    archive.finish()?.flush()?;
    Ok(())
}

/// Returns the time of the last commit in seconds since 1970. If `SOURCE_DATE_EPOCH` is set, returns that time.
pub(super) fn committed() -> Result<u64> {
    let text = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => text,
        Err(_) => output(Command::new("git").current_dir(run::root()).args([
            "log",
            "-1",
            "--format=%ct",
        ]))?,
    };
    text.trim()
        .parse()
        .context("cannot read the time of the last commit")
}

/// Returns an `ar` archive. Before each file is a header of 60 bytes. Each header begins at an even offset.
fn ar(members: &[(&str, Vec<u8>)], time: u64) -> Vec<u8> {
    let mut archive = b"!<arch>\n".to_vec();
    for (name, content) in members {
        let line = format!(
            "{name:<16}{time:<12}{:<6}{:<6}{:<8}{:<10}`\n",
            0,
            0,
            "100644",
            content.len()
        );
        archive.extend_from_slice(line.as_bytes());
        archive.extend_from_slice(content);
        if content.len() % 2 == 1 {
            archive.push(b'\n');
        }
    }
    archive
}

/// Unpacks an archive and returns its folder.
pub(super) fn unpack(file: &Path, to: &Path) -> Result<PathBuf> {
    fs::create_dir_all(to)?;
    if file.extension().is_some_and(|end| end == "zip") {
        zip::ZipArchive::new(File::open(file)?)?.extract(to)?;
    } else {
        run(Command::new("tar").arg("-xzf").arg(file).arg("-C").arg(to))?;
    }
    let entry = fs::read_dir(to)?.next().context("the archive is empty")??;
    Ok(entry.path())
}

/// Unpacks the files of the package as `dpkg` would. Uses `dpkg-deb` if it is installed.
pub(super) fn unpack_deb(file: &Path, to: &Path) -> Result<PathBuf> {
    fs::create_dir_all(to)?;
    if Path::new("/usr/bin/dpkg-deb").exists() {
        run(Command::new("dpkg-deb").arg("--info").arg(file))?;
        run(Command::new("dpkg-deb").arg("-x").arg(file).arg(to))?;
    } else {
        run(Command::new("ar").current_dir(to).arg("x").arg(file))?;
        run(Command::new("tar")
            .current_dir(to)
            .args(["-xzf", "data.tar.gz"]))?;
    }
    Ok(to.to_owned())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    #[test]
    fn archives_have_headers_of_sixty_bytes_at_even_offsets() {
        let archive = ar(
            &[("one", b"123".to_vec()), ("two.tar.gz", b"4".to_vec())],
            1_700_000_000,
        );
        assert_eq!(archive.len(), 8 + 60 + 4 + 60 + 2);
        assert_eq!(&archive[..11], b"!<arch>\none");
        assert_eq!(&archive[8 + 58..8 + 60 + 4], b"`\n123\n");
        assert_eq!(&archive[72..82], b"two.tar.gz");
    }

    /// Two folders have the same content. Their files were created in different orders and have different times.
    #[test]
    fn equal_content_gives_equal_archives() {
        let packed = |names: [&str; 3], age: u64| {
            let folder = tempfile::tempdir().expect("a folder");
            for name in names {
                let path = folder.path().join(name);
                fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
                let mut file = File::create(&path).expect("a file");
                file.write_all(name.as_bytes()).expect("a written file");
                let time = SystemTime::now() - Duration::from_secs(age);
                file.set_modified(time).expect("a time");
            }
            let tar = tar_gz(folder.path(), Path::new("x"), 1_700_000_000).expect("an archive");
            let mut zipped = io::Cursor::new(Vec::new());
            zip(folder.path(), Path::new("x"), &mut zipped).expect("an archive");
            (tar, zipped.into_inner())
        };
        let names = ["bin/heapdiff", "share/doc/README.md", "LICENSE"];
        let (tar, zip) = packed(names, 1);
        let [a, b, c] = names;
        assert!((&tar, &zip) == (&packed([c, a, b], 100_000).0, &packed([b, c, a], 200_000).1));

        let mut content = Vec::new();
        let mut reader = flate2::read::GzDecoder::new(&*tar);
        reader.read_to_end(&mut content).expect("a gzip file");
        let mut archive = tar::Archive::new(&*content);
        let entries = archive.entries().expect("entries").map(|entry| {
            let entry = entry.expect("an entry");
            let header = entry.header();
            let name = entry.path().expect("a name").display().to_string();
            (
                name,
                header.mode().expect("a mode"),
                header.mtime().expect("a time"),
            )
        });
        let entries: Vec<_> = entries.collect();
        assert!(entries.iter().all(|(_, _, time)| *time == 1_700_000_000));
        let mode = |name: &str| entries.iter().find(|e| e.0 == name).map(|e| e.1);
        assert_eq!(mode("x/bin/heapdiff"), Some(0o755));
        assert_eq!(mode("x/LICENSE"), Some(0o644));
        assert_eq!(mode("x/share/doc/"), Some(0o755));
    }
}
