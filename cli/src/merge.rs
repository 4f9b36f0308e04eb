//! Merges allocation sites of a trace. Sites with the same allocating frame in application code are merged, regardless
//! of the call paths to this frame. Usually a leak is fixed at this frame.

use std::collections::HashMap;

use heapdiff_diff::{allocating_frame, frame_text};
use heapdiff_trace::Stacks;
use heapdiff_trace::read::{Frame, Site};
use regex::Regex;

/// The unit that each row of a ranking describes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Merged {
    /// A class and the frame in application code that allocates it.
    #[default]
    Frame,
    /// A class.
    Class,
    /// A class and its allocation stack.
    Stack,
}

impl Merged {
    /// Returns the name of this unit in reports. The name of [`Self::Stack`] is `site`, as in reports of older
    /// versions.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Frame => "frame",
            Self::Class => "class",
            Self::Stack => "site",
        }
    }
}

/// Assigns sites to groups.
pub(crate) struct Groups<'a> {
    stacks: &'a Stacks,
    by: Merged,
    focus: Option<&'a Regex>,
    numbers: HashMap<String, i64>,
}

impl<'a> Groups<'a> {
    pub(crate) fn new(stacks: &'a Stacks, by: Merged, focus: Option<&'a Regex>) -> Self {
        Self {
            stacks,
            by,
            focus,
            numbers: HashMap::new(),
        }
    }

    /// Returns the number of the group to which a site belongs. The number is unique among the groups of the site's
    /// class. Returns `None` if the site does not match the focus.
    pub(crate) fn of(&mut self, site: &Site) -> Option<i64> {
        match (self.by, self.focus) {
            (Merged::Class, None) => return Some(0),
            (Merged::Stack, None) => return Some(site.id),
            _ => {}
        }
        let frames = in_focus(self.stacks, site, self.focus)?;
        let key = match self.by {
            Merged::Class => return Some(0),
            Merged::Stack => frames.join("\n"),
            Merged::Frame => allocating_frame(&frames)
                .map(str::to_owned)
                .unwrap_or_default(),
        };
        let next = i64::try_from(self.numbers.len()).unwrap_or(i64::MAX);
        Some(*self.numbers.entry(key).or_insert(next))
    }
}

/// Returns the frames of a site, innermost first. With a focus, the last frame of the result is the outermost frame
/// that matches, as in a comparison. Returns `None` if the focus matches no frame.
pub(crate) fn in_focus(stacks: &Stacks, site: &Site, focus: Option<&Regex>) -> Option<Vec<String>> {
    let text = |f: &Frame| frame_text(&f.class, &f.method, f.file.as_deref(), f.line);
    let frames = site
        .stack
        .map_or_else(Vec::new, |stack| stacks.frames(stack));
    let mut frames: Vec<String> = frames.into_iter().map(text).collect();
    if let Some(focus) = focus {
        let entry = frames.iter().rposition(|f| focus.is_match(f))?;
        frames.truncate(entry + 1);
    }
    Some(frames)
}

#[cfg(test)]
mod tests {
    use heapdiff_trace::synthetic::{Scene, SceneFrame, SceneSite, write};
    use heapdiff_trace::{Timeline, Trace, Window, rank_groups};

    use super::*;

    /// One class leaks through three callers of a method. Each caller accounts for less than half of the growth.
    #[test]
    fn call_paths_to_one_frame_become_one_row() {
        const PUT: SceneFrame<'static> = ("com.acme.Cache", "put", "Cache.java", 7);
        const NODE: SceneFrame<'static> = ("java.util.HashMap", "newNode", "HashMap.java", 1);
        const SITE: SceneSite<'static> = SceneSite {
            class: "com.acme.Entry",
            frames: &[],
            size: 64,
            live: |t| t * 160,
            churn: 0,
        };
        let sites = [
            SceneSite {
                frames: &[NODE, PUT, ("com.acme.A", "a", "A.java", 1)],
                ..SITE
            },
            SceneSite {
                frames: &[NODE, PUT, ("com.acme.B", "b", "B.java", 1)],
                ..SITE
            },
            SceneSite {
                frames: &[PUT, ("com.acme.B", "b", "B.java", 1)],
                ..SITE
            },
            SceneSite {
                frames: &[("com.acme.Other", "o", "O.java", 1)],
                ..SITE
            },
        ];
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        write(
            &path,
            &Scene {
                sites: &sites,
                ..Scene::default()
            },
        )
        .unwrap();
        let trace = Trace::open(&path).unwrap();
        let run = trace.runs().unwrap().remove(0);
        let timeline = Timeline::of(&trace, &run, Window::ALL).unwrap();
        let stacks = trace.stacks().unwrap();
        let merged = |by, focus: Option<&str>| {
            let focus = focus.map(|f| Regex::new(f).unwrap());
            let mut groups = Groups::new(&stacks, by, focus.as_ref());
            let ranking = rank_groups(&trace, &timeline, |site| groups.of(site)).unwrap();
            let mut sizes: Vec<usize> = ranking.candidates.iter().map(|c| c.sites.len()).collect();
            sizes.sort_unstable();
            sizes
        };
        assert_eq!(merged(Merged::Frame, None), [1, 3]);
        assert_eq!(merged(Merged::Class, None), [4]);
        assert_eq!(merged(Merged::Stack, None), [1; 4]);
        assert_eq!(
            merged(Merged::Frame, Some("Cache")),
            [3],
            "those out of focus are left out"
        );
        assert_eq!(
            merged(Merged::Stack, Some("Cache")),
            [1, 2],
            "callers do not matter"
        );
        assert_eq!(merged(Merged::Frame, Some("Nowhere")), [0; 0]);
    }
}
