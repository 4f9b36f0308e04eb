//! The accounts of allocation sites for the trace. An account contains estimates of the objects and bytes that a site
//! has allocated since the last write to the trace. It also has estimates of those that were collected since then, and
//! of those that are live.
//!
//! Here a site is a stack together with the class allocated there. Threads that allocate record samples here, and the
//! agent's thread records which samples were collected. At each write (tick), the trace's thread reads the accounts and
//! resets the allocated and collected objects and bytes to 0 ("closes" the accounts). A lock is held only for a few
//! additions, never during a call into the JVM.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use heapdiff_sites::{Sampling, Weight};
use heapdiff_trace::{Activity, ClassChange, EstimatedAmount};
use rustc_hash::FxHashMap;

const SHARDS: usize = 16;
/// Maximum number of accounts. An account has the totals for one pair of class and stack. All accounts together take
/// about 20 MB.
const MOST: usize = 1 << 17;
/// Maximum number of class names.
const MOST_CLASSES: usize = 1 << 16;

/// The position of the account to which a live sample belongs. An account has the sums for one pair of class and stack.
/// This value also contains a generation: the number of times that the sampling interval was doubled. The weight of the
/// sample depends on the generation. The default value means that the sample has no account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Booking(u32);

impl Booking {
    const GENERATIONS: u32 = 1 << 6;

    fn new(shard: usize, index: usize, generation: u32) -> Option<Self> {
        let account = u32::try_from(index * SHARDS + shard).ok()?;
        let generation = generation.min(Self::GENERATIONS - 1);
        Some(Self((account + 1) * Self::GENERATIONS + generation))
    }

    pub(crate) fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    pub(crate) fn bits(self) -> u32 {
        self.0
    }

    /// Splits this position into three numbers: the index of a shard (a part of the ledger), the index of the account
    /// in this shard, and the generation of the sample.
    fn place(self) -> Option<(usize, usize, u32)> {
        let account = (self.0 / Self::GENERATIONS).checked_sub(1)? as usize;
        Some((
            account % SHARDS,
            account / SHARDS,
            self.0 % Self::GENERATIONS,
        ))
    }
}

#[derive(Default)]
struct Account {
    activity: Activity,
    dirty: bool,
}

#[derive(Default)]
struct Shard {
    numbers: FxHashMap<(u32, u32), usize>,
    accounts: Vec<Account>,
    dirty: Vec<usize>,
}

impl Shard {
    fn mark_dirty(&mut self, index: usize) -> Option<&mut Activity> {
        let account = self.accounts.get_mut(index)?;
        if !account.dirty {
            account.dirty = true;
            self.dirty.push(index);
        }
        Some(&mut account.activity)
    }
}

#[derive(Default)]
struct Classes {
    changes: FxHashMap<u32, (u64, u64)>,
}

/// The accounts for the trace. Each account has the sums for one pair of class and stack.
pub(crate) struct Ledger {
    first: Sampling,
    shards: [Mutex<Shard>; SHARDS],
    classes: Mutex<Classes>,
    refused: AtomicU64,
    refused_bytes: AtomicU64,
    /// The latest allocation time among the samples that were found to be collected since the last reading.
    newest_collected_ms: AtomicU64,
}

/// Error: there is no room for the sums of a new pair of class and stack, because the maximum number of accounts exists
/// already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the index of the shard that contains the account of a site. A shard is a part of the ledger with its own
/// lock. An account contains the sums of a site's samples.
fn shard_of(class: u32, stack: u32) -> usize {
    ((class as usize).wrapping_mul(31) ^ stack as usize) % SHARDS
}

fn add_amount(amount: &mut EstimatedAmount, more: &EstimatedAmount) {
    amount.samples += more.samples;
    amount.objects += more.objects;
    amount.bytes += more.bytes;
}

fn add(amount: &mut EstimatedAmount, weight: &Weight) {
    amount.samples += 1;
    amount.objects += weight.objects;
    amount.bytes += weight.bytes;
}

fn take(amount: &mut EstimatedAmount, variance: &mut f64, weight: &Weight) {
    amount.samples = amount.samples.saturating_sub(1);
    amount.objects -= weight.objects;
    amount.bytes -= weight.bytes;
    *variance -= weight.bytes_variance;
    if amount.samples == 0 {
        // If no live sample is left, remove rounding errors.
        *amount = EstimatedAmount::default();
        *variance = 0.0;
    }
}

impl Ledger {
    pub(crate) fn new(first: Sampling) -> Self {
        Self {
            first,
            shards: Default::default(),
            classes: Mutex::default(),
            refused: AtomicU64::new(0),
            refused_bytes: AtomicU64::new(0),
            newest_collected_ms: AtomicU64::new(0),
        }
    }

