//! Builds for other systems with cargo-zigbuild. Its linker, zig, has the symbols of old versions of glibc, of musl and
//! of Windows.

mod pe;

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::tryout::output;
use heapdiff_lab::{run, tools};

/// The oldest glibc that the agent runs with. It is the glibc of RHEL 7. All supported systems have a later one.
pub(crate) const GLIBC: (u32, u32) = (2, 17);
/// Two Python packages: the cargo plugin that replaces the linker, and the linker itself.
const LINKER: [&str; 2] = ["cargo-zigbuild==0.24.1", "ziglang==0.17.1"];

/// A system for which files are built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Target {
    #[value(name = "x86_64-unknown-linux-musl")]
    LinuxX86,
    #[value(name = "aarch64-unknown-linux-musl")]
    LinuxArm,
    #[value(name = "x86_64-pc-windows-gnu")]
    Windows,
    #[value(name = "x86_64-apple-darwin")]
    MacX86,
    #[value(name = "aarch64-apple-darwin")]
    MacArm,
}

impl Target {
    /// Returns the targets that this system can build.
    pub(crate) const fn of_this_system() -> &'static [Self] {
        if cfg!(target_os = "macos") {
            &[Self::MacX86, Self::MacArm]
        } else {
            &[Self::LinuxX86, Self::LinuxArm, Self::Windows]
        }
    }

    /// Returns the name that rustc has for the target.
    pub(crate) const fn triple(self) -> &'static str {
        match self {
            Self::LinuxX86 => "x86_64-unknown-linux-musl",
            Self::LinuxArm => "aarch64-unknown-linux-musl",
            Self::Windows => "x86_64-pc-windows-gnu",
            Self::MacX86 => "x86_64-apple-darwin",
            Self::MacArm => "aarch64-apple-darwin",
        }
    }

    /// Returns the processor, as in the names of released files.
    pub(crate) const fn processor(self) -> &'static str {
        match self {
            Self::LinuxX86 | Self::Windows | Self::MacX86 => "x86_64",
            Self::LinuxArm | Self::MacArm => "aarch64",
        }
    }

    /// Returns the system, as in the names of released files.
    pub(crate) const fn system(self) -> &'static str {
        match self {
            Self::LinuxX86 | Self::LinuxArm => "linux",
            Self::Windows => "windows",
            Self::MacX86 | Self::MacArm => "macos",
        }
    }

    /// Returns the file name of the program.
    pub(crate) const fn program(self) -> &'static str {
        match self {
            Self::Windows => "heapdiff.exe",
            _ => "heapdiff",
        }
    }

    /// True if this machine runs programs for the target.
    pub(crate) fn is_native(self) -> bool {
        self.processor() == env::consts::ARCH && self.system() == env::consts::OS
    }

    /// Returns the emulator for the target's processor, and the Debian package that contains it. Returns `None` if the
    /// target is not Linux.
    pub(crate) const fn emulator(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::LinuxX86 => Some(("qemu-x86_64", "qemu-user")),
            Self::LinuxArm => Some(("qemu-aarch64", "qemu-user")),
            Self::Windows | Self::MacX86 | Self::MacArm => None,
        }
    }
}

/// Builds the program and the agent of a checkout for other systems.
#[derive(Debug)]
pub(crate) struct Builder {
    source: PathBuf,
    target_dir: PathBuf,
    /// The folder of cargo-zigbuild, which is added at the start of `PATH`. `None` if cargo-zigbuild is already on the
    /// `PATH`.
    plugin: Option<PathBuf>,
}

impl Builder {
    /// Prepares builds of the checkout in `source` with the settings of a release. Installs cargo-zigbuild if it is not
    /// on the `PATH`.
    pub(crate) fn for_release(source: &Path, target_dir: &Path) -> Result<Self> {
        let plugin = if tools::on_path("cargo-zigbuild").is_some() || cfg!(target_os = "macos") {
            None
        } else {
            let python = tools::ensure_python(&run::target_dir().join("zig"), &LINKER)?;
            Some(std::path::absolute(python.parent().context("a folder")?)?)
        };
        Ok(Self {
            source: std::path::absolute(source)?,
            target_dir: std::path::absolute(target_dir)?,
            plugin,
        })
    }

    /// Returns a cargo command for a target, with the options that choose target and profile. `verb` is `build` or
    /// `rustc`. `flags` are added to the flags of rustc.
    fn cargo(&self, verb: &str, triple: &str, flags: &[&str]) -> Result<Command> {
        let mut command = self.cargo_in(&self.source, verb, triple, flags)?;
        command.args(["--locked", "--profile", run::DIST]);
        Ok(command)
    }

