//! Finds the JDKs of this machine and compiles Java sources with them.

use super::{JvmError, command};
use std::collections::{BTreeSet, hash_map::DefaultHasher};
use std::env::{self, consts::EXE_SUFFIX};
use std::ffi::OsStr;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const COMPILE_TIMEOUT: Duration = Duration::from_secs(120);
/// Options for tools of the JDK that run for a second or less. With them, `javac` needs about half of the processor time.
pub(super) const SHORT_RUN: [&str; 2] = ["-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC"];
/// Programs are compiled for this version of Java, so that the classes run on this and every later JDK.
const PROGRAMS_RELEASE: u32 = 17;

/// Name of an environment variable with the home folders of further JVMs, separated as in `PATH`. A JVM without a
/// compiler is accepted.
pub const HOMES: &str = "HEAPDIFF_JAVA_HOMES";

/// A JDK: a folder with at least `bin/java` and `bin/jcmd`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Jdk {
    home: PathBuf,
    version: String,
    major: u32,
}

impl Jdk {
    /// Returns every JDK found through `JAVA_HOME`, `PATH` and the usual folders, each once, oldest first.
    pub fn all() -> Vec<Jdk> {
        let homes: BTreeSet<PathBuf> = candidates()
            .iter()
            .filter_map(|home| fs::canonicalize(home).ok())
            .collect();
        let mut jdks: Vec<Jdk> = homes.iter().filter_map(|home| Jdk::at(home).ok()).collect();
        jdks.sort_by_key(|jdk| jdk.major);
        jdks
    }

    /// Returns the JDKs that can run the scenarios: 17 and later.
    pub fn all_for_scenarios() -> Vec<Jdk> {
        Jdk::all()
            .into_iter()
            .filter(|jdk| jdk.major >= 17)
            .collect()
    }

    /// Returns the JDKs into which the agent can be loaded: 11 and later.
    pub fn all_for_agent() -> Vec<Jdk> {
        Jdk::all()
            .into_iter()
            .filter(|jdk| jdk.major >= 11)
            .collect()
    }

    /// Returns a JDK with this major version. If there are several, returns the JDK whose path sorts first.
    pub fn with_major(major: u32) -> Result<Jdk, JvmError> {
        Jdk::all()
            .into_iter()
            .find(|jdk| jdk.major == major)
            .ok_or_else(|| JvmError::NoJdk(format!("version {major}")))
    }

    /// Returns the JDK in this folder.
    pub fn at(home: &Path) -> Result<Jdk, JvmError> {
        let not_a_jdk = || JvmError::NotAJdk(home.to_owned());
        let home = fs::canonicalize(home).map_err(|_| not_a_jdk())?;
        if !tool(&home, "java").is_file() || !tool(&home, "jcmd").is_file() {
            return Err(not_a_jdk());
        }
        let version = match fs::read_to_string(home.join("release")) {
            Ok(release) => version_in(&release).map(str::to_owned),
            Err(_) => printed_version(&tool(&home, "java")),
        };
        let version = version.ok_or_else(not_a_jdk)?;
        let major = major_of(&version).ok_or_else(not_a_jdk)?;
        Ok(Jdk {
            home,
            version,
            major,
        })
    }

    /// Returns the folder, with symbolic links resolved.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Returns the full version, such as `17.0.15`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns the major version, such as 17; 8 for `1.8.0`.
    pub fn major(&self) -> u32 {
        self.major
    }

    /// Returns the path of `java`, the program that runs Java programs.
    pub fn java(&self) -> PathBuf {
        tool(&self.home, "java")
    }

    /// Returns the path of `jcmd`, the program that sends diagnostic commands.
    pub fn jcmd(&self) -> PathBuf {
        tool(&self.home, "jcmd")
    }

    /// Returns the path of `javac`, the Java compiler.
    pub fn javac(&self) -> PathBuf {
        tool(&self.home, "javac")
    }

