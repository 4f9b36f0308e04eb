//! A diff: the dumps, what grew, and the classes that changed.

use std::io::{self, Write};

use heapdiff_diff::sentence::{Samples, TWO_DUMPS, Whole, more_held};
use heapdiff_diff::{
    ClassGrowth, Coverage, Headline, History, Report, SnapshotInfo, Stack, Suspect, Through,
};
use heapdiff_units::{Size, counted, grouped, later, signed, signed_size};

use super::WIDTH;
use super::path::HolderPath;
use super::table::{Align, Table, printable};
use super::trace::{hourly, since, sparkline};
use crate::HEADLINES;
use crate::coverage;
use crate::report::growth;
use crate::style::Style;
use crate::times::utc;
use crate::view::{DiffReport, DiffView};

const WARNING: &str = "warning:";

pub(crate) fn render(report: &DiffReport, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let undecided = report.undecided();
    let DiffReport {
        data: report,
        view,
        more,
    } = report;
    let DiffView {
        more_suspects,
        more_classes,
        known,
        ..
    } = more;
    headlines(report, !more_suspects.is_empty(), style, out)?;
    let undecided = undecided.map(|_| crate::UNDECIDED);
    let all = report.warnings.iter().map(String::as_str);
    warnings(all.chain(undecided), style, out)?;
    let delta = &report.delta;
    if (delta.objects, delta.shallow_bytes) == (0, 0) {
        writeln!(out, "the size of the reachable heap did not change")?;
    } else {
        let (objects, bytes) = (signed(delta.objects), signed_size(delta.shallow_bytes));
        writeln!(
            out,
            "the reachable heap changed by {objects} objects, {bytes}"
        )?;
    }
    let common = common_reason(&report.suspects);
    let explained = crate::explained::sentence(report);
    for sentence in explained.as_deref().into_iter().chain(common) {
        for part in wrapped(sentence, WIDTH) {
            writeln!(out, "{part}")?;
        }
    }
    writeln!(out)?;
    if report.suspects.is_empty() && more_suspects.is_empty() {
        let nothing = crate::explained::nothing(report);
        writeln!(out, "{}", nothing.as_deref().unwrap_or("no suspect"))?;
    } else {
        writeln!(out, "{}", style.bold("What grew"))?;
        for suspect in &report.suspects {
            writeln!(out)?;
            self::suspect(suspect, (common, view.verbose), style, out)?;
        }
        if !more_suspects.is_empty() {
            let rest = "and suspects that grew less (--top N shows more)";
            writeln!(out, "\n{}", style.dim(rest))?;
        }
    }
    if !known.is_empty() {
        let known = counted(known.len() as u64, "suspect");
        let text = format!("{known} left out as known growth (--ignore)");
        writeln!(out, "\n{}", style.dim(text))?;
    }
    writeln!(out)?;
    dumps(&report.snapshots, style, out)?;
    classes(&report.classes, *more_classes, style, out)
}

/// Returns the sentence about two dumps if it is a reason of each of several suspects. It is printed once. Other reasons
/// would be read as statements about the heap.
fn common_reason(suspects: &[Suspect]) -> Option<&'static str> {
    let has = |suspect: &Suspect| suspect.reasons.iter().any(|reason| reason == TWO_DUMPS);
    (suspects.len() > 1 && suspects.iter().all(has)).then_some(TWO_DUMPS)
}

/// What readers have to know before they believe what follows.
pub(super) fn warnings<'a>(
    warnings: impl Iterator<Item = &'a str>,
    style: Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    for warning in warnings {
        let warning = printable(warning);
        for (i, part) in wrapped(&warning, WIDTH - WARNING.len()).iter().enumerate() {
            let label = if i == 0 {
                style.yellow(WARNING)
            } else {
                style.yellow("        ")
            };
            writeln!(out, "{label} {part}")?;
        }
    }
    Ok(())
}

