//! Tests pages that contain only a flame graph: they must show the same data as other formats of the same command.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use heapdiff_trace::synthetic::{self, SITES, Scene, SceneFrame, SceneSite};
use heapdiff_units::Size;
use serde_json::{Value, json};

use super::devtools::Browser;
use super::graph::Graph;
use super::live::HOSTILE;
use super::seen::{self, Axe};
use super::{ALONE, load, readable};
use heapdiff_lab::run::{Products, root, run};

/// A command that writes a page with stacks, and another command that reports the same total.
struct Case<'a> {
    name: &'a str,
    /// Arguments of the command, without the output format.
    args: &'a [&'a str],
    reverse: bool,
    /// A search text that occurs in the names of some frames.
    find: &'a str,
    /// A command whose JSON report contains the total, and the JSON pointer to the total.
    total: (&'a [&'a str], &'a str),
}

/// Checks all pages that contain only a flame graph. If a folder is given, keeps the pages and screenshots there.
pub(super) fn stacks(program: &Path, axe: &Axe, keep: Option<&Path>) -> Result<()> {
    let temporary = tempfile::tempdir()?;
    let folder = fs::canonicalize(keep.unwrap_or(temporary.path()))?;
    let built = Products::build_test_profile()?;
    let trace = temporary.path().join("trace.db");
    synthetic::write(&trace, &Scene::default())?;
    let trace = trace.to_str().context("a path")?;
    let file = |name: &str| root().join("testdata").join(name).display().to_string();
    let (dump, recording) = (file("sampled-after.hprof.gz"), file("recorded.jfr.gz"));
    let alive = ["sites", &*dump];
    let allocated = ["sites", &*dump, "--allocated"];
    let recorded = ["sites", &*recording, "--allocated"];
    let top = ["trace", "top", trace];
    let cases = [
        Case {
            name: "alive",
            args: &alive,
            reverse: false,
            find: "orders.book",
            total: (&alive, "/totals/estimated_bytes"),
        },
        Case {
            name: "allocated",
            args: &allocated,
            reverse: true,
            find: "java.util",
            total: (&allocated, "/totals/bytes"),
        },
        Case {
            name: "recorded",
            args: &recorded,
            reverse: false,
            find: "byte[]",
            total: (&recorded, "/totals/estimated_bytes"),
        },
        Case {
            name: "trace",
            args: &["trace", "flame", trace],
            reverse: false,
            find: "Handler",
            total: (&top, "/totals/allocated_bytes"),
        },
        Case {
            name: "trace-alive",
            args: &["trace", "flame", trace, "--live"],
            reverse: true,
            find: "Handler",
            total: (&top, "/totals/live_bytes"),
        },
    ];
    let mut browser = Browser::start(program)?;
    for case in &cases {
        println!("==> {}", case.name);
        let page = folder.join(format!("flame-{}.html", case.name));
        let file = [OsString::from("-o"), page.clone().into()];
        run(Command::new(built.heapdiff())
            .args(case.args)
            .args(case.reverse.then_some("--reverse"))
            .args(file))?;
        let lines = Lines::of(&built, case).context("collapsed stacks")?;
        load(&mut browser, &page)?;
        check(&mut browser, case, &lines).with_context(|| case.name.to_owned())?;
        browser.no_fault(&ALONE)?;
        if keep.is_some() {
            super::pictures(&mut browser, &page)?;
        }
    }
    hostile(&mut browser, &built, temporary.path()).context("hostile names")?;
    rows(&mut browser, &built, temporary.path()).context("rows")?;
    trunk(&mut browser, axe, &built, temporary.path()).context("shared frames")?;
    println!("the pages of flame graphs have no errors");
    Ok(())
}

/// Returns the standard output of a command.
fn printed(built: &Products, args: &[&str], format: &str) -> Result<String> {
    let mut command = Command::new(built.heapdiff());
    let command = command.args(args).args(["--format", format]);
    let done = command.output()?;
    ensure!(
        done.status.success(),
        "{command:?} ended with {}",
        done.status
    );
    Ok(String::from_utf8(done.stdout)?)
}

/// The stacks in the collapsed format of other tools: the frames of each stack, callers first, and its bytes.
struct Lines(Vec<(Vec<String>, u64)>);

