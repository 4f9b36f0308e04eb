//! The agent's thread: finds collected samples, frees slots when the table of samples is nearly full, and copies
//! counters and totals to the Java heap.
//!
//! With a small interval, samples of dead objects fill the table long before the next GC. So the agent first requests a
//! GC. The agent downsamples only if live samples fill the table.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant};

use heapdiff_sites::{CHUNK, Counter, Sampling, Strategy, statics};
use heapdiff_units::Span;

use crate::collected::CollectedRefs;
use crate::counters::Counters;
use crate::heap::Fields;
use crate::jvm_stats::heap_of;
use crate::jvmti::Jvmti;
use crate::jvmti::calls::{Env, Global, Ints, Objects, Ref, Result};
use crate::log::{Level, print_line};
use crate::sample_ref::{Reaper, Static};
use crate::sampler::Sampler;
use crate::table::Table;
use crate::unproven::{Looks, Unproven};
use crate::wakeup::Wakeup;

/// Interval between searches for collected samples if no GC reports its end. Some collectors never report it.
const IDLE: Duration = Duration::from_secs(1);
/// Maximum number of times that the sampling interval is doubled in one search.
const MOST_DOUBLINGS: u32 = 16;
/// Number of slots that downsampling frees in one step.
const BATCH: usize = 256;
/// Minimum time between two searches, even if GCs follow each other faster.
const REST: Duration = Duration::from_millis(20);

/// A GC is requested only if the samples of a full table represent fewer allocated bytes than this number. If they
/// represent more bytes, the JVM has run many GCs by itself before the table is full.
const MOST_BEFORE_A_COLLECTION: u64 = 1 << 30;
/// Maximum total time of the requested GCs: 1 / `PART_FOR_COLLECTING` of the time since the start of sampling, plus
/// `FREE_FOR_COLLECTING`. If this time is exceeded, no GC is requested.
const PART_FOR_COLLECTING: u32 = 4;
const FREE_FOR_COLLECTING: Duration = Duration::from_secs(1);
/// A GC is requested only if at most this number of heap bytes is in use, because the program is stopped during such a
/// GC. After a GC that took longer than `LONGEST_COLLECTION`, no GC is ever requested again.
const MOST_IN_USE: u64 = 1 << 30;
const LONGEST_COLLECTION: Duration = Duration::from_millis(500);

/// The data that the agent's thread needs to find collected samples.
pub(crate) struct Work<'a> {
    pub(crate) jvmti: Jvmti,
    pub(crate) sampler: &'a Sampler,
    pub(crate) collected: &'a CollectedRefs,
    pub(crate) found: &'a Found,
    pub(crate) counters: &'a Counters,
    pub(crate) wakeup: &'a Wakeup,
    /// Number of dropped samples ([`Counter::DroppedFull`]) at the time of the last search.
    pub(crate) dropped: AtomicU64,
    /// Total time of the requested GCs, in nanoseconds.
    pub(crate) collecting: AtomicU64,
    /// Set if a requested GC took too long. Then no further GC is requested.
    pub(crate) collects_slowly: &'a AtomicBool,
    /// Decides when to search for collected samples, if the number of tracked samples is limited.
    pub(crate) looks: Looks,
}

/// Arrays in the heap for the result of a search: collected samples and their slots.
pub(crate) struct Found {
    dead: Arc<Global<Objects>>,
    places: Arc<Global<Ints>>,
}

impl Found {
    /// Creates the arrays and stores them in static fields, so that a dump shows that they belong to the agent.
    pub(crate) fn create(env: &Env<'_>, fields: &mut Fields) -> Result<Self> {
        Ok(Self {
            dead: fields.objects(env, statics::DEAD, CHUNK)?,
            places: fields.ints(env, statics::PLACES, CHUNK)?,
        })
    }
}

