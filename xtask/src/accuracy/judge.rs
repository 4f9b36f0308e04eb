//! Reports held to what the scenarios expect.

use std::fmt;

use anyhow::{Context, Result};
use testdata::jvm::Jdk;
use testdata::scenarios::{Control, Expected, Mode, Scenario};

use super::report::{Report, Suspect};
use super::subject::{Subject, Tools};

/// Suspects of a report that a failure shows.
const SHOWN: usize = 4;

/// What came of a subject on a JDK.
#[derive(Debug)]
pub(super) struct Judgement {
    pub(super) name: &'static str,
    pub(super) jdk: u32,
    pub(super) outcome: Outcome,
}

#[derive(Debug)]
pub(super) enum Outcome {
    /// This JDK lacks what the program needs; since which it has that.
    NotApplicable(u32),
    /// A row for each leak, and what was said of the fixed twin.
    Leak {
        leaks: Vec<Found>,
        twin: Quiet,
    },
    Control(Quiet),
}

/// How a leak was told.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) expected: Expected,
    /// The expected holder's place among the suspects, from 1, in the worse of the two reports; other leaks of
    /// the program that were expected too do not count.
    pub(super) place: Option<usize>,
    /// Whether the suspect with the expected holder has an expected class, in both reports.
    pub(super) class: bool,
    /// Whether its first stack is the expected one, in both reports.
    pub(super) stack: bool,
    /// What three dumps were taken for.
    pub(super) verdict: Option<String>,
    /// By which name three dumps were called.
    pub(super) detector: Option<String>,
    /// Suspects of three dumps that were not expected and are taken for leaks or growth.
    pub(super) beside: usize,
    /// What was found, where that is not what was expected.
    pub(super) faults: Vec<String>,
}

/// What was said where nothing leaks.
#[derive(Debug)]
pub(super) struct Quiet {
    /// What was taken for a leak or for growth.
    pub(super) alarms: Vec<String>,
    /// Verdicts that are no alarm.
    pub(super) verdicts: Vec<String>,
    /// Verdicts that are no alarm, but wrong.
    pub(super) faults: Vec<String>,
}

/// Runs a subject and judges its reports.
pub(super) fn judge(jdk: &Jdk, subject: &Subject, tools: &Tools<'_>) -> Result<Judgement> {
    let name = subject.name();
    let context = || format!("{name} on JDK {}", jdk.major());
    let outcome = match subject {
        Subject::Leak(scenario) if !scenario.runs_on(jdk) => Outcome::NotApplicable(scenario.since),
        Subject::Leak(scenario) => {
            let reports = tools
                .scenario(jdk, scenario, Mode::Leak)
                .with_context(context)?;
            let twins = tools
                .scenario(jdk, scenario, Mode::Fixed)
                .with_context(context)?;
            Outcome::Leak {
                leaks: leaks(scenario, &reports),
                twin: quiet(&twins, &[]),
            }
        }
        Subject::Control(control) => {
            let Control { allowed, .. } = control;
            let reports = tools.control(jdk, control).with_context(context)?;
            Outcome::Control(quiet(&reports, allowed))
        }
    };
    Ok(Judgement {
        name,
        jdk: jdk.major(),
        outcome,
    })
}

fn leaks(scenario: &Scenario, reports: &[Report; 2]) -> Vec<Found> {
    let all: Vec<Expected> = scenario.expected().collect();
    let one = |at: usize| {
        let others = || all.iter().enumerate().filter(move |(i, _)| *i != at);
        let is_other = |suspect: &Suspect| others().any(|(_, e)| e.accepts_holder(&suspect.holder));
        let lists = reports
            .each_ref()
            .map(|report| report.suspects.iter().filter(|s| !is_other(s)).collect());
        found(&all[at], &lists)
    };
    (0..all.len()).map(one).collect()
}

