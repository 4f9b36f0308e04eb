//! Tests how totals are divided among stacks, with shares that were calculated by hand. Also simulates a JVM before JDK
//! 25, which ignores part of the bytes that a thread allocated since its last sample.

use super::*;
use crate::{Strategy, Unseen, Weight};

fn sampling(interval: u64) -> Sampling {
    Sampling {
        strategy: Strategy::Bytes,
        interval,
        rate: 0,
    }
}

/// Returns `count` samples of objects of one size. Each sample represents 10 objects.
fn samples(count: u64, size: u64) -> Estimate {
    let bytes = size as f64 * 10.0;
    let mut sum = Estimate::default();
    for _ in 0..count {
        let weight = Weight::poisson(10.0, bytes);
        sum.add(&weight, size);
    }
    sum
}

fn known(objects: u64, size: u64) -> Known {
    Known {
        objects,
        bytes: objects * size,
    }
}

/// Divides the objects of one class among keys. `strata` are the groups of objects by size.
fn one_class(
    strata: BTreeMap<u32, Stratum<char>>,
    sampling: &Sampling,
    totals: Totals,
    follow: Follow,
) -> Division<char> {
    Stratum::divide(
        [((), strata)].into(),
        sampling,
        totals,
        follow,
        Keys::Groups,
    )
}

fn divide(stratum: Stratum<char>, totals: Totals, follow: Follow) -> Division<char> {
    let strata = [(size_class(100), stratum)].into();
    one_class(strata, &sampling(1000), totals, follow)
}

fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 0.5, "{found}, not {expected}");
}

#[test]
fn size_classes_split_each_power_of_two_in_four() {
    let bounds = [
        8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160,
    ];
    for pair in bounds.windows(2) {
        assert!(size_class(pair[0]) < size_class(pair[1]), "{pair:?}");
        assert_eq!(size_class(pair[0]), size_class(pair[1] - 1), "{pair:?}");
    }
    assert_eq!(size_class(0), size_class(8));
    assert_eq!(size_class(32) - size_class(16), NEAR);
    assert_eq!(size_class(u64::MAX), 63 * 4 + 3);
}

#[test]
fn stacks_get_their_share_of_the_total_in_the_dump() {
    let stratum = Stratum {
        after: known(2000, 100),
        came: [('a', samples(75, 100)), ('b', samples(25, 100))].into(),
        ..Stratum::default()
    };
    // If only the weights were used, the estimates would be 75,000 and 25,000 bytes.
    let parts = divide(stratum.clone(), Totals::Shared, Follow::Nothing).parts;
    near(parts[&'a'].bytes.value, 150_000.0);
    near(parts[&'b'].bytes.value, 50_000.0);
    near(parts[&'a'].objects, 1500.0);
    let share = Interval::share(0.75, 100.0, 0.05);
    near(parts[&'a'].bytes.low, share.low * 200_000.0);
    near(parts[&'a'].bytes.high, share.high * 200_000.0);
    // If some objects may have been allocated before sampling began, the bytes are estimated from the weights of the
    // samples. The known total is then only an upper limit.
    let parts = divide(stratum.clone(), Totals::Most, Follow::Nothing).parts;
    near(parts[&'a'].bytes.value, 75_000.0);
    near(parts[&'a'].objects, 750.0);
    // The sum of the estimates is at most the total.
    let stratum = Stratum {
        after: known(500, 100),
        ..stratum
    };
    let parts = divide(stratum, Totals::Most, Follow::Nothing).parts;
    near(parts[&'a'].bytes.value, 37_500.0);
    near(parts[&'a'].bytes.high, 50_000.0);
    near(parts[&'b'].bytes.value, 12_500.0);
}