    fn cargo_in(&self, source: &Path, verb: &str, triple: &str, flags: &[&str]) -> Result<Command> {
        let mut command = if triple.ends_with("-apple-darwin") && cfg!(target_os = "macos") {
            Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        } else {
            self.zigbuild()?
        };
        command.current_dir(source).arg(verb);
        let glibc = if triple.ends_with("-gnu") && triple.contains("linux") {
            format!(".{}.{}", GLIBC.0, GLIBC.1)
        } else {
            String::new()
        };
        command
            .arg("--target")
            .arg(format!("{triple}{glibc}"))
            .arg("--target-dir")
            .arg(self.target_dir_for(flags))
            .env_remove("RUSTFLAGS");
        let sysroot = output(Command::new("rustc").args(["--print", "sysroot"]))?;
        let sysroot = Path::new(sysroot.trim_end());
        if !sysroot
            .join("lib/rustlib")
            .join(triple)
            .join("lib")
            .is_dir()
        {
            ensure!(
                sysroot.join("lib/rustlib/src/rust/library").is_dir(),
                "the Rust library for {triple} is missing; run `rustup target add {triple}`"
            );
            command
                .arg("-Zbuild-std=std,panic_unwind")
                .env("RUSTC_BOOTSTRAP", "1");
        }
        // An incremental build may split the code in another way, and so give other bytes.
        command.env("CARGO_INCREMENTAL", "0");
        let mut flags: Vec<String> = flags.iter().map(|&flag| flag.to_owned()).collect();
        flags.extend(self.remapped(sysroot)?);
        // These flags are added to those in .cargo/config.toml. The variable RUSTFLAGS would replace them.
        let list = serde_json::to_string(&flags)?;
        command
            .arg("--config")
            .arg(format!("target.'cfg(all())'.rustflags={list}"));
        Ok(command)
    }

    fn zigbuild(&self) -> Result<Command> {
        let name = "cargo-zigbuild";
        let Some(folder) = &self.plugin else {
            return Ok(Command::new(name));
        };
        let mut command = Command::new(folder.join(name));
        command.env("PATH", path_with(folder)?);
        Ok(command)
    }

    /// Returns a command that runs zig's C compiler for a target.
    pub(crate) fn c_compiler(&self, target: &str) -> Result<Command> {
        let mut command = self.zigbuild()?;
        command.args(["zig", "cc", "--", "-target", target]);
        Ok(command)
    }

    /// Returns flags of rustc that replace the folders of this machine in messages and debug information. So the same
    /// source gives the same bytes on each machine. If several of these flags fit a path, rustc uses the last one.
    fn remapped(&self, sysroot: &Path) -> Result<Vec<String>> {
        let cargo_home = env::var_os("CARGO_HOME").map(PathBuf::from);
        let cargo_home = match cargo_home {
            Some(home) => home,
            None => env::home_dir().context("a home folder")?.join(".cargo"),
        };
        let folders = [
            (self.source.as_path(), "/heapdiff"),
            (&self.target_dir, "/heapdiff/target"),
            (&cargo_home, "/cargo"),
            (&sysroot.join("lib/rustlib/src/rust"), "/rust"),
        ];
        Ok(folders
            .iter()
            .map(|(folder, name)| format!("--remap-path-prefix={}={name}", folder.display()))
            .collect())
    }

    /// Builds the program for a target. `agents` are environment variables for the build script, with the agents to
    /// embed.
    pub(crate) fn program(&self, target: Target, agents: &[(&str, PathBuf)]) -> Result<PathBuf> {
        let mut command = self.cargo("rustc", target.triple(), &[])?;
        command.args(["--package", "heapdiff", "--bin", "heapdiff"]);
        command.envs(agents.iter().map(|(name, path)| (name, path)));
        if target.triple().ends_with("-musl") {
            // The linker has its own start files for static programs. A standard library that is built from source has
            // none.
            command.args(["--", "-Clink-self-contained=no"]);
        }
        run::run(&mut command)?;
        let folder = self.target_dir.join(target.triple()).join(run::DIST);
        let program = folder.join(target.program());
        if target == Target::Windows {
            pe::remove_time(&program)?;
        }
        Ok(program)
    }

    /// Builds the agent for a target of rustc.
    pub(crate) fn agent(&self, triple: &str) -> Result<PathBuf> {
        let mut command = self.cargo("rustc", triple, library_flags(triple))?;
        // Build only the dynamic library. If cargo also built the Rust library, to which tests link, the compiler could
        // not optimise the agent across crates.
        command.args(["--package", "heapdiff-agent", "--lib"]);
        run::run(command.args(["--crate-type", "cdylib"]))?;
        let target_dir = self.target_dir_for(library_flags(triple));
        Ok(target_dir.join(triple).join(run::DIST).join(run::AGENT))
    }

    /// Builds the dynamic library of a package that is not part of the checkout.
    pub(crate) fn library(&self, package: &Path, triple: &str, name: &str) -> Result<PathBuf> {
        let mut command = self.cargo_in(package, "build", triple, library_flags(triple))?;
        run::run(command.arg("--release"))?;
        let target_dir = self.target_dir_for(library_flags(triple));
        Ok(target_dir.join(triple).join("release").join(name))
    }

    /// Returns the target folder for builds with these flags. If builds with different flags shared a folder, each
    /// build would replace the files of the other, and cargo would compile everything again each time.
    fn target_dir_for(&self, flags: &[&str]) -> PathBuf {
        if flags.is_empty() {
            self.target_dir.clone()
        } else {
            self.target_dir.join("libraries")
        }
    }
}

/// Returns flags of rustc for a library that a JVM loads. The library must use the C library of the JVM.
fn library_flags(triple: &str) -> &'static [&'static str] {
    if triple.ends_with("-musl") {
        &["-Ctarget-feature=-crt-static"]
    } else {
        &[]
    }
}

fn path_with(folder: &Path) -> Result<OsString> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(folder.to_owned()).chain(env::split_paths(&path));
    Ok(env::join_paths(folders)?)
}
