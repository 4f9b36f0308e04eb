//! Compares reports with the expectations of the scenarios.

use std::fmt;

use anyhow::Result;
use testdata::jvm::Jdk;
use testdata::scenarios::{Expected, Scenario};

use super::report::{OneDump, Report, Suspect};
use super::subject::{Subject, Tools};

/// Number of suspects that a failure message shows.
pub(super) const SHOWN: usize = 4;

/// The result for one program (a leak scenario or a control) on one JDK.
#[derive(Debug)]
pub(super) struct Judgement {
    pub(super) name: &'static str,
    pub(super) jdk: u32,
    pub(super) outcome: Outcome,
}

#[derive(Debug)]
pub(super) enum Outcome {
    /// The JDK lacks a feature that the program needs. The value is the first JDK version that has it.
    NotApplicable(u32),
    /// The results for a leak scenario: one entry for each leak, and the result for the fixed twin (the same program
    /// without the leak).
    Leak {
        leaks: Vec<Found>,
        twin: Quiet,
    },
    Control(Quiet),
    /// The program could not be run. The value is the error.
    Failed(String),
}

/// How the reports describe one leak.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) expected: Expected,
    /// Position of the expected holder in the list of suspects, counted from 1. If the position differs between
    /// reports, this is the worst one. Suspects that are other expected leaks of the program are not counted.
    pub(super) place: Option<usize>,
    /// True if all reports name the first of the expected holders, which is the best answer. It is usually a field of
    /// the application. The other expected holders, such as a field of the JDK, are accepted, too.
    pub(super) best: bool,
    /// True if, in all reports, the suspect with the expected holder also names an expected class.
    pub(super) class: bool,
    /// True if, in all reports, the first stack of the suspect contains the expected method.
    pub(super) stack: bool,
    /// True if at least one report has no stack of the suspect's objects, because none of these objects is a tracked
    /// sample. That report shows a stack that allocated objects of the class instead.
    pub(super) is_counted: bool,
    /// True if all reports give the suspect the verdict leak or growth.
    pub(super) alarm: bool,
    /// The verdict on the suspect in the report on three dumps.
    pub(super) verdict: Option<String>,
    /// The known leak pattern that the report on three dumps names.
    pub(super) detector: Option<String>,
    /// Position of the expected holder among the suspects in the report on the last dump alone, counted from 1.
    /// Suspects that are other expected leaks of the program are not counted.
    pub(super) alone: Option<usize>,
    /// Number of unexpected suspects with the verdict leak or growth in the report on three dumps. Such suspects are
    /// false alarms.
    pub(super) beside: usize,
    /// Differences between the reports and the expectations.
    pub(super) faults: Vec<String>,
}

/// The results for a program without a leak.
#[derive(Debug, Default)]
pub(super) struct Quiet {
    /// Number of runs.
    pub(super) runs: u32,
    /// Number of runs in which a suspect got the verdict leak or growth.
    pub(super) alarmed: u32,
    /// Suspects with the verdict leak or growth.
    pub(super) alarms: Vec<String>,
    /// All verdicts other than leak and growth.
    pub(super) verdicts: Vec<String>,
    /// Suspects whose verdict is neither an alarm (leak or growth) nor expected.
    pub(super) faults: Vec<String>,
}

/// Runs a tested program (a scenario or a control), and compares its reports with the expected ones.
pub(super) fn judge(jdk: &Jdk, subject: &Subject, tools: &Tools<'_>) -> Judgement {
    let outcome = outcome(jdk, subject, tools);
    Judgement {
        name: subject.name(),
        jdk: jdk.major(),
        outcome: outcome.unwrap_or_else(|error| Outcome::Failed(format!("{error:#}"))),
    }
}

fn outcome(jdk: &Jdk, subject: &Subject, tools: &Tools<'_>) -> Result<Outcome> {
    Ok(match subject {
        Subject::Leak(scenario) if !scenario.runs_on(jdk) => Outcome::NotApplicable(scenario.since),
        Subject::Leak(scenario) => {
            let (reports, one) = tools.leak(jdk, scenario)?;
            // The first report compares two dumps, and the second one compares three. If a scenario needs three dumps,
            // only the second report is judged.
            let judged = scenario.dumps - 2..;
            let mut twin = Quiet::default();
            for _ in 0..tools.repeat {
                let reports = tools.run_fixed(jdk, scenario)?;
                twin.add(&reports[judged.clone()], &["cache", "warmup"]);
            }
            Outcome::Leak {
                leaks: leaks(scenario, &reports[judged], &one),
                twin,
            }
        }
        Subject::Control(control) => {
            let mut quiet = Quiet::default();
            for _ in 0..tools.repeat {
                quiet.add(&tools.run_control(jdk, control)?, control.allowed);
            }
            Outcome::Control(quiet)
        }
    })
}