impl Lines {
    fn of(built: &Products, case: &Case<'_>) -> Result<Self> {
        let text = printed(built, case.args, "collapsed")?;
        let mut lines = Vec::new();
        for line in text.lines() {
            let (stack, bytes) = line.rsplit_once(' ').context("a figure")?;
            let steps = stack.split(';').map(str::to_owned).collect();
            lines.push((steps, bytes.parse()?));
        }
        let all = Self(lines);
        let (command, place) = case.total;
        let json: Value = serde_json::from_str(&printed(built, command, "json")?)?;
        let told = json
            .pointer(place)
            .and_then(Value::as_u64)
            .context("a total")?;
        // The total includes the bytes of stacks without samples. The collapsed format does not contain these stacks.
        let others = json.pointer("/totals/other_stacks_bytes");
        let others = others.and_then(Value::as_u64).unwrap_or(0);
        // The bytes of each stack are rounded, so the sum may differ from the total by one byte for each stack.
        let (sum, stacks) = (all.sum(), all.0.len() as u64);
        ensure!(
            (sum + others).abs_diff(told) <= stacks,
            "the stacks have {sum} bytes and the other stacks {others}, but {place} has {told}"
        );
        Ok(all)
    }

    fn sum(&self) -> u64 {
        self.0.iter().map(|line| line.1).sum()
    }

    /// Returns the bytes of all stacks that contain `part` in the name of at least one frame.
    fn with(&self, part: &str) -> u64 {
        let part = part.to_lowercase();
        let fits = |steps: &[String]| steps.iter().any(|s| s.to_lowercase().contains(&part));
        let found = self.0.iter().filter(|(steps, _)| fits(steps));
        found.map(|line| line.1).sum()
    }

    /// Returns, for each frame in the second row, the fraction of the total bytes that it has. The largest fraction is
    /// first.
    fn shares(&self, callees_first: bool) -> Vec<f64> {
        let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
        for (steps, bytes) in &self.0 {
            let first = if callees_first {
                steps.last()
            } else {
                steps.first()
            };
            *sums.entry(first.map_or("", |s| s)).or_default() += bytes;
        }
        let all = self.sum() as f64;
        let mut shares: Vec<f64> = sums.values().map(|&bytes| bytes as f64 / all).collect();
        shares.sort_by(|a, b| b.total_cmp(a));
        shares
    }
}

fn check(browser: &mut Browser, case: &Case<'_>, lines: &Lines) -> Result<()> {
    const SAID: &str = "document.querySelector('#flame-graph .said').textContent";
    const FOUND: &str = "document.querySelector('#flame-graph .found').textContent";
    const ORDER: &str = "document.getElementById('order').value";
    browser.is_alone()?;
    let order = |callees_first| if callees_first { "callees" } else { "callers" };
    ensure!(
        browser.eval(ORDER)? == order(case.reverse),
        "the page opens with the wrong order of frames"
    );
    let total = Size(lines.sum());
    for callees_first in [case.reverse, !case.reverse] {
        browser.choose("order", order(callees_first))?;
        let mut graph = Graph {
            browser: &mut *browser,
            id: "flame-graph",
            field: "find-frame",
            find: case.find,
            is_estimated: false,
        };
        widths(&mut graph, &lines.shares(callees_first))
            .with_context(|| order(callees_first).to_owned())?;
        graph
            .check()
            .with_context(|| order(callees_first).to_owned())?;
        if !callees_first {
            graph.leaf().context("the end of a stack")?;
        }
        focus(browser)?;
        browser.key("Home")?;
        let told = browser.eval(SAID)?;
        let above = browser.eval("document.querySelector('#flame-graph .total').textContent")?;
        ensure!(
            told == format!("all stacks: {total}, 100.0 % of all")
                && above == format!("Total: {total}"),
            "the total is {total}, but the page shows {told}, {above}"
        );
        // A search finds the same stacks whether callers or callees are at the top.
        let found = lines.with(case.find);
        let share = 100.0 * found as f64 / lines.sum() as f64;
        let wanted = format!(" found, {}, {share:.1} % of all", Size(found));
        browser.search("find-frame", case.find)?;
        browser.wait(&format!("{FOUND}.endsWith('{wanted}')"))?;
        browser.search("find-frame", "no frame is called this")?;
        browser.wait(&format!("{FOUND} === 'nothing found'"))?;
        browser.key("Escape")?;
        browser.wait(&format!("{FOUND} === ''"))?;
    }
    reset(browser).context("the button")?;
    readable(browser)?;
    super::theme(browser, 1).context("the button for colours")
}

