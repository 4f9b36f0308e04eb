//! Frames of samples with the names that they had before a shrinker shortened them.

use std::sync::Arc;

use heapdiff_mapping as mapping;
use heapdiff_mapping::Mapping;
use heapdiff_sites::{Frame, Line, Originals, OwnedFrame};

/// A mapping as what the agent writes asks for names: site tables in dumps, and traces.
#[derive(Clone, Debug)]
pub struct OriginalNames(pub Arc<Mapping>);

impl Originals for OriginalNames {
    fn class(&self, name: &str) -> Option<String> {
        self.0.class(name)
    }

    fn frames(&self, frame: &Frame<'_>) -> Option<Vec<OwnedFrame>> {
        let line = match frame.line {
            Line::At(line) => Some(line as usize),
            Line::Unknown | Line::Native => None,
        };
        let dumped = mapping::Frame::new(frame.class, frame.method, frame.file, line);
        let originals = self.0.frames(&dumped)?.into_iter();
        let originals = originals.map(|original| OwnedFrame {
            class: original.class.into_owned(),
            method: original.method.into_owned(),
            file: original.file.map(Into::into),
            line: match original.line.map(u32::try_from) {
                Some(Ok(line)) => Line::At(line),
                _ if line.is_some() => Line::Unknown,
                _ => frame.line,
            },
        });
        Some(originals.collect())
    }
}
