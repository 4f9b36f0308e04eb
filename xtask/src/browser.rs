//! Tests the pages in a real browser: the HTML report, the flame graph pages, the pages of dumps and the live view. The
//! pages must need no network, and show the right data.

mod devtools;
mod dump;
mod graph;
mod live;
mod seen;
mod stacks;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde_json::{Value, json};

use devtools::Browser;
use graph::Graph;
use heapdiff_lab::run::{Products, root, run};
use heapdiff_lab::tools;

/// Maximum size of a page in bytes, however much data the page shows.
const MOST_BYTES: u64 = 10_000_000;
const MOST_TIME: Duration = Duration::from_secs(2);
/// Number of times that a page is loaded to measure the loading time. The median is used.
const LOADS: usize = 3;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The browser: Chromium or another one with its protocol [default: found, or installed]
    #[arg(long, value_name = "FILE")]
    browser: Option<PathBuf>,
    /// Keep the pages and screenshots of them in this new folder
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// The agent that records the trace for the live view [default: built]
    #[arg(long, value_name = "FILE")]
    agent: Option<PathBuf>,
    /// Test only the live view
    #[arg(long)]
    live: bool,
}

impl Options {
    /// Returns the options of the run in CI.
    pub(crate) const fn plain() -> Self {
        Self {
            browser: None,
            keep: None,
            agent: None,
            live: false,
        }
    }
}

/// Tests the pages that the options select.
pub(crate) fn browser(options: &Options) -> Result<()> {
    let program = match &options.browser {
        Some(program) => program.clone(),
        None => tools::ensure_chromium()?,
    };
    let axe = seen::Axe::ensure()?;
    if let Some(folder) = &options.keep {
        fs::create_dir(folder).with_context(|| format!("--keep {}", folder.display()))?;
    }
    if !options.live {
        dump::dump(&program, &axe)?;
        stacks::stacks(&program, &axe, options.keep.as_deref())?;
        reports(options, &program, &axe)?;
    }
    live::live(
        &program,
        &axe,
        options.agent.as_deref(),
        options.keep.as_deref(),
    )
}

/// Tests a real report, and a report of the largest possible size.
fn reports(options: &Options, program: &Path, axe: &seen::Axe) -> Result<()> {
    let temporary = tempfile::tempdir()?;
    let folder = options.keep.as_deref().unwrap_or(temporary.path());
    let folder = fs::canonicalize(folder)?;
    let page = |name: &str| folder.join(format!("{name}.html"));
    let (small, large) = (page("small"), page("large"));
    let dumps = ["before", "after"].map(|d| root().join(format!("testdata/sampled-{d}.hprof.gz")));
    let built = Products::build_test_profile()?;
    run(Command::new(built.heapdiff())
        .args(&dumps)
        .arg("-o")
        .arg(&small))?;
    run(Command::new(built.example("page"))
        .args(["1000", "100000"])
        .arg(&large))?;
    let mut browser = Browser::start(program)?;
    for (file, find, is_large) in [(&small, "Orders", false), (&large, "Handler3", true)] {
        println!("==> {}", file.file_name().unwrap_or_default().display());
        let bytes = fs::metadata(file)?.len();
        ensure!(bytes < MOST_BYTES, "the page is too large: {bytes} bytes");
        let mut times = Vec::new();
        for _ in 0..LOADS {
            times.push(load(&mut browser, file)?);
        }
        times.sort_unstable();
        println!("{bytes} bytes, usable after {times:?}");
        ensure!(
            times[LOADS / 2] < MOST_TIME,
            "the page takes too long to load: {times:?}"
        );
        let mut page = Page {
            browser: &mut browser,
            find,
            is_large,
        };
        page.check()?;
        readable(page.browser)?;
        theme(page.browser, 2)?;
        if options.keep.is_some() {
            load(page.browser, file)?;
            pictures(page.browser, file)?;
        }
        seen::paper(page.browser)?;
        page.browser.no_fault(&ALONE)?;
    }
    let (one, deep, deep_one) = (page("one"), page("deep"), page("deep-one"));
    run(Command::new(built.heapdiff())
        .arg(&dumps[1])
        .arg("-o")
        .arg(&one))?;
    run(Command::new(built.example("page")).args([&deep, &deep_one]))?;
    let (first, holder) = (
        "document.querySelector('.answer')",
        "document.querySelector('.suspect .what')",
    );
    for (file, answer) in [
        (&small, first),
        (&one, holder),
        (&deep, first),
        (&deep_one, holder),
    ] {
        load(&mut browser, file)?;
        browser
            .eval("document.querySelectorAll('.suspect').forEach((row) => (row.open = true))")?;
        seen::everywhere(&mut browser, axe, answer).with_context(|| file.display().to_string())?;
        browser.no_fault(&ALONE)?;
    }
    // The last page is the report of one dump.
    heap_page(&mut browser).context("names of one dump")?;
    load(&mut browser, &deep)?;
    deep_page(&mut browser).context("deep stacks")?;
    load(&mut browser, &one)?;
    readable(&mut browser)?;
    classes(&mut browser, false).context("classes of one dump")?;
    bars(&mut browser).context("what holds most")?;
    theme(&mut browser, 0).context("the colours of one dump")?;
    browser.no_fault(&ALONE)?;
    println!("the pages of reports have no errors");
    Ok(())
}

