//! Runs: parts of a file in which the addresses of objects ascend.
//!
//! HotSpot writes one space of the heap after the other. Each space is a run, and spaces do not overlap. Most dumps
//! have one run. Those of Parallel and Serial GC have two to four, because the young generation is written first and
//! has higher addresses than the old one. Within a run, an object's number is the rank of its address plus a constant:
//!
//! ```text
//! in the file       eden (numbers 0 to 9)     old (numbers 10 to 99)
//! in the heap       old  (ranks 0 to 89)      eden (ranks 90 to 99)
//! number - rank     old  +10                  eden -90
//! ```
//!
//! So a small table of runs converts ranks to numbers.

use crate::graph::address::{Range, Ranks};

/// Maximum number of runs (parts with ascending addresses) in a piece of the file, which is about a megabyte. If a
/// piece has more runs, the objects of the whole file count as not sorted by address.
const MOST_IN_PIECE: usize = 256;
/// While the file is read, at most this number of runs is stored, plus one run for each piece that was read.
const MOST_KEPT: usize = 1 << 16;
/// Maximum number of runs in the table of a file. For more runs, a table of all objects is faster.
const MOST: usize = 1 << 12;

/// A run (objects with ascending addresses), or the part of a run that is in one piece of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    /// Ids of the first and the last object of the run.
    first: u64,
    last: u64,
    /// Number of objects with references, and number of objects without references, that come before this run in the
    /// file.
    before: [u32; 2],
}

/// The runs (parts with ascending addresses) of a file, or of one piece of the file, in the order of the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Runs {
    runs: Vec<Run>,
    /// True if there are too many runs for a table. Then `runs` is empty.
    scattered: bool,
    pieces: usize,
}

impl Runs {
    pub(crate) fn clear(&mut self) {
        self.runs.clear();
        self.scattered = false;
    }

    /// Begins a run (objects with ascending addresses) at an object. `before` is the number of objects with references,
    /// and the number of objects without references, that come before the object.
    #[cold]
    pub(crate) fn begin(&mut self, id: u64, before: [usize; 2]) {
        if self.scattered || self.runs.len() == MOST_IN_PIECE {
            self.mark_scattered();
            return;
        }
        self.runs.push(Run {
            first: id,
            last: id,
            before: before.map(|n| n as u32),
        });
    }

    /// Ends the current run. `id` is the id of its last object.
    #[inline]
    pub(crate) fn end(&mut self, id: u64) {
        if let Some(run) = self.runs.last_mut() {
            run.last = id;
        }
    }

    /// Adds the runs of the next piece of the file. `base` is the number of objects with references, and the number of
    /// objects without references, in all earlier pieces.
    pub(crate) fn append(&mut self, piece: &mut Self, base: [usize; 2]) {
        self.pieces += 1;
        if piece.scattered || self.runs.len() + piece.runs.len() > self.pieces + MOST_KEPT {
            self.mark_scattered();
        }
        if self.scattered {
            return;
        }
        self.runs.extend(piece.runs.drain(..).map(|run| Run {
            before: [
                run.before[0] + base[0] as u32,
                run.before[1] + base[1] as u32,
            ],
            ..run
        }));
    }

    fn mark_scattered(&mut self) {
        self.scattered = true;
        self.runs = Vec::new();
    }

    /// Returns the runs (parts of the file with ascending addresses), sorted by the address of their first object.
    /// Returns `None` if the address ranges of runs overlap or there are too many runs. If ranges overlap, objects that
    /// follow each other in the file may not be neighbours in the heap.
    ///
    /// Cost: sorts the runs.
    fn by_address(&self) -> Option<Vec<Run>> {
        let mut runs = self.runs.clone();
        runs.sort_unstable_by_key(|r| r.first);
        let apart = runs.windows(2).all(|w| w[0].last < w[1].first);
        (apart && !self.scattered).then_some(runs)
    }

    /// Returns true if the address ranges of the runs do not overlap. Then objects that follow each other in a run are
    /// also neighbours in the heap.
    pub(crate) fn are_disjoint(&self) -> bool {
        self.by_address().is_some()
    }

