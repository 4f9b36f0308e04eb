//! Handles sampled allocations and class definitions, on the thread that allocates the object or defines the class.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use heapdiff_sites::{Counter, MARK_CLASS, MARK_SAMPLE, Sampling};

use crate::collected::CollectedSamples;
use crate::counters::Counters;
use crate::counting::InHeap;
use crate::jvmti::calls::{Class, Env, Global, Longs, Ref};
use crate::labels::LABELS;
use crate::ledger::{Booking, Ledger};
use crate::sample_ref::{RefClass, RefFields};
use crate::slots::SlotRecord;
use crate::stacks::Stacks;
use crate::strategy::ActiveStrategy;
use crate::table::Table;
use crate::totals::Totals;
use crate::unproven::Unproven;

/// Maximum number of recorded class definitions.
pub(crate) const MAX_CLASSES: usize = 1 << 17;
/// Number of samples for which the cached name of a thread is used before the name is read again.
const NAME_USES: u32 = 32;

thread_local! {
    /// The cached name of this thread: the id of the name, the number of further samples for which the name is not read
    /// again, and the number of the sampler that stored it. The name of a virtual thread is read for every sample,
    /// because such a thread changes its carrier.
    static NAME: Cell<(u32, u32, usize)> = const { Cell::new((0, 0, 0)) };
}

/// The state of sampling.
pub(crate) struct Sampler {
    pub(crate) refs: Arc<RefClass>,
    /// Number of this sampler among all samplers of the JVM, starting at 1.
    pub(crate) number: usize,
    pub(crate) stacks: Stacks,
    pub(crate) samples: Table,
    pub(crate) classes: Table,
    /// Number of samples and sampled bytes of each site.
    pub(crate) totals: Totals<2>,
    /// Estimated number of bytes that each site has allocated.
    pub(crate) allocated: Totals<1>,
    pub(crate) class_totals: Option<Totals<2>>,
    /// The class of each site's last sample. It is used if not all samples are tracked: then a site may have no tracked
    /// sample that shows its class.
    pub(crate) site_types: Option<Totals<1>>,
    pub(crate) strategy: ActiveStrategy,
    /// Limit for the number of tracked samples. `None` if this number is not limited; it is limited only under
    /// generational ZGC. All samples are counted, with or without this limit.
    pub(crate) unproven: Option<Unproven>,
    /// The sums of each pair of class and stack for the trace; `None` without a trace.
    pub(crate) ledger: Option<Ledger>,
    /// Collected samples for the trace; empty without a trace.
    pub(crate) collected: CollectedSamples,
    /// Allocation counts in the heap; `None` unless all allocations are counted.
    pub(crate) counted: Option<InHeap>,
    /// The strategy, and the interval or rate, with which the agent started.
    pub(crate) first: Sampling,
    pub(crate) filtered: bool,
    pub(crate) uids: AtomicU64,
    pub(crate) started: Instant,
    pub(crate) shown: Arc<Global<Longs>>,
    /// The `java.lang.Runtime` object, which reports how full the heap is.
    pub(crate) runtime: Arc<Global>,
}

impl Sampler {
    /// Returns the milliseconds since the start of sampling.
    pub(crate) fn now(&self) -> u32 {
        u32::try_from(self.started.elapsed().as_millis()).unwrap_or(u32::MAX)
    }

