//! Known leaks of libraries: the list in `known-leaks.toml`, which is matched against suspects.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::LazyLock;

use heapdiff_model::diff::{KnownLeak, Suspect};
use hprof::{ClassIndex, Snapshot};
use serde::Deserialize;

use crate::owners::{code_source, last_part};

/// The list of known leaks. A test parses it.
const TEXT: &str = include_str!("known-leaks.toml");
/// The name of the JDK in the list.
const JDK: &str = "jdk";
/// The system property with the version of the JDK.
const JDK_VERSION: &str = "java.version";

/// A known leak.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// Name of the leak in the tracker of the library, such as `JDK-8168469`.
    id: String,
    /// Fields in which the objects accumulate: `com.acme.Cache.entries`.
    holders: Vec<String>,
    /// Classes of the accumulating objects; empty for application classes, which the list cannot name.
    #[serde(default)]
    classes: Vec<String>,
    /// Name of the jar without its version, or `jdk`.
    library: String,
    /// The first version that leaks. `None` if all versions before the fix leak.
    #[serde(default)]
    since: Option<String>,
    /// The first version without the leak, for each line of versions such as 17.0. Empty if the behaviour is intended.
    #[serde(default)]
    fixed_in: Vec<String>,
    /// The cause in one sentence, without its full stop.
    cause: String,
    /// The fix in one sentence, without its full stop.
    fix: String,
    /// URL of the leak in the tracker.
    link: String,
}

#[derive(Debug, Default, Deserialize)]
struct List {
    leak: Vec<Entry>,
}

fn parse(text: &str) -> Result<List, toml::de::Error> {
    toml::from_str(text)
}

static LIST: LazyLock<List> = LazyLock::new(|| parse(TEXT).unwrap_or_default());

/// Adds to each suspect the known leak that it matches, and the fix of this leak. A leak is not added if the dump shows
/// that the library has a version without it.
///
/// Cost: a few comparisons for each pair of suspect and known leak. Objects are read only if a suspect matches.
pub(crate) fn add_known_leaks(snapshot: Option<&Snapshot>, suspects: &mut [Suspect]) {
    for suspect in suspects {
        let Some(entry) = LIST.leak.iter().find(|entry| entry.matches(suspect)) else {
            continue;
        };
        let version = snapshot.and_then(|snapshot| version(snapshot, entry, &suspect.class));
        if version.as_deref().is_some_and(|v| !entry.leaks_in(v)) {
            continue;
        }
        suspect.likely_fix = Some(entry.fix.clone());
        suspect.known = Some(KnownLeak {
            id: entry.id.clone(),
            library: entry.library.clone(),
            version,
            cause: entry.cause.clone(),
            fixed_in: (!entry.fixed_in.is_empty()).then(|| entry.fixed_in.join(", ")),
            link: entry.link.clone(),
        });
    }
}

impl Entry {
    /// True if objects of one of the classes accumulate in one of the fields. The holder of the suspect may be another
    /// field on the path, from which the library's field is reached.
    fn matches(&self, suspect: &Suspect) -> bool {
        let is_held = |field: &String| self.holders.contains(field);
        is_held(&suspect.holder) && self.classes.is_empty()
            || self.classes.contains(&suspect.class)
                && suspect.path.iter().chain([&suspect.holder]).any(is_held)
    }

    /// True if a version of the library leaks. A version has the fix in two cases: it is equal to or later than a
    /// version in `fixed_in` of the same line (such as `17.0`), or it is equal to or later than the newest version in
    /// `fixed_in`.
    fn leaks_in(&self, version: &str) -> bool {
        let version = numbers(version);
        let is_older = |since: &String| version.cmp(&numbers(since)) == Ordering::Less;
        if self.since.as_ref().is_some_and(is_older) {
            return false;
        }
        let newest = self.fixed_in.iter().map(|fixed| numbers(fixed)).max();
        let has_fix = |fixed: &String| {
            let fixed = numbers(fixed);
            let line = fixed.len().saturating_sub(1);
            let is_same_line = line > 0 && version.get(..line) == fixed.get(..line);
            version >= fixed && (is_same_line || newest.as_ref() == Some(&fixed))
        };
        !self.fixed_in.iter().any(has_fix)
    }
}

/// Returns the numbers at the beginning of a version: 4, 1 and 28 for `4.1.28.Final`, and 8, 0 and 202 for `1.8.0_202`.
fn numbers(version: &str) -> Vec<u64> {
    let version = version
        .strip_prefix("1.8")
        .map_or(version.to_owned(), |rest| format!("8{rest}"));
    let parts = version.split(['.', '_', '-', '+']);
    let numbers = parts.map_while(|part| part.parse().ok());
    numbers.collect()
}

/// Returns the version of the library from which the class of the field comes, if the dump contains it. If several
/// class loaders have the library in different versions, at least 9/10 of the objects of the class `accumulating` must
/// be of one version, which is returned.
fn version(snapshot: &Snapshot, entry: &Entry, accumulating: &str) -> Option<String> {
    if entry.library == JDK {
        return snapshot.system_properties([JDK_VERSION])[0].take();
    }
    let of_class = |class: ClassIndex| {
        let path = code_source(snapshot, class)?;
        version_in(last_part(&path), &entry.library).map(str::to_owned)
    };
    let named = |holder: &String| {
        let (class, _) = holder.rsplit_once('.')?;
        Some(snapshot.classes().by_name(class)).filter(|classes| !classes.is_empty())
    };
    let classes = entry.holders.iter().find_map(named)?;
    let mut versions = classes.iter().filter_map(|class| of_class(*class));
    let first = versions.next()?;
    if versions.all(|version| version == first) {
        return Some(first);
    }
    let mut counts: HashMap<Option<String>, usize> = HashMap::new();
    for class in snapshot.classes().by_name(accumulating) {
        *counts.entry(of_class(*class)).or_default() += snapshot.instances(&[*class]).len();
    }
    let all: usize = counts.values().sum();
    let (version, most) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    version.filter(|_| most * 10 >= all * 9)
}

/// Returns the version in the name of a jar: `4.1.28.Final` for `netty-common-4.1.28.Final.jar`.
fn version_in<'a>(jar: &'a str, library: &str) -> Option<&'a str> {
    let version = jar.strip_prefix(library)?.strip_prefix('-')?;
    let version = version.strip_suffix(".jar")?;
    version
        .starts_with(|c: char| c.is_ascii_digit())
        .then_some(version)
}

#[cfg(test)]
mod tests;