    /// Returns the weight of a sample of an object of `size` bytes: the objects and bytes that it represents. The
    /// interval for this weight is the first sampling interval, doubled `generation` times.
    fn weight(&self, generation: u32, size: u64) -> Weight {
        let sampling = (0..generation).fold(self.first, |sampling, _| sampling.doubled());
        sampling.weight(size).unwrap_or_else(|| {
            // Samples chosen by time have no absolute weight. The weight returned here is relative to other samples of
            // this JVM.
            let bytes = sampling.relative_bytes(&self.first, size);
            #[allow(clippy::cast_precision_loss, reason = "an estimate")]
            let objects = bytes / size.max(1) as f64;
            Weight::exact(objects, bytes)
        })
    }

    /// Records a sample of an object of `size` bytes. The sample's weight depends on its generation: the number of
    /// times that the sampling interval was doubled. The allocated objects and bytes increase by the weight for the
    /// generation `taken`. The live objects and bytes increase by the weight for the generation `followed`. If the
    /// sample is not tracked, `followed` is `None`.
    pub(crate) fn allocated(
        &self,
        (class, stack): (u32, u32),
        size: u64,
        taken: u32,
        followed: Option<u32>,
    ) -> Result<Booking, Full> {
        let weight = self.weight(taken, size);
        let shard_number = shard_of(class, stack);
        let mut shard = lock(&self.shards[shard_number]);
        let index = match shard.numbers.get(&(class, stack)) {
            Some(&index) => index,
            None => {
                let index = shard.accounts.len();
                if index >= MOST / SHARDS {
                    return Err(Full);
                }
                shard.numbers.insert((class, stack), index);
                let activity = Activity {
                    class,
                    stack,
                    ..Activity::default()
                };
                shard.accounts.push(Account {
                    activity,
                    dirty: false,
                });
                index
            }
        };
        let booking = followed
            .map(|times| Booking::new(shard_number, index, times).ok_or(Full))
            .transpose()?;
        let activity = shard.mark_dirty(index).ok_or(Full)?;
        add(&mut activity.allocated, &weight);
        if let Some(times) = followed {
            let weight = self.weight(times, size);
            add(&mut activity.live, &weight);
            activity.live_variance += weight.bytes_variance;
        }
        Ok(booking.unwrap_or_default())
    }

    /// Counts a sample for whose class and stack there is no room ([`Full`]), and the bytes that the sample represents.
    pub(crate) fn refuse(&self, bytes: u64) {
        self.refused.fetch_add(1, Relaxed);
        self.refused_bytes.fetch_add(bytes, Relaxed);
    }

    /// Returns the number of samples for whose class and stack there was no room ([`Full`]), and the bytes that these
    /// samples represent.
    pub(crate) fn unaccounted(&self) -> (u64, u64) {
        let bytes = self.refused_bytes.load(Relaxed);
        (self.refused.load(Relaxed), bytes)
    }

    /// Records that a sampled object was collected. Returns its class and stack, or `None` if the sample belongs to no
    /// account (the totals of a class and stack). `allocated_ms` is the JVM's uptime when the object was allocated.
    pub(crate) fn collected(
        &self,
        booking: Booking,
        size: u64,
        allocated_ms: u64,
    ) -> Option<(u32, u32)> {
        let (shard, index, generation) = booking.place()?;
        // First update the time of the newest collected sample, then the sums of its class and stack. So if the trace's
        // data of an interval includes this sample in its sums, it also includes the sample's time.
        self.newest_collected_ms.fetch_max(allocated_ms, Relaxed);
        let weight = self.weight(generation, size);
        let mut shard = lock(&self.shards[shard]);
        let activity = shard.mark_dirty(index)?;
        add(&mut activity.collected, &weight);
        take(&mut activity.live, &mut activity.live_variance, &weight);
        Some((activity.class, activity.stack))
    }

    /// Returns the latest allocation time among the samples that were found to be collected since the last call.
    /// Returns `None` if there is no such sample, or if sample times have reached their maximum.
    pub(crate) fn newest_collected_ms(&self) -> Option<u64> {
        let ms = self.newest_collected_ms.swap(0, Relaxed);
        // Sample times are 32-bit numbers of milliseconds, so they stop increasing after seven weeks.
        (1..u64::from(u32::MAX)).contains(&ms).then_some(ms)
    }

    /// Returns the class and the stack of a sample. They are stored in the sample's account.
    pub(crate) fn site(&self, booking: Booking) -> Option<(u32, u32)> {
        let (shard, index, _) = booking.place()?;
        let shard = lock(&self.shards[shard]);
        let activity = &shard.accounts.get(index)?.activity;
        Some((activity.class, activity.stack))
    }

