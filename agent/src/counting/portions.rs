//! Chooses the number of classes that are retransformed in one batch.
//!
//! For each batch the JVM stops the program and walks all loaded classes. With 33,000 classes this walk takes 16 to 24
//! ms, regardless of the size of the batch. If batches are small, the walks take most of the total time. If batches are
//! large, each one stops the program for long.

use std::time::Duration;

const FIRST: usize = 32;
/// Maximum number of classes in a batch. With larger batches, the JVM would have to compile too much of the program's
/// code again at the same time.
const MOST: usize = 256;
/// If a batch takes less time than this, the size of the batches does not decrease.
const SHORT: Duration = Duration::from_millis(20);
/// Maximum time of a batch, as a multiple of the time of the shortest batch so far. The time of the shortest batch is
/// about the time of the JVM's walk over all loaded classes.
const TIMES: u32 = 4;

/// The size of the next batch, adapted to the times of the previous ones.
pub(super) struct Portions {
    size: usize,
    shortest: Duration,
}

impl Portions {
    pub(super) const fn new() -> Self {
        Self {
            size: FIRST,
            shortest: Duration::MAX,
        }
    }

    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Adapts the size of the next batch to the time that the last batch took.
    pub(super) fn adapt_size(&mut self, time: Duration) {
        self.shortest = self.shortest.min(time);
        let longest = SHORT.max(self.shortest.saturating_mul(TIMES));
        self.size = match time {
            _ if time < longest / 2 => (self.size * 2).min(MOST),
            _ if time > longest => (self.size / 4).max(FIRST),
            _ => self.size,
        };
    }
}

/// Calls `work` for all items at once. If that fails, splits the items into halves and calls `work` for each half, and
/// so on. Calls `failed` for each single item that fails. The JVM changes either all classes of a batch or none, so
/// this search finds the classes that the JVM rejects.
pub(super) fn bisect_failures<'i, T, E>(
    items: &'i [T],
    mut work: impl FnMut(&'i [T]) -> Result<(), E>,
    mut failed: impl FnMut(&'i T, E),
) {
    let mut open = vec![items];
    while let Some(items) = open.pop() {
        match (work(items), items) {
            (Ok(()), _) | (Err(_), []) => {}
            (Err(why), [item]) => failed(item, why),
            (Err(_), _) => {
                let (first, second) = items.split_at(items.len() / 2);
                open.extend([second, first]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failing_items_are_found_by_bisection() {
        let items: Vec<u32> = (0..1000).collect();
        let (mut calls, mut done, mut failed) = (0, Vec::new(), Vec::new());
        let work = |part: &[u32]| {
            calls += 1;
            if part.contains(&7) || part.contains(&999) {
                Err(part.len())
            } else {
                done.extend_from_slice(part);
                Ok(())
            }
        };
        bisect_failures(&items, work, |item, why| failed.push((*item, why)));
        assert_eq!(failed, [(7, 1), (999, 1)]);
        let others = items
            .iter()
            .copied()
            .filter(|item| ![7, 999].contains(item));
        assert!(others.eq(done.iter().copied()), "each once, in order");
        assert!(calls < 50, "{calls}");
        bisect_failures(&items[..0], |_| Err(()), |_, ()| panic!("no item"));
    }

    /// Simulates the batches for `classes` classes. Returns the total time and the time of the longest batch. In
    /// microseconds, `walk` is the time of the JVM's walk over all classes in each batch, and `class` is the time for
    /// each changed class.
    fn hand_over(mut classes: usize, walk: u64, class: u64) -> (Duration, Duration) {
        let mut portions = Portions::new();
        let (mut all, mut longest) = (Duration::ZERO, Duration::ZERO);
        while classes > 0 {
            let portion = portions.size().min(classes);
            let time = Duration::from_micros(walk + class * portion as u64);
            portions.adapt_size(time);
            all += time;
            longest = longest.max(time);
            classes -= portion;
        }
        (all, longest)
    }

    #[test]
    fn walks_do_not_take_most_of_the_time() {
        let millis = Duration::from_millis;
        // With JDK 17, batches of 32 classes were measured to take 22 s in all.
        let (all, longest) = hand_over(33_651, 16_500, 120);
        assert!(
            all < millis(8000) && longest < millis(160),
            "{all:?} {longest:?}"
        );
        // With 200,000 classes, one walk over all classes takes 200 ms.
        let (all, longest) = hand_over(200_000, 200_000, 120);
        assert!(
            all < millis(200_000) && longest < millis(900),
            "{all:?} {longest:?}"
        );
        // With 1,500 classes, one walk over all classes takes 0.5 ms.
        let (all, longest) = hand_over(1500, 500, 120);
        assert!(
            all < millis(200) && longest < millis(40),
            "{all:?} {longest:?}"
        );
    }

    #[test]
    fn slow_portions_are_made_smaller() {
        let mut portions = Portions::new();
        portions.adapt_size(Duration::from_millis(1));
        assert_eq!(portions.size(), 2 * FIRST);
        for _ in 0..9 {
            portions.adapt_size(Duration::from_secs(1));
        }
        assert_eq!(portions.size(), FIRST);
        for _ in 0..9 {
            portions.adapt_size(Duration::ZERO);
        }
        assert_eq!(portions.size(), MOST);
    }
}
