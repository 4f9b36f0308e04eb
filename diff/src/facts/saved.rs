//! Encodes and decodes the evidence about a dump that its summary file stores.

use std::collections::BTreeMap;

use hprof::index::{Decoder, Encoder};
use hprof::records::Reference;

use super::{ClassFacts, Facts, HolderFacts, PlaceFacts, StepClass};
use crate::evidence::bounds::{FieldLimit, Maximum, StaticLimits};
use crate::evidence::detect::{EqualKeys, Slices};
use crate::evidence::usage::Watched;
use crate::joined::ContentLine;
use crate::names::{KINDS, Label};
use crate::summary::kept::figure;
use crate::suspect::{PathsToShared, SharedPath, Title};
use crate::trie::StepId;

/// The kinds of references. The index of a kind is its number in the file.
const REFERENCES: [Reference; 5] = [
    Reference::No,
    Reference::Soft,
    Reference::Final,
    Reference::Weak,
    Reference::Phantom,
];

impl Facts {
    pub(crate) fn encode(&self, e: &mut Encoder) {
        e.list(&self.classes, |e, class| {
            e.text(&class.name);
            e.option(class.superclass, Encoder::u32);
            e.flag(class.is_of_boot);
            let kind = REFERENCES.iter().position(|k| *k == class.reference);
            e.u32(kind.unwrap_or_default() as u32);
            e.option(class.limits.as_ref(), |e, limits| {
                e.list(&limits.fields, |e, (field, value)| {
                    e.text(field);
                    e.u64(*value);
                });
                e.u64(limits.collections);
            });
        });
        e.list(&self.of_step, |e, class| {
            let (kind, class) = match class {
                StepClass::Unknown => (0, 0),
                StepClass::Instance(class) => (1, *class),
                StepClass::Represented(class) => (2, *class),
            };
            e.0.push(kind);
            e.u32(class);
        });
        e.u64(self.places.len() as u64);
        for (step, place) in &self.places {
            e.u32(step.0);
            place.encode(e);
        }
        e.u64(self.containers.len() as u64);
        for class in &self.containers {
            e.text(class);
        }
        e.u64(self.least_bytes);
        e.u64(self.generated_alike);
        e.flag(self.shows_parked_frames);
        e.u64(self.unwatched);
        e.u64(self.unpacked_bytes);
        e.option(self.command, Encoder::u64);
    }

    /// Decodes the evidence that [`Facts::encode`] wrote to a summary file, for a trie with `steps` nodes.
    pub(crate) fn decode(d: &mut Decoder<'_>, steps: usize) -> Option<Self> {
        let mut number = 0;
        let classes = d.list(|d| {
            let class = ClassFacts {
                name: d.text()?,
                // A superclass precedes its subclasses, so the chain of superclasses ends.
                superclass: d.option(|d| d.u32().filter(|&s| s < number))?,
                is_of_boot: d.flag()?,
                reference: *REFERENCES.get(d.u32()? as usize)?,
                limits: d.option(|d| {
                    Some(StaticLimits {
                        fields: d.list(|d| Some((d.text()?, d.u64()?)))?,
                        collections: figure(d)?,
                    })
                })?,
            };
            number += 1;
            Some(class)
        })?;
        let class = |d: &mut Decoder<'_>| d.u32().filter(|&c| (c as usize) < classes.len());
        let of_step = d.list(|d| {
            let kind = *d.0.first()?;
            d.0 = d.0.get(1..)?;
            match kind {
                0 => d.u32().map(|_| StepClass::Unknown),
                1 => class(d).map(StepClass::Instance),
                2 => class(d).map(StepClass::Represented),
                _ => None,
            }
        })?;
        let places: BTreeMap<StepId, PlaceFacts> = d
            .list(|d| {
                let step = d.u32().filter(|&s| (s as usize) < steps)?;
                Some((StepId(step), PlaceFacts::decode(d)?))
            })?
            .into_iter()
            .collect();
        (of_step.len() == steps).then_some(())?;
        Some(Self {
            classes,
            of_step,
            places,
            containers: d.list(Decoder::text)?.into_iter().collect(),
            least_bytes: figure(d)?,
            generated_alike: figure(d)?,
            shows_parked_frames: d.flag()?,
            unwatched: figure(d)?,
            unpacked_bytes: figure(d)?,
            command: d.option(Decoder::u64)?,
        })
    }
}