#[test]
fn large_objects_may_be_underestimated_before_jdk_25() {
    let divided = |size: u64, totals| {
        let stratum = Stratum {
            after: known(10_000, size),
            came: [('a', samples(30, size))].into(),
            ..Stratum::default()
        };
        let strata = [(size_class(size), stratum)].into();
        one_class(strata, &sampling(512 << 10), totals, Follow::Nothing).parts[&'a'].bytes
    };
    for size in [100, 40_000] {
        let (exact, more) = (
            divided(size, Totals::Most),
            divided(size, Totals::MostOfMore),
        );
        assert_eq!((exact.value, exact.low), (more.value, more.low));
        let expected = if size < 8192 { 1.0 } else { 1.5 };
        near(more.high / exact.high * 1000.0, expected * 1000.0);
    }
}

#[test]
fn a_single_stack_gets_all_added_objects() {
    let stratum = Stratum {
        before: known(1000, 100),
        after: known(3000, 100),
        kept: [('a', samples(40, 100))].into(),
        came: [('a', samples(90, 100))].into(),
        ..Stratum::default()
    };
    let parts = divide(stratum, Totals::Shared, Follow::Uids).parts;
    let bytes = parts[&'a'].bytes;
    near(bytes.value, 200_000.0);
    near(bytes.high, 200_000.0);
    assert!((190_000.0..200_000.0).contains(&bytes.low), "{bytes:?}");
    near(parts[&'a'].objects, 2000.0);
}

#[test]
fn freed_objects_are_replaced_by_new_objects() {
    // According to the samples, half of the 1,000 objects in the first dump were freed. So 1,500 of the 2,000 objects
    // at the end are new.
    let stratum = Stratum {
        before: known(1000, 100),
        after: known(2000, 100),
        kept: [('a', samples(20, 100)), ('b', samples(30, 100))].into(),
        came: [('a', samples(120, 100)), ('b', samples(30, 100))].into(),
        went: [('b', samples(50, 100))].into(),
        counts: None,
    };
    let parts = divide(stratum.clone(), Totals::Shared, Follow::Uids).parts;
    near(parts[&'a'].bytes.value, 120_000.0);
    near(parts[&'b'].bytes.value, 30_000.0 - 50_000.0);
    near(parts[&'a'].bytes.value + parts[&'b'].bytes.value, 100_000.0);
    assert!(parts[&'a'].bytes.low < 115_000.0 && parts[&'a'].bytes.high > 125_000.0);
    // If the dumps are of two JVMs, no object of the first dump can survive to the second. So the growth is the
    // difference between all objects of the second dump and all objects of the first.
    let other = Stratum {
        kept: BTreeMap::new(),
        went: [('a', samples(20, 100)), ('b', samples(80, 100))].into(),
        ..stratum
    };
    let parts = divide(other, Totals::Shared, Follow::Nothing).parts;
    near(parts[&'a'].bytes.value, 160_000.0 - 20_000.0);
    near(parts[&'b'].bytes.value, 40_000.0 - 80_000.0);
}

#[test]
fn without_survivor_samples_added_objects_get_the_growth() {
    // The first dump was taken when the agent had just started, so it has no samples.
    let stratum = Stratum {
        before: known(1000, 100),
        after: known(1800, 100),
        came: [('a', samples(60, 100)), ('b', samples(20, 100))].into(),
        ..Stratum::default()
    };
    let parts = divide(stratum, Totals::Shared, Follow::Uids).parts;
    near(parts[&'a'].bytes.value, 60_000.0);
    near(parts[&'b'].bytes.value, 20_000.0);
    // The last dump has 200 objects, fewer than the first. So at most 200 objects can have survived.
    let stratum = Stratum {
        before: known(1000, 100),
        after: known(200, 100),
        came: [('a', samples(10, 100))].into(),
        kept: [('a', samples(10, 100))].into(),
        ..Stratum::default()
    };
    let parts = divide(stratum, Totals::Shared, Follow::Uids).parts;
    near(parts[&'a'].bytes.value, -80_000.0);
}