/// Loads a page without any network, and waits until it is drawn.
fn load(browser: &mut Browser, page: &Path) -> Result<Duration> {
    let cut_off =
        json!({"offline": true, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0});
    browser.call("Network.emulateNetworkConditions", cut_off)?;
    browser.call("Page.navigate", json!({"url": "about:blank"}))?;
    browser.no_fault(&ALONE)?;
    let start = Instant::now();
    let url = format!("file://{}", page.display());
    browser.call("Page.navigate", json!({"url": url}))?;
    browser.wait("document.documentElement?.dataset.ready !== undefined && document.readyState === 'complete'")?;
    // Set the timeout inside an animation frame: it then fires only after this frame was painted.
    browser.eval("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)))")?;
    Ok(start.elapsed())
}

/// True if the background of the page is bright.
const BRIGHT: &str = "(() => { const [r, g, b] = getComputedStyle(document.body)\
     .backgroundColor.match(/\\d+/g).map(Number); return r + g + b > 384; })()";

/// Checks the light and the dark colour scheme: the page follows the system's setting, and all text has enough
/// contrast.
fn readable(browser: &mut Browser) -> Result<()> {
    for (scheme, expected) in [("dark", false), ("light", true)] {
        browser.prefer(scheme)?;
        browser.wait(&format!("{BRIGHT} === {expected}"))?;
        let faint = browser.eval(FAINT)?;
        ensure!(
            faint.as_array().is_some_and(Vec::is_empty),
            "{scheme}: colours with too little contrast: {faint}"
        );
    }
    Ok(())
}

