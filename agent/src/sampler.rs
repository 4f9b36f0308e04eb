//! What happens at a sample and at a class definition, on the thread that allocates or defines.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use heapdiff_sites::{Counter, MARK_CLASS, MARK_SAMPLE, Sampling};

use crate::collected::CollectedSamples;
use crate::counters::Counters;
use crate::counting::InHeap;
use crate::jvmti::calls::{Class, Env, Global, Longs, Ref};
use crate::ledger::{Booking, Ledger};
use crate::sample_ref::{RefClass, RefFields};
use crate::slots::SlotRecord;
use crate::stacks::Stacks;
use crate::strategy::ActiveStrategy;
use crate::table::Table;
use crate::totals::Totals;
use crate::unproven::Unproven;

/// Class definitions kept at most.
pub(crate) const MAX_CLASSES: usize = 1 << 17;
/// A thread's name is asked for anew after so many of its samples.
const NAME_USES: u32 = 32;

thread_local! {
    /// The id of this thread's name, how many more samples it is good for, and the sampler that gave it. A virtual
    /// thread runs on other threads, and is asked every time.
    static NAME: Cell<(u32, u32, usize)> = const { Cell::new((0, 0, 0)) };
}

/// All that a sample needs.
pub(crate) struct Sampler {
    pub(crate) refs: Arc<RefClass>,
    /// Which sampler of this JVM it is, from 1 on.
    pub(crate) number: usize,
    pub(crate) stacks: Stacks,
    pub(crate) samples: Table,
    pub(crate) classes: Table,
    /// Samples of each site, and their bytes.
    pub(crate) totals: Totals<2>,
    /// Bytes that these stood for.
    pub(crate) allocated: Totals<1>,
    pub(crate) class_totals: Option<Totals<2>>,
    /// The class of each site's last sample, where not all are followed: of a site that has none no sample tells it.
    pub(crate) site_types: Option<Totals<1>>,
    pub(crate) strategy: ActiveStrategy,
    /// Where samples keep garbage: how many may be followed. All are counted.
    pub(crate) unproven: Option<Unproven>,
    /// Where a trace is kept.
    pub(crate) ledger: Option<Ledger>,
    /// Of no length without a trace.
    pub(crate) collected: CollectedSamples,
    /// What is counted, where all is.
    pub(crate) counted: Option<InHeap>,
    /// How samples were chosen at first.
    pub(crate) first: Sampling,
    pub(crate) filtered: bool,
    pub(crate) uids: AtomicU64,
    pub(crate) started: Instant,
    pub(crate) shown: Arc<Global<Longs>>,
    /// `java.lang.Runtime`, which tells how full the heap is.
    pub(crate) runtime: Arc<Global>,
}

impl Sampler {
    /// Milliseconds since the start.
    pub(crate) fn now(&self) -> u32 {
        u32::try_from(self.started.elapsed().as_millis()).unwrap_or(u32::MAX)
    }