    /// Returns the table that converts an object's rank to its number (see the module's description); `None` if there
    /// are too many runs or if they overlap.
    pub(crate) fn table(&self, ranks: &Ranks) -> Option<RunTable> {
        let row = |run: &Run| {
            let slot = ranks.space.slot(run.first)?;
            Some(Row {
                slot,
                ranks: ranks.before(slot),
                numbers: run.before,
            })
        };
        let mut rows: Vec<Row> = self.by_address()?.iter().map(row).collect::<Option<_>>()?;
        // Objects whose class is not in the dump have no number. If a run contains only such objects, leave it out of
        // the table. A run is a part of the file in which addresses ascend.
        let mut above = ranks.marked;
        let mut holds_objects = |r: &Row| std::mem::replace(&mut above, r.ranks) != r.ranks;
        let holds: Vec<bool> = rows.iter().rev().map(&mut holds_objects).collect();
        let mut holds = holds.into_iter().rev();
        rows.retain(|_| holds.next() == Some(true));
        // If two runs follow each other both in the file and in the heap, they become one.
        rows.dedup_by_key(|r| r.offsets());
        (rows.len() <= MOST).then(|| RunTable::new(rows))
    }
}

/// A run (a part of the file with ascending addresses), as a row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// The slot (position in the address map) of the run's first object.
    pub(crate) slot: u64,
    /// Number of objects with references, and number of objects without references, whose addresses are lower than the
    /// addresses of this run's objects.
    pub(crate) ranks: [u32; 2],
    /// Number of objects with references, and number of objects without references, that come before this run in the
    /// file.
    pub(crate) numbers: [u32; 2],
}

impl Row {
    /// Returns number minus rank, which is the same for all objects of this run. An object's number is its position in
    /// the file, and its rank is its position in the order of addresses. Objects with references (first result) and
    /// objects without references (second result) are counted separately.
    const fn offsets(&self) -> [u32; 2] {
        [
            self.numbers[0].wrapping_sub(self.ranks[0]),
            self.numbers[1].wrapping_sub(self.ranks[1]),
        ]
    }
}

/// The table of the runs of a file (see the module's description). The runs do not overlap.
#[derive(Debug)]
pub(crate) struct RunTable {
    /// The slot (position in the address map) of the first object of each run, ascending. The run with the lowest
    /// addresses is left out, because every slot before the first of these slots belongs to it.
    starts: Vec<u64>,
    offsets: Vec<[u32; 2]>,
    rows: Vec<Row>,
    /// Indices into `rows`, in the order of the runs in the file.
    in_file: Vec<u32>,
}

impl RunTable {
    fn new(rows: Vec<Row>) -> Self {
        let mut in_file: Vec<u32> = (0..rows.len() as u32).collect();
        in_file.sort_by_key(|&r| rows[r as usize].numbers);
        Self {
            starts: rows.iter().skip(1).map(|r| r.slot).collect(),
            offsets: rows.iter().map(Row::offsets).collect(),
            rows,
            in_file,
        }
    }

    /// Creates the table from the runs that an index stores; `None` if they contradict `ranks`.
    ///
    /// Cost: sorts the rows.
    pub(crate) fn from_rows(rows: Vec<Row>, ranks: &Ranks) -> Option<Self> {
        let ascend = rows.is_sorted_by(|a, b| a.slot < b.slot);
        let slots = ranks.space.slots();
        let fit = |r: &Row| {
            let begins = r.slot < slots && ranks.rank(r.slot).is_some();
            begins && ranks.before(r.slot) == r.ranks
        };
        let few = (1..=MOST).contains(&rows.len());
        if !few || !ascend || !rows.iter().all(fit) || rows[0].ranks != [0, 0] {
            return None;
        }
        let table = Self::new(rows);
        // Check that each run starts in the file where the previous run ends, and the runs together contain all
        // objects.
        let mut next = [0, 0];
        for &row in &table.in_file {
            let row = row as usize;
            let end = table.rows.get(row + 1).map_or(ranks.marked, |r| r.ranks);
            if table.rows[row].numbers != next {
                return None;
            }
            for kind in 0..2 {
                next[kind] += end[kind].checked_sub(table.rows[row].ranks[kind])?;
            }
        }
        (next == ranks.marked).then_some(table)
    }

    pub(crate) fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Returns true if the number of every object is equal to its rank in the order of addresses, so that no conversion
    /// is needed.
    pub(crate) fn is_rank_identity(&self) -> bool {
        self.offsets.iter().all(|o| *o == [0, 0])
    }

    #[inline(always)]
    fn row_of(&self, slot: u64) -> usize {
        match self.starts[..] {
            [start] => usize::from(slot >= start),
            _ => self.starts.partition_point(|&start| start <= slot),
        }
    }

