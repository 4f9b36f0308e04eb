//! Tests the pages of `heapdiff ui DUMP`: clicks from the start page to the holder of a planted leak.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use heapdiff_lab::run::{Products, root};
use serde_json::json;

use super::devtools::Browser;
use super::live::Ui;
use super::seen::{self, Axe};

/// Maximum number of clicks from the start page to the holder.
const CLICKS: usize = 6;
/// The class and the field that hold the leak. The second constant is the object in the field.
const HOLDER: [&str; 2] = ["com.acme.shop.SessionRegistry", "sessions"];
const MAP: &str = "0xfacab0b8";

/// Two ways from the start page to the holder, as labels of the links to click. The first way starts at the report's
/// suspect, the second one at the list of the largest objects.
const WAYS: [&[&str]; 2] = [
    &[
        "show com.acme.shop.SessionRegistry.sessions",
        MAP,
        "Paths from GC roots",
    ],
    &["Largest objects", "0xfacaaf78", MAP, "Paths from GC roots"],
];

pub(super) fn dump(program: &Path, axe: &Axe) -> Result<()> {
    println!("==> pages of dumps");
    let built = Products::build_test_profile()?;
    let dumps = ["before", "after"].map(|d| root().join(format!("testdata/{d}.hprof.gz")));
    let mut browser = Browser::start(program)?;
    let ui = Ui::start(&built, &dumps)?;
    for width in [1400, 400] {
        browser.resize(width, 900)?;
        for way in WAYS {
            ensure!(way.len() <= CLICKS, "{way:?} has too many clicks");
            walk(&mut browser, axe, &ui, way, width)
                .with_context(|| format!("{way:?} at {width} pixels"))?;
        }
    }
    browser.reset_size()?;
    for page in ["classes", "owners", "threads", "waste"] {
        browser.call("Page.navigate", json!({"url": format!("{}{page}", ui.url)}))?;
        browser
            .wait("document.readyState === 'complete' && !!document.querySelector('section')")?;
        seen::everywhere(&mut browser, axe, "document.querySelector('h1')")
            .with_context(|| page.to_owned())?;
    }
    ui.no_fault(&mut browser)?;
    println!("the pages of dumps have no errors");
    Ok(())
}

/// Clicks the links with these labels, and checks each page on the way. The last page must name the holder.
fn walk(browser: &mut Browser, axe: &Axe, ui: &Ui, way: &[&str], width: u32) -> Result<()> {
    browser.call("Page.navigate", json!({"url": ui.url}))?;
    browser.wait("document.readyState === 'complete' && !!document.querySelector('section')")?;
    for link in way {
        seen::fits(browser, width)?;
        axe.check(browser)?;
        browser.eval("window.left = true")?;
        let text = serde_json::to_string(link)?;
        let found = browser.eval(&format!(
            "(() => {{ const link = [...document.querySelectorAll('a')].find((a) => a.textContent === {text}); \
             link?.click(); return !!link; }})()"
        ))?;
        ensure!(found == true, "the page has no link {link}");
        browser.wait("!window.left && document.readyState === 'complete' && !!document.querySelector('section')")?;
    }
    let named = browser.eval(&format!(
        "{}.every((name) => document.querySelector('main section').textContent.includes(name))",
        serde_json::to_string(&HOLDER)?
    ))?;
    ensure!(named == true, "the last page does not name {HOLDER:?}");
    Ok(())
}
