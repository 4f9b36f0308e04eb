//! Exports the tables with original names in place of obfuscated ones.
//!
//! Ids of existing rows do not change. If methods were inlined into a frame, the frame becomes several frames. The
//! existing row then contains the innermost of these frames. The other frames, the stacks between them, and classes
//! that are not in the trace get new ids, which are larger than all existing ones.

use std::collections::HashMap;
use std::sync::Arc;

use heapdiff_sites::Originals;
use rusqlite::types::ValueRef;

use crate::export::Table;
use crate::read::{Frame, optional_text, text};
use crate::{CountedLine, Trace, TraceError};

/// A row of the table `frame`.
struct FrameRow {
    id: i64,
    class: i64,
    frame: Frame,
}

/// The tables `class` and `frame` with original names. Also lists the frames that must be replaced in the table
/// `stack`, because they become several frames.
#[derive(Default)]
struct Renamed {
    classes: Vec<(i64, Arc<str>)>,
    by_name: HashMap<Arc<str>, i64>,
    frames: Vec<FrameRow>,
    /// For each frame with inlined methods: the ids of the frames that it becomes, innermost first.
    inlined: HashMap<i64, Vec<i64>>,
}

/// Returns the value of a column.
fn value<'a>(columns: &[(&str, ValueRef<'a>)], name: &str) -> ValueRef<'a> {
    let found = columns.iter().find(|(column, _)| *column == name);
    found.map_or(ValueRef::Null, |(_, value)| *value)
}

fn word(text: &str) -> ValueRef<'_> {
    ValueRef::Text(text.as_bytes())
}

fn number(number: Option<i64>) -> ValueRef<'static> {
    number.map_or(ValueRef::Null, ValueRef::Integer)
}

/// Replaces names in rows, and passes the rows to a callback.
struct Rows<'a, F> {
    table: &'a Table,
    take: F,
}