    /// Adjusts the account to which a sample belongs (the totals of a class and stack), after the interval was doubled.
    /// If `keeps` is true, the sample is still tracked, and its weight increases. If `keeps` is false, the sample no
    /// longer counts as live, although its object was not collected.
    pub(crate) fn downsample_account(
        &self,
        booking: Booking,
        size: u64,
        generation: u32,
        keeps: bool,
    ) -> Booking {
        let Some((shard, index, before)) = booking.place() else {
            return booking;
        };
        let (old, new) = (self.weight(before, size), self.weight(generation, size));
        if let Some(activity) = lock(&self.shards[shard]).mark_dirty(index) {
            take(&mut activity.live, &mut activity.live_variance, &old);
            if keeps {
                add(&mut activity.live, &new);
                activity.live_variance += new.bytes_variance;
            }
        }
        if keeps {
            Booking::new(shard, index, generation).unwrap_or(booking)
        } else {
            Booking::default()
        }
    }

    /// Records that a class of this name was loaded or unloaded.
    pub(crate) fn class(&self, class: u32, loaded: bool) {
        let mut classes = lock(&self.classes);
        if classes.changes.len() >= MOST_CLASSES && !classes.changes.contains_key(&class) {
            return;
        }
        let change = classes.changes.entry(class).or_default();
        if loaded {
            change.0 += 1;
        } else {
            change.1 += 1;
        }
    }

    /// Adds the results of a call of [`Self::close`] to the accounts again, because these results could not be written
    /// to the trace. The next call of `close` returns them again.
    pub(crate) fn reopen(
        &self,
        sites: &[Activity],
        classes: &[ClassChange],
        newest_collected_ms: Option<u64>,
    ) {
        for site in sites {
            let mut shard = lock(&self.shards[shard_of(site.class, site.stack)]);
            let index = shard.numbers.get(&(site.class, site.stack)).copied();
            if let Some(activity) = index.and_then(|index| shard.mark_dirty(index)) {
                add_amount(&mut activity.allocated, &site.allocated);
                add_amount(&mut activity.collected, &site.collected);
            }
        }
        let changes = &mut lock(&self.classes).changes;
        for change in classes {
            let (loaded, unloaded) = changes.entry(change.class).or_default();
            *loaded += change.loaded;
            *unloaded += change.unloaded;
        }
        let ms = newest_collected_ms.unwrap_or_default();
        self.newest_collected_ms.fetch_max(ms, Relaxed);
    }

    /// Makes the next call of [`Self::close`] return all sites that have live samples, including unchanged sites.
    pub(crate) fn mark_live_dirty(&self) {
        for shard in &self.shards {
            let mut shard = lock(shard);
            for index in 0..shard.accounts.len() {
                if shard.accounts[index].activity.live.samples > 0 {
                    shard.mark_dirty(index);
                }
            }
        }
    }