fn focus(browser: &mut Browser) -> Result<()> {
    browser.focus("document.querySelector('#flame-graph canvas')")
}

/// Checks that the widths of the frames in the second row of the graph match their shares of the bytes.
fn widths(graph: &mut Graph<'_>, shares: &[f64]) -> Result<()> {
    // There is a gap beside each frame. Very narrow frames are not drawn.
    const GAP: f64 = 0.003;
    let painted = graph.painted()?;
    let mut drawn: Vec<f64> = painted.iter().filter(|f| f.0 == 1).map(|f| f.2).collect();
    drawn.sort_by(|a, b| b.total_cmp(a));
    let wide = shares.iter().filter(|&&share| share > GAP).count();
    ensure!(
        drawn.len() >= wide && drawn.iter().zip(shares).all(|(a, b)| (a - b).abs() < GAP),
        "the widths are {drawn:?}, but the bytes are {shares:?}"
    );
    Ok(())
}

/// Checks that the reset button shows all stacks again, and that it is enabled only if a frame is zoomed.
fn reset(browser: &mut Browser) -> Result<()> {
    const BUTTON: &str = "document.getElementById('reset')";
    const ZOOM: &str = "(document.getElementById('flame-graph').dataset.zoom ?? 'all stacks')";
    ensure!(browser.eval(&format!("{BUTTON}.disabled"))? == true);
    focus(browser)?;
    for key in ["ArrowDown", "ArrowDown", "Enter"] {
        browser.key(key)?;
    }
    browser.wait(&format!("!{BUTTON}.disabled && {ZOOM} !== 'all stacks'"))?;
    browser.focus(BUTTON)?;
    browser.key("Enter")?;
    browser.wait(&format!("{BUTTON}.disabled && {ZOOM} === 'all stacks'"))?;
    Ok(())
}

/// Maximum number of drawn rows. The second constant is the maximum number of rows that are drawn above a zoomed frame.
const MOST_ROWS: usize = 400;
const MOST_ABOVE: usize = 200;

/// Checks that the page reports omitted rows if, and only if, some rows are omitted.
fn rows(browser: &mut Browser, built: &Products, folder: &Path) -> Result<()> {
    const DATA: &str = "document.getElementById('flame-graph').dataset";
    let told = format!(
        "[...document.querySelectorAll('#flame-graph p')].some((p) => p.checkVisibility() && \
         p.textContent === 'Only {MOST_ROWS} rows are drawn; zoom into a frame to see what is below it.')"
    );
    let methods: Vec<String> = (0..MOST_ROWS).map(|n| format!("m{n}")).collect();
    let frames: Vec<_> = methods.iter().map(|m| ("a.A", &**m, "A.java", 1)).collect();
    // The first row of the graph shows all stacks, and the last row shows the class.
    for (depth, is_cut) in [(MOST_ROWS - 2, false), (MOST_ROWS - 1, true)] {
        let page = format!("deep-{depth}");
        let frames = frames.get(..depth).context("frames")?;
        let page = made(built, folder, &page, "byte[]", frames)?;
        load(browser, &page)?;
        // The page at first shows only the last frame and the class. All other frames are drawn as one bar.
        browser.wait(&format!("{DATA}.drawn === '4'"))?;
        focus(browser)?;
        for key in ["ArrowDown", "Enter"] {
            browser.key(key)?;
        }
        let whole = format!("{DATA}.drawn === '{MOST_ROWS}' && ({told}) === {is_cut}");
        browser.wait(&whole)?;
        // The page still shows the rows above the zoomed frame, but at most `MOST_ABOVE` of them.
        browser.key("Home")?;
        for (down, folded) in [(MOST_ABOVE, 0), (20, 20)] {
            for _ in 0..down {
                browser.key("ArrowDown")?;
            }
            browser.key("Enter")?;
            let rows = (depth + 2 - folded).min(MOST_ROWS);
            let said =
                format!("'{folded} frames between the first row and the second are not drawn.'");
            let told =
                format!("document.querySelector('#flame-graph').textContent.includes({said})");
            let wanted = format!("{DATA}.drawn === '{rows}' && {told} === {}", folded > 0);
            browser.wait(&wanted)?;
            let seen = "(() => { const top = document.querySelector('#flame-graph canvas').getBoundingClientRect().top; \
                 const y = top + 200 * 20; return y > 0 && y < innerHeight; })()";
            browser
                .wait(seen)
                .context("the zoomed frame is not visible")?;
        }
        browser.key("Escape")?;
        browser.wait(&format!("{DATA}.drawn === '4'"))?;
    }
    browser.no_fault(&ALONE)
}