/// The answer: a sentence for each of the first suspects. `has_more` is true if there are suspects that are not listed.
fn headlines(report: &Report, has_more: bool, style: Style, out: &mut dyn Write) -> io::Result<()> {
    const LABEL: usize = 8;
    for suspect in report.suspects.iter().take(HEADLINES) {
        let headline = Headline::new(suspect, report.delta.shallow_bytes);
        let verdict = format!("{:<LABEL$}", crate::verdict(suspect).to_uppercase());
        let verdict = if suspect.verdict.is_grave() {
            style.red(verdict)
        } else {
            style.yellow(verdict)
        };
        let mut label = verdict.to_string();
        for part in std::iter::once(headline.held).chain(headline.allocated) {
            for line in wrapped(&printable(&part), WIDTH - LABEL) {
                writeln!(out, "{label}{line}")?;
                label = " ".repeat(LABEL);
            }
        }
    }
    let below = report.suspects.len().saturating_sub(HEADLINES);
    let rest = match (below, has_more) {
        (0, false) => None,
        (0, true) => Some("and more suspects (--top N shows more)".to_owned()),
        (below, _) => Some(format!(
            "and {} below",
            counted(below as u64, "more suspect")
        )),
    };
    if let Some(rest) = rest.filter(|_| report.suspects.len() >= HEADLINES) {
        writeln!(out, "{:LABEL$}{}", "", style.dim(rest))?;
    }
    if report.suspects.is_empty() {
        Ok(())
    } else {
        writeln!(out)
    }
}

fn dumps(snapshots: &[SnapshotInfo], style: Style, out: &mut dyn Write) -> io::Result<()> {
    let mut table = Table::new(&[
        ("objects", Align::Right),
        ("reachable", Align::Right),
        ("unreachable", Align::Right),
        ("taken", Align::Right),
        ("dump", Align::Left),
    ]);
    let first = snapshots.first().map_or(0, |s| s.taken_ms);
    for (i, snapshot) in snapshots.iter().enumerate() {
        table.row(vec![
            grouped(snapshot.objects),
            Size(snapshot.reachable_bytes).to_string(),
            Size(snapshot.unreachable_bytes).to_string(),
            match i {
                0 => utc(first),
                _ => later(snapshot.taken_ms.wrapping_sub(first) as i64),
            },
            snapshot.path.clone(),
        ]);
    }
    table.print(style, out)?;
    match snapshots.last() {
        Some(last) => super::snapshot::layout(last.jvm.as_deref(), &last.layout, style, out),
        None => Ok(()),
    }
}

/// `common` is a reason of all suspects, which is printed elsewhere.
fn suspect(
    suspect: &Suspect,
    (common, verbose): (Option<&str>, bool),
    style: Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let verdict = crate::verdict(suspect);
    let verdict = if suspect.verdict.is_grave() {
        style.red(verdict)
    } else {
        style.yellow(verdict)
    };
    let mut grown = signed_size(suspect.growth.retained_bytes);
    let off_heap = suspect.growth_with_off_heap() - suspect.growth.retained_bytes;
    if off_heap > 0 {
        grown = format!("{} off heap, {grown} in the heap", signed_size(off_heap));
    }
    let holder = printable(&suspect.holder);
    let room = WIDTH.saturating_sub(4 + 8 + grown.len() + 2);
    let holder = style.fitted(&holder, room);
    writeln!(
        out,
        "{:>3} {verdict:<7} {}  {grown}",
        suspect.rank,
        style.bold(holder)
    )?;
    let objects: Vec<String> = suspect.objects.iter().map(|&n| grouped(n)).collect();
    let retained: Vec<String> = suspect
        .retained_bytes
        .iter()
        .map(|&n| Size(n).to_string())
        .collect();
    let figures = [objects, retained].map(|figures| figures.join(" -> "));
    let [objects, retained] = figures;
    let class = printable(&suspect.class);
    let one_line = format!("{objects} of class {class}, which retain {retained}");
    if one_line.chars().count() <= WIDTH - INDENT {
        line("objects", &one_line, style, out)?;
    } else {
        line("class", &suspect.class, style, out)?;
        let figures = format!("{objects}, which retain {retained}");
        line("objects", &figures, style, out)?;
    }
    let is_in_reason = !verbose && suspect.detector.as_deref() == Some("direct-buffer");
    if !suspect.off_heap_bytes.is_empty() && !is_in_reason {
        let outside = suspect.off_heap_bytes.iter();
        let outside: Vec<String> = outside.map(|&n| Size(n).to_string()).collect();
        line("off heap", &outside.join(" -> "), style, out)?;
    }
    let path = HolderPath {
        root: &suspect.root,
        steps: &suspect.path,
        holder: &suspect.holder,
    };
    path.write(verbose, style, out)?;
    let reasons = suspect.reasons.iter().map(String::as_str);
    // The figures of a known leak pattern show it.
    let more_held = more_held();
    let is_obvious = |reason: &str| !verbose && suspect.detector.is_some() && reason == more_held;
    let reasons: Vec<&str> = reasons
        .filter(|&reason| common != Some(reason) && !is_obvious(reason))
        .collect();
    self::reasons("why", &reasons, style, out)?;
    if let Some(history) = &suspect.history {
        self::history(history, style, out)?;
    }
    allocated(suspect, verbose, style, out)?;
    // The commands of the first suspect show how to go on with the others.
    let commands = match suspect.rank {
        1 => &suspect.next[..],
        _ if verbose => &suspect.next[..],
        _ => &suspect.next[..suspect.next.len().min(1)],
    };
    next(suspect.likely_fix.as_deref(), commands, style, out)
}

