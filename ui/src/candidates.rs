//! Which lines there are, and which of them are drawn: those whose live objects grow and stay.

use rusqlite::{Connection, OptionalExtension, params};
use rustc_hash::FxHashMap;

use crate::runs::Key;
use crate::text::{Names, known_by};
use crate::view::{By, Measure};

/// Sites of one run that are looked at; a program has some thousands.
const MOST_SITES: i64 = 500_000;

/// Objects and bytes; estimates, as all figures of a trace that was not taken at interval 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Amount {
    pub(crate) objects: i64,
    pub(crate) bytes: i64,
}

impl Amount {
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            objects: self.objects.saturating_add(other.objects),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }

    pub(crate) fn less(self, other: Self) -> Self {
        Self {
            objects: self.objects.saturating_sub(other.objects),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }

    pub(crate) fn least(self, other: Self) -> Self {
        Self {
            objects: self.objects.min(other.objects),
            bytes: self.bytes.min(other.bytes),
        }
    }

    pub(crate) fn of(self, measure: Measure) -> i64 {
        match measure {
            Measure::Objects => self.objects,
            Measure::Bytes => self.bytes,
        }
    }
}

/// The ticks of a run that bound what is asked: rows are told apart by the ids of their ticks, which
/// grow with time within a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) run: i64,
    /// The last tick before the window; 0 if there is none.
    pub(crate) from: i64,
    /// The last tick of its first tenth, or its first: what a program allocates when it starts is no growth.
    early: i64,
    /// The last tick of its first three quarters, or the one before the last collection where that is
    /// earlier.
    late: i64,
    /// Its last tick.
    pub(crate) to: i64,
}

impl Bounds {
    /// Of a window in uptime; none if the run has no tick up to its end.
    pub(crate) fn of(
        c: &Connection,
        run: i64,
        from: i64,
        to: i64,
    ) -> rusqlite::Result<Option<Self>> {
        let mut last = c.prepare_cached(
            "SELECT id FROM tick WHERE run = ?1 AND uptime_ms <= ?2 ORDER BY uptime_ms DESC LIMIT 1",
        )?;
        let mut until = |ms: i64| last.query_row([run, ms], |r| r.get::<_, i64>(0)).optional();
        let span = to.saturating_sub(from);
        let Some(end) = until(to)? else {
            return Ok(None);
        };
        let begin = until(from)?.unwrap_or(0);
        let first = c
            .prepare_cached(
                "SELECT id FROM tick WHERE run = ?1 AND uptime_ms > ?2 ORDER BY uptime_ms LIMIT 1",
            )?
            .query_row([run, from], |r| r.get::<_, i64>(0))
            .optional()?;
        let collected = c
            .prepare_cached(
                "SELECT uptime_ms FROM collection WHERE run = ?1 AND uptime_ms <= ?2 \
                 ORDER BY uptime_ms DESC LIMIT 1",
            )?
            .query_row([run, to], |r| r.get::<_, i64>(0))
            .optional()?;
        let late = to.saturating_sub(span / 4);
        let late = collected.map_or(late, |ms| late.min(ms.saturating_sub(1)));
        let early = until(from.saturating_add(span / 10))?.unwrap_or(0);
        Ok(Some(Self {
            run,
            from: begin,
            early: early.max(first.unwrap_or(0)).min(end),
            late: until(late)?.unwrap_or(0),
            to: end,
        }))
    }
}

/// A site of one run, at the window's ends.
#[derive(Clone, Copy, Debug)]
struct Site {
    id: i64,
    class: i64,
    stack: Option<i64>,
    /// What was alive early in the window.
    before: Amount,
    /// The least that was alive in the window's last quarter: what a collection left.
    floor: Amount,
    after: Amount,
}

/// A line of the graph, of one run or of several.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    pub(crate) class: String,
    /// The frame that its stack is known by.
    pub(crate) place: Option<String>,
    /// The whole stack, by which lines of several runs are the same.
    pub(crate) stack: String,
    pub(crate) before: Amount,
    pub(crate) floor: Amount,
    pub(crate) after: Amount,
    pub(crate) sites: Vec<(Key, i64)>,
}

impl Line {
    fn add(&mut self, key: Key, site: &Site) {
        self.before = self.before.plus(site.before);
        self.floor = self.floor.plus(site.floor);
        self.after = self.after.plus(site.after);
        self.sites.push((key, site.id));
    }

    fn absorb(&mut self, other: Self) {
        self.before = self.before.plus(other.before);
        self.floor = self.floor.plus(other.floor);
        self.after = self.after.plus(other.after);
        self.sites.extend(other.sites);
    }

    /// What grew and was still there after collections; then what is alive.
    fn weight(&self, measure: Measure) -> (i64, i64) {
        (
            self.floor.less(self.before).of(measure),
            self.after.of(measure),
        )
    }
}

