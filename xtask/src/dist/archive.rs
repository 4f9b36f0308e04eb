//! Packs the two archives: a tarball to unpack anywhere, and a package for Debian and Ubuntu.
//!
//! The same sources give the same bytes: names are sorted, root owns every file, and all times are that of the last
//! commit.

use std::env::consts::ARCH;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::licences;
use crate::tryout::output;
use heapdiff_lab::run::{self, run};

const DESCRIPTION: &str = "finds memory leaks in JVM programs\n \
    heapdiff compares two or more heap dumps (HPROF) of a Java program and names the field whose\n \
    content grows, the path that keeps it alive and, with its agent, the stacks that allocated it.";

const COPYRIGHT: &str = "\
heapdiff is licensed under the Apache License 2.0 or the MIT License, at your choice: LICENSE-APACHE and
LICENSE-MIT, in this folder. THIRD-PARTY.txt has the licences of the libraries that it contains.
";

/// The files, laid out as they are installed below `/usr`.
#[derive(Debug)]
pub(super) struct Tree {
    folder: PathBuf,
}

impl Tree {
    /// Copies each file to its place.
    pub(super) fn lay_out(folder: &Path, program: &Path, agent: &Path) -> Result<Self> {
        let made = |below: &str| -> Result<PathBuf> {
            let path = folder.join(below);
            fs::create_dir_all(&path).with_context(|| path.display().to_string())?;
            Ok(path)
        };
        copy(program, &made("bin")?.join("heapdiff"))?;
        copy(agent, &made("lib/heapdiff")?.join(run::AGENT))?;
        run(Command::new(program)
            .arg("man")
            .arg(made("share/man/man1")?))?;
        for (shell, place) in [
            ("bash", "share/bash-completion/completions/heapdiff"),
            ("zsh", "share/zsh/site-functions/_heapdiff"),
            ("fish", "share/fish/vendor_completions.d/heapdiff.fish"),
        ] {
            let script = output(Command::new(program).args(["completions", shell]))?;
            let path = folder.join(place);
            fs::create_dir_all(path.parent().context("a folder")?)?;
            fs::write(&path, script)?;
        }
        let doc = made("share/doc/heapdiff")?;
        for name in ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"] {
            copy(&run::root().join(name), &doc.join(name))?;
        }
        fs::write(doc.join("THIRD-PARTY.txt"), licences::text()?)?;
        Ok(Self {
            folder: folder.to_owned(),
        })
    }

    /// Writes `heapdiff-0.1.0-x86_64-linux.tar.gz`, which contains one folder of that name.
    pub(super) fn tarball(&self, to: &Path, version: &str) -> Result<PathBuf> {
        let name = format!("heapdiff-{version}-{ARCH}-linux");
        let file = to.join(format!("{name}.tar.gz"));
        tar(&self.folder, &format!("s,^\\.,{name},"), &file)?;
        Ok(file)
    }

    /// Writes `heapdiff_0.1.0_amd64.deb`: an `ar` archive that contains the number of the format version, the control
    /// files, and the installed files.
    pub(super) fn deb(&self, to: &Path, version: &str) -> Result<PathBuf> {
        let architecture = match ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => bail!("no package name for the architecture {other}"),
        };
        let scratch = tempfile::tempdir()?;
        let data = scratch.path().join("data.tar.gz");
        let usr = scratch.path().join("root/usr");
        fs::create_dir_all(usr.parent().context("a folder")?)?;
        run(Command::new("cp").arg("-r").arg(&self.folder).arg(&usr))?;
        run(Command::new("gzip")
            .arg("-9nr")
            .arg(usr.join("share/man/man1")))?;
        let zsh = usr.join("share/zsh");
        fs::rename(zsh.join("site-functions"), zsh.join("vendor-completions"))?;
        let doc = usr.join("share/doc/heapdiff");
        fs::write(doc.join("copyright"), COPYRIGHT)?;
        tar(&scratch.path().join("root"), "s,^,,", &data)?;

        let control = scratch.path().join("control");
        fs::create_dir(&control)?;
        let files = output(
            Command::new("sh")
                .current_dir(scratch.path().join("root"))
                .args([
                    "-c",
                    "find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum",
                ]),
        )?;
        fs::write(control.join("md5sums"), files)?;
        let kilobytes = output(
            Command::new("du")
                .args(["-sk", "--apparent-size"])
                .arg(&usr),
        )?;
        let kilobytes = kilobytes.split_whitespace().next().context("a size")?;
        let says = format!(
            "Package: heapdiff\nVersion: {version}\nArchitecture: {architecture}\n\
             Maintainer: The heapdiff developers <heapdiff@users.noreply.github.com>\n\
             Installed-Size: {kilobytes}\nDepends: libc6 (>= 2.17)\nSection: devel\nPriority: optional\n\
             Homepage: https://github.com/heapdiff/heapdiff\nDescription: {DESCRIPTION}\n"
        );
        fs::write(control.join("control"), says)?;
        let about = scratch.path().join("control.tar.gz");
        tar(&control, "s,^,,", &about)?;

        let file = to.join(format!("heapdiff_{version}_{architecture}.deb"));
        let members = [
            ("debian-binary", b"2.0\n".to_vec()),
            ("control.tar.gz", fs::read(about)?),
            ("data.tar.gz", fs::read(data)?),
        ];
        fs::write(&file, ar(&members, committed()?))?;
        Ok(file)
    }
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
    Ok(())
}

/// Packs a folder. `rename` is an expression by which tar changes the names of the files.
fn tar(folder: &Path, rename: &str, to: &Path) -> Result<()> {
    run(Command::new("tar")
        .args([
            "--create",
            "--sort=name",
            "--format=gnu",
            "--owner=root:0",
            "--group=root:0",
        ])
        .args([
            "--mode=u=rwX,go=rX",
            "--mtime",
            &format!("@{}", committed()?),
        ])
        .args([
            "--transform",
            rename,
            "--use-compress-program=gzip -9n",
            "--file",
        ])
        .arg(to)
        .arg("--directory")
        .arg(folder)
        .arg("."))
}

/// Returns the time of the last commit in seconds since 1970. If the environment sets a time, returns that time.
fn committed() -> Result<u64> {
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

/// Returns an `ar` archive: each file follows a header of 60 bytes and begins at an even offset.
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

/// Unpacks the tarball and returns its folder.
pub(super) fn unpack_tarball(file: &Path, to: &Path) -> Result<PathBuf> {
    fs::create_dir_all(to)?;
    run(Command::new("tar").arg("-xzf").arg(file).arg("-C").arg(to))?;
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
}