#[test]
fn completely_sampled_objects_are_not_estimated() {
    let mut exact = Estimate::default();
    for _ in 0..30 {
        exact.add(&Weight::exact(1.0, 100.0), 100);
    }
    let stratum = Stratum {
        after: known(100, 100),
        came: [('a', exact)].into(),
        ..Stratum::default()
    };
    let strata = [(size_class(100), stratum)].into();
    let parts = one_class(strata, &sampling(0), Totals::Shared, Follow::Nothing).parts;
    assert_eq!(parts[&'a'].bytes, Interval::exact(3000.0));
}

#[test]
fn strata_without_samples_are_reported_or_merged() {
    let with = |objects, size, count| {
        let came = match count {
            0 => BTreeMap::new(),
            _ => [('a', samples(count, size))].into(),
        };
        let stratum = Stratum {
            after: known(objects, size),
            came,
            ..Stratum::default()
        };
        (size_class(size), stratum)
    };
    let divide = |strata: Vec<(u32, Stratum<char>)>| {
        let strata = strata.into_iter().collect();
        let totals = (Totals::Shared, Follow::Nothing);
        let division = one_class(strata, &sampling(1000), totals.0, totals.1);
        let bytes = division.parts.get(&'a').map_or(0.0, |p| p.bytes.value);
        (bytes, division.unsampled)
    };
    // Random variation can explain why none of ten objects has a sample. So this stratum is merged with the stratum of
    // the neighbouring size.
    assert_eq!(
        divide(vec![with(10, 100, 0), with(100, 112, 9)]),
        (12_200.0, 0)
    );
    // Random variation cannot explain why none of a thousand objects has a sample: these objects were allocated before
    // sampling began.
    assert_eq!(
        divide(vec![with(1000, 100, 0), with(100, 112, 9)]),
        (11_200.0, 100_000)
    );
    // A stratum is merged only with strata of a similar object size. Here the sizes are too different.
    assert_eq!(
        divide(vec![with(10, 100, 0), with(100, 1120, 9)]),
        (112_000.0, 1000)
    );
    // Neighbouring strata (groups of about one object size) with few samples are merged. Here these are the sizes 96
    // and 112, with 3 and 4 samples.
    let (bytes, unsampled) = divide(vec![with(30, 96, 3), with(20, 112, 4)]);
    assert_eq!((bytes.round(), unsampled), (5120.0, 0));
    assert_eq!(divide(vec![with(70, 100, 0)]), (0.0, 7000));
}

/// A splitmix64 generator of random numbers.
struct Random(u64);

impl Random {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// A simulated thread of a JVM before JDK 25. The thread updates the number of bytes until its next sample only when
/// its TLAB is full. It then ignores part of the bytes in the TLAB, or counts part of them twice. Only a part of large
/// objects, which do not fit in the TLAB, is counted.
struct Thread {
    random: Random,
    interval: f64,
    left: f64,
    buffer: f64,
}

impl Thread {
    const BUFFER: f64 = 65_536.0;

    fn new(seed: u64, interval: u64) -> Self {
        let mut thread = Self {
            random: Random(seed.wrapping_mul(0x5851_f42d_4c95_7f2d)),
            interval: interval as f64,
            left: 0.0,
            buffer: 0.0,
        };
        thread.left = thread.next();
        thread
    }

    fn next(&mut self) -> f64 {
        -self.interval * (1.0 - self.random.uniform()).ln()
    }

