//! Stores some of the collected samples: the most recent ones, and a uniform random selection of all. [`CollectedRefs`]
//! stores these samples in the heap for dumps, and [`CollectedSamples`] stores them for the trace.

mod in_heap;
mod in_trace;

pub(crate) use in_heap::CollectedRefs;
pub(crate) use in_trace::CollectedSamples;

use crate::random::Random;

/// Reservoir sampling: decides which elements of a stream are stored, and in which slots of two lists.
struct Reservoir {
    /// Number of slots for the most recent elements.
    recent: usize,
    /// Number of slots for the random selection.
    chosen: usize,
    random: Random,
}

/// The slots for one element of the stream: a slot in the list of the most recent elements, and a slot in the random
/// selection. A slot is `None` if the list does not store the element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct KeptAt {
    recent: Option<usize>,
    chosen: Option<usize>,
}

impl Reservoir {
    fn new(recent: usize, chosen: usize, seed: u64) -> Self {
        Self {
            recent,
            chosen,
            random: Random::new(seed),
        }
    }

    /// Returns the slots for stream element `number` (0-based). Call this once per element, in order.
    fn places(&self, number: u64) -> KeptAt {
        // Algorithm R (Vitter 1985): element number n is selected with probability chosen / n.
        let chosen = if number < self.chosen as u64 {
            number
        } else {
            self.random.random_below(number + 1)
        };
        let index = |place: u64, len: usize| usize::try_from(place).ok().filter(|&at| at < len);
        KeptAt {
            recent: number
                .checked_rem(self.recent as u64)
                .and_then(|place| index(place, self.recent)),
            chosen: index(chosen, self.chosen),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_and_a_random_choice_get_places() {
        let reservoir = Reservoir::new(4, 4, 1);
        let all = |number| KeptAt {
            recent: Some(number),
            chosen: Some(number),
        };
        for number in 0..4 {
            assert_eq!(reservoir.places(number as u64), all(number));
        }
        let later: Vec<KeptAt> = (4..1000).map(|n| reservoir.places(n)).collect();
        for (number, places) in (4_usize..).zip(&later) {
            assert_eq!(places.recent, Some(number % 4));
            assert!(places.chosen.is_none_or(|at| at < 4));
        }
        // The expected number of selected elements is the sum of 4 / n for n from 5 to 1000, which is 21.6.
        let chosen = later.iter().filter(|p| p.chosen.is_some()).count();
        assert!((8..=38).contains(&chosen), "{chosen}");
        let none = Reservoir::new(0, 0, 1).places(7);
        assert_eq!((none.recent, none.chosen), (None, None));
    }
}