/// How a leak was told by reports of two and of three dumps.
fn found(expected: &Expected, reports: &[Vec<&Suspect>; 2]) -> Found {
    let right = |s: &&Suspect| expected.accepts_holder(&s.holder);
    let places = reports.each_ref().map(|list| list.iter().position(right));
    let told = |of: &dyn Fn(&Suspect) -> bool| {
        reports.iter().zip(places).all(|(list, place)| {
            let suspect = place.and_then(|at| list.get(at));
            suspect.is_some_and(|suspect| of(suspect))
        })
    };
    let stack = |suspect: &Suspect| {
        let first = suspect.stacks.first();
        first.is_some_and(|s| expected.accepts_stack(s.frames.iter().map(String::as_str)))
    };
    let [_, three] = reports;
    let last = places[1].and_then(|at| three.get(at));
    let mut found = Found {
        expected: *expected,
        place: match places {
            [Some(first), Some(second)] => Some(first.max(second) + 1),
            _ => None,
        },
        class: told(&|s| expected.accepts_class(&s.class)),
        stack: told(&stack),
        verdict: last.map(|s| s.verdict.clone()),
        detector: last.and_then(|s| s.detector.clone()),
        beside: three.iter().filter(|s| s.is_alarm() && !right(s)).count(),
        faults: Vec::new(),
    };
    found.faults = found.list_faults(reports);
    found
}

impl Found {
    pub(super) fn is_first(&self) -> bool {
        self.place == Some(1)
    }

    pub(super) fn is_among_three(&self) -> bool {
        self.place.is_some_and(|place| place <= 3)
    }

    /// Whether three dumps are taken for a leak, or for growth.
    pub(super) fn verdict_is_right(&self) -> bool {
        self.verdict
            .as_deref()
            .is_some_and(|verdict| ["leak", "growth"].contains(&verdict))
    }

    pub(super) fn detector_is_right(&self) -> bool {
        self.detector.as_deref() == self.expected.detector
    }

    fn list_faults(&self, reports: &[Vec<&Suspect>; 2]) -> Vec<String> {
        let Expected {
            holders,
            classes,
            allocator,
            detector,
        } = self.expected;
        let mut faults = Vec::new();
        if !self.is_first() {
            for (dumps, list) in (2..).zip(reports) {
                let suspects = list.iter().take(SHOWN).map(ToString::to_string);
                let suspects: Vec<String> = suspects.collect();
                faults.push(format!(
                    "holder: expected {}; {dumps} dumps: {}",
                    holders.join(" or "),
                    some(&suspects.join("; "))
                ));
            }
        }
        let right = || {
            let all = reports.iter().flatten();
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
            let stacks = right().filter_map(|s| s.stacks.first());
            let stacks: Vec<String> = stacks.map(|s| s.frames.join(" < ")).collect();
            faults.push(format!(
                "stack: expected {allocator}; found {}",
                some(&stacks.join(", and "))
            ));
        }
        if self.place.is_some() && !self.verdict_is_right() {
            faults.push(format!("verdict: found {}", name(&self.verdict)));
        }
        if self.place.is_some() && !self.detector_is_right() {
            let (expected, found) = (detector.unwrap_or("none"), name(&self.detector));
            faults.push(format!("detector: expected {expected}; found {found}"));
        }
        faults
    }
}

/// What reports say where nothing leaks.
fn quiet(reports: &[Report; 2], allowed: &[&str]) -> Quiet {
    let of = |dumps: &str, s: &Suspect| format!("{dumps}: {s}");
    let mut quiet = Quiet {
        alarms: Vec::new(),
        verdicts: Vec::new(),
        faults: Vec::new(),
    };
    for (report, dumps) in reports.iter().zip(["all dumps but the last", "all dumps"]) {
        quiet.alarms.extend(report.alarms().map(|s| of(dumps, s)));
        for suspect in report.suspects.iter().filter(|s| !s.is_alarm()) {
            if !quiet.verdicts.contains(&suspect.verdict) {
                quiet.verdicts.push(suspect.verdict.clone());
            }
            if !allowed.contains(&&*suspect.verdict) {
                quiet.faults.push(of(dumps, suspect));
            }
        }
    }
    quiet
}

fn name(of: &Option<String>) -> &str {
    of.as_deref().unwrap_or("none")
}

fn some(text: &str) -> &str {
    if text.is_empty() { "nothing" } else { text }
}