/// The likely fix, and commands that show more.
pub(super) fn next(
    fix: Option<&str>,
    commands: &[String],
    style: Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    if let Some(fix) = fix {
        reasons("fix", &[fix], style, out)?;
    }
    for (i, command) in commands.iter().enumerate() {
        line(if i == 0 { "next" } else { "" }, command, style, out)?;
    }
    Ok(())
}

/// Sentences, one below the other.
pub(super) fn reasons(
    label: &str,
    reasons: &[&str],
    style: Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    for (i, reason) in reasons.iter().enumerate() {
        for (j, part) in wrapped(reason, WIDTH - INDENT).iter().enumerate() {
            line(if i + j == 0 { label } else { "" }, part, style, out)?;
        }
    }
    Ok(())
}

/// What a trace tells of what the suspect's stacks allocated.
fn history(history: &History, style: Style, out: &mut dyn Write) -> io::Result<()> {
    line(
        "history",
        &sparkline(&history.series.live_bytes),
        style,
        out,
    )?;
    let slope = match history.slope.ci95 {
        Some(_) => format!("{}, {}", hourly(&history.slope), history.trend),
        None => "too few GCs for a rate".to_owned(),
    };
    line("", &slope, style, out)?;
    if let (Some(ms), Some(uptime), Some(within)) = (
        history.began_ms,
        history.began_uptime_ms,
        history.began_within,
    ) {
        line("since", &since(ms, uptime, within), style, out)?;
    }
    Ok(())
}

/// Maximum number of stacks that are shown of the first suspect and of the others, unless all are asked for.
pub(super) const STACKS: usize = 2;
const STACKS_OF_OTHERS: usize = 1;

/// The stacks that allocated what grew, and how much of the growth they explain.
fn allocated(
    suspect: &Suspect,
    verbose: bool,
    style: Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let limit = match suspect.rank {
        _ if verbose => usize::MAX,
        1 => STACKS,
        _ => STACKS_OF_OTHERS,
    };
    if suspect.stacks.is_empty() {
        return allocated_at(suspect, (limit, verbose), style, out);
    }
    let coverage = &suspect.coverage;
    let sampled = Sampled {
        stacks: &suspect.stacks,
        class: &suspect.class,
        through: suspect.allocated_through.as_ref(),
        coverage,
        whole: Whole::Growth,
    };
    self::sampled(&sampled, (limit, verbose), style, out)
}

/// Stacks, and how much of a whole they explain.
pub(super) struct Sampled<'a> {
    pub(super) stacks: &'a [Stack],
    /// The class that accumulates.
    pub(super) class: &'a str,
    pub(super) through: Option<&'a Through>,
    pub(super) coverage: &'a Coverage,
    pub(super) whole: Whole,
}

/// Returns the first stacks. The first one that allocated the class that accumulates is always among them.
fn first_stacks<'a>(stacks: &'a [Stack], class: &str, limit: usize) -> Vec<&'a Stack> {
    let mut first: Vec<&Stack> = stacks.iter().take(limit).collect();
    let direct = stacks.iter().find(|stack| stack.class == class);
    if let (Some(direct), Some(last)) = (direct, first.last_mut())
        && stacks.iter().take(limit).all(|stack| stack.class != class)
    {
        *last = direct;
    }
    first
}

/// At most `limit` stacks.
pub(super) fn sampled(
    sampled: &Sampled<'_>,
    (limit, verbose): (usize, bool),
    style: Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Sampled {
        stacks,
        class,
        through,
        coverage,
        whole,
    } = sampled;
    if let Some(through) = through {
        line("through", &through.frame, style, out)?;
        line("", &crate::share(through, stacks.len()), style, out)?;
    }
    for stack in first_stacks(stacks, class, limit) {
        write!(out, "    {:<8} ", style.dim("from"))?;
        super::stacks::stack(stack, (INDENT, verbose), style, out)?;
    }
    let mut text = coverage::sentence(coverage, *whole);
    let more = stacks.len().saturating_sub(limit);
    if more > 0 {
        text += &format!("; {}", more_stacks(more));
    }
    reasons("sampled", &[&text], style, out)
}