/// Number of frames that the two stacks of [`trunk`] have in common.
const SHARED: usize = 58;
/// Number of frames of each of the two stacks.
const DEPTH: usize = 60;

/// Checks a page with two stacks of 60 frames with long names: the shared frames are one bar, which the keyboard
/// unfolds, and a tap shows the figures of a frame.
fn trunk(browser: &mut Browser, axe: &Axe, built: &Products, folder: &Path) -> Result<()> {
    const GRAPH: &str = "document.getElementById('flame-graph')";
    let classes: Vec<String> = (0..DEPTH)
        .map(|n| {
            format!(
                "com.acme.warehouse.reservation.ConfirmationNotificationServiceImplementation{n:02}"
            )
        })
        .collect();
    // The frames of a stack are listed innermost first.
    let stack = |leaf: &'static str| -> Vec<SceneFrame<'_>> {
        let shared = classes[..SHARED]
            .iter()
            .map(|c| (&**c, "confirm", "C.java", 7));
        let last = classes[SHARED..].iter().map(|c| (&**c, leaf, "C.java", 9));
        let mut frames: Vec<_> = shared.chain(last).collect();
        frames.reverse();
        // If a stack is too deep, a trace replaces its outer frames by a frame with this name.
        frames.push(("...", "", "", 0));
        frames
    };
    let (left, right) = (stack("load"), stack("store"));
    let site = |frames| SceneSite { frames, ..SITES[0] };
    let sites = [site(&left), site(&right)];
    let page = written(built, folder, "trunk", &sites)?;
    load(browser, &page)?;
    let said = format!("{GRAPH}.querySelector('.said').textContent");
    // The graph of frames draws ten bars. Four of them are for both stacks: all stacks, the frame that replaces the cut
    // outer frames, one bar for the folded frames, and the last shared frame. Each stack adds three bars: two frames
    // and a class.
    let folded = format!("{GRAPH}.dataset.drawn === '10'");
    browser.wait(&folded)?;
    focus(browser)?;
    browser.key("ArrowDown")?;
    browser.key("ArrowDown")?;
    let bar = format!("{} frames that all stacks share: ", SHARED - 1);
    browser.wait(&format!("{said}.startsWith('{bar}')"))?;
    browser.key("Enter")?;
    browser.wait(&format!("{GRAPH}.dataset.drawn === '{}'", 10 + SHARED - 2))?;
    browser.key("Escape")?;
    browser.wait(&folded)?;
    // The search finds the name of a frame, although the frame is folded.
    browser.search("find-frame", "Implementation00")?;
    browser.wait(&format!("{GRAPH}.dataset.matched === '1'"))?;
    browser.key("Escape")?;
    browser.wait(&format!("{GRAPH}.dataset.matched === undefined"))?;
    tap(browser).context("a tap")?;
    pointer(browser).context("the pointer")?;
    figures(browser).context("figures on bars")?;
    browser.eval("document.activeElement.blur()")?;
    seen::everywhere(browser, axe, "document.querySelector('.total')")?;
    browser.no_fault(&ALONE)
}

/// Checks that a tap on a frame shows its figures and does not zoom, and that a second tap zooms.
fn tap(browser: &mut Browser) -> Result<()> {
    const GRAPH: &str = "document.getElementById('flame-graph')";
    browser.eval(&format!(
        "{GRAPH}.querySelector('canvas').scrollIntoView({{block: 'center'}})"
    ))?;
    let side =
        |side: &str| format!("{GRAPH}.querySelector('canvas').getBoundingClientRect().{side}");
    let x = browser.number(&side("left"))? + 40.0;
    let scrolled = browser.number("scrollY")?;
    // Some browsers do not report the pointer type (mouse or touch) of a click. A tap must show the figures there, too.
    browser.eval(&format!(
        "{GRAPH}.querySelector('canvas').addEventListener('click', (event) => \
         Object.defineProperty(event, 'pointerType', {{value: undefined}}), {{capture: true}})"
    ))?;
    for zoom in [
        "all stacks",
        "ConfirmationNotificationServiceImplementation58.load",
    ] {
        let y = browser.number(&side("top"))? + 4.5 * 20.0;
        browser.tap(x, y)?;
        browser.wait(&format!(
            "(({GRAPH}.dataset.zoom ?? 'all stacks').endsWith('{zoom}')) && \
             /Implementation58.(load|store): .*iB, 50.0 % of all/.test({GRAPH}.querySelector('.said').textContent)"
        ))?;
        let now = browser.number("scrollY")?;
        ensure!(
            (now - scrolled).abs() < 1.0,
            "a tap scrolled from {scrolled} to {now}"
        );
    }
    focus(browser)?;
    browser.key("Escape")?;
    Ok(())
}

