//! The web page of a comparison: suspects, a flame graph of the stacks that allocated the growth, an icicle graph of
//! the paths that hold it, all classes, and the JSON report.
//!
//! The page is one file and loads nothing. Its content security policy contains the hash of the built-in script and
//! allows no other script. So a name with HTML in it cannot run code. Data is embedded as JSON and inserted as text. A
//! page has less than 10 MB. If parts were cut to keep this limit, the page lists them.

mod flame;
mod heap;
mod linked;
mod owners;
mod section;
mod sentences;
mod stacks;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};

use askama::Template;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use heapdiff_diff::sentence::{First, Rate, Samples};
use heapdiff_diff::{Allocated, FrameParts, Headline, Report, SnapshotInfo, Suspect};
use heapdiff_sites::packages;
use heapdiff_units::{Size, counted, grouped, signed, signed_size};
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::printable::printable;
use crate::stacks::{Names, Stacks, Step};
use crate::tables;
use crate::text::{more_classes, taken};
use crate::view::DiffReport;

pub(crate) use heap::render as render_heap;
pub use linked::{DUMP_STYLE, DumpPage, object_address};
pub(crate) use owners::render as render_owners;
use section::Section;
use sentences::Sentences;
pub use stacks::{StackPage, render_stacks};

/// The style of all pages. Colour-blind readers can distinguish its colours, in light and in dark mode.
pub const STYLE: &str = include_str!("../assets/page.css");
/// Scripts of all HTML pages: creation of elements, format of numbers, colours, and buttons that filter.
const BASE: [&str; 3] = [
    include_str!("../assets/data.js"),
    include_str!("../assets/theme.js"),
    include_str!("../assets/pills.js"),
];
/// Scripts of all HTML pages with flame graphs.
const FLAMES: [&str; 2] = [
    include_str!("../assets/flame.js"),
    include_str!("../assets/tree.js"),
];
/// Scripts of this page, which come after [`parts`]. Each script comes after the scripts that it uses.
const SCRIPTS: [&str; 5] = [
    include_str!("../assets/embedded.js"),
    FOLDING,
    include_str!("../assets/suspects.js"),
    CLASSES,
    include_str!("../assets/page.js"),
];
/// Script that folds the frames of a stack.
const FOLDING: &str = include_str!("../assets/frames.js");
/// Script that draws the table of classes.
const CLASSES: &str = include_str!("../assets/classes.js");

/// Maximum size in bytes of the suspects in the embedded JSON, as estimated by [`suspect_bytes`].
const SUSPECT_BYTES: usize = 3_000_000;
/// Maximum size in bytes of the classes in the embedded JSON, as estimated by [`class_bytes`].
const CLASS_BYTES: usize = 2_500_000;
/// Maximum number of frames in the flame graph. A frame takes about ten bytes.
const FRAMES: usize = 400_000;
/// Maximum number of line numbers that are listed for a method.
const LINES: usize = 6;

#[derive(Template)]
#[template(path = "page.html")]
struct Page<'a> {
    policy: String,
    title: String,
    style: &'a str,
    script: &'a str,
    diff: &'a Report,
    /// The change of the reachable heap in bytes and objects; `None` if it did not change.
    changed: Option<(String, String)>,
    explained: Option<String>,
    /// The sentence about the owners of memory.
    owned: Option<String>,
    /// The sentence about the time to OutOfMemoryError.
    end: Option<String>,
    /// The hint how to get stacks in the next comparison, if this comparison has no stacks.
    next_time: Option<String>,
    answers: Vec<(&'a Suspect, Headline)>,
    layout: String,
    warnings: Vec<String>,
    cut: Vec<String>,
    more_classes: Option<String>,
    /// Tables of owners.
    sections: Vec<Section>,
    has_flame: bool,
    focus: Option<String>,
    /// The JSON report. It is escaped so that no name in it can end the `script` element.
    report: String,
    flame: String,
    sentences: String,
}

