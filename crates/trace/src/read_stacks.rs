//! Reads the stacks of a trace: all stacks into memory, or a single stack frame by frame.

use std::collections::HashMap;
use std::sync::Arc;

use heapdiff_sites::Line;

use crate::TraceError;
use crate::read::{Frame, Trace, optional_text, text};

/// Maximum number of frames of a stack that are read; the agent records no more.
const DEEPEST: usize = 1024;

/// The innermost frame of a stack, and the id of the calling stack. If methods were inlined into the frame, there are
/// several frames, innermost first.
pub type Innermost = (Vec<Frame>, Option<i64>);

impl Trace {
    /// Reads all stacks into memory.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn stacks(&self) -> Result<Stacks, TraceError> {
        let classes = self.recorded_classes()?;
        let unknown: Arc<str> = "".into();
        let mut names: HashMap<String, Arc<str>> = HashMap::new();
        let mut shared = |name: String| match names.get(&name) {
            Some(name) => Arc::clone(name),
            None => {
                let shared: Arc<str> = name.as_str().into();
                names.insert(name, Arc::clone(&shared));
                shared
            }
        };
        let frames = self.list(
            "SELECT id, class, method, file, line FROM frame",
            (),
            |row| {
                let class = self.id(row, 1).and_then(|id| classes.get(&id));
                let frame = Frame {
                    class: Arc::clone(class.unwrap_or(&unknown)),
                    method: shared(text(row, 2)),
                    file: optional_text(row, 3).map(&mut shared),
                    line: self.id(row, 4),
                };
                (self.id(row, 0).unwrap_or(0), self.originals(frame))
            },
        )?;
        let links = self.list("SELECT id, parent, frame FROM stack", (), |row| {
            (
                self.id(row, 0).unwrap_or(0),
                (self.id(row, 1), self.id(row, 2).unwrap_or(0)),
            )
        })?;
        Ok(Stacks {
            frames: frames.into_iter().collect(),
            links: links.into_iter().collect(),
        })
    }

    /// Returns the original frames of a stored frame, innermost first. There are several if methods were inlined.
    pub(crate) fn originals(&self, frame: Frame) -> Vec<Frame> {
        let Some(names) = &self.names else {
            return vec![frame];
        };
        let recorded = heapdiff_sites::Frame {
            class: &frame.class,
            method: &frame.method,
            file: frame.file.as_deref(),
            line: match frame.line {
                Some(..=-1) => Line::Native,
                Some(line) => u32::try_from(line).map_or(Line::Unknown, Line::At),
                None => Line::Unknown,
            },
        };
        let Some(originals) = names.frames(&recorded) else {
            return vec![frame];
        };
        let originals = originals.into_iter().map(|original| Frame {
            class: original.class.into(),
            method: original.method.into(),
            file: original.file.map(Arc::from),
            line: match original.line {
                Line::At(line) => Some(line.into()),
                Line::Unknown => None,
                Line::Native => Some(-1),
            },
        });
        originals.collect()
    }

    /// Returns the innermost frame of a stack, and the id of the calling stack. Use this function to read a few stacks
    /// from a file with many stacks.
    ///
    /// Cost: one lookup in each of the tables `stack`, `frame` and `class`.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn frames(&self, stack: i64) -> Result<Option<Innermost>, TraceError> {
        let sql = "SELECT s.parent, c.name, f.method, f.file, f.line FROM stack AS s
            JOIN frame AS f ON f.id = s.frame LEFT JOIN class AS c ON c.id = f.class WHERE s.id = ?1";
        let found = self.list(sql, [stack], |row| {
            let frame = Frame {
                class: text(row, 1).into(),
                method: text(row, 2).into(),
                file: optional_text(row, 3).map(Arc::from),
                line: self.id(row, 4),
            };
            (self.originals(frame), self.id(row, 0))
        })?;
        Ok(found.into_iter().next())
    }
}

/// The stacks of a trace, in memory.
#[derive(Clone, Debug, Default)]
pub struct Stacks {
    frames: HashMap<i64, Vec<Frame>>,
    /// For each stack: the id of the calling stack, and the id of the innermost frame.
    links: HashMap<i64, (Option<i64>, i64)>,
}

impl Stacks {
    /// Returns the frames of a stack, innermost first. Each stack's row refers to the row of the calling stack. In a
    /// damaged trace, these references may form a cycle, so at most 1024 rows are read. If methods were inlined into a
    /// frame, their frames are added. Missing frames are left out.
    #[must_use]
    pub fn frames(&self, stack: i64) -> Vec<&Frame> {
        let mut frames = Vec::new();
        let mut at = Some(stack);
        for _ in 0..DEEPEST {
            let Some(&(parent, frame)) = at.and_then(|id| self.links.get(&id)) else {
                break;
            };
            frames.extend(self.frames.get(&frame).into_iter().flatten());
            at = parent;
        }
        frames
    }
}
