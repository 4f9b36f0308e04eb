//! How many classes are handed over at once.
//!
//! Each time the JVM stops the program and walks all classes that are loaded: with 33,000 classes it takes 16 to 24 ms, however
//! few of them are handed over. With small portions the walks take most of the time; with large ones the program stands
//! still for long.

use std::time::Duration;

const FIRST: usize = 32;
/// Maximum number of classes. With more, too much of the program's code is compiled again at once.
const MOST: usize = 256;
/// A portion that takes less is not too large.
const SHORT: Duration = Duration::from_millis(20);
/// A portion may take as many times what the shortest one took, which is little more than one walk.
const TIMES: u32 = 4;

/// The size of the next portion, by the time that those before it took.
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

    /// Adapts the size to the time that the last portion took.
    pub(super) fn took(&mut self, time: Duration) {
        self.shortest = self.shortest.min(time);
        let longest = SHORT.max(self.shortest.saturating_mul(TIMES));
        self.size = match time {
            _ if time < longest / 2 => (self.size * 2).min(MOST),
            _ if time > longest => (self.size / 4).max(FIRST),
            _ => self.size,
        };
    }
}

/// Does the work on all items and, if that fails, on each half of them, and so on. `failed` gets each item on which it fails
/// alone: the JVM changes all classes of a portion or none.
pub(super) fn by_halves<'i, T, E>(
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
    fn what_fails_is_found_by_halves() {
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
        by_halves(&items, work, |item, why| failed.push((*item, why)));
        assert_eq!(failed, [(7, 1), (999, 1)]);
        let others = items
            .iter()
            .copied()
            .filter(|item| ![7, 999].contains(item));
        assert!(others.eq(done.iter().copied()), "each once, in order");
        assert!(calls < 50, "{calls}");
        by_halves(&items[..0], |_| Err(()), |_, ()| panic!("no item"));
    }

    /// Hands over all classes; what it takes in all, and the longest portion. Times of a walk and a class in microseconds.
    fn hand_over(mut classes: usize, walk: u64, class: u64) -> (Duration, Duration) {
        let mut portions = Portions::new();
        let (mut all, mut longest) = (Duration::ZERO, Duration::ZERO);
        while classes > 0 {
            let portion = portions.size().min(classes);
            let time = Duration::from_micros(walk + class * portion as u64);
            portions.took(time);
            all += time;
            longest = longest.max(time);
            classes -= portion;
        }
        (all, longest)
    }

    #[test]
    fn walks_do_not_take_most_of_the_time() {
        let millis = Duration::from_millis;
        // Figures of JDK 17: 32 at a time took 22 s.
        let (all, longest) = hand_over(33_651, 16_500, 120);
        assert!(
            all < millis(8000) && longest < millis(160),
            "{all:?} {longest:?}"
        );
        // So many classes that one walk takes 200 ms.
        let (all, longest) = hand_over(200_000, 200_000, 120);
        assert!(
            all < millis(200_000) && longest < millis(900),
            "{all:?} {longest:?}"
        );
        // Few classes: the program does not stand still for longer than before.
        let (all, longest) = hand_over(1500, 500, 120);
        assert!(
            all < millis(200) && longest < millis(40),
            "{all:?} {longest:?}"
        );
    }

    #[test]
    fn slow_portions_are_made_smaller() {
        let mut portions = Portions::new();
        portions.took(Duration::from_millis(1));
        assert_eq!(portions.size(), 2 * FIRST);
        for _ in 0..9 {
            portions.took(Duration::from_secs(1));
        }
        assert_eq!(portions.size(), FIRST);
        for _ in 0..9 {
            portions.took(Duration::ZERO);
        }
        assert_eq!(portions.size(), MOST);
    }
}
