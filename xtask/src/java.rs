//! Finds a JDK, or installs one.

use anyhow::{Context, Result, ensure};
use testdata::jvm::Jdk;

use crate::tools;

/// A JDK that can run the scenarios, the oldest there is; installs one from the distribution
/// if there is none and that is possible.
pub(crate) fn ensure_jdk() -> Result<Jdk> {
    const HINT: &str = "no JDK found: install JDK 17 or later, or set JAVA_HOME";
    let find = || Jdk::all_for_scenarios().into_iter().next();
    if let Some(jdk) = find() {
        return Ok(jdk);
    }
    tools::install("default-jdk-headless").context(HINT)?;
    find().context(HINT)
}

/// The JDKs of these major versions, one of each; all there are where none is asked for.
pub(crate) fn jdks(majors: &[u32]) -> Result<Vec<Jdk>> {
    ensure_jdk()?;
    let mut jdks = Jdk::all_for_scenarios();
    jdks.retain(|jdk| majors.is_empty() || majors.contains(&jdk.major()));
    // Two of one version would be told apart by nothing in a table.
    jdks.dedup_by_key(|jdk| jdk.major());
    ensure!(!jdks.is_empty(), "no such JDK: {majors:?}");
    Ok(jdks)
}