/// All lines of some runs, merged by their names.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    lines: FxHashMap<(String, String), Line>,
    /// Sites or lines that were not looked at.
    pub(crate) cut: bool,
}

impl Lines {
    /// Adds those of a run. Of the sites of several runs only the heaviest are named and merged:
    /// `most` of each.
    pub(crate) fn add(
        &mut self,
        c: &Connection,
        key: Key,
        bounds: Bounds,
        (by, measure): (By, Measure),
        most: usize,
    ) -> rusqlite::Result<()> {
        let (sites, cut) = sites(c, bounds)?;
        self.cut |= cut;
        let mut groups: FxHashMap<(i64, Option<i64>), Line> = FxHashMap::default();
        for site in &sites {
            let group = match by {
                By::Class => (site.class, None),
                By::Site => (site.class, site.stack),
            };
            groups.entry(group).or_default().add(key, site);
        }
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_by_key(|(group, line)| (std::cmp::Reverse(line.weight(measure)), *group));
        groups.truncate(most);
        let mut names = Names::new(c)?;
        for ((class, stack), mut line) in groups {
            line.class = names.class(class)?;
            if by == By::Site {
                let frames = names.stack(stack)?;
                line.place = known_by(&frames).cloned();
                line.stack = frames.join("\n");
            }
            let name = (line.class.clone(), line.stack.clone());
            match self.lines.entry(name) {
                std::collections::hash_map::Entry::Occupied(mut e) => e.get_mut().absorb(line),
                std::collections::hash_map::Entry::Vacant(e) => {
                    e.insert(line);
                }
            }
        }
        Ok(())
    }

    /// The heaviest, heaviest first, and how many there are in all.
    pub(crate) fn top(self, measure: Measure, most: usize) -> (Vec<Line>, usize) {
        let all = self.lines.len();
        let mut lines: Vec<Line> = self.lines.into_values().collect();
        lines.sort_by(|a, b| {
            let weights = b.weight(measure).cmp(&a.weight(measure));
            weights.then_with(|| (&a.class, &a.stack).cmp(&(&b.class, &b.stack)))
        });
        lines.truncate(most);
        (lines, all)
    }
}

/// What is alive at a site, at any tick.
pub(crate) struct Live<'c>(rusqlite::CachedStatement<'c>);

impl<'c> Live<'c> {
    pub(crate) fn new(c: &'c Connection) -> rusqlite::Result<Self> {
        // Runs of one file share their sites: rows of another run are passed over.
        Ok(Self(c.prepare_cached(
            "SELECT s.live_objects, s.live_bytes FROM site_tick s WHERE s.site = ?1 AND s.tick <= ?2 \
             AND EXISTS (SELECT 1 FROM tick t WHERE t.id = s.tick AND t.run = ?3) \
             ORDER BY s.tick DESC LIMIT 1",
        )?))
    }

    pub(crate) fn at(&mut self, run: i64, site: i64, tick: i64) -> rusqlite::Result<Amount> {
        let row = self.0.query_row(params![site, tick, run], |r| {
            Ok(Amount {
                objects: r.get(0)?,
                bytes: r.get(1)?,
            })
        });
        Ok(row.optional()?.unwrap_or_default())
    }
}

fn sites(c: &Connection, bounds: Bounds) -> rusqlite::Result<(Vec<Site>, bool)> {
    let mut live = Live::new(c)?;
    let mut lowest = c.prepare_cached(
        "SELECT min(s.live_objects), min(s.live_bytes) FROM site_tick s \
         WHERE s.site = ?1 AND s.tick > ?2 AND s.tick <= ?3 \
         AND EXISTS (SELECT 1 FROM tick t WHERE t.id = s.tick AND t.run = ?4)",
    )?;
    let mut all = c.prepare_cached("SELECT id, class, stack FROM site LIMIT ?1")?;
    let mut rows = all.query([MOST_SITES])?;
    let mut sites = Vec::new();
    let mut seen = 0;
    while let Some(row) = rows.next()? {
        seen += 1;
        let id = row.get(0)?;
        let mut at = |tick| live.at(bounds.run, id, tick);
        let (before, late, after) = (at(bounds.early)?, at(bounds.late)?, at(bounds.to)?);
        let mut floor = late.least(after);
        let arguments = params![id, bounds.late, bounds.to, bounds.run];
        let least = lowest.query_row(arguments, |r| {
            Ok((r.get::<_, Option<i64>>(0)?, r.get::<_, Option<i64>>(1)?))
        })?;
        if let (Some(objects), Some(bytes)) = least {
            floor = floor.least(Amount { objects, bytes });
        }
        if [before, floor, after]
            .iter()
            .any(|a| *a != Amount::default())
        {
            sites.push(Site {
                id,
                class: row.get(1)?,
                stack: row.get(2)?,
                before,
                floor,
                after,
            });
        }
    }
    Ok((sites, seen == MOST_SITES))
}