    /// Returns the number of the object that has this slot (position in the address map) and this rank (position in
    /// address order). Objects with references and objects without references are numbered separately.
    #[inline(always)]
    pub(crate) fn number(&self, slot: u64, rank: u32, leaf: bool) -> u32 {
        rank.wrapping_add(self.offsets[self.row_of(slot)][usize::from(leaf)])
    }

    /// Converts an object's number to its rank. `number` is the position in the file among the objects without
    /// references if `leaf` is true, otherwise among the objects with references. The rank is the position in address
    /// order. Also returns a slot (position in the address map) in the object's run from which [`Ranks::address`] can
    /// search for the object: `near` if `near` is in this run, otherwise the slot of the run's first object.
    pub(crate) fn rank(&self, number: u32, leaf: bool, near: u64) -> Option<(u32, u64)> {
        let kind = usize::from(leaf);
        let numbers = |&row: &u32| self.rows[row as usize].numbers[kind];
        let at = self.in_file.partition_point(|r| numbers(r) <= number);
        let row = *self.in_file.get(at.checked_sub(1)?)? as usize;
        let rank = number.wrapping_sub(self.offsets[row][kind]);
        let from = if self.row_of(near) == row {
            near
        } else {
            self.rows[row].slot
        };
        Some((rank, from))
    }
}

/// Returns the lowest address at which objects are expected: the lowest sampled address minus a margin. Objects may lie
/// at lower addresses than all samples, because a piece of the file may begin in one run and continue in a run at lower
/// addresses. (A run is a part of the file with ascending addresses.)
pub(crate) const fn lower_by_margin(low: u64, margin: u64) -> u64 {
    low.saturating_sub(margin) & !(Range::ALIGN - 1)
}

