//! Saves the evidence from a recording, for a summary file.
//!
//! The evidence of one recording takes at most [`MOST_BYTES`]. If there are too many samples, only every n-th sample is
//! saved, with n times its weight.

use std::collections::HashMap;
use std::hash::Hash;

use heapdiff_units::{counted, grouped};
use hprof::index::{Decoder, Encoder};

use crate::evidence::{Evidence, Seen};
use crate::matching::Fit;
use crate::stacks::{ChainId, FrameId, StackId, TextId};

/// Version of the format.
const VERSION: u64 = 1;
/// Maximum number of samples to save.
const MOST_SAMPLES: usize = 1 << 15;
/// Maximum size of the saved evidence in bytes.
const MOST_BYTES: usize = 4 << 20;
/// Maximum number of frames that are saved of one stack. The frames nearest to the allocation are saved.
const MOST_FRAMES: usize = 256;
/// Maximum number of bytes in the names of all frames.
const MOST_NAMES: usize = 64 << 20;
/// Maximum number of samples that one entry represents.
const MOST_COUNT: u64 = 1000;

impl Evidence {
    /// Encodes the evidence as bytes, without the description of the JVM and without its heap dumps. So match the
    /// evidence with a dump first.
    ///
    /// Cost: time linear in the size of the evidence.
    #[must_use]
    pub fn to_saved(&self) -> Vec<u8> {
        let mut most = MOST_SAMPLES;
        loop {
            let saved = self.saved(most);
            if saved.len() <= MOST_BYTES || most == 0 {
                return saved;
            }
            most /= 2;
        }
    }

    /// Decodes the bytes from [`Evidence::to_saved`]. Returns `None` if they are damaged or have another version.
    #[must_use]
    pub fn from_saved(bytes: &[u8]) -> Option<Self> {
        if bytes.len() > MOST_BYTES {
            return None;
        }
        let r = &mut Decoder(bytes);
        if r.u64()? != VERSION {
            return None;
        }
        let mut evidence = Self {
            span_ns: r.option(|r| Some((signed(r)?, signed(r)?)))?,
            digest: Some(r.u64()?),
            notes: r.list(Decoder::text)?,
            listed_ns: r.option(signed)?,
            ..Self::default()
        };
        let stacks = &mut evidence.stacks;
        let texts: Vec<TextId> = r.list(|r| Some(stacks.texts.id(&r.text()?)))?;
        let text = |r: &mut Decoder<'_>| texts.get(index(r)?).copied();
        let mut names = 0;
        let frames: Vec<FrameId> = r.list(|r| {
            let (class, method) = (text(r)?, text(r)?);
            // Each frame stores its own copy of its name, even if several frames have the same long name.
            let length = |id| stacks.texts.text(id).len();
            names += length(class) + length(method);
            if names > MOST_NAMES {
                return None;
            }
            let line = r.u32()?.cast_signed();
            let [class, method] = [class, method].map(|id| stacks.texts.text(id).to_owned());
            Some(stacks.frame(&class, &method, line))
        })?;
        let frame = |r: &mut Decoder<'_>| frames.get(index(r)?).copied();
        let ids: Vec<StackId> = r.list(|r| Some(stacks.stack(r.list(frame)?)))?;
        let chains: Vec<ChainId> = r.list(|r| Some(stacks.chain(r.list(text)?)))?;
        evidence.seen = r.list(|r| {
            Some(Seen {
                at_ns: r.option(signed)?,
                survived: r.flag()?,
                class: text(r)?,
                length: r.option(Decoder::u32)?,
                size: r.option(Decoder::u64)?,
                weight: r.u64()?.max(1),
                count: r.u64()?.min(MOST_COUNT),
                stack: ids.get(index(r)?).copied()?,
                chain: chains.get(index(r)?).copied()?,
            })
        })?;
        r.0.is_empty().then_some(evidence)
    }

