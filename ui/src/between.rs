//! Two moments beside each other: what was allocated and collected in between, by class or site, and
//! what is alive at the later one that was not at the earlier.

use rusqlite::{Connection, params};
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::candidates::{Amount, Bounds, Live};
use crate::runs::Key;
use crate::text::{Names, known_by};
use crate::traces::{Traces, Unanswered};
use crate::view::{By, Life, MOST_LINES, Measure, Question};

/// Rows of each run that are named before runs are put together.
const MOST_NAMED: usize = 400;

/// The difference.
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

/// Of one site, or of several.
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

    /// How much more is alive.
    fn change(&self, measure: Measure) -> i64 {
        match measure {
            Measure::Objects => self.after_objects.saturating_sub(self.before_objects),
            Measure::Bytes => self.after_bytes.saturating_sub(self.before_bytes),
        }
    }
}

#[derive(Debug, Default)]
struct Group {
    figures: Figures,
    sites: Vec<(Key, i64)>,
    place: Option<String>,
}

/// Answers what changed in a window; only sites where something happened have a part in it.
pub(crate) fn between(traces: &Traces, question: &Question) -> Result<Between, Unanswered> {
    let lives = Life::of(traces, &question.runs);
    let (Some(from), Some(to)) = (question.from, question.to) else {
        return Err(Unanswered("two moments are needed".to_owned()));
    };
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
        trace.ask(|c| {
            let window = (life.uptime(from), life.uptime(to));
            if let Some(bounds) = Bounds::of(c, life.key.run, window.0, window.1)? {
                answer.add(c, life, bounds, question, &mut merged)?;
            }
            Ok(())
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
            By::Class => Vec::new(),
            By::Site => group
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
        c: &Connection,
        life: &Life,
        bounds: Bounds,
        question: &Question,
        merged: &mut FxHashMap<(String, String), Group>,
    ) -> rusqlite::Result<()> {
        let mut happened = c.prepare_cached(
            "SELECT s.site, i.class, i.stack, sum(s.allocated_objects), sum(s.allocated_bytes), \
             sum(s.collected_objects), sum(s.collected_bytes) \
             FROM site_tick s JOIN tick t ON t.id = s.tick JOIN site i ON i.id = s.site \
             WHERE s.tick > ?1 AND s.tick <= ?2 AND t.run = ?3 GROUP BY s.site",
        )?;
        let mut live = Live::new(c)?;
        let mut groups: FxHashMap<(i64, Option<i64>), Group> = FxHashMap::default();
        let mut rows = happened.query(params![bounds.from, bounds.to, bounds.run])?;
        while let Some(row) = rows.next()? {
            let site = row.get(0)?;
            let [before, after]: [Amount; 2] = [
                live.at(bounds.run, site, bounds.from)?,
                live.at(bounds.run, site, bounds.to)?,
            ];
            let figures = Figures {
                allocated_objects: row.get(3)?,
                allocated_bytes: row.get(4)?,
                collected_objects: row.get(5)?,
                collected_bytes: row.get(6)?,
                before_objects: before.objects,
                before_bytes: before.bytes,
                after_objects: after.objects,
                after_bytes: after.bytes,
            };
            self.total.add(&figures);
            let name = match question.by {
                By::Class => (row.get(1)?, None),
                By::Site => (row.get(1)?, row.get(2)?),
            };
            let group = groups.entry(name).or_default();
            group.figures.add(&figures);
            group.sites.push((life.key, site));
        }
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_by_key(|(name, g)| {
            let most = g.figures.change(question.measure).unsigned_abs();
            (std::cmp::Reverse(most), *name)
        });
        if question.by == By::Site {
            groups.truncate(MOST_NAMED);
        }
        let mut names = Names::new(c)?;
        for ((class, stack), group) in groups {
            let class = names.class(class)?;
            let frames = match question.by {
                By::Class => Vec::new(),
                By::Site => names.stack(stack)?,
            };
            let into = merged.entry((class, frames.join("\n"))).or_default();
            into.figures.add(&group.figures);
            into.sites.extend(group.sites);
            into.place = known_by(&frames).cloned();
        }
        Ok(())
    }
}