    /// Runs `jfr`, which reads flight recordings, and returns its output.
    pub fn recorder<S: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = S>,
    ) -> Result<String, JvmError> {
        let mut jfr = Command::new(tool(&self.home, "jfr"));
        command::run(jfr.args(args), COMPILE_TIMEOUT)
    }

    /// Compiles one source file and returns the folder with its classes.
    ///
    /// The classes are kept in [`class_cache`] under the hash of the source and of the jars' folder, so only the first
    /// run compiles. They are compiled for Java 17.
    pub fn compile(&self, source: &Path) -> Result<PathBuf, JvmError> {
        self.compiled(&[source], self.major.min(PROGRAMS_RELEASE), None)
    }

    /// Compiles as [`Jdk::compile`] does, but for this JDK's own version of Java. So the source may use the whole API
    /// of this version.
    pub fn compile_for_itself(&self, source: &Path) -> Result<PathBuf, JvmError> {
        self.compiled(&[source], self.major, None)
    }

    /// Compiles as [`Jdk::compile`] does, with the jars of a folder on the class path.
    pub fn compile_with(&self, source: &Path, jars: &Path) -> Result<PathBuf, JvmError> {
        self.compiled(&[source], self.major.min(PROGRAMS_RELEASE), Some(jars))
    }

    /// Compiles several sources, as [`Jdk::compile`] compiles one source.
    pub fn compile_all(&self, sources: &[impl AsRef<Path>]) -> Result<PathBuf, JvmError> {
        let sources: Vec<&Path> = sources.iter().map(AsRef::as_ref).collect();
        self.compiled(&sources, self.major.min(PROGRAMS_RELEASE), None)
    }

    fn compiled(
        &self,
        sources: &[&Path],
        release: u32,
        jars: Option<&Path>,
    ) -> Result<PathBuf, JvmError> {
        let mut hasher = DefaultHasher::new();
        for source in sources {
            let text = fs::read(source).map_err(|error| JvmError::file(source, error))?;
            text.hash(&mut hasher);
        }
        jars.hash(&mut hasher);
        let stem = sources
            .first()
            .and_then(|source| source.file_stem())
            .and_then(OsStr::to_str)
            .unwrap_or("classes");
        let classes = class_cache().join(format!("{stem}-{release}-{:016x}", hasher.finish()));
        if classes.is_dir() {
            return Ok(classes);
        }
        // Compile to another folder, and then rename it. So tests that run in parallel see either all classes or no
        // class.
        let scratch = scratch_dir(stem)?;
        let compiled = self
            .run_compiler(sources, release, jars, &scratch)
            .and_then(|()| match fs::rename(&scratch, &classes) {
                Err(error) if !classes.is_dir() => Err(JvmError::file(&classes, error)),
                _ => Ok(classes),
            });
        // If the rename succeeded, this folder no longer exists. If another thread was first, the folder must be
        // removed.
        let _ = fs::remove_dir_all(&scratch);
        compiled
    }

    /// Writes a jar for `-javaagent`. It contains only a manifest, which names the agent class. The class itself is on
    /// the program's class path. `attributes` are further lines of the manifest.
    pub fn agent_jar(
        &self,
        class: &str,
        attributes: &str,
        folder: &Path,
    ) -> Result<PathBuf, JvmError> {
        let name = format!("{class}-{}", self.major);
        let manifest = folder.join(format!("{name}.txt"));
        fs::write(&manifest, format!("Premain-Class: {class}\n{attributes}"))
            .map_err(|error| JvmError::file(&manifest, error))?;
        let jar = folder.join(format!("{name}.jar"));
        let mut command = Command::new(tool(&self.home, "jar"));
        command.arg("cfm").args([&jar, &manifest]);
        command::run(&mut command, COMPILE_TIMEOUT).map(|_| jar)
    }

    fn run_compiler(
        &self,
        sources: &[&Path],
        release: u32,
        jars: Option<&Path>,
        into: &Path,
    ) -> Result<(), JvmError> {
        // If this JVM has no compiler, the oldest JDK on this machine compiles for it.
        let others = || {
            Jdk::all()
                .iter()
                .map(Jdk::javac)
                .find(|javac| javac.is_file())
        };
        let own = Some(self.javac()).filter(|javac| javac.is_file());
        let mut javac = Command::new(own.or_else(others).unwrap_or_else(|| self.javac()));
        javac
            .args(SHORT_RUN)
            .args(["-g", "-nowarn", "-encoding", "UTF-8", "-d"])
            .arg(into);
        if let Some(jars) = jars {
            javac.arg("-cp").arg(jars.join("*"));
        }
        if release >= 9 {
            javac.args(["--release", &release.to_string()]);
        }
        command::run(javac.args(sources), COMPILE_TIMEOUT).map(drop)
    }
}

/// Returns the folder for compiled Java classes, in cargo's target folder.
pub fn class_cache() -> PathBuf {
    let target = env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    target
        .unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../target"))
        .join("java-classes")
}

fn scratch_dir(stem: &str) -> Result<PathBuf, JvmError> {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let scratch = class_cache().join(format!(".{stem}-{}-{number}", std::process::id()));
    fs::create_dir_all(&scratch).map_err(|error| JvmError::file(&scratch, error))?;
    Ok(scratch)
}

fn tool(home: &Path, name: &str) -> PathBuf {
    home.join("bin").join(format!("{name}{EXE_SUFFIX}"))
}