/// Returns texts whose contrast is below 4.5 to 1, the minimum of WCAG 2.2 for small text. Also returns the colours of
/// frames on which text has too little contrast. Disabled controls may have less contrast.
const FAINT: &str = "(() => { \
     const probe = document.createElement('span'); document.body.append(probe); \
     const rgb = (css) => css.match(/[\\d.]+/g).map(Number); \
     const named = (key) => { probe.style.color = `var(--${key})`; return rgb(getComputedStyle(probe).color); }; \
     const bright = (c) => { const [r, g, b] = c.map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); \
       return 0.2126 * r + 0.7152 * g + 0.0722 * b; }; \
     const contrast = (a, b) => { const [low, high] = [bright(a.slice(0, 3)), bright(b.slice(0, 3))].sort((x, y) => x - y); \
       return (high + 0.05) / (low + 0.05); }; \
     const faint = []; \
     const check = (what, a, b) => { const c = contrast(a, b); if (!(c >= 4.5)) faint.push(`${what} ${c.toFixed(2)}`); }; \
     const kinds = ['own', 'runtime', 'content', 'grew', 'shrank'].flatMap((kind) => [1, 2, 3].map((n) => `${kind}-${n}`)); \
     for (const key of ['root', 'match', ...kinds]) check(key, named('on-frame'), named(key)); \
     probe.remove(); \
     const behind = (node) => { for (; node; node = node.parentElement) { \
       const c = rgb(getComputedStyle(node).backgroundColor); if (c.length < 4 || c[3] === 1) return c; } return [255, 255, 255]; }; \
     for (const node of document.querySelectorAll('body *')) { \
       const own = [...node.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()); \
       if (!own || node.disabled || !node.checkVisibility() || node.closest('script, noscript, svg')) continue; \
       check(node.textContent.trim().slice(0, 40), rgb(getComputedStyle(node).color), behind(node)); } \
     return faint; })()";

/// The URL schemes that a page may use without network.
const ALONE: [&str; 4] = ["file:", "data:", "about:", "blob:"];

impl Browser {
    /// Ensures that the page threw no exception, logged no error, and requested only URLs that begin with one of
    /// `addresses`.
    fn no_fault(&mut self, addresses: &[&str]) -> Result<()> {
        for event in self.events()? {
            let params = &event["params"];
            let is_fault = match event["method"].as_str().unwrap_or_default() {
                "Runtime.exceptionThrown" => true,
                "Runtime.consoleAPICalled" => {
                    matches!(
                        params["type"].as_str(),
                        Some("error" | "warning" | "assert")
                    )
                }
                "Log.entryAdded" => {
                    matches!(params["entry"]["level"].as_str(), Some("error" | "warning"))
                }
                "Network.requestWillBeSent" => {
                    let url = params["request"]["url"].as_str().unwrap_or_default();
                    !addresses.iter().any(|s| url.starts_with(s))
                }
                _ => false,
            };
            ensure!(!is_fault, "the browser reported an error: {event}");
        }
        Ok(())
    }
}

struct Page<'a> {
    browser: &'a mut Browser,
    /// A search text that occurs in the names of some frames.
    find: &'a str,
    /// True if the report contains stacks whose live bytes decreased, and more classes than the table shows at once.
    is_large: bool,
}

