//! Extracts the data of a recording that is needed to find the stacks of suspects. The data are samples of allocations
//! and of live objects, the JVM's heap dumps, the identity of the JVM, and warnings about data that the recording
//! lacks.

use std::fs::File;
use std::io;
use std::path::Path;

use heapdiff_jfr::{Event, HeapDump, JfrError, Jvm, MANY_OLD, MOST_LIVE, Recording, Sample};
use heapdiff_sites::Originals;
use heapdiff_units::{Size, counted};
use rustc_hash::FxHashMap;

use crate::profile::{self, ProfileError};
use crate::stacks::{ChainId, StackId, Stacks, TextId};

/// Number of nanoseconds in a millisecond.
pub(crate) const NS_PER_MS: i64 = 1_000_000;
/// Default maximum length of the JVM's list of sampled live objects (`old-object-queue-size`).
const MOST_OLD: u64 = 256;

/// The reason why a file cannot be used as a recording.
#[derive(Debug, thiserror::Error)]
pub enum EvidenceError {
    /// The operating system reported an error.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The file begins like a recording, but cannot be read.
    #[error(transparent)]
    Jfr(JfrError),
    /// The file is neither a recording, nor a profile.
    #[error(transparent)]
    Profile(#[from] ProfileError),
}

/// A sample of an allocation or of a live object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Seen {
    /// Allocation time in nanoseconds since 1970. `None` if the file does not record it.
    pub(crate) at_ns: Option<i64>,
    /// True if the object was alive at the end of the recording.
    pub(crate) survived: bool,
    /// The class of the object.
    pub(crate) class: TextId,
    /// The number of elements of an array, if it is recorded.
    pub(crate) length: Option<u32>,
    /// The size of the object in bytes, if the event has the size but not the array length.
    pub(crate) size: Option<u64>,
    /// The number of bytes that the sample represents, at least 1.
    pub(crate) weight: u64,
    /// The number of samples that this entry represents. Profiles have one entry for several samples. 0 if the file
    /// does not record the number.
    pub(crate) count: u64,
    /// The allocating stack.
    pub(crate) stack: StackId,
    /// The reference chain from the object to a GC root; 0 if the recording has no chain.
    pub(crate) chain: ChainId,
}

/// The data of a recording or a profile with which the stacks of suspects are found.
#[derive(Debug, Default)]
pub struct Evidence {
    /// The JVM, if the recording describes it.
    pub jvm: Option<Jvm>,
    /// The heap dumps that the JVM wrote during the recording.
    pub heap_dumps: Vec<HeapDump>,
    /// Start and end of the recording in nanoseconds since 1970. `None` for profiles without times.
    pub span_ns: Option<(i64, i64)>,
    /// Sentences about data that the recording lacks, without the path.
    pub notes: Vec<String>,
    /// A hash that identifies the recording. It is set if this evidence was read from a saved form. Otherwise the
    /// method `digest` computes it.
    pub(crate) digest: Option<u64>,
    /// The time at which the JVM last listed its sampled live objects ("old objects"), in nanoseconds since 1970.
    pub(crate) listed_ns: Option<i64>,
    pub(crate) seen: Vec<Seen>,
    pub(crate) stacks: Stacks,
}

impl Evidence {
    /// Reads a JFR recording, a collapsed profile or a pprof profile, gzipped or not. If a shrinker such as ProGuard
    /// changed names, `originals` restores them.
    ///
    /// Cost: time linear in the size of the file, and memory as for [`Recording::open`].
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or is neither a recording nor a profile.
    pub fn open(path: &Path, originals: Option<&dyn Originals>) -> Result<Self, EvidenceError> {
        // Report a missing file before the code below determines the kind of the file.
        drop(File::open(path)?);
        if heapdiff_jfr::is_recording(path)? {
            let mut recording = Recording::open(path).map_err(EvidenceError::Jfr)?;
            if let Some(originals) = originals {
                recording.rename(originals);
            }
            return Ok(Self::of(&recording));
        }
        Ok(profile::open(path)?)
    }

    /// Takes the evidence from a recording.
    #[must_use]
    pub fn of(recording: &Recording) -> Self {
        let mut evidence = Self {
            jvm: recording.jvm.clone(),
            heap_dumps: recording.heap_dumps.clone(),
            span_ns: Some((recording.from_ns, recording.to_ns)),
            ..Self::default()
        };
        // Each time that the JVM writes the recording to a file, it adds a list of its sampled live objects ("old
        // objects"). The earlier lists stay in the file. Use only the last list.
        let last = recording.of(Event::Old).map(|s| s.time_ns).max();
        let is_last = |s: &Sample| {
            s.event != Event::Old || last.is_none_or(|t| s.time_ns > t.saturating_sub(NS_PER_MS))
        };
        evidence.listed_ns = last;
        let mut names = Interned::new(recording);
        let (mut old, mut bare) = (0, 0);
        for sample in recording.samples.iter().filter(|s| is_last(s)) {
            let stack = names.stack(&mut evidence.stacks, sample.stack);
            if sample.event == Event::Old {
                old += 1;
                bare += u64::from(stack == 0);
            }
            if stack == 0 {
                continue;
            }
            let class = names.name(&mut evidence.stacks, sample.class.0);
            let chain = names.chain(&mut evidence.stacks, sample.chain);
            let weight = recording.weight(sample).bytes;
            evidence.seen.push(Seen {
                at_ns: Some(sample.allocated_ns),
                survived: sample.event.describes_live_object(),
                class,
                length: sample.elements,
                size: (sample.event == Event::Live).then_some(sample.size),
                #[allow(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "an estimate"
                )]
                weight: (weight as u64).max(1),
                count: 1,
                stack,
                chain,
            });
        }
        evidence.notes = notes(recording, old, bare);
        evidence
    }

    /// Returns the number of samples of live objects, and the number of samples of allocations. Samples without a stack
    /// are not counted if they are from a recording.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        let survivors = self.seen.iter().filter(|seen| seen.survived).count();
        (survivors as u64, (self.seen.len() - survivors) as u64)
    }

    /// True if the file records times, so that it can be matched with dumps.
    #[must_use]
    pub fn is_timed(&self) -> bool {
        self.span_ns.is_some()
    }
}