/// The suspects of one report, and the number of dumps that the report compares.
#[derive(Debug)]
struct Listed<'a> {
    dumps: usize,
    suspects: Vec<&'a Suspect>,
}

fn leaks(scenario: &Scenario, reports: &[Report], alone: &OneDump) -> Vec<Found> {
    let all: Vec<Expected> = scenario.expected().collect();
    let one = |at: usize| {
        let others = || all.iter().enumerate().filter(move |(i, _)| *i != at);
        let is_of_other = |holder: &str| others().any(|(_, e)| e.accepts_holder(holder));
        let is_other = |suspect: &Suspect| is_of_other(&suspect.holder);
        let list = reports.iter().map(|report| Listed {
            dumps: report.snapshots.len(),
            suspects: report.suspects.iter().filter(|s| !is_other(s)).collect(),
        });
        let lists: Vec<Listed<'_>> = list.collect();
        let mut found = combine_results(&all[at], &lists);
        found.find_holder(alone, &is_of_other);
        found
    };
    (0..all.len()).map(one).collect()
}

/// Combines the results of several reports on one leak. `lists` has one entry for each report: its suspects, except
/// those that are other expected leaks of the program. Later reports compare more dumps, so the verdict and the
/// detector come from the last report.
fn combine_results(expected: &Expected, lists: &[Listed<'_>]) -> Found {
    let right = |s: &&Suspect| expected.accepts_holder(&s.holder);
    let places: Vec<Option<usize>> = lists
        .iter()
        .map(|l| l.suspects.iter().position(right))
        .collect();
    let told = |of: &dyn Fn(&Suspect) -> bool| {
        lists.iter().zip(&places).all(|(list, place)| {
            let suspect = place.and_then(|at| list.suspects.get(at));
            suspect.is_some_and(|suspect| of(suspect))
        })
    };
    let stack = |suspect: &Suspect| {
        let first = suspect.first_stack();
        first.is_some_and(|s| expected.accepts_stack(s.frames.iter().map(String::as_str)))
    };
    let last = lists.last().map_or(&[][..], |list| &list.suspects);
    let named = last.iter().find(|s| right(s));
    let worst: Option<Vec<usize>> = places.iter().copied().collect();
    let mut found = Found {
        expected: *expected,
        place: worst
            .and_then(|places| places.into_iter().max())
            .map(|at| at + 1),
        best: told(&|s| expected.holders.first() == Some(&&*s.holder)),
        class: told(&|s| expected.accepts_class(&s.class)),
        stack: told(&stack),
        is_counted: told(&stack) && !told(&|s| !s.stacks.is_empty()),
        alarm: told(&Suspect::is_alarm),
        verdict: named.map(|s| s.verdict.clone()),
        detector: named.and_then(|s| s.detector.clone()),
        alone: None,
        beside: last.iter().filter(|s| s.is_alarm() && !right(s)).count(),
        faults: Vec::new(),
    };
    found.faults = found.list_faults(lists);
    found
}

impl Found {
    pub(super) fn is_first(&self) -> bool {
        self.place == Some(1)
    }

    pub(super) fn is_in_top_three(&self) -> bool {
        self.place.is_some_and(|place| place <= 3)
    }

    /// True if the report on the last dump alone names the holder among the first three suspects.
    pub(super) fn is_in_top_three_of_last(&self) -> bool {
        self.alone.is_some_and(|place| place <= 3)
    }

    /// Searches the report on one dump for the expected holder, and stores its position among the suspects.
    fn find_holder(&mut self, alone: &OneDump, is_of_other: &dyn Fn(&str) -> bool) {
        let listed: Vec<_> = alone
            .suspects
            .iter()
            .filter(|s| !is_of_other(&s.holder))
            .collect();
        let right = |holder: &str| self.expected.accepts_holder(holder);
        self.alone = listed
            .iter()
            .position(|s| right(&s.holder))
            .map(|at| at + 1);
        if !self.is_in_top_three_of_last() {
            let all: Vec<String> = listed.iter().take(SHOWN).map(ToString::to_string).collect();
            self.faults.push(format!(
                "the holders in the report of one dump: {}",
                some(&all.join("; "))
            ));
        }
    }

    pub(super) fn names_expected_detector(&self) -> bool {
        self.detector.as_deref() == self.expected.detector
    }

    fn list_faults(&self, lists: &[Listed<'_>]) -> Vec<String> {
        let Expected {
            holders,
            classes,
            allocator,
            detector,
        } = self.expected;
        let mut faults = Vec::new();
        if !self.is_first() {
            for Listed { dumps, suspects } in lists {
                let suspects = suspects.iter().take(SHOWN).map(ToString::to_string);
                let suspects: Vec<String> = suspects.collect();
                faults.push(format!(
                    "holder: expected {}; the report of {dumps} dumps names {}",
                    holders.join(" or "),
                    some(&suspects.join("; "))
                ));
            }
        }
        let right = || {
            let all = lists.iter().flat_map(|list| &list.suspects);
            all.filter(|s| self.expected.accepts_holder(&s.holder))
        };
        if self.place.is_some() && !self.class {
            let found: Vec<&str> = right().map(|s| &*s.class).collect();
            faults.push(format!(
                "class: expected {}; found {}",
                classes.join(" or "),
                found.join(", ")
            ));
        }
        if self.place.is_some() && !self.stack {
            let stacks = right().filter_map(|s| s.first_stack());
            let stacks: Vec<String> = stacks.map(|s| s.frames.join(" < ")).collect();
            faults.push(format!(
                "stack: expected {allocator}; found {}",
                some(&stacks.join(", and "))
            ));
        }
        if self.place.is_some() && !self.alarm {
            let found: Vec<&str> = right().map(|s| &*s.verdict).collect();
            faults.push(format!("verdict: found {}", found.join(", ")));
        }
        if self.place.is_some() && !self.names_expected_detector() {
            let (expected, found) = (detector.unwrap_or("none"), name(&self.detector));
            faults.push(format!("detector: expected {expected}; found {found}"));
        }
        faults
    }
}

impl Quiet {
    /// Adds the suspects in the reports of one run. A suspect with a verdict in `allowed` is accepted. Each other
    /// suspect is an alarm if its verdict is leak or growth, and a fault otherwise.
    fn add(&mut self, reports: &[Report], allowed: &[&str]) {
        let before = self.alarms.len();
        for report in reports {
            let told = |s: &Suspect| format!("{} dumps: {s}", report.snapshots.len());
            let is_allowed = |s: &&Suspect| allowed.contains(&&*s.verdict);
            let alarms = report.alarms().filter(|s| !is_allowed(s));
            self.alarms.extend(alarms.map(told));
            for suspect in report.suspects.iter().filter(|s| !s.is_alarm()) {
                if !self.verdicts.contains(&suspect.verdict) {
                    self.verdicts.push(suspect.verdict.clone());
                }
                if !allowed.contains(&&*suspect.verdict) {
                    self.faults.push(told(suspect));
                }
            }
        }
        self.runs += 1;
        self.alarmed += u32::from(self.alarms.len() > before);
    }
}

fn name(of: &Option<String>) -> &str {
    of.as_deref().unwrap_or("none")
}

fn some(text: &str) -> &str {
    if text.is_empty() { "nothing" } else { text }
}

impl Judgement {
    /// Returns the differences between the reports and the expectations.
    pub(super) fn faults(&self) -> Vec<String> {
        let alarms = |of: &str, quiet: &Quiet| -> Vec<String> {
            let alarms = quiet.alarms.iter().map(|a| format!("false alarm{of}: {a}"));
            let faults = quiet
                .faults
                .iter()
                .map(|f| format!("wrong verdict{of}: {f}"));
            alarms.chain(faults).collect()
        };
        match &self.outcome {
            Outcome::NotApplicable(_) => Vec::new(),
            Outcome::Failed(error) => vec![format!("the program could not be run: {error}")],
            Outcome::Control(quiet) => alarms("", quiet),
            Outcome::Leak { leaks, twin } => {
                let found = leaks.iter().flat_map(|leak| leak.faults.clone());
                found
                    .chain(alarms(" in the scenario without its leak", twin))
                    .collect()
            }
        }
    }
}

impl fmt::Display for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JDK {} {}: ", self.jdk, self.name)?;
        if let Outcome::NotApplicable(since) = self.outcome {
            return write!(f, "not run, because it needs JDK {since}");
        }
        match &self.faults()[..] {
            [] => write!(f, "right"),
            faults => write!(f, "{}", faults.join("\n    ")),
        }
    }
}

