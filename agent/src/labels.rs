//! Labels of threads, such as `tenant=acme`. A program sets labels with the library heapdiff-labels. Each sample has
//! the labels of its thread.
//!
//! Each set of labels has an id. Only the thread itself reads and writes the id of its set, so the table of threads
//! needs no lock. The table belongs to the process and not to one attach, because a scope of labels may continue after
//! a detach.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use heapdiff_sites::labels::{MOST, SEPARATOR, pairs};
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::intern::truncate;
use crate::log::{Level, print_line};

/// Maximum number of sets of labels.
const MOST_SETS: usize = 16_384;
/// Maximum length of a key in bytes. Longer keys are truncated.
const KEY: usize = 64;
/// Maximum length of a value in bytes. Longer values are truncated.
const VALUE: usize = 128;
/// Number of bits of the hash of a thread's id. The hash selects a slot in the table of threads.
const BITS: u32 = 18;
/// Number of slots that are probed for a thread, from the slot that the hash of its id selects.
const PROBES: usize = 16;
const SLOTS: usize = (1 << BITS) + PROBES;

/// The labels of all threads of this process.
pub(crate) static LABELS: Labels = Labels::new();

pub(crate) struct Labels {
    sets: Mutex<Sets>,
    /// Created when a thread has labels for the first time.
    slots: OnceLock<Box<[Slot]>>,
    /// Number of threads with labels.
    labelled: AtomicUsize,
    /// One bit for each reason ([`Missing`]) that was printed.
    printed: AtomicU8,
}

/// A slot of the table of threads with labels. A free slot has the thread id 0.
#[derive(Default)]
struct Slot {
    thread: AtomicU64,
    set: AtomicU32,
}

struct Sets {
    ids: FxHashMap<Arc<str>, u32>,
    list: Vec<Arc<str>>,
}

/// A reason why samples lack labels. Each reason is printed once.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Missing {
    Fourth = 1,
    Sets = 2,
    Threads = 4,
    Names = 8,
}

impl Missing {
    const fn message(self) -> &'static str {
        match self {
            Self::Fourth => "a thread has at most three labels",
            Self::Sets => "too many different labels; use values that repeat, such as routes",
            Self::Threads => "too many threads have labels at the same time",
            Self::Names => "too many combinations of thread names and labels",
        }
    }
}

impl Labels {
    const fn new() -> Self {
        Self {
            sets: Mutex::new(Sets {
                ids: FxHashMap::with_hasher(FxBuildHasher),
                list: Vec::new(),
            }),
            slots: OnceLock::new(),
            labelled: AtomicUsize::new(0),
            printed: AtomicU8::new(0),
        }
    }

    /// True if no thread has labels.
    pub(crate) fn are_unused(&self) -> bool {
        self.labelled.load(Relaxed) == 0
    }

    /// Returns the slots that are probed for a thread.
    fn probed(&self, thread: u64) -> &[Slot] {
        let new = || (0..SLOTS).map(|_| Slot::default()).collect();
        let slots = self.slots.get_or_init(new);
        let hash = thread.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - BITS);
        let start = usize::try_from(hash).unwrap_or(0);
        &slots[start..start + PROBES]
    }

    fn slot(&self, thread: u64) -> Option<&Slot> {
        let mut probed = self.probed(thread).iter();
        probed.find(|slot| slot.thread.load(Relaxed) == thread)
    }

    /// Returns the id of a thread's set of labels, or 0 if the thread has no labels. Only the thread itself may call
    /// this.
    pub(crate) fn get(&self, thread: u64) -> u32 {
        if self.are_unused() {
            return 0;
        }
        self.slot(thread).map_or(0, |slot| slot.set.load(Relaxed))
    }

    /// Sets the labels of a thread. `set` is the id of the set of labels, or 0 for no labels. Only the thread itself
    /// may call this.
    pub(crate) fn set(&self, thread: u64, set: u32) {
        match (self.slot(thread), set) {
            (None, 0) => {}
            (Some(slot), 0) => {
                slot.set.store(0, Relaxed);
                slot.thread.store(0, Release);
                self.labelled.fetch_sub(1, Relaxed);
            }
            (Some(slot), _) => slot.set.store(set, Relaxed),
            (None, _) => {
                let reserve = |slot: &&Slot| {
                    let reserved = slot.thread.compare_exchange(0, thread, Acquire, Relaxed);
                    reserved.is_ok()
                };
                match self.probed(thread).iter().find(reserve) {
                    Some(slot) => {
                        slot.set.store(set, Relaxed);
                        self.labelled.fetch_add(1, Relaxed);
                    }
                    None => self.warn(Missing::Threads),
                }
            }
        }
    }

    /// Returns the id of the set that has the labels of the set `outer` and the labels in `more`. A label in `more`
    /// replaces the label with the same key. If the result would have more than [`MOST`] labels, some labels are left
    /// out. Returns `outer` if there is no room for another set.
    pub(crate) fn add(&self, outer: u32, more: &str) -> u32 {
        // No message is printed while the lock is held, because standard error may block.
        let (id, missing) = self.sets().add(outer, more);
        if let Some(missing) = missing {
            self.warn(missing);
        }
        id
    }

    fn sets(&self) -> MutexGuard<'_, Sets> {
        self.sets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the labels of a set, in the format that [`pairs`] reads.
    pub(crate) fn labels(&self, set: u32) -> Option<Arc<str>> {
        self.sets().labels(set).cloned()
    }

    /// Prints the reason why labels are missing, unless the agent has printed this reason before.
    pub(crate) fn warn(&self, missing: Missing) {
        let bit = missing as u8;
        if self.printed.fetch_or(bit, Relaxed) & bit == 0 {
            print_line(
                Level::Warn,
                format_args!("some samples lack labels: {}", missing.message()),
            );
        }
    }
}

