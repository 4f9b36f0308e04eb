//! A profile of the objects that were allocated in a period, and of the objects among them that are alive at the end of
//! the period.

use std::io::{self, Write};

use super::builder::{self, Builder};
use super::proto::Profile;
use super::{About, to_i64};

/// The objects that a stack allocated in a period, and the objects among them that are alive at the end of the period.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeapSample<'a> {
    /// Frames with file and line, innermost first.
    pub frames: Vec<&'a str>,
    /// The allocated class.
    pub class: &'a str,
    /// Number of allocated objects, and their bytes.
    pub allocated: [u64; 2],
    /// Number of live objects, and their bytes.
    pub live: [u64; 2],
}

/// Writes a gzipped profile with the sample types of Go's heap profiles, which profile servers accept: `alloc_objects`,
/// `alloc_space`, `inuse_objects` and `inuse_space`. The profile begins at `from_ms` and lasts until `to_ms`. The
/// `dumps` become comments.
///
/// # Errors
/// Returns an error if the stream fails.
pub fn render_heap(
    samples: &[HeapSample<'_>],
    about: &About,
    out: &mut dyn Write,
) -> io::Result<()> {
    builder::write(&profile(samples, about), out)
}

fn profile(samples: &[HeapSample<'_>], about: &About) -> Profile {
    let mut builder = Builder::new(&["alloc", "inuse"]);
    for sample in samples {
        let location_id = sample.frames.iter().map(|f| builder.place(f)).collect();
        let figures = sample.allocated.into_iter().chain(sample.live);
        builder.sample(location_id, figures.map(to_i64).collect(), sample.class);
    }
    let comments = about.dumps.iter().cloned();
    builder.finish(about, about.from_ms, "inuse", comments)
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;

    #[test]
    fn a_slice_reads_back() {
        let samples = [
            HeapSample {
                frames: vec!["a.Foo.add(F.java:3)", "a.Main.main(M.java:1)"],
                class: "byte[]",
                allocated: [10, 1000],
                live: [3, 300],
            },
            HeapSample {
                frames: vec!["a.Foo.add(F.java:5)"],
                class: "a.B",
                allocated: [0, 0],
                live: [u64::MAX, 1],
            },
        ];
        let about = About {
            from_ms: 60_000,
            to_ms: 120_000,
            interval_bytes: 512,
            dumps: vec!["service: shop".into()],
            warnings: Vec::new(),
        };
        let profile = Profile::decode(&profile(&samples, &about).encode_to_vec()[..]).unwrap();
        let text = |at: i64| &*profile.string_table[at as usize];
        let types: Vec<_> = profile
            .sample_type
            .iter()
            .map(|t| (text(t.r#type), text(t.unit)))
            .collect();
        assert_eq!(
            types,
            [
                ("alloc_objects", "count"),
                ("alloc_space", "bytes"),
                ("inuse_objects", "count"),
                ("inuse_space", "bytes")
            ]
        );
        assert_eq!(profile.sample[0].value, [10, 1000, 3, 300]);
        assert_eq!(profile.sample[1].value, [0, 0, i64::MAX, 1]);
        assert_eq!(profile.sample[0].location_id, [1, 2]);
        assert_eq!((profile.location.len(), profile.function.len()), (3, 2));
        assert_eq!(
            (profile.time_nanos, profile.duration_nanos),
            (60_000_000_000, 60_000_000_000)
        );
        assert_eq!(text(profile.sample[1].label[0].str), "a.B");
    }
}