impl PlaceFacts {
    fn encode(&self, e: &mut Encoder) {
        let pair = |e: &mut Encoder, pair: [u64; 2]| pair.iter().for_each(|&n| e.u64(n));
        for flag in [
            self.is_mostly_one,
            self.have_referents,
            self.is_linked_queue,
        ] {
            e.flag(flag);
        }
        e.option(self.lack_queue, Encoder::flag);
        e.option(self.held_elsewhere, Encoder::flag);
        e.option(self.empty_slots, pair);
        e.option(self.self_holding, pair);
        e.option(self.cancelled, pair);
        e.u64(self.collections);
        e.list(&self.limits, |e, limit| {
            e.text(&limit.field);
            e.u64(limit.smallest);
            e.u64(limit.largest);
        });
        e.option(self.maximum.as_ref(), |e, maximum| {
            e.text(&maximum.field);
            e.u64(maximum.bound);
            e.flag(maximum.is_weighed);
        });
        e.option(self.equal_keys.as_ref(), |e, keys| {
            e.u64(keys.checked);
            e.u64(keys.alike);
            e.text(&keys.class);
        });
        e.option(self.slices, |e, slices| {
            for figure in [slices.small, slices.checked, slices.used, slices.pinned] {
                e.u64(figure);
            }
        });
        e.option(self.watched, |e, watched| watched.encode(e));
        e.option(self.title.as_ref(), |e, title| {
            e.text(&title.name);
            e.text(&title.class);
        });
        e.option(self.paths.as_ref(), |e, paths| {
            e.list(paths, |e, of_step| {
                e.u64(of_step.at as u64);
                e.option(of_step.of_one, Encoder::u64);
                e.list(&of_step.paths, |e, path| {
                    e.list(&path.labels, |e, (text, kind)| {
                        e.text(text);
                        let kind = KINDS.iter().position(|k| k == kind);
                        e.u32(kind.unwrap_or(KINDS.len()) as u32);
                    });
                    e.u64(path.objects);
                    e.flag(path.is_usual);
                });
            });
        });
        e.option(self.holder.as_ref(), |e, holder| {
            e.text(&holder.name);
            e.option(holder.other.as_ref(), |e, other| e.text(other));
            e.option(holder.id.as_ref(), |e, id| e.text(id));
        });
        e.option(self.content.as_ref(), |e, content| {
            e.list(content, |e, line| {
                e.text(&line.class);
                e.option(line.lengths.clone(), |e, lengths| {
                    e.u32(*lengths.start());
                    e.u32(*lengths.end());
                });
                e.u64(line.objects);
                e.u64(line.bytes);
            });
        });
    }

    fn decode(d: &mut Decoder<'_>) -> Option<Self> {
        let pair = |d: &mut Decoder<'_>| Some([figure(d)?, figure(d)?]);
        Some(Self {
            is_mostly_one: d.flag()?,
            have_referents: d.flag()?,
            is_linked_queue: d.flag()?,
            lack_queue: d.option(Decoder::flag)?,
            held_elsewhere: d.option(Decoder::flag)?,
            empty_slots: d.option(pair)?,
            self_holding: d.option(pair)?,
            cancelled: d.option(pair)?,
            collections: figure(d)?,
            limits: d.list(|d| {
                Some(FieldLimit {
                    field: d.text()?,
                    smallest: d.u64()?,
                    largest: d.u64()?,
                })
            })?,
            maximum: d.option(|d| {
                Some(Maximum {
                    field: d.text()?,
                    bound: d.u64()?,
                    is_weighed: d.flag()?,
                })
            })?,
            equal_keys: d.option(|d| {
                Some(EqualKeys {
                    checked: figure(d)?,
                    alike: figure(d)?,
                    class: d.text()?,
                })
            })?,
            slices: d.option(|d| {
                Some(Slices {
                    small: figure(d)?,
                    checked: figure(d)?,
                    used: d.u64()?,
                    pinned: d.u64()?,
                })
            })?,
            watched: d.option(Watched::decode)?,
            title: d.option(|d| {
                Some(Title {
                    name: d.text()?,
                    class: d.text()?,
                })
            })?,
            paths: d.option(|d| d.list(paths_to_shared))?,
            holder: d.option(|d| {
                Some(HolderFacts {
                    name: d.text()?,
                    other: d.option(Decoder::text)?,
                    id: d.option(Decoder::text)?,
                })
            })?,
            content: d.option(|d| {
                d.list(|d| {
                    Some(ContentLine {
                        class: d.text()?,
                        lengths: d.option(|d| Some(d.u32()?..=d.u32()?))?,
                        objects: figure(d)?,
                        bytes: figure(d)?,
                    })
                })
            })?,
        })
    }
}

fn paths_to_shared(d: &mut Decoder<'_>) -> Option<PathsToShared> {
    let label = |d: &mut Decoder<'_>| -> Option<Label> {
        Some((d.text()?, *KINDS.get(d.u32()? as usize)?))
    };
    Some(PathsToShared {
        at: d.usize()?,
        of_one: d.option(figure)?,
        paths: d.list(|d| {
            Some(SharedPath {
                labels: d.list(label)?,
                objects: figure(d)?,
                is_usual: d.flag()?,
            })
        })?,
    })
}