/// Replaces characters that could control a terminal or change the order of the text around them.
fn text(name: impl AsRef<str>) -> String {
    printable(name.as_ref()).into_owned()
}

/// Puts the scripts of a page into one function.
#[must_use]
pub fn wrapped(scripts: &[&str]) -> String {
    format!("(() => {{\n\"use strict\";\n{}}})();\n", scripts.concat())
}

/// Returns the first part of the script of each page with a flame graph.
#[must_use]
pub fn parts() -> String {
    base() + &FLAMES.concat()
}

/// Returns the first part of the script of each page.
fn base() -> String {
    let list = |name: &str, prefixes: Vec<&str>| {
        let prefixes = Value::from(prefixes).to_string().replace('<', "\\u003c");
        format!("const {name} = {prefixes};\n")
    };
    let added = heapdiff_diff::added_frameworks().collect();
    [
        list("JDK", packages::JDK.to_vec()),
        list("FRAMEWORKS", packages::FRAMEWORKS.to_vec()),
        list("ADDED_FRAMEWORKS", added),
        BASE.concat(),
    ]
    .concat()
}

/// Data of a flame graph. `tree` is the base64 form of the bytes from [`flame::Tree::encode`].
#[derive(Serialize)]
struct FlameData<'a> {
    names: Vec<&'a str>,
    places: Vec<String>,
    /// Index of the first class in `names`. All names before it are frames.
    first_class: usize,
    tree: String,
}

/// Writes the page.
///
/// # Errors
/// Returns an error if the stream fails.
pub fn render(report: &DiffReport, out: &mut dyn Write) -> io::Result<()> {
    let warnings = report.all_warnings().map(text).collect();
    let DiffReport {
        data: report,
        view,
        more,
    } = report;
    let has_more = !more.more_suspects.is_empty();
    let mut cut = Vec::new();
    if !more.known.is_empty() {
        let known = counted(more.known.len() as u64, "suspect");
        cut.push(format!("{known} left out as known growth."));
    }
    if has_more {
        cut.push("Suspects that grew less are not shown; --top N shows more.".to_owned());
    }
    let left_out = crate::explained::left_out(report);
    cut.extend(left_out.map(|parts| crate::capitalized(&parts)));
    let embedded = cut_to_budget(report, &mut cut);
    let (allocated, focus) = (view.allocated.as_ref(), view.focus.as_ref());
    let stacks = allocated.map(|a| Stacks::new(a, focus, Names::Functions));
    let flame = allocated.zip(stacks.as_ref());
    let flame =
        flame.map(|(allocated, stacks)| flame_data(allocated, stacks, FRAMES, GROWTH, &mut cut));
    let script = wrapped(&[&parts(), &SCRIPTS.concat()]);
    let page = Page {
        policy: policy(&script),
        title: format!("Heap growth: {}", crate::dumps(report)),
        style: STYLE,
        script: &script,
        diff: report,
        changed: match (report.delta.shallow_bytes, report.delta.objects) {
            (0, 0) => None,
            (bytes, objects) => Some((signed_size(bytes), signed(objects))),
        },
        next_time: crate::explained::next_time(report),
        more_classes: (more.more_classes > 0).then(|| more_classes(more.more_classes)),
        explained: crate::explained::sentence(report),
        owned: report
            .owners
            .as_ref()
            .map(|o| tables::owners_sentence(o).concat()),
        sections: report
            .owners
            .as_ref()
            .map_or_else(Vec::new, owners::sections),
        end: crate::outlook::of_dumps(report).map(|end| crate::capitalized(&end)),
        answers: crate::headlines(report).collect(),
        layout: report.snapshots.last().map(layout_of).unwrap_or_default(),
        warnings,
        cut,
        has_flame: flame.is_some(),
        focus: focus.map(|f| text(f.as_str())),
        sentences: json(&Sentences::new(report, &embedded, more))?,
        report: json(&embedded)?,
        flame: flame.unwrap_or_else(|| Ok("null".to_owned()))?,
    };
    let page = page.render().map_err(io::Error::other)?;
    out.write_all(page.as_bytes())
}

