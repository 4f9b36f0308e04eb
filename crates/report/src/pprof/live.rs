//! A profile of live objects for profile servers: the class is the leaf frame, and the holder is a label.
//!
//! A profile server stores a time series for each combination of labels. If classes were labels, there would be
//! thousands of series. As leaf frames, classes are part of the flame graph, as in all flame graphs of heapdiff.

use std::io::{self, Write};

use super::builder::{self, Builder};
use super::proto::Profile;
use super::{About, to_i64};

/// Live objects of a stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveSample<'a> {
    /// Frames with file and line, innermost first. Empty if this sample is the sum of many stacks.
    pub frames: Vec<&'a str>,
    /// The allocated class. If this sample is the sum of many stacks, a common name for all their classes.
    pub class: &'a str,
    /// The field that keeps most of the objects alive; `None` if it is not known.
    pub holder: Option<&'a str>,
    /// Number of objects, and their bytes.
    pub live: [u64; 2],
}

/// Writes a gzipped profile with Go's sample types `inuse_objects` and `inuse_space`. Its time is `to_ms`. The `dumps`
/// become comments.
///
/// # Errors
/// Returns an error if the stream fails.
pub fn render_live(
    samples: &[LiveSample<'_>],
    about: &About,
    out: &mut dyn Write,
) -> io::Result<()> {
    builder::write(&profile(samples, about), out)
}

fn profile(samples: &[LiveSample<'_>], about: &About) -> Profile {
    let mut builder = Builder::new(&["inuse"]);
    for sample in samples {
        let leaf_first = std::iter::once(&sample.class).chain(&sample.frames);
        let location_id = leaf_first.map(|frame| builder.place(frame)).collect();
        let value = sample.live.map(to_i64).to_vec();
        let holder = sample.holder.map(|holder| ("holder", holder));
        builder.add_stack(location_id, value, holder);
    }
    let comments = about.dumps.iter().cloned();
    builder.finish(about, about.to_ms, "inuse", comments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_is_the_leaf_and_the_holder_a_label() {
        let samples = [
            LiveSample {
                frames: vec!["a.Foo.add(F.java:3)", "a.Main.main(M.java:1)"],
                class: "byte[]",
                holder: Some("a.Foo.all"),
                live: [3, 300],
            },
            LiveSample {
                class: "(others)",
                live: [u64::MAX, 1],
                ..LiveSample::default()
            },
        ];
        let about = About {
            from_ms: 60_000,
            to_ms: 120_000,
            interval_bytes: 512,
            dumps: vec!["service: shop".into()],
            warnings: Vec::new(),
        };
        let profile = profile(&samples, &about);
        let text = |at: i64| &*profile.string_table[at as usize];
        let types = profile.sample_type.iter().map(|t| text(t.r#type));
        assert_eq!(types.collect::<Vec<_>>(), ["inuse_objects", "inuse_space"]);
        let names = |sample: usize| -> Vec<&str> {
            let places = profile.sample[sample].location_id.iter();
            let functions = places.map(|&id| {
                let place = &profile.location[id as usize - 1];
                &profile.function[place.line[0].function_id as usize - 1]
            });
            functions.map(|f| text(f.name)).collect()
        };
        assert_eq!(names(0), ["byte[]", "a.Foo.add", "a.Main.main"]);
        assert_eq!(names(1), ["(others)"]);
        let labels: Vec<_> = profile.sample[0]
            .label
            .iter()
            .map(|l| (text(l.key), text(l.str)))
            .collect();
        assert_eq!(labels, [("holder", "a.Foo.all")]);
        assert!(profile.sample[1].label.is_empty());
        assert_eq!(profile.sample[0].value, [3, 300]);
        assert_eq!(profile.sample[1].value, [i64::MAX, 1]);
        assert_eq!(profile.time_nanos, 120_000_000_000);
    }
}
