//! Ranks the stacks that may have allocated a suspect's growth.
//!
//! Samples of the suspect's own class are often missing, because its objects are small. So samples of other classes
//! also count, if the suspect's objects dominate objects of that class (and, for arrays, of that length). A *site* is
//! the first application method of a stack. All samples with one site count together. For each site, the score is a sum
//! of:
//!
//! - samples of live objects: each is strong evidence, unless its array has a length that the suspect does not hold;
//! - the site's share of the allocations of each class.
//!
//! The score is multiplied by two factors. The first is for a stack that goes through a class on the path to the
//! suspect. The second is for a stack that shares its outer frames with the stacks that let the holder's own collection
//! grow, such as a `HashMap$Node[]`. A site's probability is its share of all scores, times a certainty. The certainty
//! depends on the kind of evidence and on the number of samples.

use std::collections::{BTreeMap, BTreeSet};

use heapdiff_diff::{ContentLine, Joined, Stack, StackSource, Suspect};
use heapdiff_model::diff::JoinedRecording;
use heapdiff_sites::packages::is_jdk;
use heapdiff_units::grouped;
use rustc_hash::{FxHashMap, FxHashSet};

use self::wanted::Wanted;
use crate::evidence::{Evidence, NS_PER_MS, Seen};
use crate::matching::Fit;
use crate::sentence;
use crate::stacks::{FrameId, StackId, Stacks, TextId};

mod wanted;

/// Maximum number of stacks that are listed for a suspect.
const STACKS: usize = 10;
/// Minimum probability of the second and each further listed stack, in thousandths.
const LEAST: u64 = 20;
/// The stack of a site is compared with at most this number of stacks in [`Ranking::puts`].
const PUTS: usize = 200;

/// Maximum weight of a sample of a class in the suspect's content (the objects that the suspect's objects dominate). A
/// sample of the suspect's own class has the weight 1.
const CONTENT: f64 = 0.7;
/// Factor for a sample that was allocated in an interval between two dumps in which the suspect did not grow. If the
/// suspect grew in the interval, the factor is 1.
const IDLE: f64 = 0.1;
/// Factors for the two parts of a site's score: its surviving samples, and its share of all allocations of a class.
const SURVIVOR: f64 = 6.0;
const ALLOCATED: f64 = 10.0;
/// Factors for a sample with a reference chain. The first applies if the chain contains the holder or a field on the
/// path to the suspect. The second applies if the chain contains neither.
const HELD: (f64, f64) = (20.0, 0.2);
/// Factors for a stack:
///
/// - The first applies if a frame is in a class that has a field on the path to the suspect.
/// - The second applies if no frame is in such a class, but a frame is in a class with the same outermost class.
/// - The third applies if the stack has no application frame.
const THROUGH: (f64, f64, f64) = (4.0, 3.0, 0.2);
/// Assumed total score of the stacks that were not sampled. It is added to the sum of the scores of the sampled stacks.
const UNSEEN: f64 = 1.0;
/// With `n` samples, a site's probability is multiplied by `n / (n + HALF)`. So with `HALF` samples, the factor is one
/// half. A surviving sample counts twice.
const HALF: f64 = 1.5;
/// Maximum probability that a site allocated the suspect's growth, if no sample of the site has a time. It is below
/// 0.75, because from 0.75 on, reports state as a fact that the stack allocated the growth.
const MOST_UNTIMED: f64 = 0.749;

/// Classes that most code allocates. An allocation of such a class is weak evidence.
const SHARED: [&str; 14] = [
    "byte[]",
    "char[]",
    "int[]",
    "long[]",
    "double[]",
    "java.lang.Object[]",
    "java.lang.String",
    "java.lang.Object",
    "java.util.ArrayList",
    "java.util.HashMap$Node",
    "java.util.HashMap$Node[]",
    "java.util.HashMap",
    "java.lang.Long",
    "java.lang.Integer",
];

/// Evidence from recordings that were matched with dumps.
#[derive(Debug, Default)]
pub struct Join {
    seen: Vec<Seen>,
    by_class: FxHashMap<TextId, Vec<u32>>,
    stacks: Stacks,
    /// The times of the dumps in nanoseconds since 1970, oldest first.
    taken_ns: Vec<i64>,
    /// Descriptions of the recordings, in the order in which they were given.
    pub recordings: Vec<JoinedRecording>,
}

