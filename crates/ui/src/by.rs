//! The ways to group allocation sites into lines of the page, as in `heapdiff trace top`.

use heapdiff_diff::allocating_frame;
use heapdiff_trace::read::Site;
use heapdiff_trace::{Ranking, Stacks, Timeline, Trace, TraceError, rank_groups};
use rustc_hash::FxHashMap;

use crate::text::frame_of;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum By {
    /// One line for each class at the application frame that allocated it. All call paths to the frame are merged.
    #[default]
    Frame,
    /// One line for each class.
    Class,
    /// One line for each class at one stack.
    Stack,
}

impl By {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text {
            "frame" => Some(Self::Frame),
            "class" => Some(Self::Class),
            "site" => Some(Self::Stack),
            _ => None,
        }
    }

    /// Groups the sites of a timeline (one run in a window) into lines of the graph, and ranks these lines.
    pub(crate) fn rank(self, trace: &Trace, timeline: &Timeline) -> Result<Ranking, TraceError> {
        match self {
            Self::Class => rank_groups(trace, timeline, |_| Some(0)),
            Self::Stack => rank_groups(trace, timeline, |site| Some(site.id)),
            Self::Frame => {
                let places = Places::read(trace)?;
                let mut numbers: FxHashMap<Option<String>, i64> = FxHashMap::default();
                rank_groups(trace, timeline, |site| {
                    let next = i64::try_from(numbers.len()).unwrap_or(i64::MAX);
                    Some(*numbers.entry(places.of_site(site)).or_insert(next))
                })
            }
        }
    }
}

/// The allocating frames of all sites of a trace.
pub(crate) struct Places(Stacks);

impl Places {
    /// Reads all stacks of the trace into memory.
    pub(crate) fn read(trace: &Trace) -> Result<Self, TraceError> {
        trace.stacks().map(Self)
    }

    pub(crate) fn of_site(&self, site: &Site) -> Option<String> {
        self.of_stack(site.stack)
    }

    pub(crate) fn of_stack(&self, stack: Option<i64>) -> Option<String> {
        let frames = self.0.frames(stack?);
        let frames: Vec<String> = frames.into_iter().map(frame_of).collect();
        allocating_frame(&frames).map(str::to_owned)
    }
}
