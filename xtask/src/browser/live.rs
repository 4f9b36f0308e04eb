//! Tests the live view: a web service leaks, the agent writes its trace, and the page shows the trace at the same time.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use heapdiff_trace::synthetic::{self, LINES, SITES, Scene, SceneLine, SceneSite};
use serde_json::json;
use testdata::jvm::{Launch, Target};

use super::decode;
use super::devtools::Browser;
use super::graph::{self, Graph};
use super::seen::{self, Axe};
use heapdiff_lab::java;
use heapdiff_lab::run::Products;

/// The page must show the leak in its first line after at most this number of requests.
const REQUESTS: usize = 10;
/// JavaScript expression for the HTML element of the chart of live objects over time.
const GRAPH: &str = "document.getElementById('graph')";

/// A name that would run code if a page inserted it as HTML.
pub(super) const HOSTILE: &str =
    "<img src=x onerror=\"window.hacked=1\"><script>window.hacked=1</script>";

/// Tests the page of the live view. Saves a screenshot in a folder if one is given.
pub(super) fn live(
    program: &Path,
    axe: &Axe,
    agent: Option<&Path>,
    keep: Option<&Path>,
) -> Result<()> {
    println!("==> the live view");
    let built = Products::build_test_profile()?;
    let agent = agent.map_or_else(|| built.agent(), Path::to_owned);
    let folder = tempfile::tempdir()?;
    let mut browser = Browser::start(program)?;
    leak(&mut browser, axe, &built, &agent, folder.path(), keep).context("a leaking service")?;
    still(&mut browser, &built, folder.path()).context("a trace that has ended")?;
    hostile(&mut browser, &built, folder.path()).context("hostile names")?;
    println!("the live view has no errors");
    Ok(())
}

/// A running `heapdiff ui`. The process is ended when this is dropped.
pub(super) struct Ui {
    child: Child,
    pub(super) url: String,
}

impl Ui {
    pub(super) fn start(built: &Products, files: &[impl AsRef<OsStr>]) -> Result<Self> {
        let child = Command::new(built.heapdiff())
            .args(["ui", "--quiet"])
            .args(files)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut ui = Self {
            child,
            url: String::new(),
        };
        let out = ui.child.stdout.take().context("its output")?;
        BufReader::new(out).read_line(&mut ui.url)?;
        ui.url.truncate(ui.url.trim_end().len());
        ensure!(
            ui.url.starts_with("http://127.0.0.1:"),
            "the command printed an unexpected line: {:?}",
            ui.url
        );
        Ok(ui)
    }

    /// Ensures that the page threw no exception, logged no error, and sent no request to other servers.
    pub(super) fn no_fault(&self, browser: &mut Browser) -> Result<()> {
        browser.no_fault(&[&self.url, "data:", "about:"])
    }
}

