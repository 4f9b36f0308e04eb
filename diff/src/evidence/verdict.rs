//! Decides the verdict on a suspect from the evidence, and lists the reasons in sentences.
//!
//! Every verdict except `growth` requires evidence. So does the decision that something is not a suspect:
//!
//! - Leak, for one of these reasons:
//!   - a certain cause
//!   - growth at each of several steps (intervals between two dumps), by more than random variation explains
//!   - objects that are still added, while almost no sample of them is collected
//!   - a collection to which elements are added all the time, and from which none is removed or read
//! - Cache: the growing collection has a bound that is enforced or reached, or growth has ended.
//! - Warm-up: growth has ended, or the JDK's own tables grow while classes are loaded.
//! - Not a suspect, for one of these reasons:
//!   - All content was replaced, and the growth is at most one and a half times the size in the first dump.
//!   - All content was replaced, the size fell and rose, and far more content was added and removed again than stayed.
//!   - Far more content was replaced than the size grew.
//!   - At least three dumps were compared, and in each step in which the content grew, it may only have moved from
//!     another holder.
//!
//! Samples show what became of single objects, so they count more than the figures. For example, growth that looks
//! finished is not finished if samples show that new objects stay.

use std::time::Duration;

use crate::evidence::bounds::{Bound, Strength};
use crate::evidence::detect::Finding;
use crate::evidence::survival::Survival;
use crate::evidence::usage::Usage;
use crate::sentence;
use heapdiff_model::diff::Verdict;
use heapdiff_trend::{Course, LEAST_POINTS, Trend};
use heapdiff_units::Span;

/// With more than two but fewer than [`LEAST_POINTS`] dumps, growth can be random variation if each step adds at most
/// 1/20 of the size.
const SLIGHT_PART: u64 = 20;

/// Growth is random variation if it is less than 1/10 of the bytes of the objects that were replaced in the same time.
const WAVERING_PART: u128 = 10;

/// All evidence for and against a suspect.
#[derive(Debug)]
pub(crate) struct Evidence<'a> {
    pub(crate) course: Course,
    /// Bytes that the suspect retains in each dump.
    pub(crate) figures: &'a [u64],
    pub(crate) finding: Option<Finding>,
    /// A limit, or possible limit, on the growth of the suspect's collection. An example is the maximum of a cache.
    pub(crate) bound: Option<Bound>,
    /// The sentence which says that the objects were added once, during start-up.
    pub(crate) start: Option<sentence::Evidence>,
    pub(crate) survival: Option<Survival>,
    /// How the growing collections are used.
    pub(crate) usage: Option<Usage>,
    /// Number of objects added, if they are few and retain little of the heap. Otherwise `None`.
    pub(crate) few: Option<u64>,
    /// The intervals between two dumps in which the number of objects in this structure grew, although the number of
    /// all objects of their class did not.
    pub(crate) moved: Moved,
}

/// The intervals between two dumps in which the objects may only have moved here from another holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moved {
    Nowhere,
    InSomeSteps,
    /// In every interval in which the suspect's content grew, its objects may only have moved here.
    InEachStep,
}