    /// Returns the sums of the accounts that have changed since the last call, and the loaded and unloaded classes. In
    /// these accounts, resets the allocated and collected objects and bytes to 0.
    pub(crate) fn close(&self) -> (Vec<Activity>, Vec<ClassChange>) {
        let mut sites = Vec::new();
        for shard in &self.shards {
            let mut guard = lock(shard);
            let shard = &mut *guard;
            for index in shard.dirty.drain(..) {
                if let Some(account) = shard.accounts.get_mut(index) {
                    account.dirty = false;
                    sites.push(account.activity);
                    account.activity.allocated = EstimatedAmount::default();
                    account.activity.collected = EstimatedAmount::default();
                }
            }
        }
        let changes = std::mem::take(&mut lock(&self.classes).changes);
        let classes = changes
            .into_iter()
            .map(|(class, (loaded, unloaded))| ClassChange {
                class,
                loaded,
                unloaded,
            })
            .collect();
        (sites, classes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heapdiff_sites::Strategy;

    fn sampling(interval: u64) -> Sampling {
        Sampling {
            strategy: Strategy::Bytes,
            interval,
            rate: 0,
        }
    }

    fn only(ledger: &Ledger) -> Activity {
        let (sites, _) = ledger.close();
        assert_eq!(sites.len(), 1);
        sites[0]
    }

    #[test]
    fn figures_are_exact_if_everything_is_sampled() {
        let ledger = Ledger::new(sampling(0));
        let bookings: Vec<Booking> = (0..10)
            .map(|_| ledger.allocated((1, 2), 24, 0, Some(0)).unwrap())
            .collect();
        assert_eq!(ledger.site(bookings[9]), Some((1, 2)));
        for &booking in &bookings[..4] {
            assert_eq!(ledger.collected(booking, 24, 7), Some((1, 2)));
        }
        let site = only(&ledger);
        assert_eq!((site.class, site.stack), (1, 2));
        assert_eq!((site.allocated.samples, site.allocated.bytes), (10, 240.0));
        assert_eq!((site.collected.samples, site.collected.bytes), (4, 96.0));
        assert_eq!((site.live.objects, site.live_variance), (6.0, 0.0));
        assert!(ledger.close().0.is_empty());
        ledger.collected(bookings[4], 24, 3);
        let site = only(&ledger);
        assert_eq!((site.allocated.samples, site.collected.samples), (0, 1));
        assert_eq!(site.live.samples, 5);
        assert_eq!(ledger.collected(Booking::default(), 24, 9), None);
        assert_eq!(ledger.site(Booking::default()), None);
        assert!(ledger.close().0.is_empty());
    }

    #[test]
    fn unwritten_figures_are_booked_again() {
        let ledger = Ledger::new(sampling(0));
        let a = ledger.allocated((1, 2), 24, 0, Some(0)).unwrap();
        ledger.class(7, true);
        let (sites, classes) = ledger.close();
        // Samples are recorded while the sums that `close` has returned are being written.
        ledger.allocated((1, 2), 24, 0, Some(0)).unwrap();
        ledger.collected(a, 24, 9);
        ledger.class(7, true);
        ledger.reopen(&sites, &classes, Some(5));
        assert_eq!(ledger.newest_collected_ms(), Some(9));
        let (sites, classes) = ledger.close();
        assert_eq!((sites.len(), classes[0].loaded), (1, 2));
        let (site, amounts) = (&sites[0], |a: &EstimatedAmount| (a.samples, a.bytes));
        assert_eq!(amounts(&site.allocated), (2, 48.0));
        assert_eq!(amounts(&site.collected), (1, 24.0));
        assert_eq!(amounts(&site.live), (1, 24.0));
        assert!(ledger.close().0.is_empty() && ledger.close().1.is_empty());
        ledger.reopen(&sites, &[], Some(5));
        assert_eq!(ledger.newest_collected_ms(), Some(5));
        assert_eq!(amounts(&only(&ledger).allocated), (2, 48.0));
    }

    #[test]
    fn live_sites_are_reported_again() {
        let ledger = Ledger::new(sampling(0));
        let gone = ledger.allocated((1, 1), 24, 0, Some(0)).unwrap();
        ledger.allocated((1, 2), 24, 0, Some(0)).unwrap();
        ledger.collected(gone, 24, 9);
        assert_eq!(ledger.close().0.len(), 2);
        ledger.mark_live_dirty();
        ledger.mark_live_dirty();
        let site = only(&ledger);
        assert_eq!((site.stack, site.live.samples), (2, 1));
        assert_eq!(site.allocated, EstimatedAmount::default());
        assert!(ledger.close().0.is_empty());
    }

    #[test]
    fn live_figures_follow_the_sampling() {
        let ledger = Ledger::new(sampling(1000));
        let a = ledger.allocated((1, 1), 500, 0, Some(0)).unwrap();
        let b = ledger.allocated((1, 1), 500, 0, Some(0)).unwrap();
        let c = ledger.allocated((1, 1), 500, 1, Some(1)).unwrap();
        let a = ledger.downsample_account(a, 500, 1, true);
        assert_eq!(
            ledger.downsample_account(b, 500, 1, false),
            Booking::default()
        );
        let weight = sampling(2000).weight(500).unwrap();
        let site = only(&ledger);
        assert_eq!((site.live.samples, site.collected.samples), (2, 0));
        assert!((site.live.bytes - 2.0 * weight.bytes).abs() < 1e-6);
        assert!((site.live_variance / (2.0 * weight.bytes_variance) - 1.0).abs() < 1e-9);
        for booking in [a, c] {
            ledger.collected(booking, 500, 1);
        }
        let site = only(&ledger);
        assert_eq!(
            (site.live, site.live_variance),
            (EstimatedAmount::default(), 0.0)
        );
        assert!((site.collected.bytes - 2.0 * weight.bytes).abs() < 1e-6);
    }

    #[test]
    fn a_full_ledger_returns_an_error() {
        let ledger = Ledger::new(sampling(0));
        let full =
            (0..1_000_000_u32).find(|&stack| ledger.allocated((1, stack), 8, 0, Some(0)).is_err());
        assert!(full.is_some_and(|at| at as usize <= MOST));
        assert!(ledger.allocated((1, 0), 8, 0, Some(0)).is_ok());
    }

    #[test]
    fn class_loads_and_unloads_are_counted() {
        let ledger = Ledger::new(sampling(0));
        for loaded in [true, true, false] {
            ledger.class(7, loaded);
        }
        let change = ClassChange {
            class: 7,
            loaded: 2,
            unloaded: 1,
        };
        assert_eq!(ledger.close().1, [change]);
        assert!(ledger.close().1.is_empty());
    }
}