impl Drop for Ui {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn open(browser: &mut Browser, ui: &Ui) -> Result<()> {
    browser.call("Page.navigate", json!({"url": ui.url}))?;
    browser.wait("document.documentElement?.dataset.ready !== undefined")?;
    Ok(())
}

/// Waits until the agent has created its trace, which it does on a separate thread.
fn written(built: &Products, trace: &Path) -> Result<()> {
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        let mut info = Command::new(built.heapdiff());
        let info = info.args(["trace", "info"]).arg(trace).output()?;
        if info.status.success() {
            return Ok(());
        }
        let why = String::from_utf8_lossy(&info.stderr);
        ensure!(Instant::now() < until, "the agent writes no trace: {why}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Tests a service that keeps a `byte[]` for each request. The page must show the leak within ten requests.
fn leak(
    browser: &mut Browser,
    axe: &Axe,
    built: &Products,
    agent: &Path,
    folder: &Path,
    keep: Option<&Path>,
) -> Result<()> {
    let trace = folder.join("heapster.db");
    let options = format!(
        "interval=64k,tick=200ms,service=heapster,count=on,trace={}",
        trace.display()
    );
    let jdk = java::ensure_jdk()?;
    let classes = jdk.compile(&testdata::programs::web())?;
    let mut service = Launch::class(&jdk, classes, "Heapster")
        .flags(["-XX:+UseSerialGC", "-Xmx96m", "-Xmn2m"])
        .agent(agent, &options)
        .start()?;
    let port: u16 = {
        let line = service.wait_line("LISTENING ")?;
        line.trim_start_matches("LISTENING ").trim().parse()?
    };
    written(built, &trace)?;
    let ui = Ui::start(built, &[&trace])?;
    open(browser, &ui)?;
    let begun = Instant::now();
    let top = format!("({GRAPH}.dataset.top ?? '')");
    let mut first = None;
    for n in 1..=REQUESTS {
        get(port)?;
        std::thread::sleep(Duration::from_millis(500));
        let shown = browser.eval(&top)?;
        let found = shown
            .as_str()
            .is_some_and(|s| s.starts_with("byte[] at Heapster$Interceptor.record("));
        match (found, first) {
            (true, None) => first = Some(n),
            (false, Some(_)) => first = None,
            _ => {}
        }
    }
    let first = match first {
        Some(first) => first,
        None => bail!(
            "after {REQUESTS} requests the leak is not the first line, which is {}",
            browser.eval(&top)?
        ),
    };
    let verdict = browser.eval(&format!(
        "[{GRAPH}.dataset.verdict, document.querySelector('#list tbody .taken').textContent].join()"
    ))?;
    let grows = ["leak,leak", "growth,growth", "unclear,unclear"];
    ensure!(
        verdict
            .as_str()
            .is_some_and(|v| grows.iter().any(|g| v.starts_with(g))),
        "the verdict of the first line is wrong: {verdict}"
    );
    let collections = browser.number(&format!("Number({GRAPH}.dataset.collections)"))?;
    ensure!(collections > 0.0, "the graph shows no mark for a GC");
    println!(
        "the leak became the first line at request {first}, {:?} after the page was opened, and after {collections} GCs",
        begun.elapsed()
    );
    browser.wait("document.getElementById('state').textContent === 'live'")?;
    stacks(browser).context("stacks")?;
    rows(browser).context("rows")?;
    window(browser).context("zoom")?;
    moments(browser).context("two moments")?;
    rates(browser).context("rates")?;
    seen::everywhere(browser, axe, "document.getElementById('answer')")?;
    ui.no_fault(browser)?;
    if let Some(keep) = keep {
        picture(browser, &keep.join("ui.png"))?;
    }
    super::theme(browser, 1).context("colours")?;
    ended(browser, service).context("the end")?;
    ui.no_fault(browser)?;
    drop(ui);
    browser.wait("document.getElementById('state').textContent === 'connection lost'")?;
    // Leave the page, because it requests data repeatedly as long as it is open.
    browser.call("Page.navigate", json!({"url": "about:blank"}))?;
    browser.events()?;
    Ok(())
}

/// Sends one request and reads the answer.
fn get(port: u16) -> Result<()> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    stream.write_all(b"GET /orders HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    ensure!(
        answer.starts_with("HTTP/1.1 200"),
        "the service answered with an error: {answer}"
    );
    Ok(())
}

fn focus(browser: &mut Browser, element: &str) -> Result<()> {
    browser.eval(&format!("{element}.scrollIntoView({{block: 'center'}})"))?;
    browser.focus(element)
}

/// Checks that the keyboard opens the stacks of the first line, both in the list and in the graph.
fn stacks(browser: &mut Browser) -> Result<()> {
    focus(browser, "document.querySelector('#list tbody button')")?;
    browser.key("Enter")?;
    browser.wait("Number(document.getElementById('flame').dataset.frames ?? 0) > 3")?;
    browser.wait("Number(document.querySelector('#flame-graph').dataset.drawn) > 3")?;
    let of = browser.eval("document.getElementById('stacks-of').textContent")?;
    ensure!(
        of.as_str()
            .is_some_and(|t| t.contains("Heapster$Interceptor.record")),
        "the page shows the stacks of the wrong line: {of}"
    );
    // The keys below request new stacks. When the stacks arrive, the page scrolls to them. So wait for the stacks
    // before the last key is pressed: a key that is pressed earlier has no visible effect.
    let shown = "document.querySelector('#flame-graph').dataset.seen";
    browser.eval(&format!("{shown} = 'yes'"))?;
    focus(browser, GRAPH)?;
    for key in ["ArrowDown", "Enter"] {
        browser.key(key)?;
    }
    let chosen = "document.querySelector('#list tr[aria-selected=true]')?.rowIndex === 2";
    browser.wait(chosen)?;
    browser.wait(&format!("{shown} === undefined"))?;
    browser.key("ArrowUp")?;
    Ok(())
}

/// Checks that a click anywhere on a row selects it and scrolls its stacks into view, and that later updates do not
/// scroll.
fn rows(browser: &mut Browser) -> Result<()> {
    let at = |what: &str, side: &str| {
        format!("document.querySelector('{what}').getBoundingClientRect().{side}")
    };
    let figure = "#list tbody tr:nth-child(1) td:nth-child(5)";
    browser.eval(&format!(
        "document.querySelector('{figure}').scrollIntoView({{block: 'center'}})"
    ))?;
    let x = browser.number(&at(figure, "left"))? + 5.0;
    let y = browser.number(&at(figure, "top"))? + 5.0;
    browser.eval("document.querySelector('#flame-graph').dataset.seen = 'yes'")?;
    browser.mouse(x, y, true)?;
    browser.wait("document.querySelector('#list tr[aria-selected=true]')?.rowIndex === 1")?;
    browser.wait("document.querySelector('#flame-graph').dataset.seen === undefined")?;
    browser.wait(&format!(
        "{} >= 0 && {} < innerHeight - 100",
        at("#flame canvas", "top"),
        at("#flame canvas", "top")
    ))?;
    // Give the row's button the focus, and scroll it out of sight.
    browser.eval("document.querySelector('#list tbody button').focus(); scrollTo(0, document.body.scrollHeight)")?;
    let before = browser.number("scrollY")?;
    let answers = "Number(document.documentElement.dataset.answers)";
    let more = browser.number(answers)? + 2.0;
    browser.wait(&format!("{answers} >= {more}"))?;
    let (after, focused) = (
        browser.number("scrollY")?,
        browser.eval("document.activeElement.closest('#list') !== null")?,
    );
    ensure!(focused == true, "the row's button lost the focus");
    ensure!(
        (after - before).abs() < 60.0,
        "the page scrolled from {before} to {after} without input"
    );
    Ok(())
}

/// Checks that the mouse selects a part of the time, and that the keyboard removes the selection.
fn window(browser: &mut Browser) -> Result<()> {
    focus(browser, GRAPH)?;
    let of =
        |side: &str| format!("{GRAPH}.querySelector('.u-over').getBoundingClientRect().{side}");
    let (left, width) = (browser.number(&of("left"))?, browser.number(&of("width"))?);
    let y = browser.number(&of("top"))? + 40.0;
    let span = format!("Number({GRAPH}.dataset.to) - Number({GRAPH}.dataset.from)");
    let whole = browser.number(&span)?;
    browser.drag((left + width * 0.4, y), (left + width * 0.8, y))?;
    browser.wait(&format!("{span} < {whole} * 0.6"))?;
    let zoomed = browser.number(&span)?;
    ensure!(
        browser.eval("document.getElementById('window').value")? == "fixed",
        "the page does not show that the window is zoomed"
    );
    focus(browser, GRAPH)?;
    browser.key("+")?;
    browser.wait(&format!("{span} < {zoomed} * 0.7"))?;
    browser.key("Escape")?;
    browser.wait(&format!("{span} >= {whole}"))?;
    Ok(())
}

/// Checks that the page shows the growth between two moments, which the test selects with the keyboard.
fn moments(browser: &mut Browser) -> Result<()> {
    focus(browser, GRAPH)?;
    for key in ["Home", "ArrowRight", "a", "End", "b"] {
        browser.key(key)?;
    }
    browser.wait("!document.getElementById('between').hidden")?;
    let row = "document.querySelector('#between tbody tr')";
    let text = browser.eval(&format!("{row}.textContent"))?;
    let named = text
        .as_str()
        .is_some_and(|t| t.contains("byte[]") && t.contains("Heapster$Interceptor.record"));
    ensure!(named, "the first row is wrong: {text}");
    Ok(())
}

/// Checks the counted allocation rates of code lines, also on a narrow screen, where nothing may overflow the page and
/// rows are cards.
fn rates(browser: &mut Browser) -> Result<()> {
    browser.wait("!document.getElementById('rates').hidden")?;
    browser.wait("document.querySelectorAll('#rates-list tbody tr').length > 0")?;
    let all = "document.getElementById('rates-list').textContent";
    browser.wait(&format!("{all}.includes('Heapster$Interceptor.record:')"))?;
    let are = browser.eval("document.getElementById('rates-are').textContent")?;
    let says = ["executed allocations", "count=jdk adds counters to them"];
    ensure!(
        are.as_str()
            .is_some_and(|are| says.iter().all(|s| are.contains(s))),
        "the note about the figures is wrong: {are}"
    );
    browser.resize(400, 800)?;
    browser.eval("document.getElementById('rates').scrollIntoView()")?;
    // Charts are redrawn only a moment after the page has become narrow, and `fits` waits for this.
    let fits = seen::fits(browser, 400);
    let cards = cards(browser);
    browser.reset_size()?;
    fits?;
    cards.context("cards")?;
    Ok(())
}

/// Checks that rows are cards on a narrow screen: each figure has its label, and nothing needs scrolling.
fn cards(browser: &mut Browser) -> Result<()> {
    let bare = browser.eval(
        "[...document.querySelectorAll('.cards tbody td')].filter((td) => td.checkVisibility() && td.dataset.label === undefined \
         || getComputedStyle(td.parentElement).display !== 'grid').map((td) => td.textContent).slice(0, 5)",
    )?;
    ensure!(
        bare.as_array().is_some_and(Vec::is_empty),
        "cells without a label: {bare}"
    );
    const BOXES: &str =
        "[...document.querySelectorAll('.jvms, .listed')].filter((e) => e.checkVisibility())";
    let boxes = browser.number(&format!("{BOXES}.length"))?;
    ensure!(boxes >= 3.0, "the page has only {boxes} tables");
    let scrolled = browser.eval(&format!(
        "{BOXES}.filter((e) => e.scrollWidth > e.clientWidth + 1).length"
    ))?;
    ensure!(scrolled == 0, "{scrolled} tables need scrolling");
    let said = browser.eval(
        "(() => { const cell = document.querySelector('#list tbody td.number'); \
         return getComputedStyle(cell, '::before').content; })()",
    )?;
    ensure!(
        said == "\"alive at the moment\"",
        "the label of a figure is {said}"
    );
    Ok(())
}

/// Checks that each button shows only the lines with its verdict, and all lines if it is pressed again.
fn pills(browser: &mut Browser) -> Result<()> {
    const PILLS: &str = "[...document.querySelectorAll('#pills button')]";
    const ROWS: &str = "[...document.querySelectorAll('#list tbody tr')]";
    let pills = browser.number(&format!("{PILLS}.length"))? as usize;
    ensure!(pills > 1, "there are lines of only {pills} verdict");
    for at in 0..pills {
        let pill = format!("{PILLS}[{at}]");
        for pressed in ["true", "false"] {
            focus(browser, &pill)?;
            browser.key("Enter")?;
            // With several verdicts, each button hides some lines and shows others.
            browser.wait(&format!(
                "{pill}.getAttribute('aria-pressed') === '{pressed}' && \
                 {ROWS}.some((r) => !r.hidden) && {ROWS}.some((r) => r.hidden) === {pressed} && {ROWS}.every((r) => \
                 r.hidden === ({pressed} && r.querySelector('[data-pill]').dataset.pill !== {pill}.dataset.pill))"
            ))?;
        }
    }
    Ok(())
}

/// Checks the page of a trace that does not change: the filter of the lines, the flame graph, and the colours of both
/// graphs.
fn still(browser: &mut Browser, built: &Products, folder: &Path) -> Result<()> {
    let trace = folder.join("still.db");
    synthetic::write(&trace, &Scene::default())?;
    let ui = Ui::start(built, &[&trace])?;
    open(browser, &ui)?;
    browser.wait("document.querySelectorAll('#list tbody tr').length > 2")?;
    pills(browser).context("the filter of the lines")?;
    focus(browser, "document.querySelector('#list tbody button')")?;
    browser.key("Enter")?;
    browser.wait("Number(document.getElementById('flame').dataset.frames ?? 0) > 3")?;
    browser.choose("flame-mode", "grown")?;
    let mut graph = Graph {
        browser,
        id: "flame-graph",
        field: "find-frame",
        find: "Interceptor",
        is_estimated: false,
    };
    graph.check().context("flame graph")?;
    graph.leaf().context("the end of a stack")?;
    recoloured(browser).context("the graph after the button for colours")?;
    ui.no_fault(browser)?;
    drop(ui);
    browser.call("Page.navigate", json!({"url": "about:blank"}))?;
    browser.events()?;
    Ok(())
}

/// Checks that the button for colours draws both graphs in the new colours.
fn recoloured(browser: &mut Browser) -> Result<()> {
    // The colour of each line that is drawn in the graph.
    browser.eval(&format!(
        "(() => {{ const stroke = CanvasRenderingContext2D.prototype.stroke; window.drawn = new Set(); \
         CanvasRenderingContext2D.prototype.stroke = function (...path) {{ \
         if ({GRAPH}.contains(this.canvas)) window.drawn.add(this.strokeStyle); return stroke.call(this, ...path); }}; }})()"
    ))?;
    const LINE: &str = "(() => { const probe = document.createElement('span'); probe.style.color = 'var(--edge)'; \
         document.body.append(probe); const context = document.createElement('canvas').getContext('2d'); \
         context.strokeStyle = getComputedStyle(probe).color; probe.remove(); return context.strokeStyle; })()";
    let mut colours = Vec::new();
    for _ in 0..2 {
        browser.eval("window.drawn.clear()")?;
        browser.focus("document.getElementById('theme')")?;
        browser.key("Enter")?;
        browser.wait(&format!("window.drawn.has({LINE})"))?;
        graph::has_colours(browser, 1)?;
        colours.push(browser.eval(LINE)?);
    }
    ensure!(colours[0] != colours[1], "the button changes no colour");
    Ok(())
}

/// Checks that the page reports the end of the service.
fn ended(browser: &mut Browser, service: Target) -> Result<()> {
    ensure!(service.finish()?, "the service failed");
    browser.wait("document.getElementById('state').textContent === 'finished'")?;
    Ok(())
}

/// Saves a screenshot of the top of the page, as in the README.
fn picture(browser: &mut Browser, file: &Path) -> Result<()> {
    let features = json!({"features": [{"name": "prefers-color-scheme", "value": "light"}]});
    browser.call("Emulation.setEmulatedMedia", features)?;
    browser.eval("scrollTo(0, 0); document.activeElement.blur()")?;
    std::thread::sleep(Duration::from_millis(800));
    let clip = json!({"x": 0, "y": 0, "width": 1285, "height": 932, "scale": 0.8});
    let taken = browser.call(
        "Page.captureScreenshot",
        json!({"clip": clip, "captureBeyondViewport": true}),
    )?;
    fs::write(file, decode(taken["data"].as_str().context("a picture")?)?)?;
    println!("{}", file.display());
    Ok(())
}

/// Checks that names with HTML are shown as text.
fn hostile(browser: &mut Browser, built: &Products, folder: &Path) -> Result<()> {
    let trace: PathBuf = folder.join("hostile.db");
    let site = SceneSite {
        class: HOSTILE,
        frames: &[(HOSTILE, HOSTILE, HOSTILE, 1)],
        ..SITES[0]
    };
    let scene = Scene {
        sites: &[site],
        ..Scene::default()
    };
    synthetic::write(&trace, &scene)?;
    let line = SceneLine {
        place: (HOSTILE, HOSTILE, 1),
        allocated: HOSTILE,
        ..LINES[0]
    };
    synthetic::count(&trace, &[line])?;
    let ui = Ui::start(built, &[&trace])?;
    open(browser, &ui)?;
    browser.wait("document.querySelectorAll('#rates-list tbody tr').length === 1")?;
    browser.choose("by", "site")?;
    browser.wait(&format!("({GRAPH}.dataset.top ?? '').includes(' at ')"))?;
    focus(browser, "document.querySelector('#list tbody button')")?;
    browser.key("Enter")?;
    browser.wait("Number(document.getElementById('flame').dataset.frames ?? 0) === 2")?;
    focus(browser, GRAPH)?;
    for key in ["Home", "a", "End", "b"] {
        browser.key(key)?;
    }
    browser.wait("!document.getElementById('between').hidden")?;
    let shown = browser.eval("document.querySelector('#list tbody .name').textContent")?;
    ensure!(shown == HOSTILE, "the name is shown incorrectly: {shown}");
    browser.is_unharmed()?;
    ui.no_fault(browser)?;
    drop(ui);
    browser.events()?;
    Ok(())
}