impl Evidence<'_> {
    /// Returns the verdict. Returns `None` if the evidence shows that this is not a suspect, for example because all of
    /// its content is replaced over time.
    ///
    /// The first rule that applies decides:
    ///
    /// 1. Not a suspect: all content is replaced, or the growth is small compared with what was replaced, or there is
    ///    no growth.
    /// 2. Warm-up or cache: the growth stopped while the program went on working, unless samples show that it goes on.
    /// 3. Leak: a certain cause.
    /// 4. Cache: a bound of the size is enforced, or the size has reached a bound while no samples show that the growth
    ///    goes on.
    /// 5. Warm-up: the growth belongs to start-up.
    /// 6. Leak: growth at each of several steps, or almost no sample is collected, or a collection is only filled.
    /// 7. Growth: everything else.
    pub(crate) fn verdict(&self) -> Option<Verdict> {
        let (first, last) = self.ends();
        if last <= first || self.is_churn() || self.is_mostly_turnover() || self.only_moved() {
            return None;
        }
        let stays = self.survival.is_some_and(|s| s.keeps_first_samples());
        let goes_on = stays && self.survival.is_some_and(|s| s.is_still_growing());
        if !goes_on {
            match self.course.trend {
                // A change that is no larger than noise is not growth.
                Trend::Level if self.finding.is_none() => return None,
                Trend::WarmUp | Trend::Jump => return Some(Verdict::Warmup),
                // The holder stopped growing and all of its content stays. A cache would replace content, so this is a
                // warm-up.
                Trend::Plateau if stays => return Some(Verdict::Warmup),
                Trend::Plateau => return Some(Verdict::Cache),
                Trend::Sawtooth if !stays => return Some(Verdict::Cache),
                _ => {}
            }
        }
        if self.is_certain() {
            return Some(Verdict::Leak);
        }
        let bound = self.bound.as_ref().map(|b| b.strength);
        match bound {
            Some(Strength::Enforced) => return Some(Verdict::Cache),
            Some(Strength::Reached) if !goes_on => return Some(Verdict::Cache),
            _ => {}
        }
        if self.start.is_some() {
            return Some(Verdict::Warmup);
        }
        let by_figures = self.grew_steadily()
            && bound.is_none()
            && self.max_growth_permille().is_none()
            && self.moved == Moved::Nowhere
            && !self.is_replaced()
            && !self.is_within_turnover();
        let by_samples = self.survival.is_some_and(|s| s.is_total());
        let by_usage = bound.is_none()
            && !self.is_within_turnover()
            && self.usage.is_some_and(|u| u.only_fills());
        let are_few = self.few.is_some() && !self.grew_in_many_dumps();
        Some(if !are_few && (by_figures || by_samples || by_usage) {
            Verdict::Leak
        } else {
            Verdict::Growth
        })
    }

    /// True if at most 2 % of the first dump's samples are alive in the last dump. Such objects are replaced all the
    /// time, so their number at the moment of a dump is random.
    fn is_replaced(&self) -> bool {
        self.survival.is_some_and(|s| s.is_replaced())
    }

    fn only_moved(&self) -> bool {
        self.moved == Moved::InEachStep && self.finding.is_none() && self.figures.len() > 2
    }

    fn is_certain(&self) -> bool {
        self.finding.as_ref().is_some_and(|f| f.is_certain)
    }

    /// True if the suspect grew at every step (the interval between two dumps), and more than one step is long enough
    /// to show growth.
    ///
    /// False if the size is level in the last step, but this step is very short. Such a step does not show whether
    /// growth has ended.
    fn grew_steadily(&self) -> bool {
        let is_level = self.course.short_end.is_some();
        self.course.trend.is_steady() && self.course.telling > 2 && !is_level
    }

    /// True if there are at least [`LEAST_POINTS`] dumps and the suspect grew from each dump to the next. Random
    /// variation does not explain such a series.
    fn grew_in_many_dumps(&self) -> bool {
        self.course.trend.is_steady() && self.course.telling >= LEAST_POINTS
    }

    fn ends(&self) -> (u64, u64) {
        match self.figures {
            [first, .., last] => (*first, *last),
            _ => (0, 0),
        }
    }

    /// True if almost all content was replaced, and one of these conditions is true:
    ///
    /// - The size grew by at most one and a half times the size in the first dump.
    /// - The size fell as well as rose, and the growth is small compared with the content that was replaced. Objects
    ///   that wait for a GC show this pattern.
    ///
    /// Never true for a known leak pattern: a queue replaces its content too, and still grows.
    fn is_churn(&self) -> bool {
        let (first, last) = self.ends();
        let grown = last.saturating_sub(first);
        let falls = self.course.trend == Trend::RisingSawtooth;
        self.finding.is_none()
            && self.survival.is_some_and(|s| {
                let small = grown <= first.saturating_add(first / 2);
                s.is_replaced() && (small || falls && s.is_within_passage(grown, last))
            })
    }

    /// True if the growth is less than 1/10 of the replaced bytes (see [`Self::is_below_share_of_replaced`]). Always
    /// false for a known leak pattern. Also false if there are at least [`LEAST_POINTS`] dumps and the size rises from
    /// each dump to the next.
    fn is_mostly_turnover(&self) -> bool {
        self.finding.is_none()
            && !self.grew_in_many_dumps()
            && self.is_below_share_of_replaced(WAVERING_PART)
    }

    /// True if the growth is less than half of the replaced bytes (see [`Self::is_below_share_of_replaced`]).
    fn is_within_turnover(&self) -> bool {
        self.is_below_share_of_replaced(2)
    }

    /// True if the growth is less than 1/`part` of the replaced bytes. These are the bytes of objects that the first
    /// dump contains and that are dead in the last dump. They are estimated from the samples of the first dump: the
    /// size in the first dump, multiplied by the fraction of samples that are not alive any more.
    fn is_below_share_of_replaced(&self, part: u128) -> bool {
        let (first, last) = self.ends();
        let grown = u128::from(last.saturating_sub(first)) * 1000;
        let replaced = self.survival.and_then(|s| s.replaced_permille());
        replaced.is_some_and(|permille| grown * part < u128::from(first) * u128::from(permille))
    }

    /// Returns the largest growth from one dump to the next, in thousandths of the size in the earlier dump, if it may
    /// be random variation. Returns `None` in these cases:
    ///
    /// - The growth is more than 1/20 of the size in the earlier dump.
    /// - There are only two dumps.
    /// - There are at least [`LEAST_POINTS`] dumps, which are enough to rule out random variation.
    fn max_growth_permille(&self) -> Option<u64> {
        let part = |w: &[u64]| {
            let grown = u128::from(w[1].saturating_sub(w[0]));
            let part = (grown * 1000).div_ceil(u128::from(w[0].max(1)));
            u64::try_from(part).unwrap_or(u64::MAX)
        };
        let largest = self.figures.windows(2).map(part).max()?;
        let few = self.figures.len() > 2 && self.figures.len() < LEAST_POINTS;
        (few && largest <= 1000 / SLIGHT_PART).then_some(largest)
    }

    /// Returns the reasons for the verdict as sentences, the cause first.
    pub(crate) fn reasons(self) -> Vec<String> {
        let verdict = self.verdict();
        let doubts = match verdict {
            Some(Verdict::Growth) => self.doubts(),
            _ => Vec::new(),
        };
        let mut reasons: Vec<String> = Vec::new();
        let certain = self.is_certain();
        let found = self.finding.into_iter().flat_map(|f| f.sentences);
        reasons.extend(found.map(|sentence| sentence.to_string()));
        let course = sentence::Verdict::from_trend(self.course.trend, self.figures);
        reasons.extend(course.map(|sentence| sentence.to_string()));
        let bound = self.bound.filter(|_| !certain).map(|b| b.sentence);
        let survival = self.survival.and_then(|s| s.sentence());
        let usage = self.usage.map(|u| u.sentence());
        let rest = [bound, self.start, survival, usage].into_iter().flatten();
        reasons.extend(rest.map(|sentence| sentence.to_string()));
        reasons.extend(doubts.iter().map(ToString::to_string));
        reasons
    }

    /// Returns the reasons why the verdict is `growth` rather than `leak`.
    fn doubts(&self) -> Vec<sentence::Verdict> {
        let course = &self.course;
        let is_steady = course.trend.is_steady();
        // Two dumps cannot distinguish a leak from a cache. But a cache does not show a known leak pattern.
        let has_two = self.figures.len() == 2 && self.finding.is_none();
        let span = |ms| (ms > 0).then(|| Span(Duration::from_millis(ms)));
        let short = course.short_end;
        let slight = self.max_growth_permille().filter(|_| is_steady);
        let few = self.few.filter(|_| !self.grew_in_many_dumps());
        let is_replaced = is_steady && self.figures.len() > 2 && self.is_replaced();
        let doubts = [
            self.usage.and_then(|u| u.doubt()),
            has_two.then_some(sentence::Verdict::TwoDumps),
            short.map(|ms| sentence::Verdict::ShortLevel { span: span(ms) }),
            course.idle_end.then_some(sentence::Verdict::IdleLevel),
            slight.map(|permille| sentence::Verdict::SlightSteps { permille }),
            few.map(|objects| sentence::Verdict::FewObjects { objects }),
            (self.moved != Moved::Nowhere).then_some(sentence::Verdict::MayHaveMoved),
            is_replaced.then_some(sentence::Verdict::Replaced),
            self.is_within_turnover()
                .then_some(sentence::Verdict::WithinTurnover),
        ];
        doubts.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::usage::tests::usage;
    use heapdiff_trend::Course;

    fn course(figures: &[u64]) -> Course {
        let points: Vec<(u64, u64)> = figures.iter().map(|&f| (0, f)).collect();
        Course::from_points(&points, 10)
    }

    fn evidence(figures: &[u64]) -> Evidence<'_> {
        Evidence {
            course: course(figures),
            figures,
            finding: None,
            bound: None,
            start: None,
            survival: None,
            usage: None,
            few: None,
            moved: Moved::Nowhere,
        }
    }

    fn timed<'a>(times: &[u64], figures: &'a [u64]) -> Evidence<'a> {
        let points: Vec<(u64, u64)> = times.iter().copied().zip(figures.iter().copied()).collect();
        Evidence {
            course: Course::from_points(&points, 10),
            ..evidence(figures)
        }
    }

    const THREAD_LOCAL: &str = "ThreadLocal values on long-lived (pooled) threads: they stay until ThreadLocal.remove() is called";
    const WEAK_MAP: &str = "a WeakHashMap removes an entry when nothing else holds its key: look for the holders of the keys";

    fn finding(is_certain: bool) -> Option<Finding> {
        Some(Finding {
            detector: "queue",
            sentences: vec![sentence::Evidence::ThreadLocal],
            is_certain,
        })
    }

    fn bound(strength: Strength) -> Option<Bound> {
        Some(Bound {
            sentence: sentence::Evidence::WeakHashMap,
            strength,
        })
    }

    /// Returns the survival for 100 samples of the first dump. In the last dump, `kept` of them are still there. The
    /// time between the dumps has four quarters, and `quarters` has the number of samples added in each.
    fn survival(kept: u64, quarters: [u64; 4]) -> Option<Survival> {
        Some(Survival {
            held: 100,
            kept,
            alive: kept,
            live: kept + quarters.iter().sum::<u64>(),
            quarters,
            permille: kept * 10,
            gone_permille: 0,
        })
    }

    fn says(evidence: Evidence<'_>, part: &str) -> bool {
        evidence.reasons().iter().any(|r| r.contains(part))
    }

    #[test]
    fn two_dumps_show_growth_and_three_a_leak() {
        let two = evidence(&[100, 200]);
        assert_eq!(two.verdict(), Some(Verdict::Growth));
        assert!(two.reasons().iter().any(|r| r.starts_with("two dumps")));
        // The usage of collections is unknown.
        assert!(!says(
            evidence(&[100, 200]),
            "before the dump, the agent counted"
        ));
        let three = evidence(&[100, 200, 300]);
        assert_eq!(three.verdict(), Some(Verdict::Leak));
        assert!(three.reasons().iter().all(|r| !r.starts_with("two dumps")));
        for figures in [&[100, 200, 200, 300][..], &[0, 500, 800]] {
            assert_eq!(evidence(figures).verdict(), Some(Verdict::Growth));
        }
    }

    #[test]
    fn few_objects_and_objects_that_moved_are_growth() {
        const FEW: &str = "less than 1 % of the heap";
        let few = |figures| Evidence {
            few: Some(3),
            ..evidence(figures)
        };
        assert_eq!(few(&[100, 200, 300]).verdict(), Some(Verdict::Growth));
        assert!(says(few(&[100, 200, 300]), FEW));
        let many = &[100, 200, 300, 400, 500];
        assert_eq!(few(many).verdict(), Some(Verdict::Leak));
        assert!(!says(few(many), FEW));
        const MOVED: &str = "may have moved here";
        let moved = |moved| Evidence {
            moved,
            ..evidence(&[100, 200, 300])
        };
        assert_eq!(moved(Moved::InEachStep).verdict(), None);
        assert_eq!(moved(Moved::InSomeSteps).verdict(), Some(Verdict::Growth));
        assert!(says(moved(Moved::InSomeSteps), MOVED));
        assert_eq!(moved(Moved::Nowhere).verdict(), Some(Verdict::Leak));
        assert!(!says(moved(Moved::Nowhere), MOVED));
    }

    #[test]
    fn completely_replaced_objects_are_not_a_leak() {
        const REPLACED: &str = "no object of the first dump is still alive";
        let with = |kept| Evidence {
            survival: survival(kept, [50; 4]),
            ..evidence(&[100, 200, 300])
        };
        assert_eq!(with(0).verdict(), Some(Verdict::Growth));
        assert!(says(with(0), REPLACED));
        assert_eq!(with(60).verdict(), Some(Verdict::Leak));
        assert!(!says(with(60), REPLACED));
    }

    #[test]
    fn a_level_end_that_is_too_short_is_growth() {
        let times = [0, 1000, 2000, 2050, 2100];
        let short = || timed(&times, &[100, 200, 300, 300, 300]);
        assert_eq!(short().verdict(), Some(Verdict::Growth));
        assert!(says(short(), "without growth are too short to show this"));
        let goes_on = timed(&times[..3], &[100, 200, 300]);
        assert_eq!(goes_on.verdict(), Some(Verdict::Leak));
    }

    #[test]
    fn a_collection_that_only_fills_makes_two_dumps_enough() {
        const UNSURE: &str = "two dumps cannot distinguish a leak from a cache";
        const ASKED: &str = "the agent counted at least as many reads as puts";
        let with = |put, removed, read| Evidence {
            usage: Some(usage(put, removed, read)),
            ..evidence(&[100, 200])
        };
        assert_eq!(with(5000, 0, 0).verdict(), Some(Verdict::Leak));
        assert!(says(with(5000, 0, 0), "5,000 puts, 0 removals and 0 reads"));
        assert!(!says(with(5000, 0, 0), UNSURE) && !says(with(5000, 0, 0), ASKED));
        // A cache that is still filling is read, but a leak is not. Only the reads distinguish the two.
        assert_eq!(with(5000, 0, 9000).verdict(), Some(Verdict::Growth));
        assert!(says(with(5000, 0, 9000), UNSURE) && says(with(5000, 0, 9000), ASKED));
        // If the collection has a maximum size, or if samples show that new objects replace old ones, the verdict is
        // not `leak`.
        let bounded = Evidence {
            bound: bound(Strength::Hint),
            ..with(5000, 0, 0)
        };
        assert_eq!(bounded.verdict(), Some(Verdict::Growth));
        let replaced = Evidence {
            survival: survival(10, [25; 4]),
            figures: &[1000, 1300],
            ..with(5000, 0, 0)
        };
        assert_eq!(replaced.verdict(), Some(Verdict::Growth));
        // Growth that has ended is not a leak, however the collection is used.
        let over = Evidence {
            usage: Some(usage(5000, 0, 0)),
            ..evidence(&[100, 900, 900, 900])
        };
        assert_eq!(over.verdict(), Some(Verdict::Warmup));
    }

    #[test]
    fn growth_that_has_ended_is_never_a_leak() {
        for (figures, verdict) in [
            (&[100, 900, 900, 900][..], Verdict::Warmup),
            (&[100, 100, 900, 900], Verdict::Warmup),
            (&[100, 500, 900, 900], Verdict::Cache),
            (&[100, 900, 200, 890], Verdict::Cache),
        ] {
            let over = Evidence {
                finding: finding(true),
                ..evidence(figures)
            };
            assert_eq!(over.verdict(), Some(verdict), "{figures:?}");
        }
    }

    #[test]
    fn a_step_that_is_too_short_does_not_rule_out_a_leak() {
        let short = || timed(&[0, 75_000, 77_000], &[100, 10_000, 10_000]);
        assert_eq!(short().verdict(), Some(Verdict::Growth));
        assert!(says(short(), "2s without growth"));
        let sampled = || Evidence {
            survival: survival(100, [80, 80, 80, 80]),
            ..short()
        };
        assert_eq!(sampled().verdict(), Some(Verdict::Leak));
        assert!(!says(sampled(), "too short to show"));
        // The size also grows in the short interval before the last dump, so it is a leak.
        let on = timed(&[0, 75_000, 77_000], &[100, 10_000, 10_270]);
        assert_eq!(on.verdict(), Some(Verdict::Leak));
        // If the size is level in the last interval, and this interval is as long as the first, a leak is ruled out.
        let long = || timed(&[0, 75_000, 150_000], &[100, 10_000, 10_000]);
        assert_eq!(long().verdict(), Some(Verdict::Warmup));
        assert!(!says(long(), "too short to show"));
        // If the times of the dumps are unknown, all intervals count as equally long. One level interval after four
        // intervals with growth is too short to show that growth has ended.
        let few = || evidence(&[100, 200, 300, 400, 500, 500]);
        assert_eq!(few().verdict(), Some(Verdict::Growth));
        assert!(says(few(), "too few dumps"));
        assert!(!says(evidence(&[100, 200, 300]), "too few dumps"));
    }

    #[test]
    fn samples_outweigh_the_trend() {
        let over: [(&[u64], Verdict); 3] = [
            (&[100, 900, 900], Verdict::Warmup),
            (&[100, 500, 900, 900], Verdict::Cache),
            (&[100, 900, 200, 890], Verdict::Cache),
        ];
        for (figures, shape) in over {
            let with = |kept, quarters| {
                let evidence = Evidence {
                    survival: survival(kept, quarters),
                    ..evidence(figures)
                };
                evidence.verdict()
            };
            // All samples of the first dump stay, and more are added.
            assert_eq!(with(100, [50; 4]), Some(Verdict::Leak), "{figures:?}");
            // Some samples are collected.
            assert_eq!(with(60, [50; 4]), Some(shape), "{figures:?}");
        }
        // All samples stay and none was added recently. The suspect's content was loaded once, so this is not a cache.
        for figures in [&[100, 900, 900][..], &[100, 500, 900, 900]] {
            let loaded = Evidence {
                survival: survival(100, [100, 100, 0, 0]),
                ..evidence(figures)
            };
            assert_eq!(loaded.verdict(), Some(Verdict::Warmup));
        }
        // If all samples of the first dump stay, the size should not fall. Here it does, so the evidence is
        // contradictory.
        let odd = Evidence {
            survival: survival(100, [100, 100, 0, 0]),
            ..evidence(&[100, 900, 200, 890])
        };
        assert_eq!(odd.verdict(), Some(Verdict::Growth));
    }

    #[test]
    fn replaced_content_is_not_a_suspect() {
        let levels = &[20_000, 20_700, 21_300];
        let churn = |kept, figures| Evidence {
            survival: survival(kept, [0, 0, 0, 100]),
            ..evidence(figures)
        };
        assert_eq!(churn(0, levels).verdict(), None);
        // All content is replaced, and its size doubles. This is normal if the load on the program doubled.
        assert_eq!(churn(0, &[10_000, 20_000]).verdict(), None);
        // If the size becomes many times as large, the verdict is growth. For a queue, the verdict is growth however
        // little it grows.
        assert_eq!(churn(0, &[1000, 90_000]).verdict(), Some(Verdict::Growth));
        let queue = Evidence {
            finding: finding(false),
            ..churn(0, &[10_000, 20_000])
        };
        assert_eq!(queue.verdict(), Some(Verdict::Growth));
        // If half of the suspect's content stays, the verdict is growth, with the reason that it can be random
        // variation.
        assert_eq!(churn(50, levels).verdict(), Some(Verdict::Growth));
        assert!(says(
            churn(50, levels),
            "less than half of the bytes that were replaced"
        ));
        let more = &[20_000, 30_000, 40_000];
        assert_eq!(churn(50, more).verdict(), Some(Verdict::Leak));
        assert!(!says(
            churn(50, more),
            "less than half of the bytes that were replaced"
        ));
    }

    #[test]
    fn a_sawtooth_of_replaced_objects_is_not_a_suspect() {
        let with = |kept, gone_permille, figures| Evidence {
            survival: survival(kept, [0, 0, 0, 100]).map(|s| Survival { gone_permille, ..s }),
            ..evidence(figures)
        };
        // The entries are weakly held, so they are removed after a GC. In this case, two thirds of all entries have
        // been removed.
        let sawtooth = &[220, 125, 690];
        assert_eq!(with(0, 670, sawtooth).verdict(), None);
        // Entries are no longer removed: most of the entries that were ever added are still there.
        assert_eq!(with(0, 300, sawtooth).verdict(), Some(Verdict::Growth));
        // For stacks whose samples were not tracked, survival is unknown.
        assert_eq!(with(0, 0, sawtooth).verdict(), Some(Verdict::Growth));
        // Most samples of the first dump are still alive, so the content was not replaced.
        assert_eq!(with(90, 670, sawtooth).verdict(), Some(Verdict::Growth));
        // The size never fell.
        assert_eq!(
            with(0, 670, &[220, 225, 690]).verdict(),
            Some(Verdict::Growth)
        );
        let queue = Evidence {
            finding: finding(false),
            ..with(0, 670, sawtooth)
        };
        assert_eq!(queue.verdict(), Some(Verdict::Growth));
    }

    #[test]
    fn a_level_period_without_work_does_not_rule_out_a_leak() {
        const SENTENCE: &str = "the program allocated almost nothing while the size was level";
        let figures = &[1000, 9000, 9000];
        let with = |work: [u64; 3]| {
            let points = [
                (0, work[0], 1000),
                (60, work[1], 9000),
                (3600, work[2], 9000),
            ];
            Evidence {
                course: Course::from_work(&points, 10),
                ..evidence(figures)
            }
        };
        let says = |e: Evidence<'_>| e.reasons().iter().any(|r| r.starts_with(SENTENCE));
        assert_eq!(with([0, 100, 6000]).verdict(), Some(Verdict::Warmup));
        assert!(!says(with([0, 100, 6000])));
        assert_eq!(with([0, 10_000, 10_010]).verdict(), Some(Verdict::Growth));
        assert!(says(with([0, 10_000, 10_010])));
    }

    #[test]
    fn growth_below_the_turnover_is_not_a_suspect() {
        let with = |kept, figures| Evidence {
            survival: survival(kept, [25; 4]),
            ..evidence(figures)
        };
        let levels = &[12_100, 12_200, 12_400];
        // 300 objects were added, and 6,700 were replaced.
        assert_eq!(with(45, levels).verdict(), None);
        assert_eq!(with(45, &[12_100, 12_400]).verdict(), None);
        // 300 objects were added, and 1,200 were replaced. The growth may be random variation, but there is no evidence
        // for this, so the suspect is reported.
        assert_eq!(with(90, levels).verdict(), Some(Verdict::Growth));
        // Without enough samples, the number of replaced objects is unknown.
        assert_eq!(evidence(levels).verdict(), Some(Verdict::Growth));
        let few = Evidence {
            survival: Some(Survival {
                held: 15,
                ..Survival::default()
            }),
            ..evidence(levels)
        };
        assert_eq!(few.verdict(), Some(Verdict::Growth));
        // Growth is not random variation if the size rises from each of five dumps to the next, or if the content is in
        // a queue (a growing queue is a known leak pattern).
        let rises = &[12_100, 12_200, 12_300, 12_400, 12_500];
        assert_eq!(with(45, rises).verdict(), Some(Verdict::Growth));
        let queue = Evidence {
            finding: finding(false),
            ..with(45, levels)
        };
        assert_eq!(queue.verdict(), Some(Verdict::Growth));
    }

    #[test]
    fn without_growth_there_is_no_suspect() {
        let shrunk = Evidence {
            finding: finding(true),
            ..evidence(&[900, 596])
        };
        assert_eq!(shrunk.verdict(), None);
        assert_eq!(evidence(&[900, 900]).verdict(), None);
    }

    #[test]
    fn small_steps_of_few_dumps_may_be_random_variation() {
        let slight = || evidence(&[20_000, 20_700, 21_300]);
        assert_eq!(slight().verdict(), Some(Verdict::Growth));
        assert!(says(
            slight(),
            "the size grew by at most 3.5 %, which can be random variation"
        ));
        for figures in [
            &[20_000, 21_000, 22_100][..],
            // By random variation, a size rarely rises from each of five dumps to the next.
            &[20_000, 20_700, 21_300, 21_900, 22_600],
        ] {
            assert_eq!(evidence(figures).verdict(), Some(Verdict::Leak));
            assert!(!says(evidence(figures), "%, which can be random variation"));
        }
        // If all samples of the first dump are still there in the last, the growth is not random variation.
        let sampled = Evidence {
            survival: survival(100, [50; 4]),
            ..slight()
        };
        assert_eq!(sampled.verdict(), Some(Verdict::Leak));
    }

    #[test]
    fn causes_outweigh_bounds_and_bounds_outweigh_growth() {
        let certain = Evidence {
            finding: finding(true),
            bound: bound(Strength::Enforced),
            ..evidence(&[100, 200])
        };
        assert_eq!(certain.verdict(), Some(Verdict::Leak));
        let uncertain = Evidence {
            finding: finding(false),
            bound: bound(Strength::Reached),
            ..evidence(&[100, 200, 300])
        };
        assert_eq!(uncertain.verdict(), Some(Verdict::Cache));
        assert_eq!(uncertain.reasons()[0], THREAD_LOCAL);
    }

    #[test]
    fn a_bound_counts_by_its_strength() {
        let verdict = |strength, survival| {
            let evidence = Evidence {
                bound: bound(strength),
                survival,
                ..evidence(&[100, 200, 300])
            };
            evidence.verdict()
        };
        let all = survival(100, [50; 4]);
        for (strength, without, with) in [
            (Strength::Enforced, Verdict::Cache, Verdict::Cache),
            (Strength::Reached, Verdict::Cache, Verdict::Leak),
            (Strength::Hint, Verdict::Growth, Verdict::Leak),
        ] {
            assert_eq!(verdict(strength, None), Some(without));
            assert_eq!(verdict(strength, all), Some(with));
        }
    }

    #[test]
    fn growth_at_the_start_is_warm_up_unless_it_is_bounded() {
        let start = || Some(sentence::Evidence::ClassesLoaded { classes: 7 });
        let warm = Evidence {
            start: start(),
            ..evidence(&[100, 200, 300])
        };
        assert_eq!(warm.verdict(), Some(Verdict::Warmup));
        assert!(warm.reasons()[1].starts_with("7 classes were loaded"));
        let bound = Evidence {
            start: start(),
            bound: bound(Strength::Enforced),
            ..evidence(&[100, 200, 300])
        };
        assert_eq!(bound.verdict(), Some(Verdict::Cache));
    }

    #[test]
    fn only_the_deciding_reasons_are_given() {
        let with = |certain, figures| Evidence {
            finding: finding(certain),
            bound: bound(Strength::Enforced),
            ..evidence(figures)
        };
        // If the cause of the leak is certain, the reasons do not mention the limit of the collection's size.
        assert_eq!(with(true, &[100, 200]).reasons(), [THREAD_LOCAL]);
        assert_eq!(with(false, &[100, 200]).reasons(), [THREAD_LOCAL, WEAK_MAP]);
        // The hint to take a third dump appears only for two dumps, if no other evidence decided.
        let uneven = evidence(&[100, 200, 200, 300]).reasons();
        assert!(uneven.iter().all(|r| !r.starts_with("two dumps")));
        let level = evidence(&[100, 200]).reasons();
        assert_eq!(level.len(), 1);
        assert!(level[0].starts_with("two dumps"));
    }

    #[test]
    fn two_dumps_are_enough_if_all_samples_survive() {
        for (kept, verdict) in [(100, Verdict::Leak), (60, Verdict::Growth)] {
            let with = Evidence {
                survival: survival(kept, [50; 4]),
                ..evidence(&[100, 200])
            };
            assert_eq!(with.verdict(), Some(verdict));
        }
    }
}