impl Page<'_> {
    fn check(&mut self) -> Result<()> {
        self.browser.is_alone()?;
        self.suspects().context("suspects")?;
        let by_agent = "Boolean(JSON.parse(document.getElementById('report').textContent).snapshots.at(-1).agent)";
        let is_estimated = self.browser.eval(by_agent)? == true;
        let mut graph = Graph {
            browser: self.browser,
            id: "flame-graph",
            field: "find-frame",
            find: self.find,
            is_estimated,
        };
        graph.check().context("flame graph")?;
        graph.leaf().context("the end of a stack")?;
        self.modes().context("the status line of the flame graph")?;
        let mut graph = Graph {
            browser: self.browser,
            id: "held-graph",
            field: "find-holder",
            find: ".",
            is_estimated: false,
        };
        graph.check().context("icicle")?;
        classes(self.browser, self.is_large).context("classes")?;
        self.browser.is_unharmed()?;
        self.browser.no_fault(&ALONE)
    }

    fn suspects(&mut self) -> Result<()> {
        let rows = "[...document.querySelectorAll('.suspect')]";
        let all = self.browser.number(&format!("{rows}.length"))?;
        ensure!(all > 0.0, "there are none");
        // When the page is loaded, the details of the first suspect are open. The keyboard closes and opens them.
        for open in ["false", "true"] {
            self.browser
                .focus(&format!("{rows}[0].querySelector('summary')"))?;
            self.browser.key("Enter")?;
            self.browser.wait(&format!("{rows}[0].open === {open}"))?;
        }
        ensure!(
            self.browser
                .number(&format!("{rows}[0].querySelectorAll('.path li').length"))?
                > 0.0
        );
        ensure!(
            self.browser
                .number(&format!("{rows}[0].querySelectorAll('.stack').length"))?
                > 0.0
        );
        for at in 0..if all < 2.0 { 1 } else { 2 } {
            self.claims(at)?;
        }
        self.browser
            .search("find-suspect", "no suspect has this name")?;
        let none = "document.getElementById('no-suspects')";
        let told = format!(
            "!{none}.hidden && {none}.textContent === 'No suspect has a name that contains this.'"
        );
        self.browser
            .wait(&format!("{rows}.every((r) => r.hidden) && {told}"))?;
        self.browser.key("Escape")?;
        self.browser
            .wait(&format!("!{rows}[0].hidden && !({told})"))?;
        self.pills().context("pills")?;
        // At most 25 suspects are shown at first. A button shows all suspects.
        let shown = self
            .browser
            .number(&format!("{rows}.filter((r) => !r.hidden).length"))?;
        ensure!(
            shown == all.min(25.0),
            "{shown} of {all} suspects are shown at first"
        );
        if shown < all {
            self.browser
                .focus("document.querySelector('#suspect-list > button')")?;
            self.browser.key("Enter")?;
            self.browser
                .wait(&format!("{rows}.every((r) => !r.hidden)"))?;
        }
        Ok(())
    }

    /// Checks that each button shows only the suspects with its label, and all suspects if it is pressed again.
    fn pills(&mut self) -> Result<()> {
        const PILLS: &str = "[...document.querySelectorAll('#pills button')]";
        const SHOWN: &str = "[...document.querySelectorAll('.suspect')].filter((r) => !r.hidden)";
        let pills = self.browser.number(&format!("{PILLS}.length"))? as usize;
        ensure!(pills > 0, "there are none");
        let before = self.browser.number(&format!("{SHOWN}.length"))?;
        for at in 0..pills {
            let pill = format!("{PILLS}[{at}]");
            self.browser.focus(&pill)?;
            self.browser.key("Enter")?;
            self.browser.wait(&format!(
                "{pill}.getAttribute('aria-pressed') === 'true' && {SHOWN}.length > 0 && \
                 {PILLS}.filter((p) => p.getAttribute('aria-pressed') === 'true').length === 1 && \
                 {SHOWN}.length === Math.min(25, Number({pill}.textContent.split(' ').at(-1).replaceAll(',', ''))) && \
                 {SHOWN}.every((r) => [...r.querySelectorAll('[data-pill]')].some((l) => l.dataset.pill === {pill}.dataset.pill))"
            ))?;
        }
        // The last button and a search together can exclude all suspects.
        let last = format!("{PILLS}[{}]", pills - 1);
        self.browser
            .search("find-suspect", "no suspect has this name")?;
        self.browser.wait(&format!(
            "{SHOWN}.length === 0 && document.getElementById('no-suspects').innerText === \
             `No suspect with the label ${{{last}.dataset.pill}} has a name that contains this.`"
        ))?;
        self.browser.key("Escape")?;
        self.browser.wait(&format!("{SHOWN}.length > 0"))?;
        self.browser.focus(&last)?;
        self.browser.key("Enter")?;
        self.browser.wait(&format!(
            "{SHOWN}.length === {before} && {PILLS}.every((p) => p.getAttribute('aria-pressed') === 'false')"
        ))?;
        Ok(())
    }

    /// Ensures that the page shows a statement about a suspect only if the suspect's figures support it.
    fn claims(&mut self, at: u32) -> Result<()> {
        const CLAIMS: [(&str, &str); 5] = [
            (
                "not covered by samples",
                "s.coverage.unsampled_bytes > 0 && s.coverage.unsampled_bytes >= Math.floor(s.coverage.growth_bytes / 100)",
            ),
            (" growth, in ", "s.stacks.length > 0"),
            (
                "(no stack was recorded)",
                "s.stacks.some((stack) => !stack.frames.length)",
            ),
            (
                "the first data point, perhaps earlier",
                "Boolean(s.history?.began_ms) && !s.history.began_within",
            ),
            (
                "too few GCs for a rate",
                "Boolean(s.history) && !s.history.slope.ci95",
            ),
        ];
        let row = format!("document.querySelectorAll('.suspect')[{at}]");
        self.browser.eval(&format!("{row}.open = true"))?;
        self.browser
            .wait(&format!("{row}.querySelector('.details') !== null"))?;
        let suspect =
            format!("JSON.parse(document.getElementById('report').textContent).suspects[{at}]");
        for (claim, shown) in CLAIMS {
            let wanted = format!("((s) => {shown})({suspect})");
            let told = format!("{row}.textContent.includes('{claim}')");
            let (wanted, told) = (self.browser.eval(&wanted)?, self.browser.eval(&told)?);
            ensure!(
                told == wanted,
                "does suspect {at} show `{claim}`? {told}, but expected {wanted}"
            );
        }
        // The accessible label of the chart describes its content as text.
        let wanted = format!("Boolean({suspect}.history)");
        let told = format!(
            "Boolean({row}.querySelector('.details svg')?.getAttribute('aria-label').startsWith('Live bytes over time: '))"
        );
        let (wanted, told) = (self.browser.eval(&wanted)?, self.browser.eval(&told)?);
        ensure!(
            told == wanted,
            "does suspect {at} show its history? {told}, but expected {wanted}"
        );
        Ok(())
    }

    /// Checks the three modes of the flame graph: growth, shrinkage, live bytes.
    fn modes(&mut self) -> Result<()> {
        // Text on a canvas cannot be read from the page, so the test replaces the drawing functions with ones that
        // record the text.
        self.browser.eval(
            "(() => { const write = CanvasRenderingContext2D.prototype.fillText; window.written = []; \
             CanvasRenderingContext2D.prototype.fillText = function (text, ...at) { \
             window.written.push(text); return write.call(this, text, ...at); }; })()",
        )?;
        for mode in ["shrunk", "after", "grown"] {
            self.browser.eval("window.written = []")?;
            self.browser.choose("flame-mode", mode)?;
            let drawn = "Number(document.getElementById('flame-graph').dataset.drawn)";
            let any = mode != "shrunk" || self.is_large;
            let drawn = self.browser.number(drawn)?;
            ensure!(
                (drawn > 0.0) == any,
                "the page draws only {drawn} frames in the mode {mode}"
            );
            let told = self.browser.eval("window.written.includes('no data')")?;
            ensure!(told == !any, "{mode}: the page shows `no data`: {told}");
        }
        Ok(())
    }
}

