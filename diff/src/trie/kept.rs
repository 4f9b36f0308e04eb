//! Encodes a trie for summary files.

use hprof::ObjectIndex;
use hprof::index::{Decoder, Encoder};

use super::{SAMPLES, Step, StepId, Trie};
use crate::names::{KINDS, Name, Names};
use crate::samples::population::SizeClasses;
use crate::summary::kept::figure;

impl Trie {
    /// Writes the trie nodes with all data that a comparison needs. The lists of children are not written, because the
    /// reader can build them from the parents.
    pub(crate) fn encode(&self, e: &mut Encoder) {
        e.list(self.names.labels(), |e, (text, kind)| {
            e.text(text);
            let kind = KINDS.iter().position(|k| k == kind);
            e.u32(kind.unwrap_or(KINDS.len()) as u32);
        });
        e.list(&self.steps, |e, step| {
            for number in [step.via.0, step.class.0, step.parent.0] {
                e.u32(number);
            }
            for figure in [step.objects, step.shallow_bytes, step.retained_bytes] {
                e.u64(figure);
            }
            e.list(&step.samples, |e, sample| e.u32(sample.0));
            step.sizes.encode(e);
        });
    }

    /// Reads what [`Trie::encode`] wrote, for a dump with `objects` objects.
    pub(crate) fn decode(d: &mut Decoder<'_>, objects: u64) -> Option<Self> {
        let mut names = Names::default();
        let labels = d.list(|d| {
            let label = (d.text()?, *KINDS.get(d.u32()? as usize)?);
            let next = Name(names.labels().len() as u32);
            (names.intern(&label.0, label.1) == next).then_some(())
        })?;
        let name = |d: &mut Decoder<'_>| d.u32().filter(|&n| (n as usize) < labels.len()).map(Name);
        let sample =
            |d: &mut Decoder<'_>| d.u32().filter(|&o| u64::from(o) < objects).map(ObjectIndex);
        let mut number = 0;
        let mut steps = d.list(|d| {
            let step = Step {
                via: name(d)?,
                class: name(d)?,
                // The root is its own parent.
                parent: StepId(d.u32().filter(|&p| p < number || (p == 0 && number == 0))?),
                objects: figure(d)?,
                shallow_bytes: figure(d)?,
                retained_bytes: figure(d)?,
                children: Vec::new(),
                samples: d.list(sample).filter(|s| s.len() <= SAMPLES)?,
                of: None,
                sizes: SizeClasses::decode(d)?,
                cyclic: false,
            };
            number += 1;
            Some(step)
        })?;
        for step in 1..steps.len() {
            let parent = steps[step].parent;
            steps[parent.0 as usize].children.push(StepId(step as u32));
        }
        let mut trie = Self { steps, names };
        trie.sort_children();
        (trie.len() > 0).then_some(trie)
    }
}