/// Returns the content security policy of a page: it loads nothing, and only the built-in script runs.
fn policy(script: &str) -> String {
    let hash = |text: &str| STANDARD.encode(Sha256::digest(text.as_bytes()));
    format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; img-src data:; \
         base-uri 'none'; form-action 'none'",
        hash(script),
        hash(STYLE)
    )
}

/// Returns JSON for a `script` element. Each `<` is escaped, so that no text can end the element or begin a comment.
fn json(data: &impl Serialize) -> io::Result<String> {
    Ok(serde_json::to_string(data)?.replace('<', "\\u003c"))
}

/// Returns the JVM, the object layout and the number of live samples of a dump.
fn layout_of(last: &SnapshotInfo) -> String {
    let mut text = crate::text::layout_line(last.jvm.as_deref(), &last.layout);
    if let Some(agent) = &last.agent {
        let _ = write!(text, "; {}", counted(agent.live_samples, "live sample"));
        if agent.interval_bytes > 0 {
            let (rate, first) = (Rate::Bytes(agent.interval_bytes), First::Same);
            let _ = write!(text, ", {}", Samples::Rate { rate, first });
        }
    }
    text
}

/// Estimates the size of a text in JSON, in bytes.
fn bytes(text: &str) -> usize {
    text.len() + 5 * text.matches(['<', '"', '\\']).count() + 3
}

fn suspect_bytes(suspect: &Suspect, stacks: usize) -> usize {
    let texts = |list: &[String]| list.iter().map(|t| bytes(t)).sum::<usize>();
    let own = bytes(&suspect.root) + bytes(&suspect.holder) + bytes(&suspect.class);
    let own = own + 2 * texts(&suspect.path) + texts(&suspect.reasons) + 60 * suspect.objects.len();
    let stacks = suspect.stacks.iter().take(stacks);
    let stacks = stacks.map(|s| texts(&s.frames) + bytes(&s.class) + texts(&s.threads) + 270);
    let allocated = suspect.allocated_at.iter();
    let allocated = allocated.map(|at| texts(&at.frames) + 100).sum::<usize>();
    let joined = 2 * suspect.joined.as_deref().map_or(0, bytes);
    let own = own + allocated + joined;
    let history = suspect.history.as_ref();
    let history = history.map_or(0, |h| 400 + 48 * h.series.time_ms.len());
    own + 800 + history + stacks.sum::<usize>()
}

/// Estimates the size of a class in JSON, in bytes. `dumps` is the number of dumps: the class has one figure of each
/// kind for each dump.
fn class_bytes(class: &str, loader: Option<&str>, dumps: usize) -> usize {
    bytes(class) + loader.map_or(4, bytes) + 70 + 36 * dumps
}

/// Returns the first items of a list whose sizes add up to at most `left` bytes.
fn first<T>(list: &[T], mut left: usize, size: impl Fn(&T) -> usize) -> &[T] {
    let fitting = list.iter().take_while(|item| {
        let needed = size(item);
        let room = left >= needed;
        left = left.saturating_sub(needed);
        room
    });
    &list[..fitting.count()]
}

/// Returns the sentence about items that are left out because the page has a maximum size; `None` if there are none.
/// `what` is the name of one item.
fn left_out(count: usize, what: &str) -> Option<String> {
    let what = (count > 0).then(|| counted(count as u64, what))?;
    Some(format!(
        "{what} at the end of the list left out, to keep this page small; the JSON report has all."
    ))
}

