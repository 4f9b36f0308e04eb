//! `cargo xtask dist`: builds the files that users download, and tests them. One Linux machine builds the files for
//! Linux and Windows, and a Mac builds those for macOS.

mod archive;
pub(crate) mod elf;
mod licences;
mod sbom;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use sha2::{Digest, Sha256};

use self::archive::{Documents, Tree};
use crate::cross::{Builder, GLIBC, Target};
use crate::install;
use crate::tryout::{self, output, size};
use crate::windows;
use heapdiff_lab::run;
use heapdiff_lab::tools;

const SUMS: &str = "SHA256SUMS";

/// Options of `cargo xtask dist`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Folder for the files [default: dist-files, in the target folder]
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// The system to build for; may be repeated [default: all that this machine can build for]
    #[arg(long, value_name = "TRIPLE")]
    target: Vec<Target>,
    /// Build everything again from a copy of the sources in another folder, and compare the bytes
    #[arg(long)]
    check: bool,
}

/// Builds and packs the files, and tests the packed files.
pub(crate) fn dist(options: &Options) -> Result<()> {
    sbom::check_plugin()?;
    let target_dir = std::path::absolute(run::target_dir())?;
    let folder = match &options.output {
        Some(folder) => std::path::absolute(folder)?,
        None => target_dir.join("dist-files"),
    };
    let targets = match &options.target[..] {
        [] => Target::of_this_system(),
        chosen => chosen,
    };
    println!(
        "Building heapdiff and its agent with full optimisation; the first build takes some minutes."
    );
    let builder = Builder::for_release(&run::root(), &target_dir)?;
    let files = build(&builder, targets, &folder)?;
    for file in &files {
        println!("{:>12} bytes  {}", size(file)?, file.display());
    }
    for file in files.iter().filter(|file| is_debian(file)) {
        check_package(file)?;
    }
    for (&target, file) in targets.iter().zip(&files) {
        test(&builder, target, file)?;
    }
    if options.check {
        check(targets, &folder)?;
    }
    Ok(())
}

/// Builds the files of all targets. Returns their archives, in the order of the targets, and then the other files.
fn build(builder: &Builder, targets: &[Target], folder: &Path) -> Result<Vec<PathBuf>> {
    let version = env!("CARGO_PKG_VERSION");
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let mut built = Vec::new();
    for &target in targets {
        built.push(Product::build(builder, target)?);
    }
    let scratch = tempfile::tempdir()?;
    let documents = Documents::new(&runnable(builder, &built, scratch.path())?)?;
    let (mut archives, mut others) = (Vec::new(), Vec::new());
    for product in &built {
        let target = product.target;
        let tree = Tree::lay_out(
            &scratch.path().join(target.triple()),
            target,
            version,
            &product.program,
            product.agents.as_ref().map(|agents| agents.glibc.as_path()),
            &documents,
        )?;
        archives.push(tree.archive(folder)?);
        if target.system() == "linux" && cfg!(target_os = "linux") {
            others.push(tree.deb(folder)?);
        }
        let list = format!("{}.cdx.json", archive::file_name(target, version));
        let list = folder.join(list);
        sbom::write(target, &list)?;
        others.push(list);
    }
    archives.append(&mut others);
    let mut sums = Vec::new();
    for file in &archives {
        let name = file.file_name().context("a name")?.to_string_lossy();
        let digest = Sha256::digest(fs::read(file)?);
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        sums.push(format!("{digest}  {name}\n"));
    }
    sums.sort_by(|a, b| a.get(64..).cmp(&b.get(64..)));
    fs::write(folder.join(SUMS), sums.concat())?;
    Ok(archives)
}

/// The program for a system, and its agents.
#[derive(Debug)]
pub(crate) struct Product {
    target: Target,
    pub(crate) program: PathBuf,
    agents: Option<Agents>,
}

/// The files of the two agents that a program for Linux contains.
#[derive(Debug)]
pub(crate) struct Agents {
    /// The agent for JVMs that are linked to glibc.
    pub(crate) glibc: PathBuf,
    /// The agent for JVMs that are linked to musl.
    pub(crate) musl: PathBuf,
}

impl Product {
    /// Builds the program. On Linux, the program is static and contains two agents: one for JVMs that are linked to
    /// glibc, and one for JVMs that are linked to musl.
    pub(crate) fn build(builder: &Builder, target: Target) -> Result<Self> {
        if target.system() != "linux" {
            let program = builder.program(target, &[])?;
            return Ok(Self {
                target,
                program,
                agents: None,
            });
        }
        let glibc = builder.agent(&target.triple().replace("-musl", "-gnu"))?;
        elf::check_glibc(&glibc, GLIBC)?;
        let musl = builder.agent(target.triple())?;
        elf::check_musl(&musl)?;
        let program = builder.program(target, &install::embedded(&glibc, &musl)?)?;
        elf::check_static(&program)?;
        Ok(Self {
            target,
            program,
            agents: Some(Agents { glibc, musl }),
        })
    }

