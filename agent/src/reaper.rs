//! The agent's thread: finds collected samples, thins when the table is full, and brings the
//! figures in the heap up to date.

use std::ffi::CStr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant};

use heapdiff_sites::{CHUNK, Counter, Sampling, Strategy, statics};
use jni::errors::Result;
use jni::objects::{JIntArray, JObject, JObjectArray};
use jni::{Env, JValue};

use crate::counters::Counters;
use crate::garbage::Garbage;
use crate::heap::{INTS, OBJECTS, objects};
use crate::jvmti::{Jvmti, Monitor};
use crate::sample_ref::Reaper;
use crate::sampler::Sampler;
use crate::table::Table;

/// What the JVM calls the agent's monitors.
pub(crate) const NAME: &CStr = c"heapdiff agent";
/// Without word from the collector the thread looks by itself: some collectors give none.
const IDLE: Duration = Duration::from_secs(1);
/// Places that thinning gives back at a time.
const BATCH: usize = 256;
/// After a look it rests, however often the collector runs.
const REST: Duration = Duration::from_millis(20);

/// Wakes the agent's thread.
pub(crate) struct Bell {
    jvmti: Jvmti,
    monitor: Monitor,
    rung: AtomicBool,
    stopping: AtomicBool,
}

impl Bell {
    pub(crate) fn new(jvmti: Jvmti, monitor: Monitor) -> Self {
        Self {
            jvmti,
            monitor,
            rung: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
        }
    }

    /// There is something to do: the collector has run, or a table is full.
    pub(crate) fn ring(&self) {
        // Who rings while it still sounds changes nothing.
        if !self.rung.load(Acquire) {
            self.jvmti
                .notify(self.monitor, || self.rung.store(true, Release));
        }
    }

    pub(crate) fn stop(&self) {
        self.jvmti
            .notify(self.monitor, || self.stopping.store(true, Release));
    }

    /// Wakes who waits, for what is told elsewhere.
    pub(crate) fn tell(&self) {
        self.jvmti.notify(self.monitor, || ());
    }

    /// Waits until `done` or for so long; whoever makes it so calls [`Self::tell`].
    pub(crate) fn until(&self, done: impl Fn() -> bool, most: Duration) {
        let end = Instant::now() + most;
        while !done() {
            let left = end.saturating_duration_since(Instant::now());
            let millis = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
            if millis == 0 || self.jvmti.wait(self.monitor, millis, &done).is_err() {
                return;
            }
        }
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Acquire)
    }

    /// Waits until the bell rings or time is up; `false` if it is time to stop.
    pub(crate) fn wait(&self, most: Duration) -> bool {
        let millis = u64::try_from(most.as_millis()).unwrap_or(u64::MAX).max(1);
        let ready = || self.is_stopping() || self.rung.load(Acquire);
        let waited = self.jvmti.wait(self.monitor, millis, ready);
        self.rung.swap(false, AcqRel);
        waited.is_ok() && !self.is_stopping()
    }

    /// Waits for so long, whether the bell rings or not; `false` if it is time to stop.
    pub(crate) fn rest(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        while !self.is_stopping() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            let millis = u64::try_from(left.as_millis()).unwrap_or(u64::MAX).max(1);
            let stopping = || self.is_stopping();
            if self.jvmti.wait(self.monitor, millis, stopping).is_err() {
                return false;
            }
        }
        false
    }
}

/// What the thread works on.
pub(crate) struct Work<'a> {
    pub(crate) jvmti: Jvmti,
    pub(crate) sampler: &'a Sampler,
    pub(crate) garbage: &'a Garbage,
    pub(crate) counters: &'a Counters,
    pub(crate) bell: &'a Bell,
    /// Samples that had found no place when the thread looked last.
    pub(crate) dropped: AtomicU64,
}

struct Found<'local> {
    dead: JObjectArray<'local>,
    places: JIntArray<'local>,
}