/// Cuts the report to the size limits. Stacks of suspects are cut before suspects. Adds a sentence to `cut` for each
/// list that was cut.
fn cut_to_budget(report: &Report, cut: &mut Vec<String>) -> Report {
    let fits = |stacks: usize| {
        let suspects = report.suspects.iter();
        suspects.map(|s| suspect_bytes(s, stacks)).sum::<usize>() <= SUSPECT_BYTES
    };
    let stacks = [50, 20, 10, 5, 3, 2, 1, 0]
        .into_iter()
        .find(|&n| fits(n))
        .unwrap_or(0);
    let suspects = first(&report.suspects, SUSPECT_BYTES, |s| {
        suspect_bytes(s, stacks)
    });
    let mut stacks_cut = 0;
    let suspects: Vec<Suspect> = suspects
        .iter()
        .map(|s| {
            let mut s = s.clone();
            stacks_cut += s.stacks.len().saturating_sub(stacks);
            s.stacks.truncate(stacks);
            s
        })
        .collect();
    let classes = first(&report.classes, CLASS_BYTES, |c| {
        class_bytes(&c.class, c.loader.as_deref(), c.objects.len())
    });
    let classes = classes.to_vec();
    for (count, what) in [
        (report.suspects.len() - suspects.len(), "suspect"),
        (stacks_cut, "stack"),
        (report.classes.len() - classes.len(), "class"),
    ] {
        cut.extend(left_out(count, what));
    }
    Report {
        schema: report.schema.clone(),
        snapshots: report.snapshots.clone(),
        comparable: report.comparable,
        warnings: report.warnings.clone(),
        delta: report.delta,
        oom: report.oom,
        heap_trend: report.heap_trend.clone(),
        explained_bytes: report.explained_bytes,
        noise_bytes: report.noise_bytes,
        classes,
        suspects,
        owners: report.owners.clone(),
        unreachable: report.unreachable.clone(),
        recordings: report.recordings.clone(),
        left_out: report.left_out.clone(),
    }
}

/// Words for the sentence about frames that were cut from a flame graph. The first text names the flame graph. The
/// second text follows the number of bytes of these frames.
const GROWTH: (&str, &str) = ("flame graph", "of growth");

/// Returns the data of a flame graph with at most `most` frames. If frames are cut or stacks were merged, adds a
/// sentence to `cut`.
fn flame_data(
    allocated: &Allocated,
    stacks: &Stacks,
    most: usize,
    (name, what): (&str, &str),
    cut: &mut Vec<String>,
) -> io::Result<String> {
    let tree = flame::Tree::new(stacks);
    let (tree, rest) = tree.pruned(most);
    if rest.frames > 0 {
        cut.push(format!(
            "The {name} shows the {} largest frames. {} smaller frames with {} {what} are not shown, but their \
             callers include them.",
            grouped(most as u64),
            grouped(rest.frames),
            Size(rest.grown),
        ));
    }
    let merged = format!("{} were merged.", counted(allocated.merged, "stack"));
    if allocated.merged > 0 && !cut.contains(&merged) {
        cut.push(merged);
    }
    let (encoded, names) = tree.encode();
    let lines = places(allocated);
    let is_class = |n: &&Step| matches!(n, Step::Class(_));
    let data = FlameData {
        first_class: names.iter().filter(|n| !is_class(n)).count(),
        places: names
            .iter()
            .map(|n| match n {
                Step::Frame(f) => lines.get(stacks.name(*f)).cloned().unwrap_or_default(),
                Step::Class(_) => String::new(),
            })
            .collect(),
        names: names
            .iter()
            .map(|n| match n {
                Step::Frame(f) => stacks.name(*f),
                Step::Class(c) => stacks.classes.get(*c as usize).map_or("", |c| c),
            })
            .collect(),
        tree: STANDARD.encode(encoded),
    };
    json(&data)
}

/// Returns the file and the line numbers of each method: `Foo.java:3, 42`.
fn places(allocated: &Allocated) -> BTreeMap<String, String> {
    let mut found: BTreeMap<String, (String, Vec<u32>)> = BTreeMap::new();
    for text in &allocated.frames {
        let frame = FrameParts::parse(text);
        let Some(file) = frame.file else {
            continue;
        };
        let place = found
            .entry(printable(frame.function).into_owned())
            .or_default();
        place.0 = printable(file).into_owned();
        place.1.extend(frame.line);
    }
    let texts = found.into_iter().map(|(function, (mut text, mut lines))| {
        lines.sort_unstable();
        lines.dedup();
        for (i, line) in lines.iter().take(LINES).enumerate() {
            let _ = write!(text, "{}{line}", if i == 0 { ":" } else { ", " });
        }
        if lines.len() > LINES {
            text.push_str(", …");
        }
        (function, text)
    });
    texts.collect()
}

