//! Compares two points in time: the objects that were allocated and collected between them, and the change of live
//! objects. Groups the figures by class, frame or stack.

use std::sync::Arc;

use heapdiff_diff::allocating_frame;
use heapdiff_trace::{Steps, Timeline, Trace};
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::amount::{Amount, Measure};
use crate::by::{By, Places};
use crate::key::Key;
use crate::text::{self, cut};
use crate::traces::{Traces, Unanswered};
use crate::view::{Life, MOST_LINES, Question};

/// Maximum number of stacks that are taken from each run before the stacks of all runs are merged. Applies if rows are
/// stacks. Names are read for these stacks only.
const MOST_NAMED: usize = 400;

/// The answer to a `between` request.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Between {
    from_ms: i64,
    to_ms: i64,
    rows: Vec<Row>,
    all_rows: usize,
    total: Figures,
}

#[derive(Debug, Serialize)]
struct Row {
    at: Vec<String>,
    class: String,
    place: Option<String>,
    #[serde(flatten)]
    figures: Figures,
}

/// The figures of one or several sites.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
struct Figures {
    allocated_objects: i64,
    allocated_bytes: i64,
    collected_objects: i64,
    collected_bytes: i64,
    before_objects: i64,
    before_bytes: i64,
    after_objects: i64,
    after_bytes: i64,
}

impl Figures {
    fn from_steps(steps: &Steps) -> Self {
        let [allocated, collected, before, after]: [Amount; 4] = [
            steps.allocated.into(),
            steps.collected.into(),
            steps.live_before_window().amount.into(),
            steps.last().amount.into(),
        ];
        Self {
            allocated_objects: allocated.objects,
            allocated_bytes: allocated.bytes,
            collected_objects: collected.objects,
            collected_bytes: collected.bytes,
            before_objects: before.objects,
            before_bytes: before.bytes,
            after_objects: after.objects,
            after_bytes: after.bytes,
        }
    }

    fn add(&mut self, other: &Self) {
        let Self {
            allocated_objects,
            allocated_bytes,
            collected_objects,
            collected_bytes,
            before_objects,
            before_bytes,
            after_objects,
            after_bytes,
        } = self;
        for (sum, more) in [
            (allocated_objects, other.allocated_objects),
            (allocated_bytes, other.allocated_bytes),
            (collected_objects, other.collected_objects),
            (collected_bytes, other.collected_bytes),
            (before_objects, other.before_objects),
            (before_bytes, other.before_bytes),
            (after_objects, other.after_objects),
            (after_bytes, other.after_bytes),
        ] {
            *sum = sum.saturating_add(more);
        }
    }

    /// Returns the change of live objects or of live bytes, depending on `measure`.
    fn change(&self, measure: Measure) -> i64 {
        let [before, after] = [
            (self.before_objects, self.before_bytes),
            (self.after_objects, self.after_bytes),
        ]
        .map(|(objects, bytes)| Amount { objects, bytes });
        after.saturating_sub(before).of(measure)
    }
}

#[derive(Debug, Default)]
struct Group {
    figures: Figures,
    sites: Vec<(Key, i64)>,
    place: Option<String>,
}

/// Returns the changes of all allocation sites in a time window. Sites without changes are left out.
pub(crate) fn between(
    traces: &Traces,
    question: &Question,
    (from, to): (i64, i64),
) -> Result<Between, Unanswered> {
    let lives = Life::read_all(traces, &question.runs);
    let (from, to) = (from.min(to), from.max(to));
    let mut answer = Between {
        from_ms: from,
        to_ms: to,
        ..Between::default()
    };
    let mut merged: FxHashMap<(String, String), Group> = FxHashMap::default();
    for life in &lives {
        let Some(trace) = traces.get(life.key.trace) else {
            continue;
        };
        trace.ask(|open| {
            let timeline = Timeline::of(&open.trace, &life.run, life.window(Some(from), to))?;
            answer.add(&open.trace, life, &timeline, question, &mut merged)
        })?;
    }
    answer.all_rows = merged.len();
    let mut rows: Vec<_> = merged.into_iter().collect();
    rows.sort_by(|(a_name, a), (b_name, b)| {
        let most = |g: &Group| g.figures.change(question.measure).unsigned_abs();
        most(b).cmp(&most(a)).then_with(|| a_name.cmp(b_name))
    });
    rows.truncate(question.top.min(MOST_LINES));
    let rows = rows.into_iter().map(|((class, _), group)| Row {
        at: match question.by {
            By::Class | By::Frame => Vec::new(),
            By::Stack => group
                .sites
                .iter()
                .map(|(k, s)| format!("{k}:{s}"))
                .collect(),
        },
        class,
        place: group.place,
        figures: group.figures,
    });
    answer.rows = rows.collect();
    Ok(answer)
}

impl Between {
    fn add(
        &mut self,
        trace: &Trace,
        life: &Life,
        timeline: &Timeline,
        question: &Question,
        merged: &mut FxHashMap<(String, String), Group>,
    ) -> Result<(), Unanswered> {
        let mut groups: FxHashMap<(Arc<str>, Option<i64>), Group> = FxHashMap::default();
        for site in trace.sites()? {
            let steps = Steps::of(trace, timeline, &[site.id])?;
            if steps.changes(timeline).next().is_none() {
                continue;
            }
            let figures = Figures::from_steps(&steps);
            self.total.add(&figures);
            let stack = site.stack.filter(|_| question.by != By::Class);
            let group = groups.entry((site.class, stack)).or_default();
            group.figures.add(&figures);
            group.sites.push((life.key, site.id));
        }
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_by(|(a_name, a), (b_name, b)| {
            let most = |g: &Group| g.figures.change(question.measure).unsigned_abs();
            most(b).cmp(&most(a)).then_with(|| a_name.cmp(b_name))
        });
        if question.by == By::Stack {
            groups.truncate(MOST_NAMED);
        }
        // The figures of a frame are the sum over all its stacks. So if rows are frames, all stacks are needed here.
        let places = match question.by {
            By::Frame => Some(Places::read(trace)?),
            By::Class | By::Stack => None,
        };
        for ((class, stack), group) in groups {
            let (place, known) = match &places {
                Some(places) => {
                    let place = places.of_stack(stack);
                    (place.clone(), place.unwrap_or_default())
                }
                None => {
                    let frames = text::stack(trace, stack)?;
                    (
                        allocating_frame(&frames).map(str::to_owned),
                        frames.join("\n"),
                    )
                }
            };
            let into = merged.entry((cut(&class).to_owned(), known)).or_default();
            into.figures.add(&group.figures);
            into.sites.extend(group.sites);
            into.place = place;
        }
        Ok(())
    }
}
