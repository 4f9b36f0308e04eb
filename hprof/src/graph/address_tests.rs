//! Tests two kinds of address maps. Some maps are larger than the ranges of slots that one task handles. Other maps
//! belong to files whose objects are in any order.

use super::*;
use crate::graph::runs::Runs;

const BASE: u64 = 0x7_0000_0000;
/// Numbers of slots (8-byte units of addresses) that are handled together. An index file stores the map in ranges of
/// [`STRETCH`] slots (see [`Ranks::STRETCH`]). One task reads [`SHARE`] slots from an index file, and one task counts
/// the objects that start in [`PART`] slots.
const STRETCH: u64 = (Ranks::STRETCH * PAIRS_IN_LINE * 64) as u64;
const SHARE: u64 = STRETCH * 64;
const PART: u64 = (PAIRS_IN_LINE as u64 * 64) << 14;

/// The address range of the map. Its number of slots is not a multiple of [`STRETCH`], so the last stretch (a range of
/// slots that an index file stores) is shorter.
const RANGE: Range = Range {
    base: BASE,
    end: BASE + 8 * (PART * 2 + STRETCH * 3 + 3 * 256 + 128),
};

/// Returns the slots at which objects start. Some of them are close to a multiple of [`STRETCH`], [`SHARE`] or
/// [`PART`], where the next task or range begins. Most ranges of [`STRETCH`] slots have no objects.
fn slots() -> Vec<u64> {
    let mut slots = vec![0, 1, 2, 63, 64, 65, 255, 256, 1000];
    for edge in [STRETCH, 5 * STRETCH, SHARE, 2 * SHARE, PART, 2 * PART] {
        slots.extend([edge - 65, edge - 2, edge - 1, edge, edge + 1, edge + 70]);
    }
    slots.extend([RANGE.slots() - 200, RANGE.slots() - 2, RANGE.slots() - 1]);
    slots
}

/// Selects the objects without references irregularly, so that objects of both kinds lie at the edges of stretches.
fn is_leaf(slot: u64) -> bool {
    slot.count_ones().is_multiple_of(2)
}

fn ranks_of(range: Range, slots: impl IntoIterator<Item = u64>) -> Ranks {
    let store = Store::new(None);
    let mut marks = Marks::new(range, &store).unwrap();
    let (writer, mut pending) = (marks.writer(), Pending::default());
    for slot in slots {
        writer.mark(&mut pending, slot, is_leaf(slot));
    }
    writer.flush(&mut pending);
    marks.into_ranks(&store).unwrap()
}

/// Checks the rank of each slot at which an object starts. Also checks that the rank leads back to the address from any
/// slot at which counting starts. (The rank is the number of objects of the same kind at lower addresses.)
fn check(ranks: &Ranks) {
    let mut next = [0, 0];
    for slot in slots() {
        let leaf = is_leaf(slot);
        let rank = next[usize::from(leaf)];
        assert_eq!(ranks.rank(slot), Some((rank, leaf)), "slot {slot}");
        assert_eq!(ranks.before(slot), next, "slot {slot}");
        for from in [slot, slot / 64 * 64, slot / 256 * 256] {
            let address = Some(BASE + 8 * slot);
            assert_eq!(ranks.address(rank, leaf, from), address, "slot {slot}");
        }
        next[usize::from(leaf)] += 1;
    }
    assert_eq!(ranks.marked, next);
    assert!(!ranks.doubled);
    for slot in [3, STRETCH + 2, PART - 3, RANGE.slots() - 3] {
        assert_eq!(ranks.rank(slot), None);
    }
}

#[test]
fn a_range_has_its_first_address_and_not_its_end() {
    let range = Range {
        base: 0x1000,
        end: 0x1400,
    };
    assert_eq!(range.slots(), 0x80);
    assert_eq!(range.slot(0x1000), Some(0));
    assert_eq!(range.slot(0x13f8), Some(0x7f));
    for none in [0, 0xff8, 0x1004, 0x1001, 0x13ff, 0x1400, !7] {
        assert_eq!(range.slot(none), None, "{none:#x}");
    }
}

#[test]
fn ranks_continue_from_part_to_part() {
    check(&ranks_of(RANGE, slots()));
}

#[test]
fn slots_marked_twice_are_detected() {
    let store = Store::new(None);
    for (slot, other) in [(700, 700), (PART + 9, PART + 9), (700, 701)] {
        let mut marks = Marks::new(RANGE, &store).unwrap();
        let (writer, mut pending) = (marks.writer(), Pending::default());
        writer.mark(&mut pending, slot, false);
        writer.mark(&mut pending, other, true);
        writer.flush(&mut pending);
        let ranks = marks.into_ranks(&store).unwrap();
        assert_eq!(ranks.doubled, slot == other);
        assert_eq!(ranks.marked, [1, 1]);
    }
}