/// Returns folders that may be JDKs: from the environment, and the usual folders. The folders are not checked.
fn candidates() -> Vec<PathBuf> {
    let mut homes: Vec<PathBuf> = env::var_os("JAVA_HOME")
        .into_iter()
        .map(PathBuf::from)
        .collect();
    for given in env::var_os(HOMES).iter() {
        homes.extend(env::split_paths(given));
    }
    for folder in env::var_os("PATH").iter().flat_map(env::split_paths) {
        // A symbolic link such as /usr/bin/java points to bin/java of the JDK.
        let java = fs::canonicalize(folder.join(format!("java{EXE_SUFFIX}")));
        homes.extend(
            java.ok()
                .as_deref()
                .and_then(Path::parent)
                .and_then(Path::parent)
                .map(Path::to_owned),
        );
    }
    for folder in [
        "/usr/lib/jvm",
        "/usr/java",
        "/opt/java",
        "/Library/Java/JavaVirtualMachines",
    ] {
        homes.extend(children(Path::new(folder)));
    }
    homes.extend(children(Path::new("/opt")).into_iter().filter(|path| {
        path.file_name()
            .is_some_and(|name| name.to_string_lossy().contains("jdk"))
    }));
    if let Some(user) = env::var_os("HOME").map(PathBuf::from) {
        for folder in [
            ".sdkman/candidates/java",
            ".jdks",
            "Library/Java/JavaVirtualMachines",
        ] {
            homes.extend(children(&user.join(folder)));
        }
    }
    if let Some(programs) = env::var_os("ProgramFiles").map(PathBuf::from) {
        for folder in ["Java", "Eclipse Adoptium"] {
            homes.extend(children(&programs.join(folder)));
        }
    }
    // On macOS the JDK is inside a bundle.
    let bundles: Vec<PathBuf> = homes
        .iter()
        .map(|home| home.join("Contents/Home"))
        .collect();
    homes.extend(bundles);
    homes
}

fn children(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect()
}

/// Returns the version that `java -version` prints: `openjdk version "1.8.0_452"`. Debian's JDK 8 has no `release` file.
fn printed_version(java: &Path) -> Option<String> {
    let printed = Command::new(java).arg("-version").output().ok()?;
    let text = String::from_utf8_lossy(&printed.stderr);
    let line = text.lines().find(|line| line.contains(" version \""))?;
    line.split('"').nth(1).map(str::to_owned)
}

/// Returns the version in a JDK's `release` file, from a line such as `JAVA_VERSION="17.0.15"`.
fn version_in(release: &str) -> Option<&str> {
    let line = release
        .lines()
        .find_map(|line| line.strip_prefix("JAVA_VERSION="))?;
    Some(line.trim().trim_matches('"'))
}

fn major_of(version: &str) -> Option<u32> {
    let mut numbers = version.split(|c: char| !c.is_ascii_digit());
    match numbers.next()?.parse().ok()? {
        1 => numbers.next()?.parse().ok(),
        major => Some(major),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        let major = |release| version_in(release).and_then(major_of);
        assert_eq!(
            major("IMPLEMENTOR=\"x\"\nJAVA_VERSION=\"17.0.15\"\n"),
            Some(17)
        );
        assert_eq!(major("JAVA_VERSION=\"25\""), Some(25));
        assert_eq!(major("JAVA_VERSION=\"26-ea\""), Some(26));
        assert_eq!(major("JAVA_VERSION=\"1.8.0_452\"\r\n"), Some(8));
        assert_eq!(major("SOURCE=\"17\""), None);
        assert_eq!(major("JAVA_VERSION=\"\""), None);
    }

    #[test]
    fn a_folder_without_tools_is_no_jdk() {
        let error = Jdk::at(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap_err();
        assert!(matches!(error, JvmError::NotAJdk(_)));
    }

    #[test]
    fn each_jdk_is_found_once_and_has_its_tools() {
        let jdks = Jdk::all();
        let homes: BTreeSet<_> = jdks.iter().map(Jdk::home).collect();
        assert_eq!(homes.len(), jdks.len());
        assert!(jdks.is_sorted_by_key(Jdk::major));
        for jdk in &jdks {
            assert!(jdk.java().is_file() && jdk.jcmd().is_file(), "{jdk:?}");
        }
    }

    #[test]
    fn a_broken_source_shows_the_compiler_output() {
        let Some(jdk) = Jdk::all_for_scenarios().pop() else {
            return;
        };
        let folder = env::temp_dir().join(format!("testdata-broken-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let source = folder.join("Broken.java");
        fs::write(&source, "class Broken { int }").unwrap();
        let error = jdk.compile(&source).unwrap_err().to_string();
        fs::remove_dir_all(&folder).unwrap();
        assert!(error.contains("<identifier> expected"), "{error}");
    }
}
