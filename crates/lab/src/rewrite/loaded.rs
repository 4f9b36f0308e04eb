//! Rewrites, loads and compares the classes of one jar.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use heapdiff_bytecode::{Call, Hooks, Name, Site, Sites, Told};
use testdata::jvm::{Jdk, Launch};
use testdata::programs;

use crate::run;

const PATIENCE: Duration = Duration::from_secs(600);
const CALLS: u32 = 4;
const HOOKS: Hooks<'static> = Hooks {
    owner: "test/lang/Hits",
    object: "object",
    array: "array",
    level: "level",
};

/// A class file in a jar.
pub(super) struct Class {
    pub(super) path: String,
    /// For a class in a multi-release jar: the first Java version that uses this class in place of another one. 0 for a
    /// class that does not replace another class.
    pub(super) version: u8,
    pub(super) bytes: Vec<u8>,
}

/// The results for one jar.
#[derive(Default)]
pub(super) struct Outcome {
    pub(super) classes: usize,
    pub(super) rewritten: usize,
    pub(super) sites: usize,
    /// Methods and classes that were not rewritten, each with the reason.
    pub(super) left_alone: Vec<String>,
    /// Attributes of methods' bytecode (inside `Code`) that the rewriting dropped.
    pub(super) dropped: Vec<String>,
    pub(super) on: Vec<On>,
    /// Classes that the JVM rejects both in the original and in the rewritten form.
    pub(super) refused: BTreeSet<String>,
    pub(super) wrong: Vec<String>,
}

/// The results for one jar on one JDK.
pub(super) struct On {
    pub(super) jdk: String,
    /// Number of classes in each group:
    /// - linked
    /// - not linked, because another class is missing
    /// - rejected in both forms
    /// - different in the two forms: only one form is rejected, or the errors differ
    pub(super) loaded: [u64; 4],
    /// Number of methods in each group: compared, unreadable in the original form, and different after rewriting.
    pub(super) compared: Option<[u64; 3]>,
}

/// Gives allocation sites consecutive numbers.
#[derive(Default)]
struct Next {
    number: i32,
    calls: u32,
}

impl Sites for Next {
    /// Selects the call instructions whose result is counted. Call instructions are numbered in order. Every
    /// instruction whose number is a multiple of `CALLS` is selected. The called method does not matter.
    fn hook_after(&mut self, _: &Call<'_>) -> Option<Told> {
        self.calls = self.calls.wrapping_add(1);
        let (hook, mark) = ("returned", 1);
        self.calls
            .is_multiple_of(CALLS)
            .then_some(Told::Returned { hook, mark })
    }

    fn number(&mut self, _: Name<'_>, _: &Site<'_>) -> Option<i32> {
        self.number += 1;
        Some(self.number - 1)
    }
}

pub(super) fn outcome(
    jdks: &[Jdk],
    title: &str,
    classes: &[Class],
    jars: &[PathBuf],
) -> Result<Outcome> {
    let scratch = run::target_dir().join("rewrite");
    fs::create_dir_all(&scratch).with_context(|| scratch.display().to_string())?;
    let scratch = tempfile::tempdir_in(fs::canonicalize(scratch)?)?;
    let (all, pairs) = (scratch.path().join("all"), scratch.path().join("pairs"));
    let mut outcome = written(classes, &all, &pairs)?;
    for jdk in jdks {
        let lines = loaded(jdk, &all, jars)?;
        for line in &lines {
            let told = format!("JDK {}: {line}", jdk.major());
            if line.starts_with("WRONG") {
                outcome.wrong.push(told);
            } else if let Some(refused) = line.strip_prefix("REFUSED ") {
                outcome.refused.insert(refused.to_owned());
            }
        }
        let mut on = On {
            jdk: jdk.major().to_string(),
            loaded: figures(&lines, "LOADED")?,
            compared: None,
        };
        if jdk.major() >= 24 {
            let lines = class_file_differences(jdk, &pairs)?;
            let wrong = lines.iter().filter(|line| line.starts_with("WRONG"));
            outcome.wrong.extend(wrong.cloned());
            let [classes, methods, unread, _, differ] = figures(&lines, "SAME")?;
            ensure!(
                usize::try_from(classes) == Ok(outcome.rewritten),
                "{title}: {classes} classes compared"
            );
            on.compared = Some([methods, unread, differ]);
        }
        outcome.on.push(on);
    }
    Ok(outcome)
}

