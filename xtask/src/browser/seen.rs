//! Tests how a page looks on a wide screen, on a tablet, on a phone and on paper, in light and dark colours. Also
//! checks the accessibility rules of axe.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::devtools::Browser;
use heapdiff_lab::run::target_dir;
use heapdiff_lab::tools;

/// Tested widths of the window, and the height of a phone's screen, in pixels.
const WIDTHS: [u32; 3] = [1400, 700, 400];
const PHONE_HEIGHT: u32 = 800;
/// The width of a sheet of paper without its margins, in pixels. The second constant is the maximum number of printed
/// classes.
const PAPER: u32 = 720;
const PRINTED: f64 = 100.0;

/// The script of axe, which checks the accessibility of pages.
pub(super) struct Axe(String);

impl Axe {
    /// Installs the Python package that contains the script. Its dependencies are not needed and not installed.
    pub(super) fn ensure() -> Result<Self> {
        let packages = ["--no-deps", "axe-playwright-python==0.1.8"];
        let python = tools::ensure_python(&target_dir().join("axe"), &packages)?;
        let place = "import importlib.util as u; print(u.find_spec('axe_playwright_python').submodule_search_locations[0])";
        let said = Command::new(&python).args(["-c", place]).output()?;
        let folder = String::from_utf8(said.stdout)?;
        let file = format!("{}/axe.min.js", folder.trim());
        fs::read_to_string(&file).context(file).map(Self)
    }

    /// Ensures that the page, as it is shown now, violates no accessibility rule.
    pub(super) fn check(&self, browser: &mut Browser) -> Result<()> {
        browser.eval(&format!("{};0", self.0))?;
        // The result has a text for each violated rule: the rule, the number of elements that violate it, and the first
        // of these elements.
        let broken = browser.eval(
            "axe.run(document).then((found) => found.violations.map((v) => \
             `${v.id} (${v.nodes.length}): ${v.nodes[0].html.slice(0, 200)} ${v.nodes[0].failureSummary}`))",
        )?;
        ensure!(
            broken.as_array().is_some_and(Vec::is_empty),
            "axe finds: {broken:#}"
        );
        Ok(())
    }
}

/// Checks a loaded page at all widths, on paper, and in both colour schemes. `answer` is the element with the main
/// result of the page.
pub(super) fn everywhere(browser: &mut Browser, axe: &Axe, answer: &str) -> Result<()> {
    for width in WIDTHS {
        browser.resize(width, PHONE_HEIGHT)?;
        browser.eval("scrollTo(0, 0)")?;
        fits(browser, width).with_context(|| format!("{width} pixels"))?;
        let above = format!("{answer}.getBoundingClientRect().bottom <= {PHONE_HEIGHT}");
        browser
            .wait(&above)
            .with_context(|| format!("{width} pixels: the answer is not visible at first"))?;
        for scheme in ["dark", "light"] {
            browser.prefer(scheme)?;
            axe.check(browser)
                .with_context(|| format!("{width} pixels, {scheme}"))?;
        }
    }
    paper(browser).context("on paper")?;
    browser.reset_size()
}

/// Ensures that nothing overflows the page.
pub(super) fn fits(browser: &mut Browser, width: u32) -> Result<()> {
    let fits = browser.wait(&format!("document.documentElement.scrollWidth <= {width}"));
    let beyond = browser.eval(&format!(
        "[...document.querySelectorAll('body *')].filter((e) => e.getBoundingClientRect().right > {width}) \
         .map((e) => `${{e.tagName}}#${{e.id}}.${{e.className}}`).slice(0, 12).join(' ')"
    ))?;
    fits.with_context(|| format!("the page is wider than the screen: {beyond}"))?;
    // If the content of some parts is too wide, it is cut off and the page itself stays narrow. An example is
    // `.suspect`, which has `content-visibility` in the style sheet. So these parts are checked separately.
    let cut = browser.eval(
        "[...document.querySelectorAll('section, .suspect, .details dd, .about')].filter((e) => e.checkVisibility() \
         && e.scrollWidth > e.clientWidth + 1).map((e) => `${e.tagName}#${e.id}.${e.className}`).slice(0, 12).join(' ')",
    )?;
    ensure!(cut == "", "names are cut off in {cut}");
    Ok(())
}

/// Ensures that the printed page is complete: no column is cut off or needs scrolling, and no control is printed.
pub(super) fn paper(browser: &mut Browser) -> Result<()> {
    const NAMES: &str = "[...document.querySelectorAll('main .name')].filter((e) => e.checkVisibility() && !e.closest('.said')).length";
    let names = browser.number(NAMES)?;
    browser.resize(PAPER, 1000)?;
    let media = |media: &str| json!({"media": media, "features": []});
    browser.call("Emulation.setEmulatedMedia", media("print"))?;
    browser.eval("dispatchEvent(new Event('beforeprint'))")?;
    fits(browser, PAPER)?;
    let cut = browser.eval(
        "[...document.querySelectorAll('main *')].filter((e) => e.checkVisibility() && e.tagName !== 'CANVAS' \
         && !e.closest('.chart') && getComputedStyle(e).overflowX !== 'visible' && e.scrollWidth > e.clientWidth + 1) \
         .map((e) => `${e.tagName}#${e.id}.${e.className}`).slice(0, 12).join(' ')",
    )?;
    ensure!(cut == "", "cut: {cut}");
    let controls = browser.eval(
        "[...document.querySelectorAll('select, input, nav')].filter((e) => e.checkVisibility()).length",
    )?;
    ensure!(controls == 0, "{controls} controls are printed");
    let printed = browser.number(NAMES)?;
    ensure!(printed >= names, "{printed} of {names} names are printed");
    let listed = browser.number(
        "JSON.parse(document.getElementById('report')?.textContent ?? '{\"classes\": []}').classes.length",
    )?;
    let told = browser.eval(
        "[...document.querySelectorAll('p')].some((p) => p.checkVisibility() && p.textContent.endsWith('more classes are not printed.'))",
    )?;
    ensure!(
        told == (listed > PRINTED),
        "{listed} classes: the page notes that some are not printed: {told}"
    );
    browser.eval("dispatchEvent(new Event('afterprint'))")?;
    browser.call("Emulation.setEmulatedMedia", media(""))?;
    Ok(())
}