    /// Returns the agents in the program, or an error on systems without an agent.
    pub(crate) fn agents(&self) -> Result<&Agents> {
        self.agents.as_ref().context("the agent runs on Linux only")
    }
}

/// Returns a program that this machine can run: one of the products if possible, otherwise one that is built for this
/// machine.
fn runnable(builder: &Builder, products: &[Product], scratch: &Path) -> Result<PathBuf> {
    let native = products.iter().find(|product| product.target.is_native());
    if let Some(native) = native {
        return Ok(native.program.clone());
    }
    for product in products {
        if let Some(program) = emulated(builder, product.target, &product.program, scratch)? {
            return Ok(program);
        }
    }
    Ok(run::Products::build()?.heapdiff())
}

/// Returns a script that runs a program with an emulator, or `None` if this machine has no emulator for the target.
fn emulated(
    builder: &Builder,
    target: Target,
    program: &Path,
    scratch: &Path,
) -> Result<Option<PathBuf>> {
    let runner = match target.emulator() {
        None if target == Target::Windows => windows::runner(builder, scratch)?,
        None => None,
        Some((emulator, package)) => {
            let found = tools::on_path(emulator);
            if found.is_none() {
                println!("{emulator} is missing; run `sudo apt-get install {package}`");
            }
            found
        }
    };
    runner
        .map(|runner| tryout::script(&runner, program, &scratch.join("emulated")))
        .transpose()
}

/// Tests a packed program, if this machine can run it.
fn test(builder: &Builder, target: Target, archive: &Path) -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let unpacked = archive::unpack(archive, &scratch.path().join("unpacked"))?;
    let program = match target.system() {
        "windows" => unpacked.join(target.program()),
        _ => unpacked.join("bin").join(target.program()),
    };
    if !target.is_native() {
        return match emulated(builder, target, &program, scratch.path())? {
            Some(program) => try_out(&program, false),
            None => {
                println!("{} was not tested", archive.display());
                Ok(())
            }
        };
    }
    let has_agent = target.system() == "linux";
    try_out(&program, has_agent)?;
    if !has_agent {
        return Ok(());
    }
    // Tests the program without the library beside it.
    let alone = scratch.path().join("heapdiff");
    fs::copy(&program, &alone)?;
    try_out(&alone, true)?;
    let folder = archive.parent().context("a folder")?;
    for entry in fs::read_dir(folder)? {
        let package = entry?.path();
        let name = package.file_name().unwrap_or_default().to_string_lossy();
        let architecture = match target {
            Target::LinuxX86 => "_amd64.deb",
            _ => "_arm64.deb",
        };
        if name.ends_with(architecture) {
            let unpacked = archive::unpack_deb(&package, &scratch.path().join("deb"))?;
            try_out(&unpacked.join("usr/bin/heapdiff"), true)?;
        }
    }
    Ok(())
}

fn try_out(program: &Path, has_agent: bool) -> Result<()> {
    let home = tempfile::tempdir()?;
    let version = output(tryout::alone(program, home.path()).arg("--version"))?;
    println!(
        "{} --version prints {}",
        program.display(),
        version.trim_end()
    );
    tryout::compare(program)?;
    if has_agent {
        tryout::attach(program)?;
    }
    Ok(())
}

fn is_debian(file: &Path) -> bool {
    file.extension().is_some_and(|end| end == "deb")
}

/// Lets lintian check a package against Debian's policy.
fn check_package(package: &Path) -> Result<()> {
    if tools::on_path("lintian").is_none() {
        println!("lintian is missing; run `sudo apt-get install lintian`");
        return Ok(());
    }
    let mut lintian = Command::new("lintian");
    lintian.args(["--allow-root", "--fail-on", "error,warning"]);
    run::run(lintian.arg(package))
}

/// Builds the files again from a copy of the sources, and fails unless they have the same bytes.
fn check(targets: &[Target], folder: &Path) -> Result<()> {
    let copy = tempfile::tempdir_in(run::target_dir())?;
    let source = copy.path().join("elsewhere");
    let listed = output(Command::new("git").current_dir(run::root()).args([
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]))?;
    for name in listed.split_terminator('\0') {
        let (from, to) = (run::root().join(name), source.join(name));
        // If a file was deleted from the folder, git may still list it. Skip such a file.
        if from.is_file() {
            fs::create_dir_all(to.parent().context("a folder")?)?;
            fs::copy(&from, &to).with_context(|| from.display().to_string())?;
        }
    }
    let builder = Builder::for_release(&source, &copy.path().join("built"))?;
    let again = copy.path().join("files");
    build(&builder, targets, &again)?;
    let mut differing = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        if fs::read(folder.join(&name))? != fs::read(again.join(&name))? {
            differing.push(name.to_string_lossy().into_owned());
        }
    }
    differing.sort();
    ensure!(
        differing.is_empty(),
        "a build in another folder gave other bytes: {}; its files are in {}",
        differing.join(", "),
        copy.keep().display()
    );
    println!("a build in another folder gave the same bytes");
    Ok(())
}