impl Work<'_> {
    /// Goes on until the JVM ends.
    pub(crate) fn run(&self, env: &mut Env<'_>) -> Result<()> {
        let found = Found {
            dead: objects(env, CHUNK)?,
            places: JIntArray::new(env, CHUNK)?,
        };
        // So that a dump shows whose they are.
        let refs = &self.sampler.refs;
        refs.set_static(env, statics::DEAD, OBJECTS, (&found.dead).into())?;
        refs.set_static(env, statics::PLACES, INTS, (&found.places).into())?;
        while self.bell.wait(IDLE) {
            // What fails, for want of memory, is done the next time.
            if self.look(env, &found).is_err() {
                env.exception_clear();
            }
            if !self.bell.rest(REST) {
                break;
            }
        }
        Ok(())
    }

    fn look(&self, env: &mut Env<'_>, found: &Found<'_>) -> Result<()> {
        self.counters.count(Counter::Sweeps);
        match self.sampler.refs.reaper() {
            Reaper::Scan => {
                self.scan(env, found, &self.sampler.samples)?;
                self.scan(env, found, &self.sampler.classes)?;
            }
            Reaper::Queue => self.drain(env, found)?,
        }
        // Samples that find no place would make estimates too low. Which ones they are is not chance:
        // even when the dead have made room again the table is too small for this interval.
        let dropped = self.counters.get(Counter::DroppedFull);
        let before = self.dropped.swap(dropped, Relaxed);
        if dropped > before || self.sampler.samples.is_crowded() {
            self.thin(env)?;
        }
        self.flush(env);
        Ok(())
    }

    /// Brings the figures in the heap up to date.
    pub(crate) fn flush(&self, env: &mut Env<'_>) {
        self.sampler.totals.flush(env);
        self.sampler.allocated.flush(env);
        if let Some(totals) = &self.sampler.class_totals {
            totals.flush(env);
        }
        self.sampler.show(env, self.counters);
    }

    fn scan(&self, env: &mut Env<'_>, found: &Found<'_>, table: &Table) -> Result<()> {
        for (first, chunk) in table.chunks() {
            let count = self
                .sampler
                .refs
                .sweep(env, chunk, &found.dead, &found.places)?;
            let slots: Vec<u32> = self
                .places(env, found, count)?
                .into_iter()
                .map(|place| first + place.cast_unsigned())
                .collect();
            self.unbook(table, &slots);
            table.give_back(&slots);
            self.bury(env, found, count)?;
        }
        Ok(())
    }

    /// Tells the trace what was collected.
    fn unbook(&self, table: &Table, slots: &[u32]) {
        let Some(ledger) = &self.sampler.ledger else {
            return;
        };
        let classes = std::ptr::eq(table, &raw const self.sampler.classes);
        let collected_ms = self.sampler.now().into();
        let mut dead = Vec::new();
        for noted in slots.iter().filter_map(|&slot| table.noted_at(slot)) {
            if classes {
                ledger.class(u32::try_from(noted.uid).unwrap_or(0), false);
            } else if let Some(site) = ledger.collected(noted.booking, noted.size) {
                dead.push((noted.sample(site), collected_ms));
            }
        }
        self.sampler.graves.bury(&dead);
    }

    fn drain(&self, env: &mut Env<'_>, found: &Found<'_>) -> Result<()> {
        loop {
            // This reaper looks at no chunk.
            let count = self
                .sampler
                .refs
                .sweep(env, &found.dead, &found.dead, &found.places)?;
            for (index, place) in self.places(env, found, count)?.into_iter().enumerate() {
                // Places of class definitions are complements.
                let (table, slot) = match u32::try_from(place) {
                    Ok(slot) => (&self.sampler.samples, slot),
                    Err(_) => (&self.sampler.classes, (!place).cast_unsigned()),
                };
                // Thinning may have dropped it, and another be in its place.
                if Self::holds(env, table, slot, &found.dead, index)? {
                    table.clear(env, slot);
                    self.unbook(table, &[slot]);
                    table.give_back(&[slot]);
                }
            }
            self.bury(env, found, count)?;
            if count < CHUNK {
                return Ok(());
            }
        }
    }

    /// Whether the reference at `index` of `dead` is in this place.
    fn holds(
        env: &mut Env<'_>,
        table: &Table,
        slot: u32,
        dead: &JObjectArray<'_>,
        index: usize,
    ) -> Result<bool> {
        let Some((chunk, place)) = table.place(slot) else {
            return Ok(false);
        };
        let there = chunk.get_element(env, place)?;
        let found = dead.get_element(env, index)?;
        let same = env.is_same_object(&there, &found)?;
        env.delete_local_ref(there);
        env.delete_local_ref(found);
        Ok(same)
    }

    fn places(&self, env: &mut Env<'_>, found: &Found<'_>, count: usize) -> Result<Vec<i32>> {
        let mut places = vec![0; count.min(CHUNK)];
        found.places.get_region(env, 0, &mut places)?;
        Ok(places)
    }

    fn bury(&self, env: &mut Env<'_>, found: &Found<'_>, count: usize) -> Result<()> {
        let seen = self.counters.get(Counter::Collected);
        let now = self.sampler.now();
        self.garbage.bury(env, &found.dead, count, seen, now)?;
        self.counters.add(Counter::Collected, count as u64);
        for index in 0..count {
            found.dead.set_element(env, index, JObject::null())?;
        }
        Ok(())
    }

    /// Doubles interval or rate and drops the samples that would not have been taken so.
    ///
    /// A dump may be taken at any moment: the new interval is in the heap before any sample goes, and the
    /// reader leaves out those that it does not keep.
    fn thin(&self, env: &mut Env<'_>) -> Result<()> {
        let sampler = self.sampler;
        let now = sampler.chooser.sampling();
        let next = now.doubled();
        show_sampling(env, sampler, next)?;
        if next.strategy == Strategy::Bytes && self.jvmti.set_interval(next.interval).is_err() {
            return show_sampling(env, sampler, now);
        }
        sampler.chooser.set(next);
        self.counters.count(Counter::Thinnings);
        let samples = &sampler.samples;
        let mut dropped = Vec::with_capacity(BATCH);
        let generation = u32::try_from(self.counters.get(Counter::Thinnings)).unwrap_or(u32::MAX);
        for noted in samples.noted() {
            let keeps = next.keeps(&sampler.first, noted.uid, noted.size);
            let gone = !keeps && samples.clear(env, noted.slot);
            if let Some(ledger) = &sampler.ledger {
                let booking = ledger.thinned(noted.booking, noted.size, generation, !gone);
                samples.book(noted.slot, booking);
            }
            if gone {
                dropped.push(noted.slot);
            }
            if dropped.len() >= BATCH {
                self.give_back(&mut dropped);
            }
        }
        self.give_back(&mut dropped);
        Ok(())
    }

    /// Others wait for these places, or lose samples for want of one.
    fn give_back(&self, dropped: &mut Vec<u32>) {
        self.sampler.samples.give_back(dropped);
        self.counters.add(Counter::Thinned, dropped.len() as u64);
        dropped.clear();
    }
}

/// Writes interval and rate to the heap.
fn show_sampling(env: &mut Env<'_>, sampler: &Sampler, sampling: Sampling) -> Result<()> {
    for (name, value) in [
        (statics::INTERVAL, sampling.interval),
        (statics::RATE, sampling.rate),
    ] {
        let value = JValue::Long(value.cast_signed());
        sampler.refs.set_static(env, name, "J", value)?;
    }
    Ok(())
}