    /// Handles an allocation that the JVM sampled. `object` is `None` for a value object, which has no identity. So it
    /// cannot be tracked, and only the totals count it. Returns false if the agent's thread must free slots or track
    /// fewer samples.
    pub(crate) fn sampled(
        &self,
        env: &Env<'_>,
        counters: &Counters,
        (thread, object, class): (Ref<'_>, Option<Ref<'_>>, Ref<'_, Class>),
        size: i64,
    ) -> bool {
        counters.count(Counter::Events);
        let bytes = u64::try_from(size).unwrap_or(0);
        // The program has a pending exception. The agent must not change the exception. JNI forbids nearly all calls
        // until the exception is handled.
        if env.is_throwing() {
            if let Some(totals) = &self.class_totals {
                // Count the allocation for the type 0, which means an unknown class, because the class cannot be read
                // now.
                totals.add(0, [1, bytes]);
            }
            self.count_dropped(counters, Counter::DroppedPending, self.sampling(), bytes);
            return true;
        }
        // Reading the class's name requires a call into the JVM. So read it here only if it decides whether the sample
        // is taken.
        let counts_classes = self.strategy.counts_classes();
        let known = (self.filtered || counts_classes).then(|| self.stacks.class(class, counters));
        if self.filtered && known.is_some_and(|known| !self.stacks.passes(env, known)) {
            counters.count(Counter::Filtered);
            return true;
        }
        let takes = match (&self.class_totals, known) {
            (Some(totals), Some(known)) => {
                let [position, _] = totals.add(known.id, [1, bytes]);
                self.strategy.should_sample_class(known.id, position)
            }
            _ => self.strategy.should_sample(|| {
                u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
            }),
        };
        if !takes {
            counters.count(Counter::Filtered);
            return true;
        }
        let uid = self.uid(bytes);
        let is_followed = object.is_some() && self.is_tracked(uid, bytes);
        let slot = is_followed.then(|| self.place(bytes));
        let has_no_place = slot == Some(None);
        if has_no_place {
            self.count_dropped(
                counters,
                Counter::DroppedFull,
                self.strategy.sampling(),
                bytes,
            );
            if self.unproven.is_none() {
                return false;
            }
            // The sample cannot be tracked. So from here on, treat the sample like one that was not selected for
            // tracking.
        }
        let slot = slot.flatten();
        let site = self.stacks.site(env, counters);
        let class = known
            .unwrap_or_else(|| self.stacks.class(class, counters))
            .id;
        self.stacks.publish_class(env, class, counters);
        let sample = (uid, size, (class, site));
        let is_kept = match slot.zip(object) {
            Some((slot, object)) => self.follow(env, counters, (thread, object), slot, sample),
            None => {
                counters.count(match object {
                    Some(_) => Counter::Thinned,
                    None => Counter::Values,
                });
                let _ = self.record_sample(counters, (class, site), bytes, false);
                true
            }
        };
        if !is_kept {
            self.count_dropped(
                counters,
                Counter::DroppedFailed,
                self.strategy.sampling(),
                bytes,
            );
            return true;
        }
        counters.raise(Counter::Uids, uid);
        counters.count(Counter::Recorded);
        counters.add(Counter::RecordedBytes, bytes);
        self.totals.add(site, [1, bytes]);
        self.totals.copy_counters(env, site);
        self.allocated
            .add(site, [self.represented_bytes(self.sampling(), bytes)]);
        self.allocated.copy_counters(env, site);
        if let Some(types) = &self.site_types {
            types.set(site, [class.into()]);
            types.copy_counters(env, site);
        }
        self.copy_counters(env, counters);
        let is_crowded = |unproven: &Unproven| is_followed && unproven.should_track_fewer();
        !has_no_place
            && !self.samples.is_nearly_full()
            && !self.unproven.as_ref().is_some_and(is_crowded)
    }

    /// Stores a sample in its slot. Returns false if the heap or the thread's stack is full. The last parameter
    /// contains four numbers: the sample's uid, its size in bytes, the id of its class, and the id of its site.
    fn follow(
        &self,
        env: &Env<'_>,
        counters: &Counters,
        (thread, object): (Ref<'_>, Ref<'_>),
        slot: u32,
        (uid, size, (class, site)): (u64, i64, (u32, u32)),
    ) -> bool {
        let bytes = u64::try_from(size).unwrap_or(0);
        let fields = RefFields {
            uid,
            size,
            site,
            class,
            thread: self.thread(env, thread, counters),
            time: self.now(),
            slot: slot.cast_signed(),
            mark: MARK_SAMPLE,
        };
        if !self.store_reference(env, &self.samples, slot, object, &fields) {
            if let Some(unproven) = &self.unproven {
                unproven.undo_count(bytes);
            }
            return false;
        }
        self.samples.record(SlotRecord {
            slot,
            uid,
            size: bytes,
            booking: self.record_sample(counters, (class, site), bytes, true),
            thread: fields.thread,
            time: fields.time,
        });
        true
    }

    /// Reserves a slot for a sample of an object of `bytes` bytes. Returns `None` if no slot is free, or if the limit
    /// for tracked samples ([`Unproven`]) is reached.
    fn place(&self, bytes: u64) -> Option<u32> {
        let Some(unproven) = &self.unproven else {
            return self.samples.take();
        };
        if !unproven.add(bytes, || self.started.elapsed()) {
            return None;
        }
        let slot = self.samples.take();
        if slot.is_none() {
            unproven.undo_count(bytes);
        }
        slot
    }

    /// True if the sample is tracked until its object is collected. Under generational ZGC, a sample is tracked only if
    /// it would also have been taken with the current interval or rate. With other collectors, all samples are tracked.
    fn is_tracked(&self, uid: u64, bytes: u64) -> bool {
        self.unproven.is_none() || self.strategy.sampling().would_take(&self.first, uid, bytes)
    }

    /// Returns the strategy, and the interval or rate, by which samples are taken. Not all samples that are taken are
    /// also tracked.
    fn sampling(&self) -> Sampling {
        match self.unproven {
            Some(_) => self.first,
            None => self.strategy.sampling(),
        }
    }

    /// Returns the number of allocated bytes that a sample represents. `chosen` is the interval or rate with which the
    /// sample was taken.
    fn represented_bytes(&self, chosen: Sampling, bytes: u64) -> u64 {
        let weight = chosen.relative_bytes(&self.first, bytes).round();
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the cast saturates, as intended"
        )]
        let weight = weight as u64;
        weight
    }

    /// Records a sample for the trace, if there is a trace.
    fn record_sample(
        &self,
        counters: &Counters,
        site: (u32, u32),
        bytes: u64,
        is_followed: bool,
    ) -> Booking {
        let Some(ledger) = &self.ledger else {
            return Booking::default();
        };
        let times = counters.get(Counter::Thinnings);
        let times = u32::try_from(times).unwrap_or(u32::MAX);
        let taken = if self.unproven.is_some() { 0 } else { times };
        ledger
            .allocated(site, bytes, taken, is_followed.then_some(times))
            .unwrap_or_else(|_| {
                ledger.refuse(self.represented_bytes(self.sampling(), bytes));
                Booking::default()
            })
    }

    /// Counts a dropped sample, and the bytes that it represents. `chosen` is the interval or rate with which the
    /// sample was taken.
    fn count_dropped(&self, counters: &Counters, counter: Counter, chosen: Sampling, bytes: u64) {
        counters.count(counter);
        counters.add(Counter::DroppedBytes, self.represented_bytes(chosen, bytes));
    }

    /// Handles a class that the JVM has defined.
    pub(crate) fn class_loaded(
        &self,
        env: &Env<'_>,
        counters: &Counters,
        thread: Ref<'_>,
        class: Ref<'_, Class>,
    ) {
        if env.is_throwing() {
            counters.count(Counter::DroppedClasses);
            return;
        }
        let known = self.stacks.class(class, counters);
        if let Some(ledger) = &self.ledger {
            ledger.class(known.id, true);
        }
        // Ordinary classes of the boot loader are never unloaded, so they cannot leak.
        if !known.hidden && self.stacks.is_boot(env, class) {
            return;
        }
        let Some(slot) = self.classes.take() else {
            counters.count(Counter::DroppedClasses);
            return;
        };
        let site = self.stacks.site(env, counters);
        self.stacks.publish_class(env, known.id, counters);
        let fields = RefFields {
            uid: self.uids.fetch_add(1, Relaxed) + 1,
            size: 0,
            site,
            class: known.id,
            thread: self.thread(env, thread, counters),
            time: self.now(),
            slot: !slot.cast_signed(),
            mark: MARK_CLASS,
        };
        if !self.store_reference(env, &self.classes, slot, class.any(), &fields) {
            counters.count(Counter::DroppedClasses);
            return;
        }
        self.classes.record(SlotRecord {
            slot,
            uid: known.id.into(),
            ..SlotRecord::default()
        });
        counters.raise(Counter::Uids, fields.uid);
        counters.count(Counter::Classes);
    }

    /// Returns the next uid.
    ///
    /// If all samples are tracked, returns only uids that pass the test `Sampling::would_take` with the current
    /// interval or rate. So the next downsampling keeps each returned uid with the same probability. If only some
    /// samples are tracked, returns uids without a test. Then the same test decides later whether the sample is
    /// tracked.
    fn uid(&self, bytes: u64) -> u64 {
        let sampling = self.strategy.sampling();
        loop {
            let uid = self.uids.fetch_add(1, Relaxed) + 1;
            if self.unproven.is_some()
                || sampling == self.first
                || sampling.would_take(&self.first, uid, bytes)
            {
                return uid;
            }
        }
    }

    /// Returns the id under which the trace stores the thread's name and labels.
    fn thread(&self, env: &Env<'_>, thread: Ref<'_>, counters: &Counters) -> u32 {
        let name = self.thread_name(env, thread, counters);
        if LABELS.are_unused() {
            return name;
        }
        match LABELS.get(env.thread_id(thread)) {
            0 => name,
            labels => self.stacks.labelled(env, name, labels, counters),
        }
    }

    fn thread_name(&self, env: &Env<'_>, thread: Ref<'_>, counters: &Counters) -> u32 {
        if self.stacks.is_virtual(env, thread) {
            return self.stacks.thread(env, thread, true, counters);
        }
        if let Ok((id, uses, number)) = NAME.try_with(Cell::get)
            && uses > 0
            && number == self.number
        {
            let _ = NAME.try_with(|name| name.set((id, uses - 1, number)));
            return id;
        }
        let id = self.stacks.thread(env, thread, false, counters);
        let _ = NAME.try_with(|name| name.set((id, NAME_USES, self.number)));
        id
    }

    /// Creates the sample's reference object and stores it in its slot. If that fails, frees the slot.
    fn store_reference(
        &self,
        env: &Env<'_>,
        table: &Table,
        slot: u32,
        referent: Ref<'_>,
        fields: &RefFields,
    ) -> bool {
        let object = self.refs.new_object(env, referent, fields);
        let kept = object.is_ok_and(|object| table.store(env, slot, object.get()));
        if !kept {
            // The heap or the thread's stack is full.
            table.free_slots(&[slot]);
        }
        kept
    }

    /// Copies the counters to the heap.
    pub(crate) fn copy_counters(&self, env: &Env<'_>, counters: &Counters) {
        // If this fails, the counters are copied with the next sample.
        let _ = self.shown.get().put(env, 0, &counters.values());
    }
}
