//! Single samples: those that live, and some that were collected.
//!
//! The caller has each live sample in a place of its own and says whose uid is there now. Only what has changed
//! since the last tick is written, so a sample that stays costs a comparison.

use std::sync::Arc;

use rusqlite::{Connection, params};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::database::int;
use crate::write_names::{Ids, Names};

/// Live samples that get a row in one tick, at most; the others follow.
const AT_A_TIME: usize = 10_000;
/// Bytes of the file's limit for each row: rows take some 30, so all of them an eighth of it.
const BYTES_PER_ROW: u64 = 256;

/// A sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Unique in the run.
    pub uid: u64,
    /// The class's number, for [`Names`].
    pub class: u32,
    /// The stack's number, for [`Names`]; 0: none.
    pub stack: u32,
    /// The number of the thread's name, for [`Samples`]; 0: not known.
    pub thread: u32,
    /// Bytes of the object.
    pub bytes: u64,
    /// When it was allocated, milliseconds since the run began.
    pub allocated_ms: i64,
}

/// A sample whose object was collected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// The sample.
    pub sample: Sample,
    /// When it was found to be collected, milliseconds since the run began.
    pub collected_ms: i64,
    /// Whether it is of the last ones.
    pub recent: bool,
    /// Whether it is of the uniform choice of all.
    pub chosen: bool,
}

/// Tells the single samples.
pub trait Samples {
    /// Places that live samples may be in: those below this number.
    fn places(&self) -> u32;
    /// The uid of the sample in a place; 0 where there is none. No uid is ever given twice.
    fn uid(&self, place: u32) -> u64;
    /// The sample in a place; `None` where there is none, or none whose site is known.
    fn live(&self, place: u32) -> Option<Sample>;
    /// A thread's name.
    fn thread(&self, thread: u32) -> Option<Arc<str>>;
    /// All collected samples that are remembered, each once; `None` if they are those of the last time, unless all are to
    /// be told `anew`.
    fn collected(&self, anew: bool) -> Option<Vec<Collected>>;
}

/// No samples.
impl Samples for () {
    fn places(&self) -> u32 {
        0
    }

    fn uid(&self, _: u32) -> u64 {
        0
    }

    fn live(&self, _: u32) -> Option<Sample> {
        None
    }

    fn thread(&self, _: u32) -> Option<Arc<str>> {
        None
    }

    fn collected(&self, _: bool) -> Option<Vec<Collected>> {
        None
    }
}

/// What is known of the rows of a run.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    /// The uid that has a row, by place; 0 for none.
    live: Vec<u64>,
    /// The first place that got no row because time was up.
    next: usize,
    /// Collected samples that have a row: whether they are recent, and chosen.
    collected: FxHashMap<u64, (bool, bool)>,
    /// Rows of all runs in the table.
    all: u64,
    /// The names of sites left no room for rows.
    off: bool,
    /// The table may have other rows.
    forgotten: bool,
}

/// Where rows go.
pub(crate) struct Target<'a, N, S> {
    pub(crate) connection: &'a Connection,
    pub(crate) run: i64,
    pub(crate) ids: &'a mut Ids,
    pub(crate) names: &'a N,
    pub(crate) samples: &'a S,
    /// Of the file.
    pub(crate) max_bytes: u64,
}

impl Rows {
    /// Another number of rows is in the table than was thought.
    pub(crate) fn recount(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let count = "SELECT count(*) FROM sample";
        let all: i64 = connection
            .prepare_cached(count)?
            .query_row([], |row| row.get(0))?;
        self.all = all.unsigned_abs();
        Ok(())
    }

    /// The table may have other rows than were thought: it is asked before more are written.
    pub(crate) fn forget(&mut self) {
        self.forgotten = true;
    }

    /// Asks the table which rows there are of the run. Those of live samples that live no more go.
    fn reload<N, S: Samples>(&mut self, target: &Target<'_, N, S>) -> rusqlite::Result<()> {
        let connection = target.connection;
        let mut live = FxHashSet::default();
        self.collected.clear();
        let find = "SELECT uid, collected_ms IS NULL, recent, chosen FROM sample WHERE run = ?1";
        let mut find = connection.prepare_cached(find)?;
        let mut rows = find.query([target.run])?;
        while let Some(row) = rows.next()? {
            let uid = row.get::<_, i64>(0)?.unsigned_abs();
            if row.get(1)? {
                live.insert(uid);
            } else {
                self.collected.insert(uid, (row.get(2)?, row.get(3)?));
            }
        }
        let places = 0..target.samples.places();
        self.live = places
            .map(|place| target.samples.uid(place))
            .map(|uid| if live.remove(&uid) { uid } else { 0 })
            .collect();
        let mut drop =
            connection.prepare_cached("DELETE FROM sample WHERE run = ?1 AND uid = ?2")?;
        for uid in live {
            drop.execute(params![target.run, int(uid)])?;
        }
        self.recount(connection)
    }

    /// From now on there are none.
    pub(crate) fn stop(&mut self) {
        *self = Self {
            off: true,
            ..Self::default()
        };
    }

    /// Whether there are none because of that.
    pub(crate) const fn are_off(&self) -> bool {
        self.off
    }

