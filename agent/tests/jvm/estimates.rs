//! Compares the agent's estimates with known values.

use std::collections::HashMap;
use std::time::Duration;

use heapdiff_sites::Counter;
use testdata::jvm::Jdk;

use crate::dumped::Dumped;
use crate::{jdks, launch};

const GROUPS: usize = 40;

/// Returns the number of bytes that each thread of the program `Keeper` keeps in objects of mixed sizes. The numbers
/// are measured with interval 0 on the same JDK, so they are exact.
fn truth(jdk: &Jdk, objects: &str) -> HashMap<String, f64> {
    let dumped = keeper(
        jdk,
        "interval=0,max_samples=1000000",
        objects,
        "1.0",
        "mixed",
    );
    dumped.assert_complete();
    let mut bytes = HashMap::new();
    for sample in &dumped.samples {
        if sample.kind == "byte[]" && dumped.through(sample.site, "Keeper.mixed") {
            *bytes.entry(sample.thread.clone()).or_insert(0.0) += size(sample.size);
        }
    }
    assert_eq!(bytes.len(), GROUPS);
    bytes
}

#[allow(clippy::cast_precision_loss, reason = "small")]
fn size(bytes: i64) -> f64 {
    bytes as f64
}

fn keeper(jdk: &Jdk, options: &str, objects: &str, keep: &str, sizes: &str) -> Dumped {
    // With a young generation of 800 MB, no GC runs while the program allocates. `estimates_are_right_while_gcs_run`
    // tests estimates while GCs run.
    keeper_with("-Xmn800m", jdk, options, objects, keep, sizes)
}

fn keeper_with(
    young: &str,
    jdk: &Jdk,
    options: &str,
    objects: &str,
    keep: &str,
    sizes: &str,
) -> Dumped {
    let mut target = launch(jdk, "Keeper", options)
        .flags(["-Xms1100m", "-Xmx1100m", young])
        .args_of([&GROUPS.to_string(), objects, keep, sizes])
        .timeout(Duration::from_secs(240))
        .start()
        .unwrap();
    target.wait_ready(1).unwrap();
    let dumped = Dumped::of(&target);
    assert!(target.finish().unwrap());
    dumped
}

trait Args {
    fn args_of<'a>(self, args: impl IntoIterator<Item = &'a str>) -> Self;
}

impl Args for testdata::jvm::Launch {
    fn args_of<'a>(self, args: impl IntoIterator<Item = &'a str>) -> Self {
        args.into_iter().fold(self, |launch, arg| launch.arg(arg))
    }
}

/// Number of JVMs that are started for each interval.
const RUNS: u32 = 3;

/// Checks that estimates are unbiased. Forty threads keep some 11 MB each, in objects of 32 bytes to 32 KB. For each
/// thread, z = (estimate - truth) / standard error.
/// - The variance of all z must lie between the 0.01 % tails of the distribution of chi-square / 40 with 40 degrees of
///   freedom.
/// - The mean of z must be within four standard errors of 0. The sum of all estimates must be within four standard
///   errors of the truth.
///
/// The mean and the sum are first averaged over [`RUNS`] JVMs. The averages must lie within four standard errors of a
/// single JVM, although an average varies less. The reason is that the threads of one JVM are not independent: HotSpot
/// seeds the random numbers of each thread with the thread's address. A linear congruential generator preserves the
/// distance of two such seeds.
fn unbiased(interval: &str) {
    let objects = "2000";
    for jdk in jdks() {
        let truth = truth(&jdk, objects);
        let runs = (0..RUNS).map(|_| deviations(&jdk, interval, objects, &truth));
        let runs: Vec<[f64; 2]> = runs.collect();
        let mean = |at: usize| runs.iter().map(|run| run[at]).sum::<f64>() / f64::from(RUNS);
        let (mean, off) = (mean(0), mean(1));
        assert!(
            mean.abs() < 4.0 / f64::sqrt(40.0),
            "mean z {mean}: {runs:?}"
        );
        assert!(off.abs() < 4.0, "off by {off} standard errors: {runs:?}");
    }
}

/// Returns two numbers for one JVM. The first is the mean over its threads of z = (estimate - truth) / standard error.
/// The second is the difference between the sum of all estimates and the true sum, divided by the standard error of the
/// sum.
fn deviations(jdk: &Jdk, interval: &str, objects: &str, truth: &HashMap<String, f64>) -> [f64; 2] {
    let options = format!("interval={interval},max_samples=1000000");
    let dumped = keeper(jdk, &options, objects, "1.0", "mixed");
    dumped.assert_complete();
    let mut estimates: HashMap<&str, f64> = HashMap::new();
    for sample in &dumped.samples {
        if sample.kind == "byte[]" && dumped.through(sample.site, "Keeper.mixed") {
            let size = u64::try_from(sample.size).unwrap();
            let weight = dumped.sampling.weight(size).unwrap();
            *estimates.entry(&sample.thread).or_default() += weight.bytes;
        }
    }
    let (mut zs, mut total, mut total_variance, mut all) = (Vec::new(), 0.0, 0.0, 0.0);
    let s = size(i64::try_from(dumped.sampling.interval).unwrap());
    for (thread, bytes) in truth {
        let estimate = estimates.get(&**thread).copied().unwrap_or_default();
        let variance = variance_of(thread, objects, s);
        zs.push((estimate - bytes) / variance.sqrt());
        total += estimate;
        total_variance += variance;
        all += bytes;
    }
    #[allow(clippy::cast_precision_loss, reason = "small")]
    let n = zs.len() as f64;
    let mean = zs.iter().sum::<f64>() / n;
    let variance = zs.iter().map(|z| z * z).sum::<f64>() / n;
    let off = (total - all) / total_variance.sqrt();
    println!(
        "JDK {} interval {interval}: mean z {mean:.3}, variance of z {variance:.3}, total off by {:.2} % ({off:.2} standard errors)",
        jdk.version(),
        100.0 * (total / all - 1.0)
    );
    assert!((0.35..2.3).contains(&variance), "variance of z {variance}");
    [mean, off]
}