    /// Returns true if the object is sampled.
    fn allocates(&mut self, size: f64) -> bool {
        let is_large = size > Self::BUFFER / 16.0;
        self.left -= size * if is_large { 0.6 } else { 1.35 };
        self.buffer += size;
        if self.buffer > Self::BUFFER {
            self.buffer = size;
            // When the JVM replaces the TLAB, it discards the number of bytes that are left until the next sample. It
            // then draws a new random number.
            self.left = self.next();
        }
        let is_sampled = self.left < 0.0;
        if is_sampled {
            self.left = self.next();
        }
        is_sampled
    }
}

/// Simulates five stacks that allocate in random order. Two of them allocate objects of 128 bytes, and two others
/// allocate objects of 8,000 bytes.
///
/// Returns two pairs. The first pair is for estimates from the weights of samples alone. The second pair is for
/// estimates from the stacks' shares in the known totals. The first number of a pair is the share of the intervals that
/// contain the true value. The second number is the mean error. Both are in thousandths.
fn coverage(runs: u64, interval: u64) -> [(i64, i64); 2] {
    const STACKS: [(char, u64, f64); 5] = [
        ('a', 128, 0.45),
        ('b', 128, 0.8),
        ('c', 8_000, 0.95),
        ('d', 8_000, 0.99),
        ('e', 640, 1.0),
    ];
    let sampling = sampling(interval);
    let mut found = [(0_u64, 0.0_f64); 2];
    let mut intervals = 0;
    for run in 0..runs {
        let mut thread = Thread::new(run + 1, interval);
        let mut truth: BTreeMap<char, f64> = BTreeMap::new();
        let mut strata: BTreeMap<u32, Stratum<char>> = BTreeMap::new();
        for _ in 0..20_000 {
            let chance = thread.random.uniform();
            let &(stack, size, _) = STACKS.iter().find(|s| chance < s.2).unwrap();
            *truth.entry(stack).or_default() += size as f64;
            let stratum = strata.entry(size_class(size)).or_default();
            stratum.after.add(known(1, size));
            if thread.allocates(size as f64) {
                let weight = sampling.weight(size).unwrap();
                stratum.came.entry(stack).or_default().add(&weight, size);
            }
        }
        // Stack `e` is left out: it is the only stack in its size class, so its bytes are known exactly.
        for stack in ['a', 'b', 'c', 'd'] {
            let truth = truth[&stack];
            let by_weight = strata.values().find_map(|s| s.came.get(&stack)).copied();
            let by_weight = by_weight.unwrap_or_default().interval();
            let totals = (Totals::Shared, Follow::Nothing);
            let shared = one_class(strata.clone(), &sampling, totals.0, totals.1).parts;
            let shared = shared.get(&stack).copied().unwrap_or_default().bytes;
            intervals += 1;
            for (found, interval) in found.iter_mut().zip([by_weight, shared]) {
                found.0 += u64::from((interval.low..=interval.high).contains(&truth));
                found.1 += interval.value / truth - 1.0;
            }
        }
    }
    let permille = |part: f64| (part * 1000.0 / intervals as f64).round() as i64;
    found.map(|(covered, error)| (permille(covered as f64), permille(error)))
}

#[test]
fn bytes_forgotten_by_the_jvm_bias_weights_but_not_shares() {
    let [by_weight, shared] = coverage(250, 16_384);
    assert!(by_weight.0 < 700, "{by_weight:?} of 1000 covered");
    assert!((930..=970).contains(&shared.0), "{shared:?}");
    assert!(shared.1.abs() < 10, "{shared:?}");
}

#[test]
fn losses_widen_every_interval() {
    let unseen = Unseen { there: 7, gone: 4 };
    assert_eq!(unseen.widen_to_bytes(Interval::exact(10.0)), [6, 17]);
}

/// Simulates a stack that allocates some of the objects of a heap with several sizes. Returns three results in
/// thousandths: the share of runs whose interval contains the true bytes, the mean error of the bytes, and the mean
/// error of the number of objects.
fn among_sizes(runs: u64, heap: impl Fn(&mut Random) -> Vec<(char, u64)>) -> [i64; 3] {
    let sampling = sampling(512 << 10);
    let (mut covered, mut errors) = (0_u64, [0.0_f64; 2]);
    for run in 0..runs {
        let mut random = Random(run.wrapping_mul(0x5851_f42d_4c95_7f2d));
        let mut truth = Known::default();
        let mut strata: BTreeMap<u32, Stratum<char>> = BTreeMap::new();
        for (stack, size) in heap(&mut random) {
            let stratum = strata.entry(size_class(size)).or_default();
            stratum.after.add(known(1, size));
            if stack == 'a' {
                truth.add(known(1, size));
            }
            if random.uniform() < sampling.probability(size).unwrap() {
                let weight = sampling.weight(size).unwrap();
                stratum.came.entry(stack).or_default().add(&weight, size);
            }
        }
        let parts = one_class(strata, &sampling, Totals::Shared, Follow::Nothing).parts;
        let part = parts.get(&'a').copied().unwrap_or_default();
        let bytes = truth.bytes as f64;
        covered += u64::from((part.bytes.low.floor()..=part.bytes.high.ceil()).contains(&bytes));
        errors[0] += part.bytes.value / bytes - 1.0;
        errors[1] += part.objects / truth.objects as f64 - 1.0;
    }
    let permille = |part: f64| (part * 1000.0 / runs as f64).round() as i64;
    [covered as f64, errors[0], errors[1]].map(permille)
}

/// Returns a random size between two bounds, log-uniformly distributed.
fn any_size(random: &mut Random, least: f64, most: f64) -> u64 {
    (least * (most / least).powf(random.uniform())) as u64
}

#[test]
fn a_stack_of_large_objects_gets_no_small_objects() {
    // Stack `a` allocates large objects. Stacks `b` and `c` allocate smaller objects of many sizes, and together have
    // about two samples, so most of these sizes have no sample. The objects of these sizes must not be attributed to
    // `a`.
    let [covered, bytes, objects] = among_sizes(100, |random| {
        let mut heap = vec![('a', 3016); 3000];
        heap.extend((0..10_000).map(|_| ('b', any_size(random, 24.0, 200.0))));
        heap.extend((0..100).map(|_| ('c', any_size(random, 200.0, 3000.0))));
        heap
    });
    assert!(covered >= 930, "{covered}");
    assert!(
        bytes.abs() < 20 && objects.abs() < 20,
        "{bytes} and {objects}"
    );
}

#[test]
fn intervals_of_shares_among_all_sizes_are_valid() {
    let [covered, bytes, _] = among_sizes(200, |random| {
        let arrays = 0..600;
        let one = |_| {
            let stack = if random.uniform() < 0.6 { 'a' } else { 'b' };
            (stack, any_size(random, 24.0, 65_536.0))
        };
        arrays.map(one).collect()
    });
    assert!((925..=985).contains(&covered), "{covered}");
    assert!(bytes.abs() < 30, "{bytes}");
}

#[test]
fn object_counts_follow_from_bytes_and_sampled_sizes() {
    let with = |objects, size, came: &[(char, u64)]| {
        let came = came.iter().map(|&(stack, n)| (stack, samples(n, size)));
        let stratum = Stratum {
            after: known(objects, size),
            came: came.collect(),
            ..Stratum::default()
        };
        (size_class(size), stratum)
    };
    let strata = [
        with(200, 56, &[('b', 1)]),
        with(20, 96, &[]),
        with(10, 160, &[]),
        with(300, 320, &[('a', 9), ('b', 4)]),
    ];
    let strata = strata.into_iter().collect();
    let totals = (Totals::Shared, Follow::Nothing);
    let parts = one_class(strata, &sampling(10_000), totals.0, totals.1).parts;
    near(parts[&'a'].bytes.value + parts[&'b'].bytes.value, 110_720.0);
    near(parts[&'a'].objects, parts[&'a'].bytes.value / 320.0);
    let b = parts[&'b'];
    assert!(b.objects > b.bytes.value / 320.0 && b.objects < b.bytes.value / 56.0);
    // The estimated number of objects is at most the number of existing objects.
    let strata = [with(10, 96, &[('a', 1)]), with(100, 160, &[])];
    let strata = strata.into_iter().collect();
    let parts = one_class(strata, &sampling(10_000), totals.0, totals.1).parts;
    near(parts[&'a'].bytes.value, 16_960.0);
    near(parts[&'a'].objects, 110.0);
}

/// Simulates many stacks, and divides them into three groups: with 1 or 2 samples, with 3 to 9, and with more. Returns
/// for each group the number of intervals that contain the true value, and the number of all intervals. Also returns,
/// for all stacks with samples, the sum of the estimates and the sum of the true bytes.
fn small_stacks(runs: u64, keys: Keys) -> ([(u32, u32); 3], [f64; 2]) {
    const SIZES: [u64; 4] = [640, 4096, 40_000, 200_000];
    let sampling = sampling(512 << 10);
    let (mut groups, mut sums) = ([(0, 0); 3], [0.0; 2]);
    for run in 0..runs {
        let mut random = Random(run.wrapping_mul(0x5851_f42d_4c95_7f2d));
        let mut strata: BTreeMap<u32, Stratum<u32>> = BTreeMap::new();
        let mut truth: BTreeMap<u32, (u64, f64)> = BTreeMap::new();
        for stack in 0..64_u32 {
            let size = SIZES[stack as usize % SIZES.len()];
            let bytes = 48e3 * (1.6e6_f64 / 48e3).powf(f64::from(stack * 37 % 64) / 63.0);
            let objects = (bytes / size as f64).round() as u64;
            truth.insert(stack, (0, (objects * size) as f64));
            let stratum = strata.entry(size_class(size)).or_default();
            stratum.after.add(known(objects, size));
            for _ in 0..objects {
                if random.uniform() < sampling.probability(size).unwrap() {
                    let weight = sampling.weight(size).unwrap();
                    stratum.came.entry(stack).or_default().add(&weight, size);
                    truth.get_mut(&stack).unwrap().0 += 1;
                }
            }
        }
        let strata = [((), strata)].into();
        let (totals, follow) = (Totals::Shared, Follow::Nothing);
        for (stack, part) in Stratum::divide(strata, &sampling, totals, follow, keys).parts {
            let (samples, bytes) = truth[&stack];
            let group = match samples {
                ..3 => 0,
                3..10 => 1,
                _ => 2,
            };
            let covers = (part.bytes.low.floor()..=part.bytes.high.ceil()).contains(&bytes);
            groups[group].0 += u32::from(covers);
            groups[group].1 += 1;
            sums[0] += part.bytes.value;
            sums[1] += bytes;
        }
    }
    (groups, sums)
}

#[test]
fn stacks_with_few_samples_are_not_overestimated() {
    let (_, [estimates, truths]) = small_stacks(100, Keys::Groups);
    assert!(estimates > 1.3 * truths, "{estimates} and {truths}");
    let (groups, [estimates, truths]) = small_stacks(100, Keys::Stacks);
    let off = estimates / truths - 1.0;
    assert!(off.abs() < 0.05, "{estimates} and {truths}");
    for (covered, all) in groups {
        assert!(f64::from(covered) >= 0.93 * f64::from(all), "{groups:?}");
    }
}

#[test]
fn one_sample_may_represent_one_object_or_all() {
    let stratum = Stratum {
        after: known(10, 200_000),
        came: [('a', samples(1, 200_000))].into(),
        ..Stratum::default()
    };
    let strata = [((), [(size_class(200_000), stratum)].into())].into();
    let (sampling, keys) = (sampling(512 << 10), Keys::Stacks);
    let divided = Stratum::divide(strata, &sampling, Totals::Shared, Follow::Nothing, keys);
    let bytes = divided.parts[&'a'].bytes;
    near(bytes.low, 200_000.0);
    near(bytes.high, 2_000_000.0);
    assert!(bytes.low < bytes.value && bytes.value < bytes.high);
}