impl Work<'_> {
    /// Runs until the agent is stopped.
    pub(crate) fn run(&self, env: &Env<'_>) {
        while self.wakeup.wait(self.longest_wait()) {
            // If the search fails for lack of memory, the next wakeup repeats it.
            let _ = self.search_collected(env);
            if !self.wakeup.rest(REST) {
                break;
            }
        }
    }

    /// Returns the maximum time to wait for a wakeup: [`IDLE`], or the time until a postponed search may be made.
    fn longest_wait(&self) -> Duration {
        let owed = self.looks.time_until_search(self.sampler.started.elapsed());
        owed.unwrap_or(IDLE)
    }

    fn search_collected(&self, env: &Env<'_>) -> Result<()> {
        match &self.sampler.unproven {
            Some(unproven) => self.search_unproven(env, unproven)?,
            None => self.find_collected(env)?,
        }
        // A sample is dropped if no slot is free. Dropped samples are not a random choice, so estimates become too low.
        // If any sample was dropped since the last search, the table is too small for this interval, even if dead
        // samples have freed slots since then.
        let dropped = self.counters.get(Counter::DroppedFull);
        let before = self.dropped.swap(dropped, Relaxed);
        // If the number of tracked samples is limited (`unproven`), samples are dropped because of that limit, not
        // because the table is too small. `search_unproven` has already reacted to that limit.
        let is_small = dropped > before && self.sampler.unproven.is_none();
        let is_short = is_small || self.sampler.samples.is_nearly_full();
        if is_short && (dropped > before || !self.free_by_gc(env)?) && !self.wakeup.is_stopping() {
            self.downsample(env)?;
        }
        self.flush(env);
        Ok(())
    }

    /// Searches for collected samples if a search is due. Then halves the number of tracked samples until the limits of
    /// [`Unproven`] are met, but at most [`MOST_DOUBLINGS`] times.
    fn search_unproven(&self, env: &Env<'_>, unproven: &Unproven) -> Result<()> {
        if self.looks.request_if_due(self.sampler.started.elapsed()) {
            let tried = unproven.newest_dead_uid();
            self.find_collected(env)?;
            self.looks.mark_search_made();
            if unproven.newest_dead_uid() > tried {
                self.recount(unproven);
            }
        }
        for _ in 0..MOST_DOUBLINGS {
            if !unproven.should_track_fewer() || self.wakeup.is_stopping() {
                break;
            }
            self.downsample(env)?;
            self.recount(unproven);
        }
        Ok(())
    }

    fn recount(&self, unproven: &Unproven) {
        let followed = self.sampler.samples.records();
        unproven.recount(followed.map(|record| (record.uid, record.size)));
    }

    fn find_collected(&self, env: &Env<'_>) -> Result<()> {
        self.counters.count(Counter::Sweeps);
        match self.sampler.refs.reaper() {
            Reaper::Scan => {
                self.scan(env, &self.sampler.samples)?;
                self.scan(env, &self.sampler.classes)
            }
            Reaper::Queue => self.drain(env),
        }
    }

    /// Requests a GC if that is allowed now. Returns true if at least half of the table is free afterwards.
    fn free_by_gc(&self, env: &Env<'_>) -> Result<bool> {
        let sampling = self.sampler.strategy.sampling();
        let samples = &self.sampler.samples;
        let stand_for = sampling.interval.saturating_mul(samples.capacity().into());
        let spent = Duration::from_nanos(self.collecting.load(Relaxed));
        if sampling.strategy != Strategy::Bytes
            || self.sampler.unproven.is_some()
            || stand_for > MOST_BEFORE_A_COLLECTION
            || !is_within_budget(spent, self.sampler.started.elapsed())
            || self.collects_slowly.load(Relaxed)
            || self.wakeup.is_stopping()
        {
            return Ok(false);
        }
        match heap_of(env, self.sampler.runtime.get()) {
            Ok((used, _)) if used <= MOST_IN_USE => {}
            _ => return Ok(false),
        }
        let start = Instant::now();
        if self.jvmti.collect_garbage().is_err() {
            return Ok(false);
        }
        if start.elapsed() > LONGEST_COLLECTION {
            self.collects_slowly.store(true, Relaxed);
        }
        if self.wakeup.is_stopping() {
            return Ok(false);
        }
        if self.sampler.refs.reaper() == Reaper::Queue {
            // Wait a moment, because another thread of the JVM fills the reference queue.
            self.wakeup.rest(REST);
        }
        let taken = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.collecting.fetch_add(taken, Relaxed);
        print_line(
            Level::Debug,
            format_args!(
                "the table of samples was nearly full; a requested GC took {}",
                Span(start.elapsed())
            ),
        );
        self.find_collected(env)?;
        Ok(samples.is_half_free())
    }

    /// Copies the current counters and totals to the Java heap.
    pub(crate) fn flush(&self, env: &Env<'_>) {
        self.sampler.totals.flush(env);
        self.sampler.allocated.flush(env);
        if let Some(types) = &self.sampler.site_types {
            types.flush(env);
        }
        if let Some(totals) = &self.sampler.class_totals {
            totals.flush(env);
        }
        if let Some(counted) = &self.sampler.counted {
            counted.copy_if_due(env);
        }
        self.sampler.copy_counters(env, self.counters);
    }

    fn scan(&self, env: &Env<'_>, table: &Table) -> Result<()> {
        for (first, chunk) in table.chunks() {
            let count =
                self.sampler
                    .refs
                    .sweep(env, chunk, self.dead(), self.found.places.get())?;
            let slots: Vec<u32> = self
                .places(env, count)?
                .into_iter()
                .map(|place| first + place.cast_unsigned())
                .collect();
            self.record_collected(table, &slots);
            table.free_slots(&slots);
            self.store_collected(env, count)?;
        }
        Ok(())
    }

    /// Records collected samples for the trace. Under generational ZGC, also records the newest sample that was found
    /// dead. Each older sample that was not found dead is live (see `unproven`).
    fn record_collected(&self, table: &Table, slots: &[u32]) {
        if let Some(unproven) = &self.sampler.unproven
            && std::ptr::eq(table, &raw const self.sampler.samples)
        {
            let newest = slots.iter().map(|&slot| table.uid_at(slot)).max();
            unproven.record_dead(newest.unwrap_or(0));
        }
        let Some(ledger) = &self.sampler.ledger else {
            return;
        };
        let classes = std::ptr::eq(table, &raw const self.sampler.classes);
        let collected_ms = self.sampler.now().into();
        let mut dead = Vec::new();
        for record in slots.iter().filter_map(|&slot| table.record_at(slot)) {
            if classes {
                ledger.class(u32::try_from(record.uid).unwrap_or(0), false);
            } else if let Some(site) =
                ledger.collected(record.booking, record.size, record.time.into())
            {
                dead.push((record.sample(site), collected_ms));
            }
        }
        self.sampler.collected.add(&dead);
    }

    fn drain(&self, env: &Env<'_>) -> Result<()> {
        loop {
            // The first argument is the chunk to search. `Reaper::Queue` ignores this argument, so `dead` is passed
            // as a placeholder.
            let count =
                self.sampler
                    .refs
                    .sweep(env, self.dead(), self.dead(), self.found.places.get())?;
            for (index, place) in self.places(env, count)?.into_iter().enumerate() {
                // A negative number is the bitwise complement of a slot of a class definition.
                let (table, slot) = match u32::try_from(place) {
                    Ok(slot) => (&self.sampler.samples, slot),
                    Err(_) => (&self.sampler.classes, (!place).cast_unsigned()),
                };
                // Another sample may use the slot now, because downsampling may have freed the slot meanwhile.
                if Self::holds(env, table, slot, self.dead(), index)? {
                    table.clear(env, slot);
                    self.record_collected(table, &[slot]);
                    table.free_slots(&[slot]);
                }
            }
            self.store_collected(env, count)?;
            if count < CHUNK {
                return Ok(());
            }
        }
    }

    fn dead(&self) -> Ref<'_, Objects> {
        self.found.dead.get()
    }

    /// True if `slot` still contains the same reference as element `index` of `dead`.
    fn holds(
        env: &Env<'_>,
        table: &Table,
        slot: u32,
        dead: Ref<'_, Objects>,
        index: usize,
    ) -> Result<bool> {
        let Some((chunk, place)) = table.place(slot) else {
            return Ok(false);
        };
        let there = chunk.at(env, place)?;
        let found = dead.at(env, index)?;
        Ok(match (&there, &found) {
            (Some(there), Some(found)) => there.get().is(env, found.get()),
            (there, found) => there.is_none() && found.is_none(),
        })
    }

    fn places(&self, env: &Env<'_>, count: usize) -> Result<Vec<i32>> {
        let mut places = vec![0; count.min(CHUNK)];
        self.found.places.get().read(env, &mut places)?;
        Ok(places)
    }

    /// The first `count` elements of the array `dead` are references whose objects were collected. Stores some of them
    /// in the lists of collected samples, which dumps contain. Then clears all these elements.
    fn store_collected(&self, env: &Env<'_>, count: usize) -> Result<()> {
        let seen = self.counters.get(Counter::Collected);
        let now = self.sampler.now();
        self.collected.add(env, self.dead(), count, seen, now)?;
        self.counters.add(Counter::Collected, count as u64);
        for index in 0..count {
            self.dead().put(env, index, None)?;
        }
        Ok(())
    }

    /// Doubles the distance between samples: the interval (in bytes), or the rate (in allocations or milliseconds per
    /// sample). Drops the samples that would not have been taken with the new value. Under generational ZGC, as many
    /// samples are taken as before, and only the number of tracked samples is halved.
    ///
    /// A dump may be taken at any moment. So the new interval is written to the heap before any sample is removed.
    /// Readers skip the samples that would not have been taken with the new interval.
    fn downsample(&self, env: &Env<'_>) -> Result<()> {
        let sampler = self.sampler;
        let now = sampler.strategy.sampling();
        let next = now.doubled();
        show_sampling(env, sampler, next)?;
        let what = if sampler.unproven.is_some() {
            "tracks"
        } else {
            "takes"
        };
        if let Some(unproven) = &sampler.unproven {
            sampler.strategy.follow(next);
            unproven.record_halved();
        } else {
            if next.strategy == Strategy::Bytes && self.jvmti.set_interval(next.interval).is_err() {
                return show_sampling(env, sampler, now);
            }
            sampler.strategy.set(next);
        }
        self.counters.count(Counter::Thinnings);
        print_line(
            Level::Debug,
            format!(
                "the table of samples is too small: from now on, the agent {what} half as many samples"
            ),
        );
        let samples = &sampler.samples;
        let mut dropped = Vec::with_capacity(BATCH);
        let generation = u32::try_from(self.counters.get(Counter::Thinnings)).unwrap_or(u32::MAX);
        for record in samples.records() {
            let keeps = next.would_take(&sampler.first, record.uid, record.size);
            let gone = !keeps
                && match sampler.unproven {
                    Some(_) => samples.clear_reference(env, record.slot),
                    None => samples.clear(env, record.slot),
                };
            if let Some(ledger) = &sampler.ledger {
                let booking =
                    ledger.downsample_account(record.booking, record.size, generation, !gone);
                samples.set_booking(record.slot, booking);
            }
            if gone {
                dropped.push(record.slot);
            }
            if dropped.len() >= BATCH {
                self.free_slots(&mut dropped);
            }
        }
        self.free_slots(&mut dropped);
        Ok(())
    }

    /// Frees the given slots. Called for each batch of dropped samples and not only at the end of downsampling, because
    /// other threads lose samples as long as no slot is free.
    fn free_slots(&self, dropped: &mut Vec<u32>) {
        self.sampler.samples.free_slots(dropped);
        self.counters.add(Counter::Thinned, dropped.len() as u64);
        dropped.clear();
    }
}

/// True if another GC may be requested. `spent` is the total time of the GCs requested until now, and `running` is the
/// time since the start of sampling.
fn is_within_budget(spent: Duration, running: Duration) -> bool {
    spent <= running / PART_FOR_COLLECTING + FREE_FOR_COLLECTING
}

/// Writes the current sampling interval and rate to the heap.
fn show_sampling(env: &Env<'_>, sampler: &Sampler, sampling: Sampling) -> Result<()> {
    for (name, value) in [
        (statics::INTERVAL, sampling.interval),
        (statics::RATE, sampling.rate),
    ] {
        let value = Static::Long(value.cast_signed());
        sampler.refs.set(env, name, value)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gcs_may_take_a_second_plus_a_quarter_of_the_time() {
        let second = Duration::from_secs(1);
        assert!(is_within_budget(Duration::ZERO, Duration::ZERO));
        assert!(is_within_budget(second, Duration::ZERO));
        assert!(!is_within_budget(second * 2, second));
        assert!(is_within_budget(second * 2, second * 4));
        assert!(!is_within_budget(second * 3, second * 4));
    }
}
