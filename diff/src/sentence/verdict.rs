//! Sentences about verdicts: why a verdict is doubtful, how the figures changed, and how much of the heap or its growth
//! the suspects explain.

use std::fmt;

use heapdiff_trend::{LEAST_POINTS, Trend, last_step_percent};
use heapdiff_units::{Size, Span, counted};

/// The reason why two dumps are not enough for the verdict `leak`. The sentence asks users to take a third dump.
pub const TWO_DUMPS: &str =
    "two dumps cannot distinguish a leak from a cache that still fills: take a third dump";

/// A statement about the verdict on one suspect, or about all suspects of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The size grew in `rises` of the `steps` intervals between two dumps.
    Steady { rises: usize, steps: usize },
    /// The size grew in some intervals between two dumps, by different amounts.
    Uneven { rises: usize, steps: usize },
    /// The size grew in each interval between two dumps, each time by less.
    Slowing { rises: usize, steps: usize },
    /// The size grew only between the last two dumps.
    Late,
    /// The size grew at first, and then stayed level.
    Plateau,
    /// The size grew from each dump to the next, each time by less. The last interval has `percent` per cent of the
    /// whole growth.
    NearlyPlateau { percent: u64 },
    /// The size grew between the first two dumps, and then stayed level.
    WarmUp,
    /// The size grew between the first two dumps, and then only a little.
    NearlyWarmUp,
    /// The size grew between two dumps, and was level before and after.
    Jump,
    /// The size rises and falls.
    Sawtooth,
    /// The size rises and falls, and is the largest in the last dump.
    RisingSawtooth,

    /// There are only two dumps.
    TwoDumps,
    /// The size is level in the last dumps, but not for long enough. `span` is the length of this time, if known.
    ShortLevel { span: Option<Span> },
    /// While the size was level, the program did almost no work.
    IdleLevel,
    /// The growth in each interval between two dumps is small: at most `permille` thousandths of the size.
    SlightSteps { permille: u64 },
    /// Only a few objects were added.
    FewObjects { objects: u64 },
    /// The objects are perhaps not new: they may have been moved here from another holder.
    MayHaveMoved,
    /// All objects of the first dump are gone in the last.
    Replaced,
    /// More objects were replaced than added.
    WithinTurnover,
    /// The agent counted at least 3/4 as many removals of elements as puts.
    CountedRemovals,
    /// The agent counted at least as many reads of elements as puts.
    CountedReads,

    /// The suspects explain most of the growth.
    Explained { explained: Size, grown: Size },
    /// The suspects explain only a part of the growth.
    PartlyExplained { explained: Size, grown: Size },
    /// No suspect explains the growth.
    Unexplained { grown: Size },
    /// There is no suspect.
    NoGrowth,

    /// In a report on one dump, a large object is not called a leak.
    NoLeak,
    /// The user's options exclude all suspects that retain at least `least`.
    LeftOut { least: Size },
    /// A saved report contains no suspect that retains at least `least`.
    NoneInReport { least: Size },
    /// The heap has no suspect that retains at least `least`.
    NoAccumulation { least: Size },
    /// The bytes that all suspects of at least `least` bytes retain together. `places` is the number of these suspects.
    /// `share` is the percentage of the reachable bytes that they retain.
    Accumulated {
        retained: Size,
        reachable: Size,
        share: String,
        places: u64,
        least: Size,
    },
    /// The memory outside of the heap (such as direct buffers) that is owned by suspects below the minimum retained
    /// size. `places` is the number of these suspects.
    AccumulatedOffHeap { size: Size, places: u64 },
}