    /// Brings the rows up to date, as far as there is time and room; `false` if there was too little room.
    pub(crate) fn write<N: Names, S: Samples>(
        &mut self,
        target: &mut Target<'_, N, S>,
    ) -> rusqlite::Result<bool> {
        if self.off {
            return Ok(true);
        }
        let anew = self.forgotten;
        if anew {
            self.reload(target)?;
        }
        let most = target.max_bytes / BYTES_PER_ROW;
        // Collected ones first: the rows of those that lived become theirs.
        let collected = target.samples.collected(anew);
        let room = match collected {
            Some(collected) => self.write_collected(target, &collected, most)?,
            None => true,
        };
        let room = self.write_live(target, most)? && room;
        self.forgotten = false;
        Ok(room)
    }

    fn write_collected<N: Names, S: Samples>(
        &mut self,
        target: &mut Target<'_, N, S>,
        collected: &[Collected],
        most: u64,
    ) -> rusqlite::Result<bool> {
        let connection = target.connection;
        let now: FxHashMap<u64, (bool, bool)> = collected
            .iter()
            .map(|c| (c.sample.uid, (c.recent, c.chosen)))
            .collect();
        let before = std::mem::take(&mut self.collected);
        let mut forget =
            connection.prepare_cached("DELETE FROM sample WHERE run = ?1 AND uid = ?2")?;
        for uid in before.keys().filter(|uid| !now.contains_key(uid)) {
            let gone = forget.execute(params![target.run, int(*uid)])?;
            self.all = self.all.saturating_sub(gone as u64);
        }
        let mut mark = connection.prepare_cached(
            "UPDATE sample SET collected_ms = ?3, recent = ?4, chosen = ?5 WHERE run = ?1 AND uid = ?2",
        )?;
        let mut room = true;
        for c in collected {
            let known = before.get(&c.sample.uid);
            if known == Some(&(c.recent, c.chosen)) {
                continue;
            }
            let uid = int(c.sample.uid);
            let marked =
                mark.execute(params![target.run, uid, c.collected_ms, c.recent, c.chosen])?;
            // One that was known and has no row any more is too old.
            if marked == 0 && known.is_none() {
                if self.all < most {
                    self.insert(target, c)?;
                } else {
                    room = false;
                }
            }
        }
        self.collected = now;
        Ok(room)
    }

    fn write_live<N: Names, S: Samples>(
        &mut self,
        target: &mut Target<'_, N, S>,
        most: u64,
    ) -> rusqlite::Result<bool> {
        let places = target.samples.places() as usize;
        if self.live.len() < places {
            self.live.resize(places, 0);
        }
        // Its row may be that of a collected one by now, and stays.
        let mut forget = target.connection.prepare_cached(
            "DELETE FROM sample WHERE run = ?1 AND uid = ?2 AND collected_ms IS NULL",
        )?;
        let mut new = Vec::new();
        // Not always from the first place on: where samples come and go faster than they are written the last
        // places would never have their turn.
        let start = self.next.min(places);
        for place in (start..places).chain(0..start) {
            let Ok(number) = u32::try_from(place) else {
                break;
            };
            let uid = target.samples.uid(number);
            let row = self.live[place];
            if uid == row {
                continue;
            }
            if row != 0 {
                let gone = forget.execute(params![target.run, int(row)])?;
                self.all = self.all.saturating_sub(gone as u64);
                self.live[place] = 0;
            }
            if uid != 0 && new.len() <= AT_A_TIME {
                new.push(number);
            }
        }
        self.next = 0;
        let collected = self.collected.len() as u64;
        for (count, &place) in new.iter().enumerate() {
            if count == AT_A_TIME {
                self.next = place as usize;
                break;
            }
            // A part is left to those that will be collected.
            let live = self.all.saturating_sub(collected);
            if self.all >= most || live >= most - most / 4 {
                return Ok(false);
            }
            if let Some(sample) = target.samples.live(place) {
                let live = Collected {
                    sample,
                    ..Collected::default()
                };
                self.insert(target, &live)?;
                self.live[place as usize] = sample.uid;
            }
        }
        Ok(true)
    }

    /// Adds a row: of a live sample, unless it is recent or chosen.
    fn insert<N: Names, S: Samples>(
        &mut self,
        target: &mut Target<'_, N, S>,
        sample: &Collected,
    ) -> rusqlite::Result<()> {
        let Collected {
            sample: s,
            recent,
            chosen,
            ..
        } = *sample;
        let connection = target.connection;
        let key = (s.class, s.stack);
        let Some(site) = target.ids.site(connection, target.names, key, false)? else {
            return Ok(());
        };
        let name = |thread| target.samples.thread(thread);
        let thread = target.ids.thread(connection, s.thread, name)?;
        let collected = (recent || chosen).then_some(sample.collected_ms);
        // There is one already where the caller had it in two places for a moment.
        let added = connection
            .prepare_cached(
                "INSERT INTO sample VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT DO NOTHING",
            )?
            .execute(params![
                target.run,
                int(s.uid),
                site,
                thread,
                int(s.bytes),
                s.allocated_ms,
                collected,
                recent,
                chosen,
            ])?;
        self.all += added as u64;
        Ok(())
    }
}
