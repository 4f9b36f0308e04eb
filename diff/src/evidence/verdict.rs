//! The verdict on a suspect, made of evidence, and the sentences that say why.

use crate::evidence::detect::Finding;
use crate::evidence::survival::Survival;
use crate::report::Verdict;
use heapdiff_trend::Trend;

/// All evidence for and against a suspect.
#[derive(Debug)]
pub(crate) struct Evidence<'a> {
    pub(crate) trend: Trend,
    /// Bytes that it retains in each dump.
    pub(crate) figures: &'a [u64],
    pub(crate) finding: Option<Finding>,
    /// The sentence that says what keeps it from growing for ever.
    pub(crate) bound: Option<String>,
    /// The sentence that says that it grows once, while the program starts.
    pub(crate) start: Option<String>,
    pub(crate) survival: Option<Survival>,
}

impl Evidence<'_> {
    /// The verdict.
    ///
    /// The rules, the first that applies decides: what stopped growing is not a leak; a certain cause makes a
    /// leak; a bound makes a cache; start-up makes a warm-up; growth at each of several steps, or samples of
    /// which none dies, make a leak; the rest is growth.
    pub(crate) fn verdict(&self) -> Verdict {
        let certain = self.finding.as_ref().is_some_and(|f| f.is_certain);
        match self.trend {
            Trend::WarmUp | Trend::Jump => return Verdict::Warmup,
            Trend::Plateau | Trend::Sawtooth => return Verdict::Cache,
            _ => {}
        }
        if certain {
            return Verdict::Leak;
        }
        if self.bound.is_some() {
            return Verdict::Cache;
        }
        if self.start.is_some() {
            return Verdict::Warmup;
        }
        let several = self.figures.len() > 2 && self.trend.is_steady();
        match several || self.survival.is_some_and(|s| s.is_total()) {
            true => Verdict::Leak,
            false => Verdict::Growth,
        }
    }

    /// The sentences that say why, the cause first.
    pub(crate) fn reasons(self) -> Vec<String> {
        const UNSURE: &str =
            "two dumps cannot tell a cache that still fills from a leak; a third one can";
        let verdict = self.verdict();
        let mut reasons: Vec<String> = Vec::new();
        let certain = self.finding.as_ref().is_some_and(|f| f.is_certain);
        reasons.extend(self.finding.into_iter().flat_map(|f| f.sentences));
        reasons.extend(self.trend.sentence(self.figures));
        reasons.extend(self.bound.filter(|_| !certain));
        reasons.extend(self.start);
        reasons.extend(self.survival.and_then(|s| s.sentence()));
        if verdict == Verdict::Growth && self.figures.len() == 2 {
            reasons.push(UNSURE.to_owned());
        }
        reasons
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(figures: &[u64]) -> Evidence<'_> {
        Evidence {
            trend: Trend::of(figures, 10),
            figures,
            finding: None,
            bound: None,
            start: None,
            survival: None,
        }
    }

    fn finding(is_certain: bool) -> Option<Finding> {
        Some(Finding {
            detector: "queue",
            sentences: vec!["a queue".to_owned()],
            is_certain,
        })
    }

    #[test]
    fn two_dumps_show_growth_and_three_a_leak() {
        let two = evidence(&[100, 200]);
        assert_eq!(two.verdict(), Verdict::Growth);
        assert!(two.reasons().iter().any(|r| r.starts_with("two dumps")));
        let three = evidence(&[100, 200, 300]);
        assert_eq!(three.verdict(), Verdict::Leak);
        assert!(three.reasons().iter().all(|r| !r.starts_with("two dumps")));
        assert_eq!(evidence(&[100, 200, 200, 300]).verdict(), Verdict::Growth);
        assert_eq!(evidence(&[0, 500, 800]).verdict(), Verdict::Growth);
    }

    #[test]
    fn what_is_over_is_no_leak_whatever_it_is() {
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
            assert_eq!(over.verdict(), verdict, "{figures:?}");
        }
    }

    #[test]
    fn a_certain_cause_outweighs_a_bound_and_a_bound_outweighs_growth() {
        let bound = || Some("it has room".to_owned());
        let certain = Evidence {
            finding: finding(true),
            bound: bound(),
            ..evidence(&[100, 200])
        };
        assert_eq!(certain.verdict(), Verdict::Leak);
        let uncertain = Evidence {
            finding: finding(false),
            bound: bound(),
            ..evidence(&[100, 200, 300])
        };
        assert_eq!(uncertain.verdict(), Verdict::Cache);
        assert_eq!(uncertain.reasons()[0], "a queue");
    }

    #[test]
    fn what_grows_at_a_start_is_warm_up_unless_something_bounds_it() {
        let start = || Some("classes were loaded".to_owned());
        let warm = Evidence {
            start: start(),
            ..evidence(&[100, 200, 300])
        };
        assert_eq!(warm.verdict(), Verdict::Warmup);
        assert_eq!(warm.reasons()[1], "classes were loaded");
        let bound = Evidence {
            start: start(),
            bound: Some("it has room".to_owned()),
            ..evidence(&[100, 200, 300])
        };
        assert_eq!(bound.verdict(), Verdict::Cache);
    }

    #[test]
    fn reasons_are_those_that_decided() {
        let with = |certain, figures| Evidence {
            finding: finding(certain),
            bound: Some("it has room".to_owned()),
            ..evidence(figures)
        };
        // With a certain cause a bound is not mentioned.
        assert_eq!(with(true, &[100, 200]).reasons(), ["a queue"]);
        assert_eq!(
            with(false, &[100, 200]).reasons(),
            ["a queue", "it has room"]
        );
        // The hint at a third dump is for two dumps on which nothing else decided.
        let uneven = evidence(&[100, 200, 200, 300]).reasons();
        assert!(uneven.iter().all(|r| !r.starts_with("two dumps")));
        let level = evidence(&[100, 200]).reasons();
        assert_eq!(level.len(), 1);
        assert!(level[0].starts_with("two dumps"));
    }

    #[test]
    fn samples_of_which_none_dies_make_two_dumps_enough() {
        let survival = |kept| Survival {
            held: 100,
            kept,
            live: 200,
            quarters: [50; 4],
            permille: 1000,
        };
        for (kept, verdict) in [(100, Verdict::Leak), (60, Verdict::Growth)] {
            let with = Evidence {
                survival: Some(survival(kept)),
                ..evidence(&[100, 200])
            };
            assert_eq!(with.verdict(), verdict);
        }
    }
}