#[cfg(test)]
mod tests {
    use heapdiff_diff::Verdict;

    use super::*;
    use crate::HEADLINES;
    use crate::synthetic::{HOSTILE, largest_page_report, report};
    use crate::tests::{allocated, diff_report, suspect};

    pub(super) fn rendered(report: &Report, allocated: Option<&Allocated>) -> String {
        let mut out = Vec::new();
        let mut report = diff_report(report.clone());
        report.view.allocated = allocated.cloned();
        render(&report, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    pub(super) fn embedded<'a>(page: &'a str, id: &str) -> &'a str {
        let start = format!("<script type=\"application/json\" id=\"{id}\">");
        let (_, rest) = page.split_once(&start).unwrap();
        rest.split_once("</script>").unwrap().0
    }

    #[test]
    fn hostile_names_stay_data() {
        let mut suspect = suspect(1, HOSTILE, Verdict::Leak, 4096);
        suspect.stacks[0].frames[0] = format!("{HOSTILE}(E.java:1)");
        let mut report = report(vec![suspect], 3);
        report.snapshots[0].path = format!("{HOSTILE}.hprof");
        let all = allocated(&[("a.Main.main", HOSTILE, [1, 5])]);
        let page = rendered(&report, Some(&all));
        assert_eq!(
            page.matches("<script").count(),
            4,
            "three of data, one that runs"
        );
        assert_eq!(page.matches("</script>").count(), 4);
        let json: serde_json::Value = serde_json::from_str(embedded(&page, "report")).unwrap();
        assert_eq!(
            json["suspects"][0]["holder"], HOSTILE,
            "names are as they are in JSON"
        );
        assert_eq!(
            json,
            serde_json::to_value(&report).unwrap(),
            "nothing was cut"
        );
        let flame: serde_json::Value = serde_json::from_str(embedded(&page, "flame")).unwrap();
        assert_eq!(flame["first_class"], 1);
        assert_eq!(page, rendered(&report, Some(&all)));
        // The page contains the name of an XML namespace, which looks like a URL. Nothing requests it.
        let addresses = page.replace("http://www.w3.org/2000/svg", "");
        assert!(
            !addresses.contains("http://") && !addresses.contains("https://"),
            "it requests nothing"
        );
        assert_eq!(embedded(&rendered(&report, None), "flame"), "null");
    }

    #[test]
    fn a_report_is_unchanged_by_a_json_round_trip() {
        let report = report(vec![suspect(1, HOSTILE, Verdict::Leak, 4096)], 3);
        let text = serde_json::to_string(&report).unwrap();
        let back: Report = serde_json::from_str(&text).unwrap();
        assert_eq!(back, report);
        assert_eq!(rendered(&back, None), rendered(&report, None));
    }

    #[test]
    fn large_reports_are_truncated_with_a_note() {
        let (report, all) = largest_page_report(1000, 100_000);
        let page = rendered(&report, Some(&all));
        assert!(page.len() < 10_000_000, "{}", page.len());
        for said in [
            "stacks at the end of the list left out",
            "are not shown, but their callers include them",
        ] {
            assert!(page.contains(said), "{said}");
        }
        let json: serde_json::Value = serde_json::from_str(embedded(&page, "report")).unwrap();
        assert_eq!(json["suspects"].as_array().unwrap().len(), 1000);
    }