    fn saved(&self, most: usize) -> Vec<u8> {
        let (seen, note) = self.thinned(most);
        let mut w = Encoder::default();
        w.u64(VERSION);
        w.option(self.span_ns, |w, (from, to)| {
            w.u64(from.cast_unsigned());
            w.u64(to.cast_unsigned());
        });
        w.u64(self.digest());
        let notes: Vec<&String> = self.notes.iter().chain(&note).collect();
        w.list(&notes, |w, note| w.text(note));
        w.option(self.listed_ns.map(i64::cast_unsigned), Encoder::u64);
        // Save only those strings, frames, stacks and chains that a saved sample needs.
        let mut ids = Ids::default();
        let keys = self.stacks.frame_keys();
        let mut samples = Encoder::default();
        samples.list(&seen, |w, seen| ids.sample(w, seen));
        let mut chains = Encoder::default();
        chains.list(&ids.chains.list.clone(), |w, chain| {
            let links = self.stacks.links(*chain);
            w.list(links, |w, link| w.u32(ids.texts.id(*link)));
        });
        let mut stacks = Encoder::default();
        stacks.list(&ids.stacks.list.clone(), |w, stack| {
            let frames = self.stacks.frames(*stack);
            let frames = frames.get(..MOST_FRAMES).unwrap_or(frames);
            w.list(frames, |w, frame| w.u32(ids.frames.id(*frame)));
        });
        let mut frames = Encoder::default();
        frames.list(&ids.frames.list.clone(), |w, frame| {
            let (class, method, line) = keys.get(*frame as usize).copied().unwrap_or_default();
            w.u32(ids.texts.id(class));
            w.u32(ids.texts.id(method));
            w.u32(line.cast_unsigned());
        });
        w.list(&ids.texts.list, |w, text| {
            w.text(self.stacks.texts.text(*text));
        });
        for part in [frames, stacks, chains, samples] {
            w.0.extend(part.0);
        }
        w.0
    }

    /// Returns sentences for readers of a report: what the recording lacks, and how many samples the saved evidence
    /// leaves out.
    #[must_use]
    pub fn saved_notes(&self) -> Vec<String> {
        let (_, note) = self.thinned(MOST_SAMPLES);
        self.notes.iter().cloned().chain(note).collect()
    }

    /// Returns a number that identifies the recording. Evidence from a summary file keeps the number of the complete
    /// evidence, even if the file lacks some of the samples.
    #[must_use]
    pub fn digest(&self) -> u64 {
        self.digest.unwrap_or_else(|| {
            let mut w = Encoder::default();
            w.option(self.span_ns, |w, (from, to)| {
                w.u64(from.cast_unsigned());
                w.u64(to.cast_unsigned());
            });
            w.list(&self.seen, |w, seen| {
                w.option(seen.at_ns.map(i64::cast_unsigned), Encoder::u64);
                w.flag(seen.survived);
                w.u64(seen.weight);
            });
            hprof::bytes::hash(&w.0)
        })
    }

    /// Returns at most `most` samples. Samples of live objects have priority. If samples are left out, also returns a
    /// sentence with their number.
    fn thinned(&self, most: usize) -> (Vec<Seen>, Option<String>) {
        let all = self.seen.len();
        if all <= most {
            return (self.seen.clone(), None);
        }
        let (mut live, mut others): (Vec<Seen>, Vec<Seen>) =
            self.seen.iter().partition(|seen| seen.survived);
        every(&mut live, most);
        every(&mut others, most - live.len());
        live.append(&mut others);
        let note = format!(
            "the summary has {} of {}",
            grouped(live.len() as u64),
            counted(all as u64, "sample")
        );
        (live, Some(note))
    }
}