impl Judgement {
    /// What is not as expected.
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
            Outcome::Control(quiet) => alarms("", quiet),
            Outcome::Leak { leaks, twin } => {
                let found = leaks.iter().flat_map(|leak| leak.faults.clone());
                found.chain(alarms(" in the fixed twin", twin)).collect()
            }
        }
    }
}

impl fmt::Display for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JDK {} {}: ", self.jdk, self.name)?;
        if let Outcome::NotApplicable(since) = self.outcome {
            return write!(f, "needs JDK {since}");
        }
        match &self.faults()[..] {
            [] => write!(f, "right"),
            faults => write!(f, "{}", faults.join("\n    ")),
        }
    }
}

/// Some of all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) part: u32,
    pub(super) all: u32,
}

impl Share {
    fn count(&mut self, is_part: bool) {
        self.part += u32::from(is_part);
        self.all += 1;
    }

    /// Rounded down; nothing where there is none.
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

/// All judgements together.
#[derive(Debug, Default)]
pub(super) struct Totals {
    pub(super) holder_first: Share,
    pub(super) holder_third: Share,
    pub(super) class: Share,
    pub(super) stack_first: Share,
    pub(super) verdict: Share,
    pub(super) detector: Share,
    pub(super) alarms: usize,
    pub(super) quiet: Share,
}

impl Totals {
    pub(super) fn of(judgements: &[Judgement]) -> Self {
        let mut totals = Self::default();
        for judgement in judgements {
            let quiet = match &judgement.outcome {
                Outcome::NotApplicable(_) => continue,
                Outcome::Control(quiet) => quiet,
                Outcome::Leak { leaks, twin } => {
                    for leak in leaks {
                        totals.holder_first.count(leak.is_first());
                        totals.holder_third.count(leak.is_among_three());
                        totals.class.count(leak.class);
                        totals.stack_first.count(leak.stack);
                        totals.verdict.count(leak.verdict_is_right());
                        totals.detector.count(leak.detector_is_right());
                    }
                    twin
                }
            };
            totals.alarms += quiet.alarms.len();
            totals.quiet.count(quiet.alarms.is_empty());
        }
        totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accuracy::report::Stack;
    use testdata::scenarios::SESSION_REGISTRY;

    fn suspect(holder: &str, verdict: &str) -> Suspect {
        Suspect {
            verdict: verdict.to_owned(),
            detector: None,
            holder: holder.to_owned(),
            class: "com.acme.shop.Session".to_owned(),
            retained_bytes: vec![1, 2],
            stacks: vec![Stack {
                frames: vec!["com.acme.shop.ShopServer.serve(ShopServer.java:30)".to_owned()],
            }],
        }
    }

    const RIGHT: &str = "com.acme.shop.SessionRegistry.sessions";

    fn judged(reports: [Vec<Suspect>; 2]) -> Found {
        let reports = reports.map(|suspects| Report { suspects });
        leaks(&SESSION_REGISTRY, &reports).remove(0)
    }

    #[test]
    fn right_is_right_in_both_reports() {
        let found = judged([vec![suspect(RIGHT, "growth")], vec![suspect(RIGHT, "leak")]]);
        assert!(found.is_first() && found.class && found.stack && found.verdict_is_right());
        assert!(found.faults.is_empty(), "{:?}", found.faults);
        assert_eq!(found.beside, 0);
    }

    #[test]
    fn the_worse_report_counts() {
        let second = vec![suspect("Other.list", "leak"), suspect(RIGHT, "cache")];
        let found = judged([vec![suspect(RIGHT, "growth")], second]);
        assert!(!found.is_first() && found.is_among_three() && !found.verdict_is_right());
        assert_eq!(
            (found.place, found.beside, found.faults.len()),
            (Some(2), 1, 3)
        );
        let found = judged([Vec::new(), vec![suspect(RIGHT, "leak")]]);
        assert_eq!((found.place, found.stack), (None, false));
    }

    #[test]
    fn an_alarm_is_a_leak_or_growth() {
        let reports = [
            vec![suspect("A.a", "cache")],
            vec![suspect("A.a", "growth")],
        ];
        let quiet = quiet(&reports.map(|suspects| Report { suspects }), &["warmup"]);
        assert_eq!((quiet.alarms.len(), quiet.faults.len()), (1, 1));
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