/// What was allocated of the suspect's class where no sample of what it holds is followed.
fn allocated_at(
    suspect: &Suspect,
    (limit, verbose): (usize, bool),
    style: Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    if suspect.allocated_at.is_empty() {
        return Ok(());
    }
    let sentence = Samples::NotTracked.to_string();
    reasons("sampled", &[&sentence], style, out)?;
    for at in suspect.allocated_at.iter().take(limit) {
        let figures = format!(
            "{} allocated, {}",
            Size(at.estimated_bytes),
            counted(at.samples, "sample")
        );
        write!(out, "    {:<8} ", style.dim("from"))?;
        let about = (&*suspect.class, &*figures);
        super::stacks::lines(about, &at.frames, &[], (INDENT, verbose), style, out)?;
    }
    let more = suspect.allocated_at.len().saturating_sub(limit);
    match more {
        0 => Ok(()),
        more => line("", &more_stacks(more), style, out),
    }
}

/// The number of stacks that are not shown.
fn more_stacks(more: usize) -> String {
    let more = counted(more as u64, "more stack");
    format!("{more} (-v shows all)")
}

pub(super) const INDENT: usize = 13;

pub(super) fn line(label: &str, text: &str, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let text = printable(text);
    let text = style.fitted(&text, WIDTH - INDENT);
    writeln!(out, "    {:<8} {text}", style.dim(label))
}

/// Wraps words into lines of at most `room` columns.
pub(super) fn wrapped(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let used = lines.last().map_or(0, |l| l.chars().count());
        if used > 0 && used + 1 + word.chars().count() > room {
            lines.push(String::new());
        }
        if let Some(last) = lines.last_mut() {
            if !last.is_empty() {
                last.push(' ');
            }
            last.push_str(word);
        }
    }
    lines
}

