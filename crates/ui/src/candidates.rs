//! Selects the lines of the graph: the candidates of `heapdiff trace top`, from one run or merged from several runs.

use heapdiff_diff::allocating_frame;
use heapdiff_trace::{Ranking, Standing, Trace, TraceError, Trending};
use rustc_hash::FxHashMap;

use crate::amount::Amount;
use crate::by::By;
use crate::key::Key;
use crate::text::{self, cut};

/// A line of the graph, either from one run or merged from several runs.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) class: String,
    /// The allocating frame.
    pub(crate) place: Option<String>,
    /// A text that distinguishes lines of the same class: the frame, or the whole stack. It is the same in each run.
    pub(crate) stack: String,
    pub(crate) standing: Standing,
    /// The trend of the line. If the line is merged from several runs, this is the trend in the run with the worst
    /// verdict.
    pub(crate) trending: Trending,
    pub(crate) grown: Amount,
    pub(crate) sites: Vec<(Key, i64)>,
}

impl Line {
    fn merge(&mut self, other: Self) {
        if other.standing < self.standing {
            self.trending = other.trending;
        }
        self.standing = self.standing.combine(other.standing);
        self.grown = self.grown.saturating_add(other.grown);
        self.sites.extend(other.sites);
    }
}

/// The lines of all requested runs. Lines of several runs with the same class and `stack` are merged.
#[derive(Debug, Default)]
pub(crate) struct Lines(FxHashMap<(String, String), Line>);

impl Lines {
    /// Adds the `most` lines of a run that have the worst verdicts. Names are read only for these lines.
    pub(crate) fn add(
        &mut self,
        trace: &Trace,
        key: Key,
        ranking: &Ranking,
        by: By,
        most: usize,
    ) -> Result<(), TraceError> {
        for candidate in ranking.candidates.iter().take(most) {
            let mut line = Line {
                class: cut(&candidate.class).to_owned(),
                place: None,
                stack: String::new(),
                standing: candidate.standing,
                trending: candidate.trending,
                grown: Amount {
                    objects: candidate.trending.grown_objects,
                    bytes: candidate.trending.grown_bytes,
                },
                sites: candidate.sites.iter().map(|site| (key, site.id)).collect(),
            };
            if by != By::Class {
                let stack = candidate.sites.first().and_then(|site| site.stack);
                let frames = text::stack(trace, stack)?;
                line.place = allocating_frame(&frames).map(str::to_owned);
                line.stack = match by {
                    By::Stack => frames.join("\n"),
                    _ => line.place.clone().unwrap_or_default(),
                };
            }
            let name = (line.class.clone(), line.stack.clone());
            match self.0.entry(name) {
                std::collections::hash_map::Entry::Occupied(mut e) => e.get_mut().merge(line),
                std::collections::hash_map::Entry::Vacant(e) => {
                    e.insert(line);
                }
            }
        }
        Ok(())
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the lines with the worst verdicts, the worst first.
    pub(crate) fn top(self, most: usize) -> Vec<Line> {
        let mut lines: Vec<Line> = self.0.into_values().collect();
        lines.sort_by(|a, b| {
            let names = || (&a.class, &a.stack).cmp(&(&b.class, &b.stack));
            a.standing.cmp(&b.standing).then_with(names)
        });
        lines.truncate(most);
        lines
    }
}