    /// The JVM has sampled an allocation. `false` if the table needs the agent's thread: it is nearly full.
    pub(crate) fn sampled(
        &self,
        env: &Env<'_>,
        counters: &Counters,
        (thread, object, class): (Ref<'_>, Ref<'_>, Ref<'_, Class>),
        size: i64,
    ) -> bool {
        counters.count(Counter::Events);
        let bytes = u64::try_from(size).unwrap_or(0);
        // The program's exception must stay as it is, and JNI forbids nearly everything until it is handled.
        if env.is_throwing() {
            if let Some(totals) = &self.class_totals {
                // Counted all the same, as one of an unknown class.
                totals.add(0, [1, bytes]);
            }
            self.lost(counters, Counter::DroppedPending, self.taken(), bytes);
            return true;
        }
        // The class's name costs a call into the JVM: it is asked for first only where it decides.
        let counts_classes = self.strategy.counts_classes();
        let known = (self.filtered || counts_classes).then(|| self.stacks.class(class, counters));
        if self.filtered && known.is_some_and(|known| !self.stacks.passes(env, known)) {
            counters.count(Counter::Filtered);
            return true;
        }
        let takes = match (&self.class_totals, known) {
            (Some(totals), Some(known)) => {
                let [position, _] = totals.add(known.id, [1, bytes]);
                self.strategy.takes_class(known.id, position)
            }
            _ => self
                .strategy
                .takes(|| u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)),
        };
        if !takes {
            counters.count(Counter::Filtered);
            return true;
        }
        let uid = self.uid(bytes);
        let is_followed = self.is_followed(uid, bytes);
        let slot = is_followed.then(|| self.place(bytes));
        let has_no_place = slot == Some(None);
        if has_no_place {
            self.lost(
                counters,
                Counter::DroppedFull,
                self.strategy.sampling(),
                bytes,
            );
            if self.unproven.is_none() {
                return false;
            }
            // Where few are followed it is counted as those are that are not to be.
        }
        let slot = slot.flatten();
        let site = self.stacks.site(env, counters);
        let class = known
            .unwrap_or_else(|| self.stacks.class(class, counters))
            .id;
        self.stacks.publish_class(env, class, counters);
        let sample = (uid, size, (class, site));
        let is_kept = match slot {
            Some(slot) => self.follow(env, counters, (thread, object), slot, sample),
            None => {
                counters.count(Counter::Thinned);
                let _ = self.book(counters, (class, site), bytes, false);
                true
            }
        };
        if !is_kept {
            self.lost(
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
        self.totals.show(env, site);
        self.allocated
            .add(site, [self.stands_for(self.taken(), bytes)]);
        self.allocated.show(env, site);
        if let Some(types) = &self.site_types {
            types.set(site, [class.into()]);
            types.show(env, site);
        }
        self.show(env, counters);
        let is_crowded = |unproven: &Unproven| is_followed && unproven.is_crowded();
        !has_no_place
            && !self.samples.is_crowded()
            && !self.unproven.as_ref().is_some_and(is_crowded)
    }

    /// Puts a sample, its uid, size, class and stack, into its place in the table; `false` if the heap has no room.
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
        if !self.keep(env, &self.samples, slot, object, &fields) {
            if let Some(unproven) = &self.unproven {
                unproven.take_back(bytes);
            }
            return false;
        }
        self.samples.record(SlotRecord {
            slot,
            uid,
            size: bytes,
            booking: self.book(counters, (class, site), bytes, true),
            thread: fields.thread,
            time: fields.time,
        });
        true
    }

    /// A place in the table for a sample of so many bytes, if there is one.
    fn place(&self, bytes: u64) -> Option<u32> {
        let Some(unproven) = &self.unproven else {
            return self.samples.take();
        };
        if !unproven.add(bytes, || self.started.elapsed()) {
            return None;
        }
        let slot = self.samples.take();
        if slot.is_none() {
            unproven.take_back(bytes);
        }
        slot
    }

    /// Whether a sample is followed until its object is collected: each, or where samples keep garbage those that the
    /// present sampling keeps.
    fn is_followed(&self, uid: u64, bytes: u64) -> bool {
        self.unproven.is_none() || self.strategy.sampling().keeps(&self.first, uid, bytes)
    }

    /// How samples are taken, followed or not.
    fn taken(&self) -> Sampling {
        match self.unproven {
            Some(_) => self.first,
            None => self.strategy.sampling(),
        }
    }

    /// Bytes that a sample stands for that was chosen so.
    fn stands_for(&self, chosen: Sampling, bytes: u64) -> u64 {
        let weight = chosen.relative_bytes(&self.first, bytes).round();
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the cast saturates, as intended"
        )]
        let weight = weight as u64;
        weight
    }

    /// Books a sample for the trace, if there is one.
    fn book(
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
                ledger.refuse(self.stands_for(self.taken(), bytes));
                Booking::default()
            })
    }

    /// Counts a sample that is dropped, and was chosen so.
    fn lost(&self, counters: &Counters, counter: Counter, chosen: Sampling, bytes: u64) {
        counters.count(counter);
        counters.add(Counter::DroppedBytes, self.stands_for(chosen, bytes));
    }

    /// The JVM has defined a class.
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
        // Ordinary classes of the boot loader stay for ever: no leak comes of them.
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
        if !self.keep(env, &self.classes, slot, class.any(), &fields) {
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

    /// The next uid. After thinning only such as the present sampling keeps are given, so that
    /// the next thinning finds all uids drawn alike (see `Sampling::keeps`); where not all samples are followed it is the
    /// uid that decides which.
    fn uid(&self, bytes: u64) -> u64 {
        let sampling = self.strategy.sampling();
        loop {
            let uid = self.uids.fetch_add(1, Relaxed) + 1;
            if self.unproven.is_some()
                || sampling == self.first
                || sampling.keeps(&self.first, uid, bytes)
            {
                return uid;
            }
        }
    }

    fn thread(&self, env: &Env<'_>, thread: Ref<'_>, counters: &Counters) -> u32 {
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

    /// Makes the reference and puts it into its place, or gives the place back.
    fn keep(
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
            // Out of memory, or out of stack.
            table.give_back(&[slot]);
        }
        kept
    }

    /// Copies the counters to the heap.
    pub(crate) fn show(&self, env: &Env<'_>, counters: &Counters) {
        // What is not copied now is with the next sample.
        let _ = self.shown.get().put(env, 0, &counters.values());
    }
}
