//! Original names of classes and methods that a shrinker (such as ProGuard or R8) renamed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use crate::counts::{CountedSite, Counts};
use crate::decode::{Frame, Line, Method, SiteTable};

/// A frame that owns its strings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedFrame {
    /// See [`Frame::class`].
    pub class: String,
    /// See [`Frame::method`].
    pub method: String,
    /// See [`Frame::file`].
    pub file: Option<String>,
    /// See [`Frame::line`].
    pub line: Line,
}

/// A map from obfuscated names to original ones.
pub trait Originals: std::fmt::Debug + Send + Sync {
    /// Returns the original name of a class, or `None` if it was not renamed.
    fn class(&self, name: &str) -> Option<String>;
    /// Returns the original frames of a frame, innermost first. There are several if the shrinker inlined methods.
    /// Returns `None` if no name in the frame was renamed.
    fn frames(&self, frame: &Frame<'_>) -> Option<Vec<OwnedFrame>>;

    /// Returns the original class, method and line of a line of code. If the shrinker inlined methods there, returns
    /// the class, method and line of the innermost inlined method. Returns `None` if no name was renamed.
    fn place(&self, class: &str, method: &str, line: Option<u32>) -> Option<OwnedFrame> {
        let frame = Frame {
            class,
            method,
            file: None,
            line: line.map_or(Line::Unknown, Line::At),
        };
        self.frames(&frame)?.into_iter().next()
    }
}

impl Counts {
    /// Replaces obfuscated names of classes and lines by the original ones. Sites at the same original line are merged.
    /// The sites are sorted by bytes, descending.
    pub fn rename(&mut self, names: &dyn Originals) {
        for class in &mut self.refused_names {
            if let Some(original) = names.class(class) {
                *class = original;
            }
        }
        for method in &mut self.left_alone_names {
            if let Some((class, name)) = method.rsplit_once('.')
                && let Some(place) = names.place(class, name, None)
            {
                *method = format!("{}.{}", place.class, place.method);
            }
        }
        let mut merged: BTreeMap<_, (u64, Option<u64>)> = BTreeMap::new();
        for mut site in self.sites.drain(..) {
            if let Some(place) = names.place(&site.class, &site.method, site.line) {
                (site.class, site.method) = (place.class, place.method);
                site.line = match place.line {
                    Line::At(line) => Some(line),
                    Line::Unknown | Line::Native => None,
                };
            }
            let allocated = names.class(&site.allocated).unwrap_or(site.allocated);
            let key = (site.line, site.class, site.method, allocated);
            let sum = merged.entry(key).or_insert((0, Some(0)));
            sum.0 = sum.0.saturating_add(site.objects);
            let both = sum.1.zip(site.bytes);
            sum.1 = both.map(|(a, b)| a.saturating_add(b));
        }
        let sites = merged.into_iter().map(|(key, (objects, bytes))| {
            let (line, class, method, allocated) = key;
            CountedSite {
                class,
                method,
                line,
                allocated,
                objects,
                bytes,
            }
        });
        self.sites = sites.collect();
        // The sort is stable, so sites with equal bytes and objects stay in the order of their lines and names.
        self.sites.sort_by_key(|s| Reverse((s.bytes, s.objects)));
    }
}

/// Maximum number of frames of a stack, including the frames of inlined methods.
pub const DEEPEST: usize = 1 << 14;

impl SiteTable {
    /// Replaces obfuscated names of classes and frames by the original ones. A frame into which methods were inlined is
    /// replaced by several frames.
    pub fn rename(&mut self, names: &dyn Originals) {
        let mut renaming = Renaming {
            last: 0,
            ids: HashMap::new(),
        };
        let types: Vec<(u32, String)> = self
            .types
            .keys()
            .filter_map(|&id| Some((id, names.class(self.class(id)?)?)))
            .collect();
        for (id, class) in types {
            let name = renaming.string(&mut self.strings, class);
            self.types.insert(id, name);
        }
        let renamed: Vec<(u32, Vec<OwnedFrame>)> = self
            .frames
            .keys()
            .filter_map(|&id| Some((id, names.frames(&self.frame(id))?)))
            .collect();
        let (mut new_method, mut new_frame) = (0, 0);
        let mut expanded: HashMap<u32, Vec<u32>> = HashMap::new();
        for (id, frames) in renamed {
            let mut ids = Vec::with_capacity(frames.len());
            for frame in frames {
                let file = frame.file.map(|f| renaming.string(&mut self.strings, f));
                let method = Method {
                    class: renaming.string(&mut self.strings, frame.class),
                    name: renaming.string(&mut self.strings, frame.method),
                    file: file.unwrap_or(0),
                };
                new_method = unused(&self.methods, new_method);
                new_frame = unused(&self.frames, new_frame);
                self.methods.insert(new_method, method);
                self.frames
                    .insert(new_frame, (new_method, frame.line.number()));
                ids.push(new_frame);
            }
            expanded.insert(id, ids);
        }
        for (_, frames) in self.sites.values_mut() {
            if frames.iter().any(|frame| expanded.contains_key(frame)) {
                let ids = frames.iter().flat_map(|frame| match expanded.get(frame) {
                    Some(ids) => &ids[..],
                    None => std::slice::from_ref(frame),
                });
                *frames = ids.copied().take(DEEPEST).collect();
            }
        }
    }
}

/// Adds strings to a table. Each distinct string is added once.
struct Renaming {
    last: u32,
    ids: HashMap<String, u32>,
}

impl Renaming {
    fn string(&mut self, strings: &mut HashMap<u32, Box<str>>, text: String) -> u32 {
        if let Some(&id) = self.ids.get(&text) {
            return id;
        }
        self.last = unused(strings, self.last);
        strings.insert(self.last, text.as_str().into());
        self.ids.insert(text, self.last);
        self.last
    }
}

/// Returns the first unused id after `after`.
fn unused<T>(map: &HashMap<u32, T>, after: u32) -> u32 {
    let free = (after.saturating_add(1)..=u32::MAX).find(|id| !map.contains_key(id));
    free.unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::Batch;

    #[derive(Debug)]
    struct Names;

    impl Originals for Names {
        fn class(&self, name: &str) -> Option<String> {
            (name == "a.b").then(|| "com.acme.Foo".to_owned())
        }

        fn frames(&self, frame: &Frame<'_>) -> Option<Vec<OwnedFrame>> {
            let at = |class: &str, method: &str, line| OwnedFrame {
                class: class.to_owned(),
                method: method.to_owned(),
                file: Some("Foo.java".to_owned()),
                line,
            };
            (frame.class == "a.b").then(|| {
                let inner = at("com.acme.Bar", "get", Line::At(7));
                vec![inner, at("com.acme.Foo", "add", frame.line)]
            })
        }
    }

    #[test]
    fn original_names_replace_short_ones() {
        let mut batch = Batch::new();
        for (id, text) in [
            (1, "a.b"),
            (2, "c"),
            (3, "java.util.List"),
            (u32::MAX, "main"),
        ] {
            batch.string(id, text);
        }
        batch.method(1, 1, 2, 0);
        batch.method(2, 3, 2, 0);
        batch.frame(1, 1, 42);
        batch.frame(2, 2, -1);
        batch.site(1, &[1, 2, 1], true);
        batch.site(2, &[2], false);
        batch.class(1, 1);
        batch.class(2, 3);
        let mut table = SiteTable::decode([&batch.finish()[..]]).unwrap();
        table.rename(&Names);
        let frames = |site| -> Vec<String> {
            let text = |f: Frame<'_>| format!("{}.{} {:?}", f.class, f.method, f.line);
            table.frames(site).map(text).collect()
        };
        let add = ["com.acme.Bar.get At(7)", "com.acme.Foo.add At(42)"];
        let get = ["java.util.List.c Native"];
        assert_eq!(frames(1), [&add[..], &get[..], &add[..]].concat());
        assert_eq!(frames(2), get);
        assert!(table.site(1).unwrap().cut);
        assert_eq!(table.class(1), Some("com.acme.Foo"));
        assert_eq!(table.class(2), Some("java.util.List"));
        assert_eq!(table.string(u32::MAX), Some("main"));
    }

    #[test]
    fn counts_of_one_source_line_are_merged() {
        let site = |class: &str, line, objects, bytes| CountedSite {
            class: class.to_owned(),
            method: "c".to_owned(),
            line,
            allocated: "a.b".to_owned(),
            objects,
            bytes,
        };
        let mut counts = Counts {
            left_alone_names: vec!["a.b.c".to_owned(), "x.y".to_owned()],
            refused_names: vec!["a.b".to_owned()],
            sites: vec![
                site("x", None, 1, Some(100)),
                site("a.b", Some(4), 2, Some(80)),
                site("a.b", Some(9), 3, Some(70)),
            ],
            ..Counts::default()
        };
        counts.rename(&Names);
        let told: Vec<String> = counts
            .sites
            .iter()
            .map(|s| format!("{}.{}:{:?} {}", s.class, s.method, s.line, s.allocated))
            .collect();
        let inlined = "com.acme.Bar.get:Some(7) com.acme.Foo";
        assert_eq!(told, [inlined, "x.c:None com.acme.Foo"]);
        assert_eq!(
            (counts.sites[0].objects, counts.sites[0].bytes),
            (5, Some(150))
        );
        assert_eq!(counts.left_alone_names, ["com.acme.Bar.get", "x.y"]);
        assert_eq!(counts.refused_names, ["com.acme.Foo"]);
        // If the bytes of one of two merged sites are unknown, the sum is unknown.
        counts.sites = vec![
            site("a.b", Some(4), 2, None),
            site("a.b", Some(9), 3, Some(70)),
        ];
        counts.rename(&Names);
        assert_eq!(counts.sites[0].bytes, None);
    }
}