/// Returns true if a file may consist of a few runs (parts with ascending addresses). This is so if at most `FEW`
/// pieces start at a lower address than the piece before. `firsts` has the address of the first object of each piece of
/// the file.
pub(crate) fn may_have_few_runs(firsts: &[u64]) -> bool {
    /// Maximum number of pieces of the file that start at a lower address than the piece before. A heap has few spaces,
    /// and HotSpot writes one after the other.
    const FEW: usize = 8;
    firsts.windows(2).filter(|w| w[1] < w[0]).count() <= FEW
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::array::Store;
    use crate::graph::address::{Marks, Pending};

    const BASE: u64 = 0x1_0000;

    /// Returns the ranks and runs (parts with ascending addresses) of a file whose objects are at these slots
    /// (positions in the address map), in the order of the file. Each piece of the file has `piece` objects. Objects at
    /// slots that are multiples of 3 count as objects without references.
    fn of(slots: &[u64], piece: usize) -> (Ranks, Runs) {
        let store = Store::new(None);
        let end = BASE + 8 * (slots.iter().max().unwrap() + 1);
        let range = Range {
            base: BASE,
            end: end.next_multiple_of(64),
        };
        let mut marks = Marks::new(range, &store).unwrap();
        let (writer, mut pending) = (marks.writer(), Pending::default());
        let (mut all, mut counts) = (Runs::default(), [0, 0]);
        for piece in slots.chunks(piece) {
            let (mut runs, mut own, mut previous) = (Runs::default(), [0, 0], None);
            for &slot in piece {
                if previous.is_none_or(|p| slot <= p) {
                    if let Some(p) = previous {
                        runs.end(BASE + 8 * p);
                    }
                    runs.begin(BASE + 8 * slot, own);
                }
                previous = Some(slot);
                own[usize::from(slot % 3 == 0)] += 1;
                writer.mark(&mut pending, slot, slot % 3 == 0);
            }
            runs.end(BASE + 8 * previous.unwrap());
            all.append(&mut runs, counts);
            counts = [counts[0] + own[0], counts[1] + own[1]];
        }
        writer.flush(&mut pending);
        (marks.into_ranks(&store).unwrap(), all)
    }

    fn check(slots: &[u64], table: &RunTable, ranks: &Ranks) {
        let mut next = [0, 0];
        for &slot in slots {
            let leaf = slot % 3 == 0;
            let (rank, is_leaf) = ranks.rank(slot).unwrap();
            assert_eq!(leaf, is_leaf);
            let number = table.number(slot, rank, leaf);
            assert_eq!(number, next[usize::from(leaf)], "slot {slot}");
            next[usize::from(leaf)] += 1;
            // The search begins at the slot `near`. Begin it at the first slot, at the last slot, and at the object's slot.
            for near in [slots[0], slots[slots.len() - 1], slot] {
                let (same, from) = table.rank(number, leaf, near).unwrap();
                assert_eq!(same, rank, "slot {slot}");
                if from <= slot {
                    assert_eq!(ranks.address(rank, leaf, from), Some(BASE + 8 * slot));
                }
            }
        }
    }

    #[test]
    fn runs_that_do_not_overlap_need_no_permutation() {
        let old = || 5..900_u64;
        let eden = || (2_000..2_600).step_by(2);
        let survivors = || 1_200..1_300_u64;
        for (slots, runs, ordered) in [
            (old().chain(eden()).collect::<Vec<_>>(), 1, true),
            (eden().chain(old()).collect(), 2, false),
            (eden().chain(survivors()).chain(old()).collect(), 3, false),
            (survivors().chain(eden()).chain(old()).collect(), 2, false),
        ] {
            for piece in [1, 7, 100, 10_000] {
                let (ranks, all) = of(&slots, piece);
                assert!(all.are_disjoint());
                let table = all.table(&ranks).unwrap();
                assert_eq!(
                    (table.rows().len(), table.is_rank_identity()),
                    (runs, ordered)
                );
                check(&slots, &table, &ranks);
                let again = RunTable::from_rows(table.rows().to_vec(), &ranks).unwrap();
                check(&slots, &again, &ranks);
            }
        }
    }

    #[test]
    fn runs_that_overlap_have_no_table() {
        let odd_then_even: Vec<u64> = (0..100).step_by(2).chain((1..100).step_by(2)).collect();
        let (ranks, all) = of(&odd_then_even, 1_000);
        assert!(!all.are_disjoint() && all.table(&ranks).is_none());
        // Each piece of the file has its own runs (objects with ascending addresses). If each piece has only one
        // object, each run consists of one object, so no runs overlap.
        let (ranks, all) = of(&odd_then_even, 1);
        assert!(all.are_disjoint());
        check(&odd_then_even, &all.table(&ranks).unwrap(), &ranks);
    }

    #[test]
    fn one_id_twice_is_an_overlap() {
        let (_, all) = of(&[3, 4, 4, 5], 10);
        assert!(!all.are_disjoint());
        let (_, all) = of(&[3, 4, 4, 5], 2);
        assert!(!all.are_disjoint());
    }

    #[test]
    fn too_many_runs_are_not_used() {
        let falling: Vec<u64> = (0..MOST_IN_PIECE as u64 + 1).rev().collect();
        assert!(!of(&falling, 1_000).1.are_disjoint());
        assert!(of(&falling[1..], 1_000).1.are_disjoint());
        let falling: Vec<u64> = (0..=MOST as u64).rev().collect();
        let (ranks, all) = of(&falling, 100);
        assert!(all.are_disjoint() && all.table(&ranks).is_none());
        let (ranks, all) = of(&falling[1..], 100);
        assert_eq!(all.table(&ranks).unwrap().rows().len(), MOST);
    }

    #[test]
    fn rows_of_another_file_are_refused() {
        let slots: Vec<u64> = (500..600).chain(0..400).collect();
        let (ranks, all) = of(&slots, 64);
        let rows = all.table(&ranks).unwrap().rows().to_vec();
        assert!(RunTable::from_rows(rows.clone(), &ranks).is_some());
        let changes: [fn(&mut Vec<Row>); 8] = [
            |rows| rows[1].slot += 1,
            |rows| rows[1].slot = 1 << 40,
            |rows| rows[1].ranks[0] += 1,
            |rows| rows[0].numbers[1] += 1,
            |rows| rows[1].numbers[0] = u32::MAX,
            |rows| rows.swap(0, 1),
            |rows| rows.truncate(1),
            Vec::clear,
        ];
        for (i, change) in changes.into_iter().enumerate() {
            let mut other = rows.clone();
            change(&mut other);
            assert!(RunTable::from_rows(other, &ranks).is_none(), "change {i}");
        }
    }

    #[test]
    fn a_margin_ends_at_the_lowest_address() {
        assert_eq!(lower_by_margin(0x1000, 0x100), 0xf00);
        assert_eq!(lower_by_margin(0x1000, 0x101), 0xec0);
        assert_eq!(lower_by_margin(0x1000, u64::MAX), 0);
        assert_eq!(lower_by_margin(0, 8), 0);
    }
}