#[test]
fn stored_stretches_give_the_same_map() {
    let store = Store::new(None);
    let ranks = ranks_of(RANGE, slots());
    let (numbers, bits, counts) = ranks.stretches();
    let mut expected: Vec<u32> = slots().iter().map(|s| (s / STRETCH) as u32).collect();
    expected.dedup();
    assert_eq!(numbers, expected);
    let again = |numbers: &[u32], bits: &[u64], counts: &[u32]| {
        Ranks::from_stretches(RANGE.into(), ranks.marked, (numbers, bits, counts), &store)
    };
    let same = again(&numbers, &bits, &counts).unwrap();
    assert_eq!(same.bits[..], ranks.bits[..]);
    check(&same);
    // The map can also be created without its last stretch, which is shorter than the others, or without any stretch.
    // Then no object starts in the missing stretches.
    let (words, lines) = (STRETCH as usize / 64 * PAIR, Ranks::STRETCH * 2);
    let few = numbers.len() - 1;
    let fewer = again(
        &numbers[..few],
        &bits[..few * words],
        &counts[..few * lines],
    )
    .unwrap();
    assert_eq!(fewer.rank(2 * PART), ranks.rank(2 * PART));
    assert_eq!(fewer.rank(RANGE.slots() - 1), None);
    assert!(again(&[], &[], &[]).is_some());

    let mut twice = numbers.clone();
    twice[1] = twice[0];
    let mut falling = numbers.clone();
    falling.swap(1, 2);
    let mut beyond = numbers.clone();
    *beyond.last_mut().unwrap() += 1;
    for numbers in [twice, falling, beyond, numbers[1..].to_vec()] {
        assert!(again(&numbers, &bits, &counts).is_none(), "{numbers:?}");
    }
    let (bit, count) = (bits.len() - 1, counts.len() - 1);
    assert!(again(&numbers, &bits[..bit], &counts).is_none());
    assert!(again(&numbers, &bits, &counts[..count]).is_none());
}

/// Checks that each object is visited once, in the order of ids, if the map is divided into several parts.
fn check_map(map: &AddressMap, split: Split, objects: &[(u64, u32)]) {
    for parts in [1, 2, 7] {
        let mut seen = Vec::new();
        for part in 0..parts {
            map.for_each_in_order(part, parts, split, |id, number| seen.push((id, number)));
        }
        assert_eq!(seen, objects, "{parts} parts");
    }
    for &(id, number) in objects {
        assert_eq!(map.by_id(id, split), number, "{id:#x}");
        if let Some(ranks) = map.ranks() {
            let slot = ranks.space.slot(id).unwrap();
            assert_eq!(map.by_slot(slot, split), number);
            assert_eq!(ranks.rank(slot + 1), None);
            assert_eq!(map.by_slot(slot + 1, split), NONE);
        } else {
            assert_eq!(map.by_slot(0, split), NONE);
        }
        assert_eq!(map.by_id(id + 8, split), NONE);
        assert_eq!(map.by_id(id + 1, split), NONE);
    }
    assert_eq!(map.by_id(BASE - 8, split), NONE);
}

#[test]
fn maps_of_any_order_give_the_same_numbers() {
    let range = Range {
        base: BASE,
        end: BASE + 8 * 4096,
    };
    let at: Vec<u64> = (0..900).map(|n| n * 4 + 1).collect();
    let inner = at.iter().filter(|&&s| !is_leaf(s)).count() as u32;
    let split = Split {
        classes: 5,
        inner: 5 + inner,
    };
    // Numbers the objects in file order, and returns pairs (id, number), sorted by id.
    let numbered = |file: &[u64]| {
        let mut next = [split.classes, split.inner];
        let mut objects = Vec::new();
        for &slot in file {
            let next = &mut next[usize::from(is_leaf(slot))];
            objects.push((BASE + 8 * slot, *next));
            *next += 1;
        }
        objects.sort_unstable();
        objects
    };
    let map = AddressMap::Ordered(ranks_of(range, at.iter().copied()));
    check_map(&map, split, &numbered(&at));

    // The file has the objects with high addresses first.
    let (low, high) = at.split_at(450);
    let file = [high, low].concat();
    let ranks = ranks_of(range, file.iter().copied());
    let (mut runs, mut before) = (Runs::default(), [0, 0]);
    for run in [high, low] {
        let mut piece = Runs::default();
        piece.begin(BASE + 8 * run[0], [0, 0]);
        piece.end(BASE + 8 * run[run.len() - 1]);
        runs.append(&mut piece, before);
        run.iter()
            .for_each(|&s| before[usize::from(is_leaf(s))] += 1);
    }
    let runs = runs.table(&ranks).unwrap();
    assert!(!runs.is_rank_identity());
    check_map(&AddressMap::Runs { ranks, runs }, split, &numbered(&file));

    // A file whose objects are not in the order of their addresses.
    let file: Vec<u64> = (0..900).map(|n| at[n * 7 % 900]).collect();
    let objects = numbered(&file);
    let of_kind = |leaf: bool| -> Vec<u32> {
        let kind = objects.iter().filter(|o| (o.1 >= split.inner) == leaf);
        kind.map(|o| o.1).collect()
    };
    let column = |numbers: &[u32]| -> Column<u32> {
        let mut array = Store::new(None).zeroed(numbers.len()).unwrap();
        array.copy_from_slice(numbers);
        array.into()
    };
    let map = AddressMap::Permuted {
        ranks: ranks_of(range, file.iter().copied()),
        with_refs: column(&of_kind(false)),
        leaves: column(&of_kind(true)),
    };
    check_map(&map, split, &objects);

    let mut ids: Array<u64> = Store::new(None).zeroed(objects.len()).unwrap();
    (ids.iter_mut().zip(&objects)).for_each(|(id, object)| *id = object.0);
    let numbers: Vec<u32> = objects.iter().map(|o| o.1).collect();
    let map = AddressMap::Sorted {
        ids: ids.into(),
        numbers: column(&numbers),
    };
    check_map(&map, split, &objects);
}