/// Checks the table of classes: sorting, search and scrolling. `is_long` is true if the table must have a scroll bar.
fn classes(browser: &mut Browser, is_long: bool) -> Result<()> {
    let rows = "document.querySelectorAll('.room .row')";
    let shown = browser.number(&format!("{rows}.length"))?;
    ensure!(
        (1.0..200.0).contains(&shown),
        "the table has the wrong number of rows: {shown}"
    );
    let first = format!("{rows}[0].textContent");
    let mut orders = vec![browser.eval(&first)?];
    let heading = "document.querySelector('.head .class')";
    for sorted in ["ascending", "descending"] {
        browser.focus(&format!("{heading}.querySelector('button')"))?;
        browser.key("Enter")?;
        browser.wait(&format!(
            "{heading}.getAttribute('aria-sort') === '{sorted}'"
        ))?;
        orders.push(browser.eval(&first)?);
    }
    // At first, the classes are sorted by size. The first class can also be the first by name in one of the two orders,
    // ascending or descending, but not in both.
    ensure!(
        orders[1..].iter().any(|order| *order != orders[0]),
        "sorting does not change the order"
    );
    browser.search("find-class", "no class is called this")?;
    browser.wait(&format!("{rows}.length === 0"))?;
    browser.key("Escape")?;
    browser.wait(&format!("{rows}.length > 0"))?;
    // Scrolling replaces the rows of the table.
    let grid = "document.querySelector('.grid')";
    if is_long {
        let hidden = browser.number(&format!("{grid}.scrollHeight - {grid}.clientHeight"))?;
        ensure!(hidden > 1000.0, "the table has no room to scroll");
        let before = browser.eval(&first)?;
        browser.eval(&format!("{grid}.scrollTop = {grid}.scrollHeight / 2"))?;
        browser.wait(&format!("{first} !== {before}"))?;
    }
    Ok(())
}