impl Join {
    /// Joins recordings with dumps that were taken at these times, in milliseconds since 1970, oldest first. Each
    /// recording has its path, its evidence and the result of [`fit`](crate::matching::fit).
    #[must_use]
    pub fn new(recordings: Vec<(String, Evidence, Fit)>, taken_ms: &[u64]) -> Self {
        let ns = |&ms: &u64| {
            i64::try_from(ms)
                .unwrap_or(i64::MAX)
                .saturating_mul(NS_PER_MS)
        };
        let mut join = Self {
            taken_ns: taken_ms.iter().map(ns).collect(),
            ..Self::default()
        };
        // Each time that the JVM writes a recording to a file, it adds a list of its sampled live objects ("old
        // objects"). Use only the last list of all recordings.
        let last_list = recordings.iter().filter_map(|r| r.1.listed_ns).max();
        let end = recordings.iter().filter_map(|r| Some(r.1.span_ns?.1)).max();
        for (path, mut evidence, fit) in recordings {
            let (survivors, allocations) = evidence.counts();
            if evidence.listed_ns.is_some() && evidence.listed_ns < last_list {
                evidence.seen.retain(|seen| !seen.survived);
            }
            let mut notes: Vec<String> = fit.note().map(str::to_owned).into_iter().collect();
            notes.append(&mut evidence.notes);
            let is_newest = evidence.span_ns.is_some_and(|span| Some(span.1) == end);
            if is_newest && end < join.taken_ns.last().copied() {
                notes.push(EARLY.to_owned());
            }
            join.recordings.push(JoinedRecording {
                path,
                matched: fit.name().into(),
                survivors,
                allocations,
                notes,
            });
            join.add(evidence);
        }
        for (at, seen) in (0..).zip(&join.seen) {
            join.by_class.entry(seen.class).or_default().push(at);
        }
        join
    }

    /// Returns warnings for readers of the report: how the recordings were matched, and what they lack.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let of = |recording: &JoinedRecording| {
            let path = recording.path.clone();
            let notes = recording.notes.clone().into_iter();
            notes.map(move |note| format!("{path}: {note}"))
        };
        let mut warnings: Vec<String> = self.recordings.iter().flat_map(of).collect();
        // If a summary file and the command line name the same recording, its warnings occur twice.
        warnings.dedup();
        warnings
    }

    /// Adds a recording. If two recordings of one JVM contain the same events, each event counts once.
    fn add(&mut self, evidence: Evidence) {
        let mut seen = evidence.seen;
        if self.seen.is_empty() {
            self.stacks = evidence.stacks;
        } else {
            let new = self.stacks.absorb(&evidence.stacks);
            for seen in &mut seen {
                seen.class = new.text(seen.class);
                seen.stack = new.stack(seen.stack);
                seen.chain = new.chain(seen.chain);
            }
        }
        seen.sort_unstable();
        self.seen = union(std::mem::take(&mut self.seen), seen);
    }
}

/// Warning for the case that the last recording ends before the last dump.
const EARLY: &str =
    "the recording ends before the last dump: run `jcmd PID JFR.dump` after the last heap dump";

/// Returns the union of two sorted lists. If an element occurs several times in one list, it occurs as often in the
/// union, because equal samples of one recording are different objects.
fn union(a: Vec<Seen>, b: Vec<Seen>) -> Vec<Seen> {
    let mut all = Vec::with_capacity(a.len().max(b.len()));
    let (mut a, mut b) = (a.into_iter().peekable(), b.into_iter().peekable());
    while let (Some(first), Some(second)) = (a.peek(), b.peek()) {
        let order = first.cmp(second);
        if order.is_gt() {
            all.extend(b.next());
        } else {
            all.extend(a.next());
        }
        if order.is_eq() {
            b.next();
        }
    }
    all.extend(a);
    all.extend(b);
    all
}

