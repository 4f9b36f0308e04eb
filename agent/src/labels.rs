//! Labels of threads, such as `tenant=acme`. The library heapdiff-labels sets them, and each sample has the labels of its
//! thread.
//!
//! A set of labels has a number. Only the thread itself reads and writes its own number, so the table of threads needs
//! no lock. The table is part of the process rather than of one attach, because scopes of labels outlive a detach.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize};
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
/// Number of bits of the index of a place.
const BITS: u32 = 16;
/// A thread has one of this number of consecutive places. The first of them follows from the thread's id.
const WINDOW: usize = 16;
const PLACES: usize = (1 << BITS) + WINDOW;

/// The labels of all threads.
pub(crate) static LABELS: Labels = Labels::new();

pub(crate) struct Labels {
    sets: Mutex<Sets>,
    /// Created when a thread has labels for the first time.
    places: OnceLock<Box<[Place]>>,
    /// Number of threads with labels.
    labelled: AtomicUsize,
    /// True once the agent has printed that labels are missing.
    warned: AtomicBool,
}

/// A thread with labels. A free place has the thread 0.
#[derive(Default)]
struct Place {
    thread: AtomicU64,
    set: AtomicU32,
}

struct Sets {
    numbers: FxHashMap<Arc<str>, u32>,
    list: Vec<Arc<str>>,
}

impl Labels {
    const fn new() -> Self {
        Self {
            sets: Mutex::new(Sets {
                numbers: FxHashMap::with_hasher(FxBuildHasher),
                list: Vec::new(),
            }),
            places: OnceLock::new(),
            labelled: AtomicUsize::new(0),
            warned: AtomicBool::new(false),
        }
    }

    /// True if no thread has labels.
    pub(crate) fn are_unused(&self) -> bool {
        self.labelled.load(Relaxed) == 0
    }

    /// Returns the places that the thread may have.
    fn window(&self, thread: u64) -> &[Place] {
        let new = || (0..PLACES).map(|_| Place::default()).collect();
        let places = self.places.get_or_init(new);
        let hash = thread.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - BITS);
        let start = usize::try_from(hash).unwrap_or(0);
        &places[start..start + WINDOW]
    }

    fn place(&self, thread: u64) -> Option<&Place> {
        let mut window = self.window(thread).iter();
        window.find(|place| place.thread.load(Relaxed) == thread)
    }

    /// Returns the number of a thread's labels; 0 without labels. Called on this thread.
    pub(crate) fn get(&self, thread: u64) -> u32 {
        if self.are_unused() {
            return 0;
        }
        self.place(thread)
            .map_or(0, |place| place.set.load(Relaxed))
    }

    /// Sets the labels of a thread. Called on this thread.
    pub(crate) fn set(&self, thread: u64, set: u32) {
        match (self.place(thread), set) {
            (None, 0) => {}
            (Some(place), 0) => {
                place.set.store(0, Relaxed);
                place.thread.store(0, Release);
                self.labelled.fetch_sub(1, Relaxed);
            }
            (Some(place), _) => place.set.store(set, Relaxed),
            (None, _) => {
                let take = |place: &&Place| {
                    let taken = place.thread.compare_exchange(0, thread, Acquire, Relaxed);
                    taken.is_ok()
                };
                match self.window(thread).iter().find(take) {
                    Some(place) => {
                        place.set.store(set, Relaxed);
                        self.labelled.fetch_add(1, Relaxed);
                    }
                    None => self.warn("too many threads have labels; close each LabelScope"),
                }
            }
        }
    }

    /// Returns the number of the set that has the labels of the set `outer` and those in `more`. A label in `more`
    /// replaces the label with the same key. Returns `outer` if there is no room for another set.
    pub(crate) fn add(&self, outer: u32, more: &str) -> u32 {
        // No message is printed while the lock is held, because standard error may block.
        let (number, problem) = self.sets().add(outer, more);
        if let Some(problem) = problem {
            self.warn(problem);
        }
        number
    }

    fn sets(&self) -> MutexGuard<'_, Sets> {
        self.sets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the text of a set, as [`pairs`] reads it.
    pub(crate) fn text(&self, set: u32) -> Option<Arc<str>> {
        self.sets().text(set).cloned()
    }

    /// Prints why labels are missing. Only the first reason is printed.
    fn warn(&self, why: &str) {
        if !self.warned.swap(true, Relaxed) {
            print_line(Level::Warn, format_args!("some samples lack labels: {why}"));
        }
    }
}

impl Sets {
    /// Does the work of [`Labels::add`]. Also returns the reason if a label is left out.
    fn add(&mut self, outer: u32, more: &str) -> (u32, Option<&'static str>) {
        let before = self.text(outer).map_or("", |text| &**text);
        let (labels, is_complete) = merge(before, more);
        let problem = (!is_complete).then_some("a thread has at most three labels");
        if labels.is_empty() {
            return (outer, problem);
        }
        if let Some(&number) = self.numbers.get(&*labels) {
            return (number, problem);
        }
        let next = u32::try_from(self.list.len() + 1);
        let (true, Ok(next)) = (self.list.len() < MOST_SETS, next) else {
            let problem = "too many different labels; use values that repeat, such as routes";
            return (outer, Some(problem));
        };
        let labels: Arc<str> = labels.into();
        self.numbers.insert(Arc::clone(&labels), next);
        self.list.push(labels);
        (next, problem)
    }

    fn text(&self, set: u32) -> Option<&Arc<str>> {
        self.list.get((set as usize).checked_sub(1)?)
    }
}

/// Returns the labels of `before` and `more` together, and false if there are more than [`MOST`].
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
    let texts: Vec<String> = all
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    (texts.join(&SEPARATOR.to_string()), is_complete)
}

/// Replaces control characters by spaces, and truncates a text to at most `most` bytes.
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
        let text = labels.text(set).unwrap_or_default();
        text.replace(SEPARATOR, ", ")
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
        assert!(labels.warned.load(Relaxed));
        // Text without labels changes nothing.
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
        assert!(labels.warned.load(Relaxed));
        assert_eq!(labels.add(outer, "new=1"), outer);
        assert_eq!(text(&labels, labels.add(0, "id=7")), "id=7");
    }

    #[test]
    fn each_thread_has_its_own_labels() {
        let labels = labels();
        assert!(labels.are_unused());
        for thread in 1..=20_000 {
            labels.set(thread, 1 + u32::try_from(thread).unwrap());
        }
        for thread in 1..=20_000 {
            assert_eq!(u64::from(labels.get(thread)), thread + 1);
        }
        for thread in 1..=20_000 {
            labels.set(thread, 0);
            assert_eq!(labels.get(thread), 0);
        }
        assert!(labels.are_unused() && !labels.warned.load(Relaxed));
    }

    #[test]
    fn a_full_table_drops_labels() {
        let labels = labels();
        for thread in 1..=200_000 {
            labels.set(thread, 9);
        }
        assert!(labels.warned.load(Relaxed));
        let labelled = labels.labelled.load(Relaxed);
        assert!((60_000..=PLACES).contains(&labelled), "{labelled}");
        for thread in 1..=200_000 {
            labels.set(thread, 0);
        }
        assert!(labels.are_unused());
    }
}
