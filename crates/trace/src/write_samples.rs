//! Writes individual samples: all live ones, and a selection of those whose objects were collected.
//!
//! The caller keeps each live sample in a numbered slot of its table, and returns the uid of the sample in each slot.
//! Only slots that changed since the last write are written, so an unchanged sample costs one comparison.

use std::sync::Arc;

use rusqlite::{Connection, params};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::database::int;
use crate::write_names::{Ids, Names};

/// Maximum number of live samples that get a row in one write to the trace. Further samples get their rows in later
/// writes.
const AT_A_TIME: usize = 10_000;
/// The maximum number of rows of the table is the file's size limit divided by this number of bytes. A row takes about
/// 30 bytes, so the rows take at most 1/8 of the file.
const BYTES_PER_ROW: u64 = 256;

/// A sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Id of the sample, unique in the run.
    pub uid: u64,
    /// The class's number, to look up in [`Names`].
    pub class: u32,
    /// The stack's number, to look up in [`Names`]; 0 for none.
    pub stack: u32,
    /// The number of the thread's name, to look up in [`Samples`]; 0 if unknown.
    pub thread: u32,
    /// Bytes of the object.
    pub bytes: u64,
    /// Allocation time, in milliseconds since the run began.
    pub allocated_ms: i64,
}

/// A sample whose object was found dead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// The sample.
    pub sample: Sample,
    /// When the object was found dead, in milliseconds since the run began.
    pub collected_ms: i64,
    /// True if the sample is one of the most recently collected.
    pub recent: bool,
    /// True if the sample belongs to the uniform random selection from all collected samples.
    pub chosen: bool,
}

/// A source of individual samples.
pub trait Samples {
    /// Returns the number of slots. Slots are numbered from 0.
    fn places(&self) -> u32;
    /// Returns the uid of the sample in the slot `place`, or 0 if the slot is empty. A uid is never reused.
    fn uid(&self, place: u32) -> u64;
    /// Returns the sample in the slot `place`, or `None` if the slot is empty or the site of its sample is unknown.
    fn live(&self, place: u32) -> Option<Sample>;
    /// Returns the name of a thread.
    fn thread(&self, thread: u32) -> Option<Arc<str>>;
    /// Returns all collected samples that the caller keeps, each once. If `anew` is false, may return `None` if they
    /// have not changed since the last call.
    fn collected(&self, anew: bool) -> Option<Vec<Collected>>;
}

/// A source without samples.
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

/// A cache of the rows of the table `sample` that belong to the writer's run.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    /// For each slot of the agent: the uid of the sample in the row that was written for the slot. 0 if the table has
    /// no row for the slot.
    live: Vec<u64>,
    /// The first slot whose sample got no row in the last write, because the limit [`AT_A_TIME`] was reached. 0 if the
    /// limit was not reached.
    next: usize,
    /// Uids of collected samples with a row, each with its flags `recent` and `chosen`.
    collected: FxHashMap<u64, (bool, bool)>,
    /// Number of rows in the table, for all runs together.
    all: u64,
    /// True if no rows are written because the names of sites fill the file.
    off: bool,
    /// True if the table may have changed, so that the cache must be read from the table again.
    forgotten: bool,
}

/// The database and the run that rows are written to, and the sources of their values.
pub(crate) struct Target<'a, N, S> {
    pub(crate) connection: &'a Connection,
    pub(crate) run: i64,
    pub(crate) ids: &'a mut Ids,
    pub(crate) names: &'a N,
    pub(crate) samples: &'a S,
    /// Size limit of the file.
    pub(crate) max_bytes: u64,
}

impl Rows {
    /// Counts the rows of all runs in the table `sample` again.
    pub(crate) fn recount(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let count = "SELECT count(*) FROM sample";
        let all: i64 = connection
            .prepare_cached(count)?
            .query_row([], |row| row.get(0))?;
        self.all = all.unsigned_abs();
        Ok(())
    }

    /// Marks this cache as outdated. The cache is then read from the table `sample` again before more rows are written.
    pub(crate) fn invalidate(&mut self) {
        self.forgotten = true;
    }

    /// Reads the cached rows of the run from the table, and deletes the rows of live samples that no longer exist.
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

    /// Stops the writing of rows permanently.
    pub(crate) fn stop(&mut self) {
        *self = Self {
            off: true,
            ..Self::default()
        };
    }

    /// True if [`stop`](Self::stop) was called.
    pub(crate) const fn is_stopped(&self) -> bool {
        self.off
    }

    /// Updates the rows of the table `sample` with the agent's live and collected samples. Writes at most [`AT_A_TIME`]
    /// live samples, and no more rows than the size limit allows. Returns false if there was too little space.
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
        // Write collected samples first. A collected sample keeps the row that it had as a live sample, so mark this
        // row as collected. Otherwise `write_live` would delete it, because the sample is no longer live.
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
            // If a sample had a row before but has none now, the row was deleted because of its age. Do not write the
            // row again.
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
        // Delete only rows of live samples. If the sample has been collected in the meantime, its row stays: it is now
        // the row of a collected sample.
        let mut forget = target.connection.prepare_cached(
            "DELETE FROM sample WHERE run = ?1 AND uid = ?2 AND collected_ms IS NULL",
        )?;
        let mut new = Vec::new();
        // Continue at the slot where the last write stopped. If each write began at the first slot and samples changed
        // faster than they are written, the last slots would never get a row.
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
            // Live samples may use at most three quarters of the rows. The others are reserved for samples whose
            // objects were collected.
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

    /// Adds the row of a sample. If the sample is recent or chosen (see [`Collected`]), its object was collected.
    /// Otherwise the object is live.
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
        // The row may exist already, because the caller may have the sample in two slots for a moment.
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
