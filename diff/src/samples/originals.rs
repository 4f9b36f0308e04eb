//! Restores the original names in the frames of samples, if a shrinker (ProGuard, R8) has shortened them.

use std::sync::Arc;

use heapdiff_sites::{Frame, Line, Originals, OwnedFrame};
use hprof::{NameMapping, answers};

/// Adapts a mapping to the form of names that the agent writes into site tables of dumps and into traces.
#[derive(Clone, Debug)]
pub struct OriginalNames(pub Arc<dyn NameMapping>);

impl Originals for OriginalNames {
    fn class(&self, name: &str) -> Option<String> {
        self.0.class(name)
    }

    fn frames(&self, frame: &Frame<'_>) -> Option<Vec<OwnedFrame>> {
        let originals = self.0.frames(&answers::Frame {
            class: frame.class.to_owned(),
            method: frame.method.to_owned(),
            file: frame.file.map(str::to_owned),
            line: match frame.line {
                Line::At(line) => answers::Line::Number(line),
                Line::Unknown => answers::Line::Unknown,
                Line::Native => answers::Line::Native,
            },
        })?;
        let originals = originals.into_iter().map(|original| OwnedFrame {
            class: original.class,
            method: original.method,
            file: original.file,
            line: match original.line {
                answers::Line::Number(line) => Line::At(line),
                answers::Line::Native => Line::Native,
                answers::Line::Unknown | answers::Line::Compiled => Line::Unknown,
            },
        });
        Some(originals.collect())
    }
}