/// Reduces the samples to at most `most`. Entries of profiles have very different weights. Samples that weigh more than
/// twice the mean weight of a remaining sample are kept unchanged. Of the other samples, every n-th is kept, with n
/// times its weight.
fn every(samples: &mut Vec<Seen>, most: usize) {
    if samples.len() <= most {
        return;
    }
    if most == 0 {
        samples.clear();
        return;
    }
    let total: u128 = samples.iter().map(|seen| u128::from(seen.weight)).sum();
    let large = u64::try_from(2 * total / most as u128).unwrap_or(u64::MAX);
    let (mut kept, rest): (Vec<Seen>, Vec<Seen>) =
        samples.iter().partition(|seen| seen.weight > large);
    // Each sample in `kept` weighs more than `2 * total / most`. So `kept` has fewer than `most / 2` samples, and the
    // divisor is positive.
    let step = rest.len().div_ceil(most - kept.len()).max(1);
    kept.extend(rest.iter().step_by(step).map(|seen| Seen {
        weight: seen.weight.saturating_mul(step as u64),
        ..*seen
    }));
    *samples = kept;
}

impl Fit {
    /// All values, each with the word that represents it in summary files.
    const SAVED: [(Self, &'static str); 6] = {
        const fn time(version: bool, command: bool) -> Fit {
            Fit::Time { version, command }
        }
        [
            (Self::DumpEvent, "dump-event"),
            (time(true, true), "time"),
            (time(true, false), "time-version"),
            (time(false, true), "time-command"),
            (time(false, false), "time-only"),
            (Self::Unknown, "none"),
        ]
    };

    /// Returns the word that represents the value in summary files.
    #[must_use]
    pub fn to_saved(self) -> &'static str {
        let mut all = Self::SAVED.into_iter();
        all.find(|&(fit, _)| fit == self)
            .map_or("none", |(_, word)| word)
    }

    /// Returns the value that a word in a summary file represents, or `None`.
    #[must_use]
    pub fn from_saved(word: &str) -> Option<Self> {
        let mut all = Self::SAVED.into_iter();
        all.find(|&(_, own)| own == word).map(|(fit, _)| fit)
    }
}

/// Ids in the saved evidence, in the order of their first use.
#[derive(Default)]
struct NewIds<T> {
    list: Vec<T>,
    known: HashMap<T, u32>,
}

impl<T: Copy + Eq + Hash> NewIds<T> {
    fn id(&mut self, old: T) -> u32 {
        let list = &mut self.list;
        *self.known.entry(old).or_insert_with(|| {
            list.push(old);
            (list.len() - 1) as u32
        })
    }
}

#[derive(Default)]
struct Ids {
    texts: NewIds<TextId>,
    frames: NewIds<FrameId>,
    stacks: NewIds<StackId>,
    chains: NewIds<ChainId>,
}

impl Ids {
    fn sample(&mut self, w: &mut Encoder, seen: &Seen) {
        w.option(seen.at_ns.map(i64::cast_unsigned), Encoder::u64);
        w.flag(seen.survived);
        w.u32(self.texts.id(seen.class));
        w.option(seen.length, Encoder::u32);
        w.option(seen.size, Encoder::u64);
        w.u64(seen.weight);
        w.u64(seen.count);
        w.u32(self.stacks.id(seen.stack));
        w.u32(self.chains.id(seen.chain));
    }
}

fn signed(d: &mut Decoder<'_>) -> Option<i64> {
    Some(d.u64()?.cast_signed())
}