impl<F: FnMut(&[ValueRef<'_>]) -> bool> Rows<'_, F> {
    fn give(&mut self, columns: &[(&str, ValueRef<'_>)]) -> bool {
        let all = self.table.columns.iter();
        let row: Vec<ValueRef<'_>> = all.map(|c| value(columns, &c.name)).collect();
        (self.take)(&row)
    }
}

impl Renamed {
    /// Cost: keeps all classes and frames in memory.
    fn from_trace(trace: &Trace) -> Result<Self, TraceError> {
        let mut this = Self::default();
        let recorded = trace.recorded_classes()?;
        let mut classes: Vec<(i64, Arc<str>)> = trace.classes()?.into_iter().collect();
        classes.sort_unstable();
        for (id, name) in &classes {
            this.by_name.entry(Arc::clone(name)).or_insert(*id);
        }
        let after = |last: Option<i64>| last.unwrap_or(0).max(0).saturating_add(1);
        let mut next_class = after(classes.last().map(|class| class.0));
        this.classes = classes;
        let sql = "SELECT id, class, method, file, line FROM frame ORDER BY id";
        let unknown: Arc<str> = "".into();
        let frames = trace.list(sql, (), |row| {
            let class = trace.id(row, 1).unwrap_or(0);
            let name = recorded.get(&class).unwrap_or(&unknown);
            let frame = Frame {
                class: Arc::clone(name),
                method: text(row, 2).into(),
                file: optional_text(row, 3).map(Arc::from),
                line: trace.id(row, 4),
            };
            let id = trace.id(row, 0).unwrap_or(0);
            (id, class, trace.originals(frame))
        })?;
        let mut next = after(frames.last().map(|frame| frame.0));
        for (id, class, originals) in frames {
            let many = originals.len() > 1;
            let mut ids = Vec::new();
            for (depth, frame) in originals.into_iter().enumerate() {
                let own = match depth {
                    0 => id,
                    _ => next,
                };
                next = next.saturating_add(i64::from(depth > 0));
                ids.push(own);
                let class = match (this.by_name.get(&frame.class), many) {
                    (Some(&id), _) => id,
                    // The class of the frame is missing in the table.
                    (None, false) if frame.class.is_empty() => class,
                    (None, _) => {
                        let id = next_class;
                        next_class = next_class.saturating_add(1);
                        this.classes.push((id, Arc::clone(&frame.class)));
                        this.by_name.insert(Arc::clone(&frame.class), id);
                        id
                    }
                };
                this.frames.push(FrameRow {
                    id: own,
                    class,
                    frame,
                });
            }
            if many {
                this.inlined.insert(id, ids);
            }
        }
        Ok(this)
    }
}

impl Trace {
    /// Passes the rows of a table to a callback, as [`each_row`](Self::each_row) does, but with original names, files
    /// and lines. The stacks then also have the inlined frames. If the table contains neither names nor stacks, returns
    /// false without calling the callback.
    pub(crate) fn for_each_renamed_row(
        &self,
        names: &dyn Originals,
        table: &Table,
        mut take: impl FnMut(&[ValueRef<'_>]) -> bool,
    ) -> Result<bool, TraceError> {
        let at = |name: &str| table.columns.iter().position(|c| c.name == name);
        match &*table.name {
            "class_total" => self.each_stored_row(table, |values| {
                let mut row = values.to_vec();
                let class = at("class").and_then(|at| row.get_mut(at));
                let original = class.as_ref().and_then(|v| names.class(v.as_str().ok()?));
                if let (Some(class), Some(original)) = (class, &original) {
                    *class = word(original);
                }
                take(&row)
            })?,
            "counted_site" => self.each_stored_row(table, |values| {
                let text = |name: &str| {
                    let value = at(name).and_then(|at| values.get(at));
                    value
                        .map_or("", |value| value.as_str().unwrap_or(""))
                        .to_owned()
                };
                let recorded = at("line").and_then(|at| values.get(at)?.as_i64().ok());
                let mut line = CountedLine {
                    class: text("class"),
                    method: text("method"),
                    line: recorded.and_then(|line| u64::try_from(line).ok()),
                    allocated: text("allocated"),
                    objects: 0,
                    bytes: None,
                };
                self.rename(&mut line);
                let original = [
                    ("class", word(&line.class)),
                    ("method", word(&line.method)),
                    (
                        "line",
                        number(line.line.and_then(|n| i64::try_from(n).ok())),
                    ),
                    ("allocated", word(&line.allocated)),
                ];
                let mut row = values.to_vec();
                for (name, value) in original {
                    if let Some(place) = at(name).and_then(|at| row.get_mut(at)) {
                        *place = value;
                    }
                }
                take(&row)
            })?,
            "class" => {
                let mut rows = Rows { table, take };
                for (id, name) in Renamed::from_trace(self)?.classes {
                    if !rows.give(&[("id", ValueRef::Integer(id)), ("name", word(&name))]) {
                        break;
                    }
                }
            }
            "frame" => {
                let mut rows = Rows { table, take };
                let mut all = Renamed::from_trace(self)?.frames;
                all.sort_by_key(|row| row.id);
                for FrameRow { id, class, frame } in all {
                    let more = rows.give(&[
                        ("id", ValueRef::Integer(id)),
                        ("class", ValueRef::Integer(class)),
                        ("method", word(&frame.method)),
                        ("file", frame.file.as_deref().map_or(ValueRef::Null, word)),
                        ("line", number(frame.line)),
                    ]);
                    if !more {
                        break;
                    }
                }
            }
            "stack" => {
                self.each_stack_row(&Renamed::from_trace(self)?, &mut Rows { table, take })?
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn each_stack_row<F: FnMut(&[ValueRef<'_>]) -> bool>(
        &self,
        renamed: &Renamed,
        rows: &mut Rows<'_, F>,
    ) -> Result<(), TraceError> {
        let last = self.list("SELECT max(id) FROM stack", (), |row| self.id(row, 0))?;
        let last = last.into_iter().flatten().next();
        let mut next = last.unwrap_or(0).max(0).saturating_add(1);
        let mut more = true;
        self.each(
            "SELECT id, parent, frame FROM stack ORDER BY id",
            (),
            |row| {
                let (id, parent, frame) = (self.id(row, 0), self.id(row, 1), self.id(row, 2));
                let own = [frame.unwrap_or(0)];
                let frames = renamed
                    .inlined
                    .get(&own[0])
                    .map_or(&own[..], |all| &all[..]);
                let mut at = id;
                for (depth, &frame) in (1..).zip(frames) {
                    let caller = if depth == frames.len() {
                        parent
                    } else {
                        next = next.saturating_add(1);
                        Some(next - 1)
                    };
                    more = more
                        && rows.give(&[
                            ("id", number(at)),
                            ("parent", number(caller)),
                            ("frame", ValueRef::Integer(frame)),
                        ]);
                    at = caller;
                }
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use heapdiff_sites::{Line, OwnedFrame};

    use super::*;
    use crate::synthetic::{self, Scene, SceneSite};

    /// The original name of class `a` is `com.acme.Own`. Each frame in `a` becomes two frames: `inner` of the class
    /// `com.acme.Other`, which the trace does not contain, was inlined into `outer` of the class `com.acme.Own`.
    #[derive(Debug)]
    struct Names;

    impl Originals for Names {
        fn class(&self, name: &str) -> Option<String> {
            (name == "a").then(|| "com.acme.Own".to_owned())
        }

        fn frames(&self, frame: &heapdiff_sites::Frame<'_>) -> Option<Vec<OwnedFrame>> {
            let at = |class: &str, method: &str, line| OwnedFrame {
                class: class.to_owned(),
                method: method.to_owned(),
                file: Some("Own.java".to_owned()),
                line,
            };
            (frame.class == "a").then(|| {
                let inner = at("com.acme.Other", "inner", Line::At(3));
                vec![inner, at("com.acme.Own", "outer", frame.line)]
            })
        }
    }

    fn rows(path: &Path, names: bool, table: &str) -> Vec<String> {
        let mut trace = Trace::open(path).unwrap();
        if names {
            trace.set_names(Arc::new(Names));
        }
        let tables = trace.tables().unwrap();
        let table = tables.iter().find(|t| t.name == table).unwrap();
        let mut all = Vec::new();
        let shown = |value: &ValueRef<'_>| match value {
            ValueRef::Integer(n) => n.to_string(),
            ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
            _ => "-".to_owned(),
        };
        trace
            .each_row(table, |values| {
                let values: Vec<String> = values.iter().map(shown).collect();
                all.push(values.join(" "));
                true
            })
            .unwrap();
        all
    }

    #[test]
    fn a_frame_of_inlined_methods_becomes_several_rows() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        let site = |frames| SceneSite {
            class: "a",
            frames,
            size: 16,
            live: |n| n,
            churn: 0,
        };
        let scene = Scene {
            sites: &[
                site(&[
                    ("a", "f", "SourceFile", 7),
                    ("x.Main", "main", "Main.java", 1),
                ]),
                site(&[("x.Main", "main", "Main.java", 1)]),
            ],
            ticks: 2,
            ..Scene::default()
        };
        synthetic::write(&path, &scene).unwrap();
        let own = rows(&path, false, "class");
        assert_eq!(own.iter().filter(|row| row.ends_with(" a")).count(), 1);
        let named = rows(&path, true, "class");
        let kept = |row: &&String| row.ends_with(" com.acme.Own");
        assert_eq!(named.len(), own.len() + 1, "{named:?}");
        assert_eq!(named.iter().filter(kept).count(), 1, "{named:?}");
        assert!(named.last().unwrap().ends_with(" com.acme.Other"));
        let frames = rows(&path, true, "frame");
        assert_eq!(frames.len(), rows(&path, false, "frame").len() + 1);
        assert!(frames[1].ends_with(" inner Own.java 3"), "{frames:?}");
        let outer = frames.last().unwrap();
        assert!(outer.ends_with(" outer Own.java 7"), "{frames:?}");
        // A program that reads the exported stack gets all original frames of the stack.
        let stacks = rows(&path, true, "stack");
        let of = |stack: &str| -> Vec<String> {
            let mut named = Vec::new();
            let mut at = stack.to_owned();
            while let Some(row) = stacks.iter().find(|row| row.starts_with(&format!("{at} "))) {
                let cells: Vec<&str> = row.split(' ').collect();
                let id = format!("{} ", cells[2]);
                let frame = frames.iter().find(|row| row.starts_with(&id)).unwrap();
                named.push(frame.split(' ').nth(2).unwrap().to_owned());
                at = cells[1].to_owned();
            }
            named
        };
        let sites = rows(&path, true, "site");
        let stacks_of: Vec<Vec<String>> = sites
            .iter()
            .map(|site| of(site.split(' ').nth(2).unwrap()))
            .collect();
        assert!(stacks_of.contains(&["inner", "outer", "main"].map(str::to_owned).to_vec()));
        assert!(stacks_of.contains(&vec!["main".to_owned()]));
        // Tables that contain no names are exported unchanged.
        assert_eq!(sites, rows(&path, false, "site"));
    }
}
