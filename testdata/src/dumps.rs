//! Generates the dumps that are stored in the repository for tests. The README uses two of them in an example.

use crate::jvm::{DumpOptions, Jdk, JvmError, Launch, Selection, Target};
use crate::programs;
use crate::scenarios::{Mode, SESSION_REGISTRY, Scenario};
use flate2::read::MultiGzDecoder;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// The major version of the JDK that writes the stored dumps. If this version is not installed, the latest installed
/// JDK is used.
pub const PREFERRED_MAJOR: u32 = 17;

/// Writes `before.hprof.gz` and `after.hprof.gz` to this folder, replaces existing files, and returns their paths.
///
/// Both dumps contain the live objects of the leaking program [`SESSION_REGISTRY`]. The first dump is taken when the
/// program prints its first `READY`, and the second one when it prints its second `READY`. The JVM compresses the
/// dumps. A dump contains the environment variables, the working folder and the user name. Therefore the program runs
/// without environment variables, in a new folder and under another user name.
pub fn regenerate_dumps(out_dir: &Path) -> Result<Vec<PathBuf>, JvmError> {
    make_dumps(out_dir, 9)
}

/// Writes the dumps as [`regenerate_dumps`] does, with another compression level. Compression at level 9 takes seconds.
/// Level 1 is faster.
pub fn make_dumps(out_dir: &Path, gzip: u8) -> Result<Vec<PathBuf>, JvmError> {
    let jdk = jdk()?;
    fs::create_dir_all(out_dir).map_err(|error| JvmError::file(out_dir, error))?;
    let home = std::env::temp_dir().join(format!("acme-{}", std::process::id()));
    let dumps = start_apart(&SESSION_REGISTRY, &jdk, &home).and_then(|mut target| {
        target.wait_ready(1)?;
        let before = dump(&target, &out_dir.join("before.hprof.gz"), gzip)?;
        target.advance(2)?;
        let after = dump(&target, &out_dir.join("after.hprof.gz"), gzip)?;
        Ok(vec![before, after])
    });
    // Ignore an error of the removal, because the folder contains only a copy of the classes.
    let _ = fs::remove_dir_all(&home);
    dumps
}

/// Returns the decompressed content of a dump.
///
/// # Panics
///
/// Panics if the file does not exist or is not a complete gzip file.
#[must_use]
pub fn unpacked(dump: &Path) -> Vec<u8> {
    let file = File::open(dump).unwrap_or_else(|error| panic!("{}: {error}", dump.display()));
    let mut bytes = Vec::new();
    MultiGzDecoder::new(file)
        .read_to_end(&mut bytes)
        .unwrap_or_else(|error| panic!("{}: {error}", dump.display()));
    bytes
}

/// Writes `sampled-before.hprof.gz` and `sampled-after.hprof.gz`, the dumps of `java/agent/Orders.java` with the agent
/// loaded. They are taken when the program prints its first and its second `READY`, in the same way as the dumps of
/// [`regenerate_dumps`].
pub fn make_sampled_dumps(
    out_dir: &Path,
    library: &Path,
    gzip: u8,
) -> Result<Vec<PathBuf>, JvmError> {
    let jdk = jdk()?;
    fs::create_dir_all(out_dir).map_err(|error| JvmError::file(out_dir, error))?;
    let home = std::env::temp_dir().join(format!("orders-{}", std::process::id()));
    let classes = jdk.compile(&programs::agent("Orders.java"))?;
    let dumps = start_clean("Orders", &jdk, &classes, &home, |launch| {
        launch.agent(library, "interval=4k,garbage=100")
    })
    .and_then(|mut target| {
        target.wait_ready(1)?;
        let before = dump(&target, &out_dir.join("sampled-before.hprof.gz"), gzip)?;
        target.advance(2)?;
        let after = dump(&target, &out_dir.join("sampled-after.hprof.gz"), gzip)?;
        Ok(vec![before, after])
    });
    // Ignore an error of the removal, because the folder contains only a copy of the classes.
    let _ = fs::remove_dir_all(&home);
    dumps
}

fn jdk() -> Result<Jdk, JvmError> {
    let mut jdks = Jdk::all_for_scenarios();
    match jdks.iter().position(|jdk| jdk.major() == PREFERRED_MAJOR) {
        Some(preferred) => Ok(jdks.swap_remove(preferred)),
        None => jdks
            .pop()
            .ok_or_else(|| JvmError::NoJdk("17 or later".to_owned())),
    }
}

/// Starts the program in such a way that its heap contains no information about this machine.
fn start_apart(scenario: &Scenario, jdk: &Jdk, home: &Path) -> Result<Target, JvmError> {
    let classes = jdk.compile(&scenario.source_path())?;
    start_clean(scenario.main_class, jdk, &classes, home, |launch| {
        launch.arg(Mode::Leak.argument())
    })
}

fn start_clean(
    main_class: &str,
    jdk: &Jdk,
    classes: &Path,
    home: &Path,
    with: impl Fn(Launch) -> Launch,
) -> Result<Target, JvmError> {
    copy_tree(classes, &home.join("classes"))?;
    let launch = Launch::class(jdk, "classes", main_class)
        .flags([
            "-Xmx128m",
            "-XX:+UseSerialGC",
            "-Duser.name=acme",
            "-Duser.home=/home/acme",
        ])
        .clean_in(home);
    with(launch).start()
}

fn dump(target: &Target, file: &Path, gzip: u8) -> Result<PathBuf, JvmError> {
    target.dump(
        file,
        DumpOptions {
            selection: Selection::Live,
            gzip: Some(gzip),
        },
    )?;
    Ok(file.to_owned())
}

fn copy_tree(from: &Path, to: &Path) -> Result<(), JvmError> {
    let failed = |error| JvmError::file(from, error);
    fs::create_dir_all(to).map_err(|error| JvmError::file(to, error))?;
    for entry in fs::read_dir(from).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let Some(name) = path.file_name() else {
            continue;
        };
        if path.is_dir() {
            copy_tree(&path, &to.join(name))?;
        } else {
            fs::copy(&path, to.join(name)).map_err(|error| JvmError::file(&path, error))?;
        }
    }
    Ok(())
}
