//! Reads recordings for `--recording`, and matches them with dumps.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use heapdiff_diff::{SavedRecording, Summary};
use heapdiff_join::evidence::EvidenceError;
use heapdiff_join::{Dump, Evidence, Fit, Join, matching};
use hprof::Snapshot;

use crate::failure::{Failure, Result};
use crate::jfr;
use crate::job::Setup;
use crate::mapping::originals;
use crate::messages;

/// Recordings with their paths.
pub(crate) type Recordings = Vec<(PathBuf, Evidence)>;

/// Reads recordings and applies the `--mapping` to their names.
pub(crate) fn read(setup: &Setup, files: &[PathBuf]) -> Result<Recordings> {
    let names = originals(setup.analysis.mapping.as_ref());
    let open = |path: &PathBuf| {
        let evidence = Evidence::open(path, names.as_deref()).map_err(|e| failure(path, &e))?;
        Ok((path.clone(), evidence))
    };
    files.iter().map(open).collect()
}

fn failure(path: &Path, error: &EvidenceError) -> Failure {
    match error {
        EvidenceError::Jfr(error) => jfr::failure(path, error),
        EvidenceError::Io(error) => Failure::bad_input(format!(
            "{}: {}",
            path.display(),
            crate::failure::system_message(error)
        )),
        EvidenceError::Profile(error) => Failure::bad_input(format!("{}: {error}", path.display())),
    }
}

/// Joins recordings with dumps. `summaries` are the summaries of the dumps, oldest first. `last` is the last dump, if
/// it is open. Returns `None` if there are no recordings.
///
/// If the dumps are of several JVMs, `recordings` are matched with the last dump alone. If one of `recordings` is not
/// of the JVM with which it is matched, returns an error.
///
/// A recording that is saved in a summary is joined only if the summary is of the same JVM as the last dump. Otherwise,
/// a warning is printed.
pub(crate) fn join(
    recordings: Recordings,
    summaries: &[Summary],
    last: Option<&Snapshot>,
    are_of_several_jvms: bool,
) -> Result<Option<Join>> {
    let skipped = if are_of_several_jvms {
        summaries.len().saturating_sub(1)
    } else {
        0
    };
    let mut matched = matched(recordings, &summaries[skipped..], last)?;
    // Several summaries can contain the same recording. Only the copy in the last of these summaries is used.
    for (at, summary) in summaries.iter().enumerate().rev() {
        for saved in &summary.recordings {
            if summaries[at + 1..]
                .iter()
                .any(|s| s.recordings.contains(saved))
            {
                continue;
            }
            if !is_of_last_jvm(summary, summaries, last) {
                messages::warn(&format!(
                    "{}: the recording {} in this summary is not used, because nothing shows that the last dump is of the same JVM",
                    summary.info.path, saved.path
                ));
                continue;
            }
            let evidence = Evidence::from_saved(&saved.evidence);
            let found = evidence.zip(Fit::from_saved(&saved.matched));
            let (evidence, fit) = found.ok_or_else(|| damaged_failure(summary, saved))?;
            // If the same recording was given on the command line, the saved copy is not needed: the recording on the
            // command line has all samples.
            let digest = evidence.digest();
            if matched.iter().any(|(_, other, _)| other.digest() == digest) {
                continue;
            }
            matched.push((saved.path.clone(), evidence, fit));
        }
    }
    let taken: Vec<u64> = summaries.iter().map(|s| s.info.taken_ms).collect();
    Ok((!matched.is_empty()).then(|| Join::new(matched, &taken)))
}

/// True if a summary is of the same JVM as the last dump.
fn is_of_last_jvm(summary: &Summary, summaries: &[Summary], last: Option<&Snapshot>) -> bool {
    let Some(newest) = summaries.last() else {
        return false;
    };
    let command = command(last).map(|command| hprof::bytes::hash(command.as_bytes()));
    let commands = summary
        .command_hash()
        .zip(command.or(newest.command_hash()));
    summary.info.path == newest.info.path
        || (newest.is_of_jvm_of(summary) && commands.is_none_or(|(a, b)| a == b))
}