/// Returns sentences about data that the recording lacks. `old` is the number of objects in the JVM's last list of
/// sampled live objects. `bare` is the number of these objects that have no stack.
fn notes(recording: &Recording, old: u64, bare: u64) -> Vec<String> {
    let mut notes = Vec::new();
    let live = recording.of(Event::Live).count() as u64;
    if live >= MOST_LIVE {
        notes.push(format!(
            "the profiler's table of live objects was full ({} entries): later live objects are missing",
            heapdiff_units::grouped(MOST_LIVE)
        ));
    }
    if live == 0 && old == 0 {
        notes.push(
            "no live objects are recorded: stacks are ranked by allocations alone".to_owned(),
        );
    } else if live == 0 && bare == old {
        notes.push(format!(
            "none of the {} has a stack: record with memory-leaks=stack-traces",
            counted(old, "live object")
        ));
    } else if bare > old / 10 {
        notes.push(format!(
            "{bare} of {} have no stack",
            counted(old, "live object")
        ));
    }
    // If the JVM's list of sampled live objects has more than [`MOST_OLD`] entries, the user made the list longer
    // (`old-object-queue-size`). Then it is unknown whether the list was full.
    if (MANY_OLD..=MOST_OLD).contains(&old) {
        notes.push(format!(
            "the JVM's list of live objects ({MOST_OLD} entries) may have been full: objects allocated late may be missing"
        ));
    }
    if recording.lost_bytes > 0 {
        notes.push(format!(
            "the JVM lost {} of events, because it could not write them in time",
            Size(recording.lost_bytes)
        ));
    }
    match recording.gaps() {
        0 => {}
        gaps => notes.push(format!(
            "the recording has {}: chunks are missing, or it was stopped in between",
            counted(gaps, "gap")
        )),
    }
    if recording.is_partial() {
        let places = recording.damage.len() as u64 + recording.more_damage;
        let first = recording.damage.first().map(ToString::to_string);
        notes.push(format!(
            "{} cannot be read and were skipped; the first: {}",
            counted(places, "damaged place"),
            first.unwrap_or_default()
        ));
    }
    notes
}

/// Maps ids of a recording to ids in [`Stacks`].
struct Interned<'a> {
    recording: &'a Recording,
    names: FxHashMap<u32, TextId>,
    frames: FxHashMap<u32, u32>,
    stacks: FxHashMap<u32, StackId>,
}

impl<'a> Interned<'a> {
    fn new(recording: &'a Recording) -> Self {
        Self {
            recording,
            names: Default::default(),
            frames: Default::default(),
            stacks: Default::default(),
        }
    }

    fn name(&mut self, stacks: &mut Stacks, id: u32) -> TextId {
        let text = self.recording.names.text(heapdiff_jfr::NameId(id));
        *self
            .names
            .entry(id)
            .or_insert_with(|| stacks.texts.id(text))
    }

    /// Adds a chain of references.
    fn chain(&self, stacks: &mut Stacks, id: heapdiff_jfr::ChainId) -> ChainId {
        let names = &self.recording.names;
        let mut texts = Vec::new();
        for link in names.chain(id) {
            let (class, field) = (names.text(link.class), names.text(link.field));
            texts.push(stacks.texts.id(class));
            texts.push(stacks.texts.id(&format!("{class}.{field}")));
        }
        stacks.chain(texts)
    }

    fn stack(&mut self, stacks: &mut Stacks, id: heapdiff_jfr::StackId) -> StackId {
        if let Some(&known) = self.stacks.get(&id.0) {
            return known;
        }
        let names = &self.recording.names;
        let mut frames = Vec::new();
        for &at in names.stack(id).frames.iter() {
            let Some(frame) = names.frames().get(at as usize) else {
                continue;
            };
            let frame = *self.frames.entry(at).or_insert_with(|| {
                let (class, method) = (names.text(frame.class), names.text(frame.method));
                stacks.frame(class, method, frame.line)
            });
            frames.push(frame);
        }
        let stack = stacks.stack(frames);
        self.stacks.insert(id.0, stack);
        stack
    }
}
