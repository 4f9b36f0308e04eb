//! Profiles for `go tool pprof` and other readers of its format (profile.proto, gzipped).
//!
//! For a comparison, the sample types are `growth`, `before` and `after`, each in objects and in bytes. Growth may be
//! negative. pprof accepts negative values, because its option for a base profile produces them, too. For one dump, the
//! only sample type is `inuse`. The allocated class is the label `class`.

mod builder;
mod heap;
mod live;
mod proto;

use std::io::{self, Write};

use heapdiff_diff::Report;

use crate::stacks::{Stacks, signed_difference};
use builder::Builder;
pub use heap::{HeapSample, render_heap};
pub use live::{LiveSample, render_live};
use proto::Profile;

const NANOS_PER_MS: i64 = 1_000_000;

/// Header data of a profile.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// When the first dump was taken, in milliseconds since 1970.
    pub from_ms: u64,
    /// When the last dump was taken, in milliseconds since 1970.
    pub to_ms: u64,
    /// Mean bytes between samples.
    pub interval_bytes: u64,
    /// Paths of the dumps.
    pub dumps: Vec<String>,
    /// Warnings about the dumps.
    pub warnings: Vec<String>,
}

impl About {
    /// Returns the general data of a profile of a comparison: times, paths and warnings of the dumps, and the sampling
    /// interval.
    #[must_use]
    pub fn from_report(report: &Report, interval_bytes: u64) -> Self {
        let taken = |s: Option<&heapdiff_diff::SnapshotInfo>| s.map_or(0, |s| s.taken_ms);
        Self {
            from_ms: taken(report.snapshots.first()),
            to_ms: taken(report.snapshots.last()),
            interval_bytes,
            dumps: report.snapshots.iter().map(|s| s.path.clone()).collect(),
            warnings: report.warnings.clone(),
        }
    }
}

/// Writes a gzipped profile of stacks whose names are frames with file and line.
///
/// # Errors
/// Returns an error if the stream fails.
pub fn render(stacks: &Stacks, about: &About, out: &mut dyn Write) -> io::Result<()> {
    builder::write(&profile(stacks, about), out)
}

fn profile(stacks: &Stacks, about: &About) -> Profile {
    let kinds = match about.dumps.len() {
        1 => &["inuse"][..],
        _ => &["growth", "before", "after"],
    };
    let mut builder = Builder::new(kinds);
    // A frame occurs in many stacks, so the location of each frame is looked up only once.
    let mut places = vec![None; stacks.names.len()];
    for line in &stacks.lines {
        let (before, after) = (line.before, line.after);
        let [before_objects, after_objects] = [before.objects, after.objects].map(to_i64);
        let [before_bytes, after_bytes] = [before.bytes, after.bytes].map(to_i64);
        let value = match about.dumps.len() {
            1 => vec![after_objects, after_bytes],
            _ => vec![
                signed_difference(after.objects, before.objects),
                line.growth(),
                before_objects,
                before_bytes,
                after_objects,
                after_bytes,
            ],
        };
        if value.iter().all(|&v| v == 0) {
            continue;
        }
        let frames = line.frames.iter().rev().map(|&f| f as usize);
        let mut place =
            |f: usize| *places[f].get_or_insert_with(|| builder.place(&stacks.names[f]));
        let location_id = frames.map(&mut place).collect();
        builder.sample(location_id, value, stacks.class(line));
    }
    let dumps = about.dumps.iter();
    let warnings = about.warnings.iter();
    let comments = dumps
        .map(|dump| format!("heap dump: {dump}"))
        .chain(warnings.map(|w| format!("warning: {w}")));
    builder.finish(about, about.to_ms, kinds[0], comments)
}

fn to_i64(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use prost::Message;

    use super::*;
    use crate::stacks::Names;
    use crate::tests::allocated;

    #[test]
    fn a_profile_reads_back() {
        let all = allocated(&[
            (
                "a.Main.main(M.java:1) a.Foo.add(F.java:3)",
                "X",
                [1000, 5000],
            ),
            ("a.Main.main(M.java:2)", "Y", [9000, 1000]),
            ("a.Main.main(M.java:7)", "Z", [0, 0]),
        ]);
        let stacks = Stacks::new(&all, None, Names::Frames);
        let about = About {
            from_ms: 5,
            to_ms: 9,
            interval_bytes: 512,
            dumps: vec!["a.hprof".into(), "b.hprof".into()],
            warnings: vec!["b.hprof is damaged".into()],
        };
        let mut bytes = Vec::new();
        render(&stacks, &about, &mut bytes).unwrap();
        let mut again = Vec::new();
        render(&stacks, &about, &mut again).unwrap();
        assert_eq!(bytes, again);
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(&bytes[..])
            .read_to_end(&mut plain)
            .unwrap();
        let profile = Profile::decode(&plain[..]).unwrap();
        assert_eq!(profile.string_table[0], "");
        let text = |at: i64| &*profile.string_table[at as usize];
        assert_eq!(text(profile.default_sample_type), "growth_space");
        assert_eq!(
            (profile.time_nanos, profile.duration_nanos),
            (9_000_000, 4_000_000)
        );
        let values: Vec<&[i64]> = profile.sample.iter().map(|s| &*s.value).collect();
        assert_eq!(
            values,
            [
                &[0, 4000, 1, 1000, 1, 5000][..],
                &[0, -8000, 1, 9000, 1, 1000]
            ]
        );
        let of = |id: u64| {
            let location = profile.location.iter().find(|l| l.id == id).unwrap();
            let line = &location.line[0];
            let function = profile.function.iter().find(|f| f.id == line.function_id);
            let function = function.unwrap();
            (text(function.name), text(function.filename), line.line)
        };
        let frames: Vec<_> = profile.sample[0]
            .location_id
            .iter()
            .map(|&l| of(l))
            .collect();
        assert_eq!(
            frames,
            [("a.Foo.add", "F.java", 3), ("a.Main.main", "M.java", 1)]
        );
        assert_eq!(text(profile.sample[0].label[0].str), "X");
        // All lines of a method belong to one function.
        assert_eq!(profile.function.len(), 2);
        assert_eq!(text(profile.comment[0]), "heap dump: a.hprof");
    }
}