/// Checks that the colours follow the system until the button is pressed, and that the page remembers the button.
/// `graphs` is the number of graphs on the page, which must change their colours, too.
pub(crate) fn theme(browser: &mut Browser, graphs: usize) -> Result<()> {
    const BUTTON: &str = "document.getElementById('theme')";
    for (scheme, is_bright) in [("light", true), ("dark", false)] {
        browser.prefer(scheme)?;
        browser.wait(&format!("{BRIGHT} === {is_bright}"))?;
        graph::has_colours(browser, graphs).context(scheme)?;
    }
    for is_bright in [true, false, true] {
        let to = if is_bright { "light" } else { "dark" };
        browser.wait(&format!(
            "{BUTTON}.getAttribute('aria-label') === 'Switch to {to} colours'"
        ))?;
        browser.focus(BUTTON)?;
        browser.key("Enter")?;
        browser.wait(&format!("{BRIGHT} === {is_bright}"))?;
        graph::has_colours(browser, graphs).with_context(|| format!("after the button: {to}"))?;
    }
    // The system prefers dark colours. After the stored choice is deleted, the page follows the system again.
    reloaded(browser, true)?;
    browser.eval("localStorage.clear()")?;
    reloaded(browser, false)
}

/// Ensures that the page is bright or dark after it is loaded again. The browser stores data with a delay, so this
/// takes several attempts.
fn reloaded(browser: &mut Browser, is_bright: bool) -> Result<()> {
    for _ in 0..10 {
        browser.eval("window.isOld = true")?;
        browser.call("Page.reload", json!({}))?;
        browser.wait(
            "window.isOld === undefined && document.documentElement?.dataset.ready !== undefined",
        )?;
        // A loaded page may run in another process of the browser, which does not have the setting of the system yet.
        browser.prefer("dark")?;
        if browser.eval(BRIGHT)? == is_bright {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    let state = browser.eval(
        "[localStorage.getItem('heapdiff-theme'), document.documentElement.dataset.theme, \
         matchMedia('(prefers-color-scheme: dark)').matches].join()",
    )?;
    bail!(
        "after it is loaded again, the page is bright: {}, stored: {state}",
        !is_bright
    )
}

/// Checks that the page of one dump has a bar for each holder, and that the bars are as wide as the shares of the heap.
fn bars(browser: &mut Browser) -> Result<()> {
    let wrong = browser.eval(
        "[...document.querySelectorAll('.suspect')].map((row) => { \
         const [all, part] = row.querySelectorAll('.weight rect'); \
         const share = 100 * part.getBoundingClientRect().width / all.getBoundingClientRect().width; \
         return [row.querySelector('.grown').textContent, share]; }) \
         .filter(([said, share]) => !(Math.abs(parseFloat(said.split(', ')[1]) - share) <= 0.5))",
    )?;
    ensure!(
        wrong.as_array().is_some_and(Vec::is_empty),
        "the bars have other widths: {wrong}"
    );
    let holders = browser.number("document.querySelectorAll('.suspect .weight').length")?;
    ensure!(holders > 0.0, "there are no holders");
    Ok(())
}

/// Checks the page of one dump with long names: the name of a `ThreadLocal`, and sentences about stacks.
fn heap_page(browser: &mut Browser) -> Result<()> {
    const PATH: &str = "document.querySelector('.suspect .path .holder').textContent";
    browser.is_alone()?;
    let held = browser.eval("document.querySelector('.suspect .what .name').textContent")?;
    let held = held.as_str().unwrap_or_default();
    let step = browser.eval(PATH)?;
    ensure!(
        held.ends_with(".CURRENT") && step == format!("ThreadLocal {held}"),
        "the step of the holder {held} is {step}"
    );
    let labels = browser
        .eval("[...document.querySelectorAll('.suspect dt')].map((label) => label.textContent)")?;
    for label in ["from", "sampled", "code"] {
        let has_label = |labels: &Vec<Value>| labels.iter().any(|l| l == label);
        ensure!(
            labels.as_array().is_some_and(has_label),
            "no sentence has the label `{label}`: {labels}"
        );
    }
    // For a stack without frames, the page shows a sentence, which must not look like a frame.
    let none = "[...document.querySelectorAll('.stack')].filter((s) => s.textContent.includes('(no stack was recorded)'))";
    ensure!(
        browser.eval(&format!("{none}.length"))? == 1
            && browser.eval(&format!("{none}[0].querySelectorAll('li').length"))? == 0,
        "the page shows a wrong stack in place of a missing one"
    );
    browser.is_unharmed()
}

/// Checks what a page reports about frames that occur in several stacks. In this page, all stacks that grew have some
/// frames in common, but the stack that shrank does not have these frames.
fn deep_page(browser: &mut Browser) -> Result<()> {
    const SAID: &str = "document.querySelector('#flame-graph .said').textContent";
    for (mode, whose) in [
        ("grown", "100.0 % of the bytes"),
        ("after", "88.9 % of the bytes"),
    ] {
        browser.choose("flame-mode", mode)?;
        browser.focus("document.querySelector('#flame-graph canvas')")?;
        for key in ["Home", "ArrowDown"] {
            browser.key(key)?;
        }
        let wanted = format!("57 frames that {whose} share: ");
        browser
            .wait(&format!("{SAID}.startsWith('{wanted}')"))
            .with_context(|| format!("{mode}: {:?}", browser.eval(SAID)))?;
    }
    // The second suspect has only stacks that allocated objects of its class, whether these objects are still alive or
    // not. The third suspect has no stacks, only a sentence.
    let of = |at: u32| format!("document.querySelectorAll('.suspect')[{at}]");
    for (at, parts) in [
        (1, ["4.9 KiB allocated, 3 samples", "sampled"]),
        (2, ["allocating code unknown: no matching sample", "code"]),
    ] {
        browser.eval(&format!("{}.open = true", of(at)))?;
        for part in parts {
            browser.wait(&format!("{}.textContent.includes('{part}')", of(at)))?;
        }
    }
    browser.no_fault(&ALONE)
}

/// Saves screenshots of the whole page, light and dark, beside its file.
fn pictures(browser: &mut Browser, file: &Path) -> Result<()> {
    for scheme in ["light", "dark"] {
        browser.prefer(scheme)?;
        let whole = json!({"captureBeyondViewport": true});
        let taken = browser.call("Page.captureScreenshot", whole)?;
        let picture = taken["data"].as_str().context("a picture")?;
        fs::write(
            file.with_extension(format!("{scheme}.png")),
            decode(picture)?,
        )?;
    }
    Ok(())
}

fn decode(base64: &str) -> Result<Vec<u8>> {
    use base64::Engine;
    match base64::engine::general_purpose::STANDARD.decode(base64) {
        Ok(bytes) => Ok(bytes),
        Err(e) => bail!("the picture: {e}"),
    }
}