/// Checks the form of the mouse pointer. Over a frame on which a click does something, it must have the form for links.
/// Over other frames, it must have the default form.
fn pointer(browser: &mut Browser) -> Result<()> {
    const CANVAS: &str = "document.querySelector('#flame-graph canvas')";
    focus(browser)?;
    browser.key("Escape")?;
    browser.eval(&format!("{CANVAS}.scrollIntoView({{block: 'center'}})"))?;
    let side = |side: &str| format!("{CANVAS}.getBoundingClientRect().{side}");
    let x = browser.number(&side("left"))? + 40.0;
    // The first row shows all stacks, which are already selected and zoomed. So a click on this row does nothing.
    for (row, form) in [(0.5, "default"), (4.5, "pointer")] {
        let y = browser.number(&side("top"))? + row * 20.0;
        browser.mouse(x, y, false)?;
        browser
            .wait(&format!("getComputedStyle({CANVAS}).cursor === '{form}'"))
            .with_context(|| format!("row {row}"))?;
    }
    Ok(())
}

/// Checks that wide bars show their bytes.
fn figures(browser: &mut Browser) -> Result<()> {
    let missing = browser.eval(
        "(() => { const write = CanvasRenderingContext2D.prototype.fillText; const written = []; \
         CanvasRenderingContext2D.prototype.fillText = function (text) { written.push(text); }; \
         const canvas = document.querySelector('#flame-graph canvas'); \
         try { canvas.blur(); canvas.focus(); } finally { CanvasRenderingContext2D.prototype.fillText = write; } \
         canvas.blur(); canvas.focus(); \
         const total = document.querySelector('#flame-graph .total').textContent.replace('Total: ', ''); \
         return written.includes(total) ? '' : written.join('|'); })()",
    )?;
    ensure!(missing == "", "the bars show {missing}");
    Ok(())
}

/// Writes a page with a single stack, whose innermost frame allocates objects of a class.
fn made(
    built: &Products,
    folder: &Path,
    name: &str,
    class: &str,
    frames: &[SceneFrame<'_>],
) -> Result<PathBuf> {
    let site = SceneSite {
        class,
        frames,
        ..SITES[0]
    };
    written(built, folder, name, &[site])
}

/// Writes a page with the stacks of the given sites.
fn written(
    built: &Products,
    folder: &Path,
    name: &str,
    sites: &[SceneSite<'_>],
) -> Result<PathBuf> {
    let trace = folder.join(format!("{name}.db"));
    let page = folder.join(format!("{name}.html"));
    let scene = Scene {
        sites,
        ..Scene::default()
    };
    synthetic::write(&trace, &scene)?;
    let flame = ["trace", "flame"].map(OsString::from);
    let file = [trace.into(), OsString::from("-o"), page.clone().into()];
    run(Command::new(built.heapdiff()).args(flame).args(file))?;
    Ok(page)
}

/// Checks that names with HTML are shown as text.
fn hostile(browser: &mut Browser, built: &Products, folder: &Path) -> Result<()> {
    let frames = [(HOSTILE, HOSTILE, HOSTILE, 1)];
    let page = made(built, folder, "hostile", HOSTILE, &frames)?;
    load(browser, &page)?;
    focus(browser)?;
    for key in ["ArrowDown", "ArrowDown", "Enter"] {
        browser.key(key)?;
    }
    let shown = "document.getElementById('flame-graph').dataset.zoom";
    browser.wait(&format!("{shown} === {}", json!(HOSTILE)))?;
    browser.is_unharmed()?;
    browser.no_fault(&ALONE)
}