fn command(dump: Option<&Snapshot>) -> Option<String> {
    let [command] = dump?.system_properties(["sun.java.command"]);
    command
}

fn damaged_failure(summary: &Summary, saved: &SavedRecording) -> Failure {
    Failure::bad_input(format!(
        "{}: cannot use this summary: the recording {} in it is damaged, or another version of heapdiff wrote it",
        summary.info.path, saved.path
    ))
    .with_hint("write a new summary: heapdiff summarize DUMP --recording FILE -o OUT.heap")
}

/// Saves recordings in the summary of a dump. Returns an error if a recording is not of the dump's JVM.
pub(crate) fn save(recordings: Recordings, summary: &mut Summary, dump: &Snapshot) -> Result<()> {
    let matched = matched(recordings, std::slice::from_ref(summary), Some(dump))?;
    for (path, evidence, fit) in &matched {
        let notes = evidence.saved_notes();
        for note in fit
            .note()
            .into_iter()
            .chain(notes.iter().map(String::as_str))
        {
            messages::warn(&format!("{path}: {note}"));
        }
    }
    let saved = matched
        .into_iter()
        .map(|(path, evidence, fit)| SavedRecording {
            path,
            matched: fit.to_saved().to_owned(),
            evidence: evidence.to_saved(),
        });
    summary.recordings = saved.collect();
    Ok(())
}

/// Matches recordings with the dumps of one JVM. Returns an error if a recording is not of this JVM.
fn matched(
    recordings: Recordings,
    summaries: &[Summary],
    last: Option<&Snapshot>,
) -> Result<Vec<(String, Evidence, Fit)>> {
    if recordings.is_empty() {
        return Ok(Vec::new());
    }
    let command = command(last);
    let summary_command = summaries.last().and_then(Summary::command_hash);
    let described: Vec<Dump> = summaries
        .iter()
        .map(|summary| (&summary.info, summary.unpacked_bytes()))
        .map(|(info, unpacked)| Dump {
            path: info.path.clone(),
            bytes: info.bytes,
            unpacked: match unpacked {
                Some(bytes) => Some(bytes as u32),
                None => unpacked_size(Path::new(&info.path)),
            },
            taken_ms: info.taken_ms,
            version: info.jvm.clone(),
            command: command.clone(),
            command_hash: summary_command.filter(|_| command.is_none()),
        })
        .collect();
    let mut matched = Vec::new();
    for (path, evidence) in recordings {
        let shown = path.display().to_string();
        let fit = matching::fit(&evidence, &described).map_err(|why| {
            Failure::bad_input(format!("{shown}: not a recording of the JVM of the dumps: {why}"))
                .with_hint("record the JVM that you dump, and run `jcmd PID JFR.dump filename=rec.jfr` after the last heap dump")
        })?;
        matched.push((shown, evidence, fit));
    }
    Ok(matched)
}

/// Returns the decompressed size of a gzipped file modulo 2^32, which its last four bytes contain. Returns `None` if
/// the file is not gzipped or cannot be read.
fn unpacked_size(path: &Path) -> Option<u32> {
    let mut file = File::open(path).ok()?;
    let (mut magic, mut size) = ([0; 2], [0; 4]);
    file.read_exact(&mut magic).ok()?;
    if magic != [0x1f, 0x8b] {
        return None;
    }
    file.seek(SeekFrom::End(-4)).ok()?;
    file.read_exact(&mut size).ok()?;
    Some(u32::from_le_bytes(size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gzipped_file_ends_with_its_size() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata");
        assert!(unpacked_size(&root.join("before.hprof.gz")).is_some_and(|size| size > 100_000));
        assert_eq!(unpacked_size(&root.join("README.md")), None);
    }
}