impl StackSource for Join {
    fn stacks(&self, suspect: &Suspect, content: &[ContentLine]) -> Joined {
        let ranking = Ranking::of(self, suspect, content);
        let sites = ranking.sites();
        let grown = u64::try_from(suspect.growth.retained_bytes).unwrap_or(0);
        let objects = u64::try_from(suspect.growth.objects).unwrap_or(0);
        let is_probable = sites
            .first()
            .is_some_and(|s| s.permille >= sentence::PROBABLE);
        let listed = sites.iter().take(STACKS).enumerate();
        let listed =
            listed.filter(|(at, site)| is_probable && (*at == 0 || site.permille >= LEAST));
        let stacks = listed.map(|(_, site)| {
            let part = |whole: u64| {
                let part = u128::from(whole) * u128::from(site.permille) / 1000;
                u64::try_from(part).unwrap_or(u64::MAX)
            };
            let frames = self.stacks.frames(site.stack).iter();
            let texts = frames.filter_map(|&f| Some(self.stacks.get(f)?.text.clone()));
            Stack {
                frames: texts.collect(),
                class: self.stacks.texts.text(site.class).to_owned(),
                samples: site.samples,
                estimated_bytes: part(grown),
                ci95: [0, grown],
                estimated_objects: part(objects),
                survival_known: false,
                source: Some("recording".into()),
                probability_permille: Some(site.permille),
                evidence: Some(site.evidence.clone()),
                ..Stack::default()
            }
        });
        let sentence = match sites.first() {
            Some(first) if is_probable => {
                let frame = self.stacks.get(first.frame).map_or("", |frame| &frame.text);
                sentence::allocated(frame, first.permille, &first.evidence)
            }
            _ => sentence::unknown(ranking.matching),
        };
        Joined {
            stacks: stacks.collect(),
            sentence,
        }
    }
}

/// A site with its probability.
struct Ranked {
    permille: u64,
    /// Number of samples of the site.
    samples: u64,
    evidence: String,
    stack: StackId,
    class: TextId,
    /// The first application frame.
    frame: FrameId,
}

/// The evidence for a site.
#[derive(Default)]
struct Site {
    /// The summed weights of surviving samples, by the interval between two dumps in which they were allocated.
    survived: Vec<f64>,
    survivors: u64,
    /// For each class, the bytes that the site's allocation samples represent.
    allocated: BTreeMap<TextId, f64>,
    /// Number of allocation samples. Entries whose number of samples is unknown count as 0.
    allocations: u64,
    /// For each array class, two numbers of surviving samples. The first counts arrays with a length that no array of
    /// the suspect has. The second counts arrays with a length that an array of the suspect has.
    lengths: BTreeMap<TextId, [u64; 2]>,
    /// Number of samples of the suspect's own class that were allocated while the suspect grew, or at an unknown time.
    own: u64,
    /// True if at least one sample has an allocation time.
    is_timed: bool,
    /// The sample with the largest weight.
    best: Option<(f64, StackId, TextId, FrameId)>,
}

impl Site {
    /// Multiplies the site's probability by a factor that grows with the number of samples ([`HALF`]). If no sample has
    /// a time, the result is at most [`MOST_UNTIMED`]. Returns the result in thousandths.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "an estimate between 0 and 1000"
    )]
    fn limited(&self, mut probability: f64) -> u64 {
        let n = (2 * self.survivors + self.allocations) as f64;
        if n > 0.0 {
            probability *= n / (n + HALF);
        }
        if !self.is_timed {
            probability = probability.min(MOST_UNTIMED);
        }
        (probability * 1000.0).clamp(0.0, 1000.0) as u64
    }
}

/// Totals of the samples of all sites.
struct Totals {
    survivors: u64,
    allocations: u64,
    allocated: f64,
}

impl Totals {
    /// Returns the evidence for a site as text: its number of samples. If the number is unknown, the text contains the
    /// site's percentage of the allocations of matching classes.
    fn evidence(&self, site: &Site) -> String {
        let part = |own: u64, all: u64, what: &str| {
            let plural = if all == 1 { "" } else { "s" };
            format!("{} of {} {what}{plural}", grouped(own), grouped(all))
        };
        if site.survivors > 0 {
            return part(site.survivors, self.survivors, "surviving sample");
        }
        if site.allocations > 0 {
            return part(site.allocations, self.allocations, "allocation sample");
        }
        let share = 100.0 * site.allocated.values().sum::<f64>() / self.allocated.max(1.0);
        format!("{share:.0} % of the allocations of matching classes")
    }
}