impl Sets {
    /// Does the work of [`Labels::add`]. If a label is left out, also returns the reason.
    fn add(&mut self, outer: u32, more: &str) -> (u32, Option<Missing>) {
        let before = self.labels(outer).map_or("", |labels| &**labels);
        let (labels, is_complete) = merge(before, more);
        let missing = (!is_complete).then_some(Missing::Fourth);
        if labels.is_empty() {
            return (outer, missing);
        }
        if let Some(&id) = self.ids.get(&*labels) {
            return (id, missing);
        }
        let next = u32::try_from(self.list.len() + 1);
        let (true, Ok(next)) = (self.list.len() < MOST_SETS, next) else {
            return (outer, Some(Missing::Sets));
        };
        let labels: Arc<str> = labels.into();
        self.ids.insert(Arc::clone(&labels), next);
        self.list.push(labels);
        (next, missing)
    }

    fn labels(&self, set: u32) -> Option<&Arc<str>> {
        self.list.get((set as usize).checked_sub(1)?)
    }
}

/// Returns the labels of `before` and `more` together. Also returns false if some labels were left out, because at most
/// [`MOST`] labels are allowed.
fn merge(before: &str, more: &str) -> (String, bool) {
    let mut all: Vec<(String, String)> = Vec::new();
    let mut is_complete = true;
    for (key, value) in pairs(before).chain(pairs(more)) {
        let (key, value) = (clean(key, KEY), clean(value, VALUE));
        match all.iter().position(|(known, _)| *known == key) {
            Some(at) => all[at].1 = value,
            None if all.len() < MOST => all.push((key, value)),
            None => is_complete = false,
        }
    }
    let labels = all.iter().map(|(key, value)| format!("{key}={value}"));
    let labels: Vec<String> = labels.collect();
    (labels.join(&SEPARATOR.to_string()), is_complete)
}

/// Truncates a string to at most `most` bytes, and replaces control characters by spaces.
fn clean(text: &str, most: usize) -> String {
    let text = truncate(text, most).chars();
    text.map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels() -> Box<Labels> {
        Box::new(Labels::new())
    }

    fn text(labels: &Labels, set: u32) -> String {
        let text = labels.labels(set).unwrap_or_default();
        text.replace(SEPARATOR, ", ")
    }

    fn printed(labels: &Labels) -> u8 {
        labels.printed.load(Relaxed)
    }

    #[test]
    fn inner_labels_are_added_or_replace_outer_ones() {
        let labels = labels();
        let outer = labels.add(0, "tenant=acme\u{1f}route=/a");
        assert_eq!(text(&labels, outer), "tenant=acme, route=/a");
        let inner = labels.add(outer, "route=/b\u{1f}user=7");
        assert_eq!(text(&labels, inner), "tenant=acme, route=/b, user=7");
        assert_eq!(labels.add(0, "tenant=acme\u{1f}route=/a"), outer);
        // A fourth label is left out.
        let fourth = labels.add(inner, "job=x\u{1f}user=8");
        assert_eq!(text(&labels, fourth), "tenant=acme, route=/b, user=8");
        assert_eq!(printed(&labels), Missing::Fourth as u8);
        // If the text contains no label, `add` returns the given set of labels.
        assert_eq!(labels.add(outer, "nothing"), outer);
        assert_eq!(labels.add(0, ""), 0);
    }

    #[test]
    fn labels_are_short_and_have_no_control_characters() {
        let labels = labels();
        let set = labels.add(0, &format!("k\ney=a\tb{}", "é".repeat(200)));
        let text = text(&labels, set);
        assert!(
            text.starts_with("k ey=a bé") && text.len() <= 5 + VALUE,
            "{text}"
        );
    }

    #[test]
    fn the_number_of_sets_is_limited() {
        let labels = labels();
        let outer = labels.add(0, "a=b");
        for n in 0..MOST_SETS {
            labels.add(0, &format!("id={n}"));
        }
        assert_eq!(printed(&labels), Missing::Sets as u8);
        assert_eq!(labels.add(outer, "new=1"), outer);
        assert_eq!(text(&labels, labels.add(0, "id=7")), "id=7");
    }

    #[test]
    fn each_thread_has_its_own_labels() {
        let labels = labels();
        assert!(labels.are_unused());
        for thread in 1..=80_000 {
            labels.set(thread, 1 + u32::try_from(thread).unwrap());
        }
        for thread in 1..=80_000 {
            assert_eq!(u64::from(labels.get(thread)), thread + 1);
        }
        for thread in 1..=80_000 {
            labels.set(thread, 0);
            assert_eq!(labels.get(thread), 0);
        }
        assert!(labels.are_unused() && printed(&labels) == 0);
    }

    #[test]
    fn a_full_table_drops_labels() {
        let labels = labels();
        for thread in 1..=500_000 {
            labels.set(thread, 9);
        }
        assert_eq!(printed(&labels), Missing::Threads as u8);
        let labelled = labels.labelled.load(Relaxed);
        assert!((200_000..=SLOTS).contains(&labelled), "{labelled}");
        for thread in 1..=500_000 {
            labels.set(thread, 0);
        }
        assert!(labels.are_unused());
    }
}