fn classes(
    classes: &[ClassGrowth],
    more: usize,
    style: Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    if classes.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    let mut table = Table::new(&[
        ("objects", Align::Right),
        ("change", Align::Right),
        ("shallow bytes", Align::Right),
        ("retained bytes", Align::Right),
        ("class", Align::Left),
    ]);
    for class in classes {
        table.row(vec![
            grouped(class.objects.last().copied().unwrap_or(0)),
            signed(growth(&class.objects)),
            signed(growth(&class.shallow_bytes)),
            signed(growth(&class.retained_bytes)),
            class.class.clone(),
        ]);
    }
    table.print(style, out)?;
    if more > 0 {
        let rest = format!(
            "and {} more classes that changed (--top N shows more)",
            grouped(more as u64)
        );
        writeln!(out, "{}", style.dim(rest))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_wrapped() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("", 7), [""]);
    }

    #[test]
    fn lines_fit_whatever_names_there_are() {
        use crate::synthetic::{HOSTILE, stack, suspect};

        let long = format!("com.acme.{}.Order\u{6f22}", "deep.".repeat(60));
        let mut one = suspect(
            1,
            &format!("{long}.field"),
            heapdiff_diff::Verdict::Leak,
            4096,
        );
        one.class.clone_from(&long);
        one.root = format!("static {long}");
        one.path = (0..40).map(|i| format!("{long}.f{i}")).collect();
        one.reasons = vec![format!("held by {long} and {HOSTILE}"), "short ".repeat(60)];
        one.stacks = vec![stack(&format!("{long}.call(Order.java:7)"), 9000, 80)];
        for verbose in [false, true] {
            let mut out = Vec::new();
            super::suspect(
                &one,
                (None, verbose),
                Style::plain().within(WIDTH),
                &mut out,
            )
            .unwrap();
            let text = String::from_utf8(out).unwrap();
            let widest = text.lines().max_by_key(|l| l.chars().count()).unwrap();
            assert!(widest.chars().count() <= WIDTH, "{widest}");
            assert!(!text.contains('\u{202e}'), "{text}");
            assert_eq!(text.contains("27 more steps"), !verbose, "{text}");
        }
    }

    fn told(one: &Suspect, verbose: bool) -> String {
        let mut out = Vec::new();
        super::suspect(one, (None, verbose), Style::plain(), &mut out).unwrap();
        joined(&String::from_utf8(out).unwrap())
    }

    fn joined(text: &str) -> String {
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_no_sample_speaks_for_is_told_where_it_is_worth_a_word() {
        use crate::synthetic::{stack, suspect};

        let plain = || {
            suspect(
                1,
                "com.acme.Shop.orders",
                heapdiff_diff::Verdict::Leak,
                100_000,
            )
        };
        let sampled = "97.7 KiB of 97.7 KiB growth, in 10 samples";
        let all = [
            "9.8 KiB of the growth is not covered by samples",
            "samples of up to 4.9 KiB were lost",
            "1 more stack (-v shows all)",
        ];
        let text = told(&plain(), false);
        assert!(text.ends_with(sampled), "{text}");
        assert!(!all.iter().any(|part| text.contains(part)), "{text}");
        let mut some = plain();
        some.coverage.unsampled_bytes = 10_000;
        assert!(told(&some, false).ends_with(&format!("{sampled}; {}", all[0])));
        some.coverage.unsampled_bytes = 900;
        assert!(!told(&some, false).contains("not covered by samples"));
        let mut more = plain();
        more.coverage.sampled_bytes = 500_000;
        assert!(told(&more, false).contains(
            "488.3 KiB of 97.7 KiB growth, in 10 samples; samples show more than the growth,"
        ));
        more.coverage.sampled_bytes = 100_900;
        assert!(!told(&more, false).contains("more than the growth"));
        let mut lost = plain();
        lost.coverage.unseen_bytes = 5000;
        assert!(told(&lost, false).ends_with(&format!("{sampled}; {}", all[1])));
        let mut many = plain();
        many.stacks = vec![stack("com.acme.Main.main(Main.java:7)", 9000, 80); 3];
        assert!(told(&many, false).ends_with(&format!("{sampled}; {}", all[2])));
        assert!(told(&many, true).ends_with(sampled));
        // Without stacks nothing is said of samples.
        let mut none = some;
        none.stacks.clear();
        assert!(!told(&none, false).contains("sample"));
    }

    #[test]
    fn headlines_mention_the_suspects_without_one() {
        use crate::synthetic::{report, suspect};

        let text = |listed: u32, more: usize| {
            let one = |rank| suspect(rank, "a.B.c", heapdiff_diff::Verdict::Leak, 4096);
            let suspects = (1..=listed).map(one).collect();
            let mut report = crate::tests::diff_report(report(suspects, 3));
            report.more.more_suspects = (0..more).map(|_| one(9)).collect();
            let mut out = Vec::new();
            render(&report, Style::plain(), &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert!(text(4, 0).contains("\n        and 1 more suspect below\n"));
        assert!(text(3, 1).contains("\n        and more suspects (--top N shows more)\n"));
        for (listed, more) in [(3, 0), (1, 1)] {
            assert!(!text(listed, more).contains("more suspect"));
        }
    }

    #[test]
    fn what_is_left_out_is_told() {
        use crate::synthetic::{report, suspect};

        let said = |known: usize, more: usize, classes: usize, delta: i64| {
            let one = || suspect(1, "a.B.c", heapdiff_diff::Verdict::Leak, 4096);
            let mut diff = report(vec![one()], 3);
            diff.delta.objects = delta;
            diff.delta.shallow_bytes = 0;
            let mut report = crate::tests::diff_report(diff);
            report.more.more_suspects = (0..more).map(|_| one()).collect();
            report.more.more_classes = classes;
            let rule = "holder a.B.c".to_owned();
            report.more.known = (0..known).map(|_| (one(), rule.clone())).collect();
            let mut out = Vec::new();
            render(&report, Style::plain(), &mut out).unwrap();
            joined(&String::from_utf8(out).unwrap())
        };
        let parts = [
            "1 suspect left out as known growth (--ignore)",
            "and suspects that grew less (--top N shows more)",
            "and 7 more classes that changed (--top N shows more)",
            "the reachable heap changed by +5 objects",
        ];
        let told = |text: &str| parts.map(|part| text.contains(part));
        assert_eq!(told(&said(1, 0, 0, 0)), [true, false, false, false]);
        assert_eq!(told(&said(0, 1, 0, 0)), [false, true, false, false]);
        assert_eq!(told(&said(0, 0, 7, 0)), [false, false, true, false]);
        assert_eq!(told(&said(0, 0, 0, 5)), [false, false, false, true]);
        let same = "the size of the reachable heap did not change";
        assert!(said(0, 0, 0, 0).contains(same) && !said(0, 0, 0, 5).contains(same));
    }
}