/// Returns the exact variance of the estimate for one thread. It can be computed, because the random sizes of the
/// objects are known.
fn variance_of(thread: &str, objects: &str, interval: f64) -> f64 {
    let group: u64 = thread.strip_prefix("group-").unwrap().parse().unwrap();
    let mut random = JavaRandom::new(group);
    (0..objects.parse::<usize>().unwrap())
        .map(|_| {
            let size = f64::from(16_u32 << random.below(12)) + 16.0;
            let p = -f64::exp_m1(-size / interval);
            size * size * (1.0 - p) / p
        })
        .sum()
}

/// `java.util.Random`, implemented as documented.
struct JavaRandom(u64);

impl JavaRandom {
    fn new(seed: u64) -> Self {
        Self((seed ^ 0x5_DEEC_E66D) & ((1 << 48) - 1))
    }

    fn next(&mut self, bits: u32) -> u32 {
        self.0 = (self.0.wrapping_mul(0x5_DEEC_E66D).wrapping_add(0xB)) & ((1 << 48) - 1);
        u32::try_from(self.0 >> (48 - bits)).unwrap()
    }

    fn below(&mut self, bound: u32) -> u32 {
        loop {
            let bits = self.next(31);
            let value = bits % bound;
            if bits - value + (bound - 1) <= i32::MAX.cast_unsigned() {
                return value;
            }
        }
    }
}

#[test]
fn unbiased_at_16_kib() {
    unbiased("16k");
}

#[test]
fn unbiased_at_64_kib() {
    unbiased("64k");
}

#[test]
fn unbiased_at_512_kib() {
    unbiased("512k");
}

/// Checks estimates while GCs run. Before JDK 25, each GC makes a thread forget what it has allocated in its TLAB since
/// its last sample. The forgotten amount is one interval on average, or less if the TLAB is younger. It is one interval
/// because the distance back to the last sample has the same distribution as the distance to the next sample. Nothing
/// else biases the estimate.
#[test]
fn estimates_are_right_while_gcs_run() {
    let objects = "2000";
    for jdk in jdks() {
        let all: f64 = truth(&jdk, objects).values().sum();
        let options = "interval=16k,max_samples=1000000";
        let dumped = keeper_with("-Xmn60m", &jdk, options, objects, "1.0", "mixed");
        dumped.assert_complete();
        let (mut total, mut threads) = (0.0, HashMap::new());
        for sample in &dumped.samples {
            if sample.kind == "byte[]" && dumped.through(sample.site, "Keeper.mixed") {
                let size = u64::try_from(sample.size).unwrap();
                total += dumped.sampling.weight(size).unwrap().bytes;
                threads.insert(&*sample.thread, ());
            }
        }
        let interval = size(i64::try_from(dumped.sampling.interval).unwrap());
        let variance: f64 = threads
            .keys()
            .map(|thread| variance_of(thread, objects, interval))
            .sum();
        let collections = size(dumped.counter(Counter::Collections));
        #[allow(clippy::cast_precision_loss, reason = "small")]
        let lost = match jdk.major() {
            ..25 => collections * GROUPS as f64 * interval,
            _ => 0.0,
        };
        let (off, error) = (total - all, variance.sqrt());
        println!(
            "JDK {}: {collections} collections, off by {:.2} %; up to {:.2} % can be lost, a standard error is {:.2} %",
            jdk.version(),
            100.0 * off / all,
            100.0 * lost / all,
            100.0 * error / all,
        );
        assert!(collections >= 5.0, "only {collections} collections");
        assert!(
            (-lost - 4.0 * error..4.0 * error).contains(&off),
            "off by {off} bytes of {all}"
        );
    }
}

/// Checks that the estimate of live objects is within 10 % if the program keeps all, one tenth or none of its objects.
#[test]
fn liveness() {
    for jdk in jdks() {
        for (keep, part) in [("0", 0.0), ("0.1", 0.1), ("1.0", 1.0)] {
            let dumped = keeper(
                &jdk,
                "interval=4k,max_samples=1000000",
                "1000",
                keep,
                "equal",
            );
            dumped.assert_complete();
            let alive = dumped.of_kind("Keeper.equal", "int[]");
            let estimate: f64 = alive
                .iter()
                .map(|s| {
                    dumped
                        .sampling
                        .weight(u64::try_from(s.size).unwrap())
                        .unwrap()
                        .objects
                })
                .sum();
            let expected = part * 40_000.0;
            println!(
                "JDK {} keep {keep}: {estimate:.0} of {expected:.0}",
                jdk.version()
            );
            assert!(
                (estimate - expected).abs() <= 0.1 * expected,
                "keep {keep}: {estimate}"
            );
            // Survival rate of an allocation site: the proportion of its samples whose objects are still live.
            let taken = size(dumped.taken("Keeper.equal"));
            #[allow(clippy::cast_precision_loss, reason = "small")]
            let survival = alive.len() as f64 / taken;
            assert!(
                (survival - part).abs() < 0.02,
                "keep {keep}: survival {survival}"
            );
        }
    }
}