/// All evidence about one suspect.
struct Ranking<'a> {
    join: &'a Join,
    class: Option<TextId>,
    wanted: BTreeMap<TextId, Wanted>,
    most_bytes: f64,
    /// For each interval between two dumps: true if the suspect grew in it.
    grew: Vec<bool>,
    /// Classes that declare the holder or a field on the path to the suspect. `outer` contains the outermost class of
    /// each.
    holders: BTreeSet<TextId>,
    outer: BTreeSet<String>,
    /// The holders and the fields on the path, as reference chains name them.
    fields: FxHashSet<TextId>,
    sites: BTreeMap<TextId, Site>,
    /// Stacks of the code that lets collections on the path to the suspect grow. Each stack begins with a frame of the
    /// class that holds the collection, and ends with the outermost frame.
    puts: Vec<Vec<FrameId>>,
    /// Number of samples that are evidence: samples of a class in `wanted`. Samples of live arrays are left out if the
    /// suspect has no array of their length. If a [`Seen`] has no number of samples, it counts as one sample.
    matching: u64,
    is_shared: bool,
}

impl<'a> Ranking<'a> {
    fn of(join: &'a Join, suspect: &Suspect, content: &[ContentLine]) -> Self {
        let texts = &join.stacks.texts;
        let class = texts.find(&suspect.class);
        let path = suspect
            .path
            .iter()
            .filter(|step| step.contains('.') && !is_jdk(step));
        let fields: Vec<&str> = std::iter::once(&suspect.holder)
            .chain(&suspect.also_held_by)
            .chain(path)
            .map(String::as_str)
            .collect();
        let declaring = fields.iter().filter_map(|f| Some(f.rsplit_once('.')?.0));
        let outer = declaring.clone().map(|class| outermost(class).to_owned());
        let as_static = fields
            .iter()
            .filter_map(|f| texts.find(&format!("java.lang.Class.{}", f.rsplit_once('.')?.1)));
        let mut ranking = Self {
            join,
            class,
            wanted: BTreeMap::new(),
            most_bytes: 1.0,
            grew: grew(suspect),
            holders: declaring.filter_map(|class| texts.find(class)).collect(),
            outer: outer.collect(),
            fields: fields
                .iter()
                .filter_map(|f| texts.find(f))
                .chain(as_static)
                .collect(),
            sites: BTreeMap::new(),
            puts: Vec::new(),
            matching: 0,
            is_shared: SHARED.contains(&&*suspect.class),
        };
        ranking.want(suspect, content);
        let wanted: Vec<TextId> = ranking.wanted.keys().copied().collect();
        for class in wanted {
            for &at in join.by_class.get(&class).map_or(&[][..], |list| list) {
                if let Some(seen) = join.seen.get(at as usize) {
                    ranking.sample(seen);
                }
            }
        }
        ranking.collections(suspect);
        ranking
    }

    /// Computes the classes whose samples are evidence, and their weights: the suspect's class and the classes of its
    /// content.
    #[allow(clippy::cast_precision_loss, reason = "an estimate")]
    fn want(&mut self, suspect: &Suspect, content: &[ContentLine]) {
        let texts = &self.join.stacks.texts;
        let last = suspect.objects.last().copied().unwrap_or(0).max(1) as f64;
        let share = (suspect.growth.objects.max(0) as f64 / last).min(1.0);
        for line in content {
            let Some(class) = texts.find(&line.class) else {
                continue;
            };
            let wanted = self.wanted.entry(class);
            let wanted = wanted.or_insert_with(|| Wanted::new(CONTENT));
            wanted.bytes += line.bytes as f64 * share;
            wanted.lengths.extend(line.lengths.clone());
        }
        if let Some(class) = self.class {
            let own = self.wanted.entry(class);
            let own = own.or_insert_with(|| Wanted::new(1.0));
            own.weight = 1.0;
            own.bytes = own.bytes.max(suspect.growth.shallow_bytes.max(0) as f64);
        }
        let most = self.wanted.values().map(|w| w.bytes);
        self.most_bytes = most.fold(1.0, f64::max);
        // Samples of the content's classes replace missing samples of the suspect's own class. So the weight of the
        // content's classes decreases with the number of samples of the suspect's own class.
        let own = self.class.and_then(|class| self.join.by_class.get(&class));
        let own = own
            .into_iter()
            .flatten()
            .filter_map(|&at| self.join.seen.get(at as usize));
        let own = own.filter(|seen| self.inside(seen).0 >= 1.0).count() as f64;
        let class = self.class;
        for (&of, wanted) in &mut self.wanted {
            if Some(of) != class {
                wanted.weight =
                    CONTENT / (1.0 + own) * (0.2 + wanted.bytes / self.most_bytes).min(1.0);
            }
        }
    }