/// A fraction: `part` of `all`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) part: u32,
    pub(super) all: u32,
}

impl Share {
    pub(super) fn count(&mut self, is_part: bool) {
        self.add(u32::from(is_part), 1);
    }

    fn add(&mut self, part: u32, all: u32) {
        self.part += part;
        self.all += all;
    }

    /// Returns the percentage, rounded down, or `None` if `all` is zero.
    pub(super) fn percent(self) -> Option<u32> {
        (self.part * 100).checked_div(self.all)
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.percent() {
            Some(percent) => write!(f, "{} of {} ({percent} %)", self.part, self.all),
            None => write!(f, "none"),
        }
    }
}

/// Sums over the results of all programs.
#[derive(Debug, Default)]
pub(super) struct Totals {
    pub(super) holder_first: Share,
    pub(super) holder_third: Share,
    pub(super) best: Share,
    pub(super) class: Share,
    pub(super) stack_first: Share,
    /// Number of right answers in `stack_first` for which a report has no stack of the suspect's own objects. Such a
    /// report shows a stack that allocated objects of the suspect's class instead.
    pub(super) counted: usize,
    pub(super) verdict: Share,
    pub(super) detector: Share,
    /// Fraction of leaks whose holder is among the first three suspects in the report on the last dump alone.
    pub(super) one_dump: Share,
    /// Fraction of leaks without a false alarm in the report on three dumps. A false alarm is an unexpected suspect
    /// with the verdict leak or growth.
    pub(super) alone: Share,
    pub(super) alarms: usize,
    /// Number of programs that could not be run.
    pub(super) failed: usize,
    /// Fraction of runs without an alarm, for programs without a leak.
    pub(super) quiet: Share,
}

