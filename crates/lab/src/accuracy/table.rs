//! Writes the results of the accuracy measurement as a Markdown table.

use std::fmt::Write;

use anyhow::Result;
use testdata::jvm::Jdk;
use testdata::scenarios::{CONTROLS, Scenario, by_name};

use super::explained;
use super::judge::{Found, Judgement, Outcome, Quiet, Totals};

/// Returns the table as Markdown. `with` is a description of the run: the agent's options, the collector, and further
/// flags of the JVM.
pub(super) fn of(
    jdks: &[Jdk],
    with: &str,
    judgements: &[Judgement],
    totals: &Totals,
) -> Result<String> {
    let versions: Vec<&str> = jdks.iter().map(Jdk::version).collect();
    let mut text = format!(
        "# Accuracy\n\nMade by `cargo xtask accuracy`, on JDK {}, {with}.\n\n\
         Holder is first, holder is among first three: the rank of the holder among the suspects. It is read from the report of two dumps\n\
         and from the report of three dumps. If a program needs three dumps, only the report of three dumps counts.\n\
         Best holder is first: if several fields are right answers, the rank of the field that helps most. The verdict must be leak or growth in both reports; the table shows the verdict and the leak pattern of the report of\n\
         three dumps. Rank in last dump: the rank of the same holder in the report of the last dump.\n\
         Other suspects: suspects with another holder and the verdict leak or growth, in the report of three dumps. False alarms: suspects\n\
         with the verdict leak or growth although nothing leaks. They are counted in the scenario without its leak (two and three dumps),\n\
         and in programs that never leak (three and four dumps).\n\n",
        versions.join(" and ")
    );
    sums(&mut text, totals)?;
    text.push_str(
        "\n## Leaks\n\n| scenario | JDK | holder is first | holder is among first three | best holder is first | class is right | stack is first | verdict | name of pattern | rank in last dump | other suspects | false alarms |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for judgement in judgements {
        match &judgement.outcome {
            Outcome::Leak { leaks, twin } => {
                for (number, leak) in (1..).zip(leaks) {
                    let name = match number {
                        1 => judgement.name.to_owned(),
                        _ => format!("{} ({number})", judgement.name),
                    };
                    row(&mut text, &name, judgement.jdk, leak, twin)?;
                }
            }
            Outcome::NotApplicable(since) => writeln!(
                text,
                "| {} | {} | not run, because it needs JDK {since} | | | | | | | | | |",
                judgement.name, judgement.jdk
            )?,
            Outcome::Failed(_) => writeln!(
                text,
                "| {} | {} | the program could not be run | | | | | | | | | |",
                judgement.name, judgement.jdk
            )?,
            Outcome::Control(_) => {}
        }
    }
    text.push_str(
        "\n## Controls\n\n| control program | JDK | runs | verdicts | false alarms |\n|---|---|---|---|---|\n",
    );
    for judgement in judgements {
        if let Outcome::Control(quiet) = &judgement.outcome {
            writeln!(
                text,
                "| {} | {} | {} | {} | {} |",
                judgement.name,
                judgement.jdk,
                quiet.runs,
                match &quiet.verdicts[..] {
                    [] => "none".to_owned(),
                    verdicts => verdicts.join(", "),
                },
                quiet.alarms.len()
            )?;
        }
    }
    faults(&mut text, judgements)?;
    legend(&mut text, judgements)?;
    Ok(text)
}

fn sums(text: &mut String, totals: &Totals) -> Result<()> {
    text.push_str("| | |\n|---|---|\n");
    for (what, share) in [
        ("holder first", totals.holder_first),
        ("holder among the first three", totals.holder_third),
        ("best holder", totals.best),
        ("class", totals.class),
        ("stack first", totals.stack_first),
        ("verdict", totals.verdict),
        ("name", totals.detector),
        (
            "last dump only: holder among the first three suspects",
            totals.one_dump,
        ),
        ("no other suspect is called leak or growth", totals.alone),
        (
            "runs of programs without a leak that give no false alarm",
            totals.quiet,
        ),
    ] {
        writeln!(text, "| {what} | {share} |")?;
    }
    if totals.counted > 0 {
        writeln!(
            text,
            "| first stacks that are correct, but that the report found only by allocated bytes | {} |",
            totals.counted
        )?;
    }
    writeln!(text, "| false alarms | {} |", totals.alarms)?;
    Ok(())
}

fn row(text: &mut String, name: &str, jdk: u32, leak: &Found, twin: &Quiet) -> Result<()> {
    let mark = |right: bool| if right { "yes" } else { "no" };
    let verdict = leak.verdict.as_deref().unwrap_or("-");
    let detector = match (&leak.detector, leak.expected.detector) {
        (None, None) => String::new(),
        (Some(found), Some(expected)) if found == expected => found.clone(),
        (found, expected) => format!(
            "{}, not {}",
            found.as_deref().unwrap_or("none"),
            expected.unwrap_or("none")
        ),
    };
    writeln!(
        text,
        "| {name} | {jdk} | {} | {} | {} | {} | {} | {verdict} | {detector} | {} | {} | {} |",
        mark(leak.is_first()),
        mark(leak.is_in_top_three()),
        mark(leak.best),
        mark(leak.class),
        mark(leak.stack),
        leak.alone.map_or("-".to_owned(), |place| place.to_string()),
        leak.beside,
        twin.alarms.len()
    )?;
    Ok(())
}

fn faults(text: &mut String, judgements: &[Judgement]) -> Result<()> {
    let mut title = "\n## Unexpected results\n\n";
    for judgement in judgements {
        let faults = judgement.faults();
        if faults.is_empty() {
            continue;
        }
        writeln!(text, "{title}{}, JDK {}:\n", judgement.name, judgement.jdk)?;
        for fault in faults {
            writeln!(text, "- {fault}")?;
        }
        if let Some(why) = explained::of(judgement.name) {
            writeln!(text, "\n{why}")?;
        }
        title = "\n";
    }
    Ok(())
}

/// Appends a description of each program.
fn legend(text: &mut String, judgements: &[Judgement]) -> Result<()> {
    text.push_str("\n## The programs\n\n| name | what the program does |\n|---|---|\n");
    let mut told = Vec::new();
    for name in judgements.iter().map(|judgement| judgement.name) {
        if told.contains(&name) {
            continue;
        }
        told.push(name);
        let leak = by_name(name).map(|Scenario { leak, .. }| *leak);
        let control = CONTROLS.iter().find(|control| control.name == name);
        if let Some(about) = leak.or(control.map(|control| control.about)) {
            writeln!(text, "| {name} | {about} |")?;
        }
    }
    Ok(())
}