fn index(d: &mut Decoder<'_>) -> Option<usize> {
    usize::try_from(d.u32()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(samples: u32) -> Evidence {
        let mut evidence = Evidence {
            span_ns: Some((-5, i64::MAX)),
            notes: vec!["events are missing".to_owned()],
            listed_ns: Some(7),
            ..Evidence::default()
        };
        let stacks = &mut evidence.stacks;
        stacks.texts.id("not used");
        let frames = [("a.B", "add", 31), ("a.C", "run", -1)];
        let frames = frames.map(|(class, method, line)| stacks.frame(class, method, line));
        let stack = stacks.stack(frames.to_vec());
        let class = stacks.texts.id("a.Order[]");
        let chain = stacks.chain(vec![class]);
        evidence.seen = (0..samples)
            .map(|at| Seen {
                at_ns: (at % 2 == 0).then_some(i64::from(at)),
                survived: at % 4 == 0,
                class,
                length: (at % 3 == 0).then_some(at),
                size: (at % 5 == 0).then_some(u64::from(at)),
                weight: u64::from(at) + 1,
                count: 1,
                stack,
                chain: if at % 7 == 0 { chain } else { 0 },
            })
            .collect();
        evidence
    }

    /// Returns the samples as text, with strings and frames instead of ids.
    fn described(evidence: &Evidence) -> Vec<String> {
        let stacks = &evidence.stacks;
        let of = |seen: &Seen| {
            let frames = stacks.frames(seen.stack).iter();
            let frames: Vec<_> = frames
                .map(|&frame| stacks.get(frame).unwrap().text.clone())
                .collect();
            let chain = stacks.links(seen.chain).iter();
            let chain: Vec<&str> = chain.map(|&link| stacks.texts.text(link)).collect();
            let class = stacks.texts.text(seen.class);
            let numbers = (seen.length, seen.size, seen.weight, seen.count);
            format!(
                "{:?} {} {class} {numbers:?} {frames:?} {chain:?}",
                seen.at_ns, seen.survived
            )
        };
        evidence.seen.iter().map(of).collect()
    }

    #[test]
    fn saved_evidence_is_the_same() {
        let whole = evidence(40);
        let saved = whole.to_saved();
        let same = Evidence::from_saved(&saved).unwrap();
        assert_eq!(described(&same), described(&whole));
        assert_eq!(
            (same.span_ns, same.listed_ns),
            (whole.span_ns, whole.listed_ns)
        );
        assert_eq!(same.notes, whole.notes);
        assert!(!saved.windows(8).any(|part| part == b"not used"));
    }

    #[test]
    fn heavy_entries_of_a_profile_are_kept() {
        let mut samples = evidence(10_001).seen;
        for seen in &mut samples {
            seen.weight = 2;
        }
        samples[5_000].weight = 1 << 30;
        every(&mut samples, 100);
        assert!(samples.len() <= 100, "{}", samples.len());
        let heavy: Vec<u64> = samples
            .iter()
            .map(|s| s.weight)
            .filter(|&w| w > 1000)
            .collect();
        assert_eq!(heavy, [1 << 30]);
    }

    #[test]
    fn saved_evidence_has_the_number_of_the_recording() {
        let whole = evidence(MOST_SAMPLES as u32 * 2);
        let saved = Evidence::from_saved(&whole.to_saved()).unwrap();
        assert_eq!(saved.digest(), whole.digest());
        assert_ne!(saved.digest(), evidence(40).digest());
    }

    #[test]
    fn the_kind_of_match_is_saved() {
        for (fit, _) in Fit::SAVED {
            assert_eq!(Fit::from_saved(fit.to_saved()), Some(fit));
        }
        assert_eq!(Fit::from_saved("other"), None);
    }

    #[test]
    fn many_samples_are_thinned_and_live_objects_come_first() {
        let saved = evidence(MOST_SAMPLES as u32 * 2).to_saved();
        assert!(saved.len() <= MOST_BYTES);
        let read = Evidence::from_saved(&saved).unwrap();
        assert!(read.seen.len() <= MOST_SAMPLES);
        let (live, _) = read.counts();
        assert_eq!(live, MOST_SAMPLES as u64 / 2);
        let note = "the summary has 32,768 of 65,536 samples";
        assert_eq!(read.notes.last().map(String::as_str), Some(note));
        let weight =
            |evidence: &Evidence| evidence.seen.iter().map(|seen| seen.weight).sum::<u64>();
        let whole = weight(&evidence(MOST_SAMPLES as u32 * 2));
        assert!(weight(&read).abs_diff(whole) < whole / 100);
    }

    #[test]
    fn changed_bytes_are_refused_or_read_without_a_panic() {
        let saved = evidence(20).to_saved();
        for end in 0..saved.len() {
            assert!(Evidence::from_saved(&saved[..end]).is_none(), "{end}");
        }
        for at in 0..saved.len() {
            for bit in 0..8 {
                let mut changed = saved.clone();
                changed[at] ^= 1 << bit;
                if let Some(odd) = Evidence::from_saved(&changed) {
                    let _ = odd.to_saved();
                    described(&odd);
                }
            }
        }
    }
}
