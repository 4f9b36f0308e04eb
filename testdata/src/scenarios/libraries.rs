//! Fetches the published libraries that some scenarios and controls use. `testdata/libraries/pom.xml` names them, and
//! Maven fetches them once. If the libraries are missing, tests skip these programs.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::jvm::{JvmError, class_cache};

/// The Maven plugin has a fixed version, because Maven's default version changes.
const COPY: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies";

/// Returns the folder with the jars of the libraries, if they have been fetched.
pub fn libraries() -> Option<PathBuf> {
    let folder = folder();
    folder.is_dir().then_some(folder)
}

/// Fetches the libraries, unless that has been done before.
pub fn fetch_libraries() -> Result<PathBuf, JvmError> {
    let folder = folder();
    if folder.is_dir() {
        return Ok(folder);
    }
    let pom = Path::new(env!("CARGO_MANIFEST_DIR")).join("libraries");
    let beside = folder.with_extension(format!("{}", std::process::id()));
    let mut maven = Command::new("mvn");
    maven
        .current_dir(pom)
        .args(["--quiet", "--batch-mode", COPY, "-DincludeScope=runtime"])
        .arg(format!("-DoutputDirectory={}", beside.display()));
    let failed = |output: String| JvmError::Failed {
        command: "mvn (needed to fetch the libraries of scenarios)".to_owned(),
        output,
    };
    let done = maven.output().map_err(|error| failed(error.to_string()))?;
    if !done.status.success() {
        return Err(failed(String::from_utf8_lossy(&done.stdout).into_owned()));
    }
    std::fs::rename(&beside, &folder).map_err(|error| JvmError::file(&folder, error))?;
    Ok(folder)
}

fn folder() -> PathBuf {
    class_cache().with_file_name("scenario-libraries")
}