/// Rewrites the classes. Writes originals and rewritten classes to two files, one for each of the two Java programs of
/// this test.
fn written(classes: &[Class], all: &PathBuf, pairs: &PathBuf) -> Result<Outcome> {
    let mut outcome = Outcome {
        classes: classes.len(),
        ..Outcome::default()
    };
    let open = |path: &PathBuf| -> Result<BufWriter<File>> {
        let file = File::create(path).with_context(|| path.display().to_string())?;
        Ok(BufWriter::new(file))
    };
    let (mut all, mut pairs) = (open(all)?, open(pairs)?);
    let mut numbers = Next::default();
    for class in classes {
        let rewritten = match heapdiff_bytecode::rewrite(&class.bytes, &HOOKS, &mut numbers) {
            Ok(rewritten) => rewritten,
            Err(error) => {
                outcome.left_alone.push(format!("{}: {error}", class.path));
                continue;
            }
        };
        outcome.sites += rewritten.sites.len();
        for left in &rewritten.left_alone {
            let (method, reason) = (left.method, &left.reason);
            let left = format!("{} {method}{}: {reason}", class.path, left.descriptor);
            outcome.left_alone.push(left);
        }
        for dropped in &rewritten.dropped {
            let (method, attribute) = (dropped.method, dropped.attribute);
            let dropped = format!("{} {method}: {attribute} is dropped", class.path);
            outcome.dropped.push(dropped);
        }
        let new = rewritten.bytes.as_deref();
        let name = rewritten.class.as_bytes();
        all.write_all(&[class.version])?;
        all.write_all(&u16::try_from(name.len())?.to_be_bytes())?;
        all.write_all(name)?;
        let new_or_old = new.unwrap_or(&class.bytes);
        part(&mut all, [&class.bytes, new_or_old])?;
        if let Some(new) = new {
            outcome.rewritten += 1;
            part(&mut pairs, [&class.bytes, new])?;
        }
    }
    all.flush()?;
    pairs.flush()?;
    Ok(outcome)
}

fn part(out: &mut impl Write, files: [&[u8]; 2]) -> Result<()> {
    for bytes in files {
        out.write_all(&u32::try_from(bytes.len())?.to_be_bytes())?;
        out.write_all(bytes)?;
    }
    Ok(())
}

fn loaded(jdk: &Jdk, all: &PathBuf, jars: &[PathBuf]) -> Result<Vec<String>> {
    let program = jdk.compile(&programs::bytecode("Loaded.java"))?;
    let hits = jdk.compile(&programs::bytecode("Hits.java"))?;
    let path = std::env::join_paths([program, hits])?;
    let mut launch = Launch::class(jdk, path, "Loaded")
        .timeout(PATIENCE)
        .flags([
            "-Xmx3g",
            "-XX:+UnlockDiagnosticVMOptions",
            "-XX:+BytecodeVerificationLocal",
            "-XX:+BytecodeVerificationRemote",
        ])
        .arg(all);
    for jar in jars {
        launch = launch.arg(std::path::absolute(jar)?);
    }
    Ok(launch.start()?.lines_until_ready()?)
}

/// Returns the differences that the JDK's class file API finds.
fn class_file_differences(jdk: &Jdk, pairs: &PathBuf) -> Result<Vec<String>> {
    let mut java = Launch::source(jdk, programs::bytecode("Same.java"))
        .timeout(PATIENCE)
        .flag("-Xmx3g")
        .arg(pairs)
        .arg(HOOKS.owner)
        .start()?;
    Ok(java.lines_until_ready()?)
}

/// Returns the numbers in the line that begins with `word`.
fn figures<const N: usize>(lines: &[String], word: &str) -> Result<[u64; N]> {
    let line = lines.iter().find_map(|line| line.strip_prefix(word));
    let line = line.with_context(|| format!("the output contains no {word}: {lines:#?}"))?;
    let figures: Result<Vec<u64>, _> = line.split_whitespace().map(str::parse).collect();
    let figures = figures.with_context(|| line.to_owned())?;
    figures
        .try_into()
        .map_err(|other: Vec<u64>| anyhow::anyhow!("{word}: {other:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_parsed_from_a_line() {
        let lines = ["REFUSED a", "LOADED 3 2 1 0"].map(str::to_owned);
        assert_eq!(figures(&lines, "LOADED").ok(), Some([3, 2, 1, 0]));
        assert!(figures::<3>(&lines, "LOADED").is_err());
        assert!(figures::<4>(&lines, "SAME").is_err());
    }
}