impl Verdict {
    /// Returns the sentence which describes how the figures of several dumps changed. Returns `None` for two dumps, and
    /// for figures that did not change.
    pub(crate) fn from_trend(trend: Trend, figures: &[u64]) -> Option<Self> {
        let steps = figures.len().saturating_sub(1);
        let rises = figures.windows(2).filter(|w| w[1] > w[0]).count();
        let sentence = match (trend, last_step_percent(figures)) {
            (Trend::Level, _) => return None,
            (Trend::Steady, _) => Self::Steady { rises, steps },
            (Trend::Uneven, _) => Self::Uneven { rises, steps },
            (Trend::Slowing, _) => Self::Slowing { rises, steps },
            (Trend::Late, _) => Self::Late,
            (Trend::Plateau, None) => Self::Plateau,
            (Trend::Plateau, Some(percent)) => Self::NearlyPlateau { percent },
            (Trend::WarmUp, None) => Self::WarmUp,
            (Trend::WarmUp, Some(_)) => Self::NearlyWarmUp,
            (Trend::Jump, _) => Self::Jump,
            (Trend::Sawtooth, _) => Self::Sawtooth,
            (Trend::RisingSawtooth, _) => Self::RisingSawtooth,
        };
        (steps > 1).then_some(sentence)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Steady { rises, steps } => {
                write!(f, "it grew steadily, in {rises} of {steps} steps between dumps")
            }
            Self::Uneven { rises, steps } => {
                write!(f, "it grew unevenly, in {rises} of {steps} steps between dumps")
            }
            Self::Slowing { rises, steps } => write!(
                f,
                "it grew by less each time, in {rises} of {steps} steps between dumps"
            ),
            Self::Late => f.write_str("it stayed level, and grew only between the last two dumps"),
            Self::Plateau => f.write_str("it grew at first, and then stayed level"),
            Self::NearlyPlateau { percent } => write!(
                f,
                "it grew more and more slowly: only {percent} % of the growth is between the last two dumps"
            ),
            Self::WarmUp => {
                f.write_str("it grew before the second dump and has been level since, like a warm-up")
            }
            Self::NearlyWarmUp => {
                f.write_str("it grew before the second dump and only a little since, like a warm-up")
            }
            Self::Jump => f.write_str("it stayed level, grew once, and then stayed level again"),
            Self::Sawtooth => {
                f.write_str("it rises and falls, and is not larger than in an earlier dump: a sawtooth")
            }
            Self::RisingSawtooth => {
                f.write_str("it rises and falls, and is larger in the last dump than in all earlier dumps")
            }
            Self::TwoDumps => f.write_str(TWO_DUMPS),
            Self::ShortLevel { span: None } => f.write_str(
                "the growth may have ended, but too few dumps show this: take another dump later",
            ),
            Self::ShortLevel { span: Some(span) } => write!(
                f,
                "the growth may have ended, but the {span} without growth are too short to show this: take another dump later"
            ),
            Self::IdleLevel => f.write_str(
                "the program allocated almost nothing while the size was level: take a dump after more work",
            ),
            Self::SlightSteps { permille } => write!(
                f,
                "from one dump to the next, the size grew by at most {}.{} %, which can be random variation: take {LEAST_POINTS} dumps, or load the agent",
                permille / 10,
                permille % 10
            ),
            Self::FewObjects { objects } => write!(
                f,
                "only {} were added, less than 1 % of the heap: this can be random variation, so take {LEAST_POINTS} dumps",
                counted(*objects, "object")
            ),
            Self::MayHaveMoved => f.write_str(
                "between two of the dumps, all objects of the class together grew by less than half as much as this suspect: objects may have moved here from other holders",
            ),
            Self::Replaced => f.write_str(
                "no object of the first dump is still alive: objects are replaced, and their number may fall again",
            ),
            Self::WithinTurnover => f.write_str(
                "the growth is less than half of the bytes that were replaced, so it can be random variation",
            ),
            Self::CountedRemovals => f.write_str(
                "at least three quarters as many elements were removed as were added, as in a cache or a queue",
            ),
            Self::CountedReads => f.write_str(
                "the agent counted at least as many reads as puts: it may be a cache that is not full yet, or a leak",
            ),
            Self::Explained { explained, grown } => {
                write!(f, "the suspects explain {explained} of the growth of {grown}")
            }
            Self::PartlyExplained { explained, grown } => write!(
                f,
                "the suspects account for only {explained} of the growth of {grown}: the table of classes shows the rest"
            ),
            Self::Unexplained { grown } => write!(
                f,
                "no suspect explains the growth of {grown}: the table of classes shows what grew"
            ),
            Self::NoGrowth => f.write_str("no significant growth found"),
            Self::NoLeak => f.write_str(
                "a large object need not be a leak: two dumps show what grows (heapdiff BEFORE AFTER)",
            ),
            Self::LeftOut { least } => write!(
                f,
                "all places that retain {least} or more are left out by --top, --include or --exclude"
            ),
            Self::NoneInReport { least } => {
                write!(f, "the report has no place that retains {least} or more")
            }
            Self::NoAccumulation { least } => {
                write!(f, "no accumulation found: no place retains {least} or more")
            }
            Self::Accumulated {
                retained,
                reachable,
                share,
                places,
                least,
            } => write!(
                f,
                "{retained} of {reachable} ({share}) accumulated in {} of at least {least}",
                counted(*places, "place")
            ),
            Self::AccumulatedOffHeap { size, places } => write!(
                f,
                "{size} of memory outside of the heap is owned by objects in {}",
                counted(*places, "place")
            ),
        }
    }
}