    /// Returns the weight of a sample by its allocation time, and the index of the interval between two dumps in which
    /// it was allocated.
    fn inside(&self, seen: &Seen) -> (f64, usize) {
        let Some(at) = seen.at_ns else {
            return (1.0, 0);
        };
        match &self.join.taken_ns[..] {
            [] => (1.0, 0),
            [only] => (f64::from(u8::from(at <= *only)), 0),
            taken => {
                let before = taken.partition_point(|&t| t < at);
                match before.checked_sub(1) {
                    Some(step) if before < taken.len() => {
                        let grew = self.grew.get(step).copied().unwrap_or(false);
                        (if grew { 1.0 } else { IDLE }, step)
                    }
                    _ => (0.0, 0),
                }
            }
        }
    }

    /// Returns the frames of a sample that are used as evidence. If the sample is not of the suspect's class,
    /// constructors of the suspect's class and the frames that they call are left out, because the caller of the
    /// constructor allocated the suspect's object.
    fn counted(&self, seen: &Seen) -> &'a [FrameId] {
        let stacks = &self.join.stacks;
        let frames = stacks.frames(seen.stack);
        let Some(class) = self.class.filter(|&class| class != seen.class) else {
            return frames;
        };
        let makes = |&frame: &FrameId| {
            stacks.get(frame).is_some_and(|frame| {
                frame.class == class && stacks.texts.text(frame.method).ends_with(".<init>")
            })
        };
        match frames.iter().rposition(makes) {
            Some(at) if at + 1 < frames.len() => &frames[at + 1..],
            _ => frames,
        }
    }

    /// Returns the method and the frame of a stack's site. The site is the first application frame. If no frame
    /// is an application frame, the site is the first frame outside of the JDK, or else the first frame.
    fn site(&self, frames: &[FrameId]) -> Option<(TextId, FrameId)> {
        let stacks = &self.join.stacks;
        let first = |wanted: &dyn Fn(&crate::stacks::Frame) -> bool| {
            let mut frames = frames.iter().copied();
            frames.find(|&f| stacks.get(f).is_some_and(wanted))
        };
        let frame = first(&|f| f.is_application)
            .or_else(|| first(&|f| !f.is_jdk))
            .or_else(|| frames.first().copied())?;
        Some((stacks.get(frame)?.method, frame))
    }

    fn sample(&mut self, seen: &Seen) {
        let (inside, step) = self.inside(seen);
        let Some(wanted) = self.wanted.get(&seen.class).filter(|_| inside > 0.0) else {
            return;
        };
        let frames = self.counted(seen);
        let Some((key, frame)) = self.site(frames) else {
            return;
        };
        let mut weight = wanted.weight * inside;
        let class = self.join.stacks.texts.text(seen.class);
        let fits = wanted.fits(seen, class).filter(|_| seen.survived);
        let chain = self.join.stacks.links(seen.chain);
        if !chain.is_empty() {
            let is_held = chain.iter().any(|link| self.fields.contains(link));
            weight *= if is_held { HELD.0 } else { HELD.1 };
        }
        let steps = self.grew.len().max(1);
        let site = self.sites.entry(key).or_default();
        site.survived.resize(steps, 0.0);
        site.is_timed |= seen.at_ns.is_some();
        if let Some(fits) = fits {
            site.lengths.entry(seen.class).or_default()[usize::from(fits)] += 1;
            if !fits {
                return;
            }
        }
        self.matching += seen.count.max(1);
        site.own += u64::from(Some(seen.class) == self.class && inside >= 1.0);
        if seen.survived {
            site.survivors += 1;
            site.survived[step.min(steps - 1)] += weight;
        } else {
            #[allow(clippy::cast_precision_loss, reason = "an estimate")]
            let bytes = seen.weight as f64 * inside;
            site.allocations += seen.count;
            *site.allocated.entry(seen.class).or_default() += bytes;
        }
        if site.best.is_none_or(|best| weight > best.0) {
            site.best = Some((weight, seen.stack, seen.class, frame));
        }
    }

    /// Finds the samples of the collections on the path to the suspect. In the stack of each sample, searches the first
    /// frame for which [`Self::is_outer`] is true. If only JDK frames precede this frame, adds the frame and its
    /// callers to `puts`.
    fn collections(&mut self, suspect: &Suspect) {
        let texts = &self.join.stacks.texts;
        let classes = suspect
            .path
            .iter()
            .filter_map(|step| match step.strip_suffix("[*]") {
                Some(array) => texts.find(&format!("{array}[]")),
                None => texts.find(step.rsplit_once('.')?.0),
            });
        let classes: BTreeSet<TextId> = classes.filter(|c| !self.wanted.contains_key(c)).collect();
        for class in classes {
            for &at in self.join.by_class.get(&class).map_or(&[][..], |list| list) {
                if let Some(seen) = self.join.seen.get(at as usize) {
                    self.put(seen);
                }
            }
        }
    }

    fn put(&mut self, seen: &Seen) {
        if self.inside(seen).0 < 1.0 {
            return;
        }
        let stacks = &self.join.stacks;
        let frames = stacks.frames(seen.stack);
        let own = frames.iter().position(|&f| self.is_outer(f));
        let is_jdk = |&f: &FrameId| stacks.get(f).is_some_and(|f| f.is_jdk);
        let Some(own) = own.filter(|&own| frames[..own].iter().all(is_jdk)) else {
            return;
        };
        self.puts.push(frames[own..].to_vec());
    }

    /// True if a frame's class has the same outermost class as a class that declares the holder or a field on the path.
    fn is_outer(&self, frame: FrameId) -> bool {
        let stacks = &self.join.stacks;
        stacks.get(frame).is_some_and(|frame| {
            self.outer
                .contains(outermost(stacks.texts.text(frame.class)))
        })
    }

    /// Returns the factor by which the stack changes the score of its site. The factor depends on the classes in the
    /// stack ([`THROUGH`]) and on the stack's similarity to `puts`. Also returns true if the stack has a frame of a
    /// class with a field on the path, or of a class nested in the same outermost class.
    fn prior(&self, stack: StackId) -> (f64, bool) {
        let stacks = &self.join.stacks;
        let frames = stacks.frames(stack);
        let is_own = |&f: &FrameId| {
            stacks
                .get(f)
                .is_some_and(|frame| self.holders.contains(&frame.class))
        };
        let mut prior = 1.0;
        if frames.iter().any(is_own) {
            prior = THROUGH.0;
        } else if frames.iter().any(|&f| self.is_outer(f)) {
            prior = THROUGH.1;
        }
        let is_through = prior > 1.0;
        if !frames
            .iter()
            .any(|&f| stacks.get(f).is_some_and(|f| f.is_application))
        {
            prior *= THROUGH.2;
        }
        if !self.puts.is_empty() {
            let mut best = 0.0;
            for put in self.puts.iter().take(PUTS) {
                best = f64::max(best, self.shared(frames, put));
            }
            prior *= 0.3 + 3.0 * best;
        }
        (prior, is_through)
    }

    /// Compares two stacks from the root. Returns the fraction (0 to 1) of the non-JDK frames of `put` that come before
    /// the first difference.
    #[allow(clippy::cast_precision_loss, reason = "at most 2,048 frames")]
    fn shared(&self, frames: &[FrameId], put: &[FrameId]) -> f64 {
        let stacks = &self.join.stacks;
        let method = |f: &FrameId| stacks.get(*f).map(|f| f.method);
        let is_own = |f: &&FrameId| stacks.get(**f).is_some_and(|f| !f.is_jdk);
        let pairs = frames.iter().rev().zip(put.iter().rev());
        let common = pairs.take_while(|(a, b)| method(a) == method(b));
        let common = common.filter(|(_, b)| is_own(b)).count();
        let all = put.iter().filter(is_own).count();
        common as f64 / all.max(1) as f64
    }

    /// Returns, for each site, the weight of its surviving samples. All intervals in which the suspect grew count about
    /// equally, so that many samples from the program's start do not outweigh later growth.
    #[allow(clippy::cast_precision_loss, reason = "a few steps")]
    fn evened(&self) -> BTreeMap<TextId, f64> {
        let steps = self.grew.len();
        let sum = |step: usize| -> f64 {
            let of = |site: &Site| site.survived.get(step).copied().unwrap_or(0.0);
            self.sites.values().map(of).sum()
        };
        let sums: Vec<f64> = (0..steps).map(sum).collect();
        let all: f64 = sums.iter().sum();
        let heavy: Vec<f64> = sums
            .iter()
            .zip(&self.grew)
            .map(|(&sum, &grew)| if grew { (sum / 3.0).min(1.0) } else { 0.0 })
            .collect();
        let heavies: f64 = heavy.iter().sum();
        let weight = |site: &Site| {
            if steps < 2 || heavies <= 0.0 {
                return site.survived.iter().sum();
            }
            let parts = site.survived.iter().zip(&sums).zip(&heavy);
            let parts = parts.filter(|((_, sum), heavy)| **sum > 0.0 && **heavy > 0.0);
            all * parts
                .map(|((own, sum), heavy)| heavy * own / sum)
                .sum::<f64>()
                / heavies
        };
        self.sites
            .iter()
            .map(|(&key, site)| (key, weight(site)))
            .collect()
    }

    /// Returns the sites, the most probable first.
    #[allow(clippy::cast_precision_loss, reason = "an estimate")]
    fn sites(&self) -> Vec<Ranked> {
        let evened = self.evened();
        let mut allocated: BTreeMap<TextId, f64> = BTreeMap::new();
        for site in self.sites.values() {
            for (&class, bytes) in &site.allocated {
                *allocated.entry(class).or_default() += bytes;
            }
        }
        let totals = Totals {
            survivors: self.sites.values().map(|site| site.survivors).sum(),
            allocations: self.sites.values().map(|site| site.allocations).sum(),
            allocated: allocated.values().sum(),
        };
        let mut scores = Vec::new();
        for (key, site) in &self.sites {
            let Some((_, stack, class, frame)) = site.best else {
                continue;
            };
            let made = site.allocated.iter().map(|(class, bytes)| {
                let [other, same] = site.lengths.get(class).copied().unwrap_or_default();
                // The surviving arrays of this site have lengths that the suspect does not hold. So the site's
                // allocations of the class do not count.
                if other > 1 && same == 0 {
                    return 0.0;
                }
                let weight = self.wanted.get(class).map_or(0.0, |wanted| wanted.weight);
                let all = allocated.get(class).copied().unwrap_or(0.0);
                weight * bytes / all.max(1.0)
            });
            let made = made.fold(0.0, f64::max);
            let old = evened.get(key).copied().unwrap_or(0.0);
            let (prior, is_through) = self.prior(stack);
            let score = prior * (SURVIVOR * old + ALLOCATED * made);
            let sure = self.certainty(site, is_through);
            if score > 0.0 {
                scores.push((score, sure, site, (stack, class, frame)));
            }
        }
        let total: f64 = scores.iter().map(|s| s.0).sum::<f64>() + UNSEEN;
        let ranked = scores.into_iter().map(|(score, sure, site, best)| Ranked {
            permille: site.limited(score / total * sure),
            samples: site.survivors + site.allocations,
            evidence: totals.evidence(site),
            stack: best.0,
            class: best.1,
            frame: best.2,
        });
        let mut ranked: Vec<Ranked> = ranked.collect();
        ranked.sort_by_key(|site| std::cmp::Reverse(site.permille));
        ranked
    }

    /// Returns the certainty of a site: a factor by which its probability is multiplied. The certainty depends on the
    /// kind of the samples that are evidence for the site, and on `is_through` (see [`Self::prior`]).
    fn certainty(&self, site: &Site, is_through: bool) -> f64 {
        let of = |through: f64, other: f64| if is_through { through } else { other };
        if site.survivors > 0 {
            of(0.97, 0.9)
        } else if site.own > 0 && !self.is_shared {
            of(0.9, 0.8)
        } else {
            of(0.8, 0.55)
        }
    }
}

/// Returns, for each interval between two dumps, whether the suspect grew in it.
fn grew(suspect: &Suspect) -> Vec<bool> {
    let grew = |figures: &[u64]| -> Vec<bool> { figures.windows(2).map(|w| w[1] > w[0]).collect() };
    let by_objects = grew(&suspect.objects);
    if by_objects.contains(&true) {
        by_objects
    } else {
        grew(&suspect.retained_bytes)
    }
}

/// Returns the outermost class of a nested class. Returns other classes unchanged.
fn outermost(class: &str) -> &str {
    class.split('$').next().unwrap_or(class)
}

#[cfg(test)]
mod tests;