impl Totals {
    pub(super) fn from_judgements(judgements: &[Judgement]) -> Self {
        let mut totals = Self::default();
        for judgement in judgements {
            let quiet = match &judgement.outcome {
                Outcome::NotApplicable(_) => continue,
                Outcome::Failed(_) => {
                    totals.failed += 1;
                    continue;
                }
                Outcome::Control(quiet) => quiet,
                Outcome::Leak { leaks, twin } => {
                    for leak in leaks {
                        totals.holder_first.count(leak.is_first());
                        totals.holder_third.count(leak.is_in_top_three());
                        totals.best.count(leak.best);
                        totals.class.count(leak.class);
                        totals.stack_first.count(leak.stack);
                        totals.counted += usize::from(leak.is_counted);
                        totals.verdict.count(leak.alarm);
                        totals.detector.count(leak.names_expected_detector());
                        totals.one_dump.count(leak.is_in_top_three_of_last());
                        totals.alone.count(leak.beside == 0);
                    }
                    twin
                }
            };
            totals.alarms += quiet.alarms.len();
            totals.quiet.add(quiet.runs - quiet.alarmed, quiet.runs);
        }
        totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accuracy::report::{Holder, Stack};
    use serde::de::IgnoredAny;
    use testdata::scenarios::SESSION_REGISTRY;

    fn suspect(holder: &str, verdict: &str) -> Suspect {
        Suspect {
            verdict: verdict.to_owned(),
            detector: None,
            holder: holder.to_owned(),
            class: "com.acme.shop.Session".to_owned(),
            retained_bytes: vec![1, 2],
            joined: None,
            stacks: vec![Stack {
                frames: vec!["com.acme.shop.ShopServer.serve(ShopServer.java:30)".to_owned()],
                ..Stack::default()
            }],
            allocated_at: Vec::new(),
        }
    }

    const RIGHT: &str = "com.acme.shop.SessionRegistry.sessions";

    fn reports(suspects: [Vec<Suspect>; 2]) -> Vec<Report> {
        let of = |(suspects, dumps)| Report {
            snapshots: vec![IgnoredAny; dumps],
            suspects,
        };
        suspects.into_iter().zip(2..).map(of).collect()
    }

    fn judged(suspects: [Vec<Suspect>; 2]) -> Found {
        let reports = reports(suspects);
        leaks(
            &SESSION_REGISTRY,
            &reports,
            &one_dump(&["Other.list", RIGHT]),
        )
        .remove(0)
    }

    fn one_dump(holders: &[&str]) -> OneDump {
        let of = |holder: &&str| Holder {
            holder: (*holder).to_owned(),
            class: "a.B".to_owned(),
            retained_bytes: 7,
        };
        OneDump {
            suspects: holders.iter().map(of).collect(),
        }
    }

    #[test]
    fn one_dump_must_name_the_leak_in_its_first_three() {
        let told = |holders: &[&str]| {
            let lists = reports([vec![suspect(RIGHT, "leak")], vec![suspect(RIGHT, "leak")]]);
            let found = leaks(&SESSION_REGISTRY, &lists, &one_dump(holders)).remove(0);
            (found.alone, found.is_in_top_three_of_last(), found.faults)
        };
        assert_eq!(told(&["A.a", RIGHT]), (Some(2), true, Vec::new()));
        let fourth = told(&["A.a", "B.b", "C.c", RIGHT]);
        assert_eq!((fourth.0, fourth.1), (Some(4), false));
        assert!(
            fourth.2[0].starts_with("the holders in the report of one dump: A.a holds a.B 7; B.b")
        );
        assert_eq!(
            told(&[]).2,
            ["the holders in the report of one dump: nothing"]
        );
    }

    #[test]
    fn a_right_answer_is_right_in_both_reports() {
        let found = judged([vec![suspect(RIGHT, "growth")], vec![suspect(RIGHT, "leak")]]);
        assert!(found.is_first() && found.best && found.class && found.stack && found.alarm);
        assert!(found.faults.is_empty(), "{:?}", found.faults);
        assert_eq!(found.beside, 0);
    }

    #[test]
    fn a_stack_from_allocations_alone_counts_and_is_marked() {
        let by_count = |frame: &str| {
            let mut one = suspect(RIGHT, "leak");
            one.stacks.clear();
            one.allocated_at = vec![Stack {
                frames: vec![frame.to_owned()],
                ..Stack::default()
            }];
            one
        };
        let right = "com.acme.shop.ShopServer.serve(ShopServer.java:30)";
        let found = judged([vec![suspect(RIGHT, "leak")], vec![by_count(right)]]);
        assert!(found.stack && found.is_counted);
        let found = judged([
            vec![suspect(RIGHT, "leak")],
            vec![by_count("a.B.c(B.java:1)")],
        ]);
        assert!(!found.stack && !found.is_counted);
        let found = judged([vec![suspect(RIGHT, "leak")], vec![suspect(RIGHT, "leak")]]);
        assert!(found.stack && !found.is_counted);
    }

    #[test]
    fn the_worse_report_counts() {
        let second = vec![suspect("Other.list", "leak"), suspect(RIGHT, "cache")];
        let found = judged([vec![suspect(RIGHT, "growth")], second]);
        assert!(!found.is_first() && found.is_in_top_three() && !found.alarm);
        assert_eq!(
            (found.place, found.beside, found.faults.len()),
            (Some(2), 1, 3)
        );
        let found = judged([Vec::new(), vec![suspect(RIGHT, "leak")]]);
        assert_eq!((found.place, found.stack), (None, false));
    }

    #[test]
    fn an_alarm_is_a_leak_or_growth() {
        let cache = vec![suspect("A.a", "cache")];
        let reports = reports([cache, vec![suspect("A.a", "growth")]]);
        let mut quiet = Quiet::default();
        quiet.add(&reports, &["warmup"]);
        let [alarm] = &quiet.alarms[..] else {
            panic!("{quiet:?}");
        };
        assert!(alarm.starts_with("3 dumps: growth A.a holds"), "{alarm}");
        assert_eq!(quiet.faults.len(), 1);
        quiet.add(&[], &[]);
        assert_eq!((quiet.runs, quiet.alarmed), (2, 1));
    }

    #[test]
    fn shares_are_rounded_down() {
        let share = Share {
            part: 189,
            all: 200,
        };
        assert_eq!(
            (share.percent(), Share::default().percent()),
            (Some(94), None)
        );
    }
}