    #[test]
    fn omissions_and_assumptions_are_reported() {
        let all = allocated(&[("a.Main.main", "a.B", [1, 5])]);
        let plain = report(vec![suspect(1, "a.B.c", Verdict::Leak, 4096)], 3);
        let told = |report: &Report, known: usize, more_suspects: bool| {
            let mut out = Vec::new();
            let mut report = diff_report(report.clone());
            report.view.allocated = Some(all.clone());
            let one = || suspect(1, "a.B.c", Verdict::Leak, 4096);
            report.more.known = (0..known).map(|_| (one(), String::new())).collect();
            report.more.more_suspects.extend(more_suspects.then(one));
            render(&report, &mut out).unwrap();
            let page = String::from_utf8(out).unwrap();
            // Remove the page's script, which contains all the sentences that the test looks for on the page.
            page.split("<script>").next().unwrap().to_owned()
        };
        let mut sampled = plain.clone();
        let mut many = plain.clone();
        for snapshot in &mut sampled.snapshots {
            snapshot.agent = Some(heapdiff_diff::AgentInfo {
                interval_bytes: 65_536,
                live_samples: 4000,
                sites: 7,
                started_ms: 1,
                pid: 1,
            });
        }
        many.snapshots
            .iter_mut()
            .for_each(|s| s.layout.source = "a model".into());
        let base = told(&plain, 0, false);
        for (sentence, page) in [
            (
                "1 suspect left out as known growth.",
                told(&plain, 1, false),
            ),
            (
                "Suspects that grew less are not shown; --top N shows more.",
                told(&plain, 0, true),
            ),
            (
                "; 4,000 live samples, one sample every 64.0 KiB allocated",
                told(&sampled, 0, false),
            ),
            (
                "assumed object layout: references 4, headers 12",
                told(&many, 0, false),
            ),
        ] {
            assert!(page.contains(sentence), "{sentence}: {page}");
            assert!(!base.contains(sentence), "{sentence}: {base}");
        }
        for sentence in [
            "at the end of the list left out",
            "are not shown, but their callers include them",
        ] {
            assert!(!base.contains(sentence), "{sentence}: {base}");
        }
    }

    #[test]
    fn owners_have_their_tables() {
        let mut report: DiffReport = crate::synthetic::report(Vec::new(), 0).into();
        let owners = crate::text::owners::tests::report();
        report.data.owners = Some(owners.figures.clone());
        let mut out = Vec::new();
        render(&report, &mut out).unwrap();
        let page = String::from_utf8(out).unwrap();
        for part in [
            "com.acme grew by 1000 B; 2.4 KiB of 3.9 KiB have one owner, 1.5 KiB are shared</bdi>.",
            "<h2 id=\"owners-title\">Memory by package</h2>",
            "<h2 id=\"shared-title\">Shared memory</h2>",
            "<a href=\"#owned\">Owned classes</a>",
        ] {
            assert!(page.contains(part), "{part}");
        }
    }

    #[test]
    fn the_page_begins_with_the_first_suspects() {
        let answers = |suspects: Vec<Suspect>| -> Vec<String> {
            let page = rendered(&report(suspects, 3), None);
            let parts = page.split("<p class=\"answer\">").skip(1);
            let answers = parts.map(|part| part.split_once("</p>").unwrap().0.to_owned());
            answers.collect()
        };
        let mut first = suspect(1, "a.B.c", Verdict::Leak, 4096);
        first.growth.retained_bytes = 4096;
        let all = answers(vec![first.clone(); HEADLINES + 1]);
        assert_eq!(all.len(), HEADLINES);
        for part in ["leak</span>", "a.B.c holds", "+4.0 KiB", "allocated in"] {
            assert!(all[0].contains(part), "{part}: {}", all[0]);
        }
        first.stacks.clear();
        assert!(!answers(vec![first])[0].contains("allocated in"));
        assert!(answers(Vec::new()).is_empty());
    }

    #[test]
    fn places_are_named_by_method() {
        let all = allocated(&[("a.B.c(B.java:9) a.B.c(B.java:3) x(Native) y", "X", [1, 5])]);
        let places = places(&all);
        assert_eq!(places["a.B.c"], "B.java:3, 9");
        assert_eq!(places["x"], "Native");
        assert_eq!(places.len(), 2);
    }
}
