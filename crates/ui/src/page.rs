//! The embedded page. Its security policy allows only the embedded scripts, and connections only to this server.

use std::fmt::Write as _;

use askama::Template;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use heapdiff_report::html::{STYLE, parts, wrapped};
use sha2::{Digest, Sha256};

use crate::http::{Answer, Status};

/// The scripts of the page, which come after [`parts`]. Each script comes after the scripts that it needs.
const SCRIPTS: [&str; 6] = [
    include_str!("../assets/ask.js"),
    include_str!("../assets/chart.js"),
    include_str!("../assets/lines.js"),
    include_str!("../assets/moments.js"),
    include_str!("../assets/rates.js"),
    include_str!("../assets/live.js"),
];
const CHART_SCRIPT: &str = include_str!("../assets/uplot/uPlot.iife.min.js");
const CHART_STYLE: &str = include_str!("../assets/uplot/uPlot.min.css");
const OWN_STYLE: &str = include_str!("../assets/live.css");

#[derive(Template)]
#[template(path = "live.html")]
struct Live<'a> {
    style: &'a str,
    chart: &'a str,
    script: &'a str,
}

/// A document together with its content security policy.
pub(crate) struct Page {
    html: Vec<u8>,
    policy: String,
}

impl Page {
    pub(crate) fn answer(&self) -> Answer {
        Answer {
            status: Status::Ok,
            kind: "text/html; charset=utf-8",
            policy: self.policy.clone(),
            body: self.html.clone(),
        }
    }
}

/// Returns the page that draws traces.
pub(crate) fn live() -> Page {
    let style = [STYLE, CHART_STYLE, OWN_STYLE].concat();
    let script = wrapped(&[&parts(), &SCRIPTS.concat()]);
    let policy = format!(
        "default-src 'none'; script-src {} {}; style-src {}; connect-src 'self'; img-src data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        source(CHART_SCRIPT),
        source(&script),
        source(&style),
    );
    let page = Live {
        style: &style,
        chart: CHART_SCRIPT,
        script: &script,
    };
    // The template only joins strings, which cannot fail.
    let html = page.render().unwrap_or_else(|e| e.to_string()).into_bytes();
    Page { html, policy }
}

/// Returns a page with a document that contains a content security policy, such as a report. The header only adds that
/// no other page may show it in a frame.
pub(crate) fn whole(html: Vec<u8>) -> Page {
    Page {
        html,
        policy: "frame-ancestors 'none'".to_owned(),
    }
}

/// Returns a page without scripts, whose only form sends its input to this server.
pub(crate) fn without_scripts(html: Vec<u8>, style: &str) -> Page {
    let policy = format!(
        "default-src 'none'; style-src {}; img-src data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
        source(style)
    );
    Page { html, policy }
}

/// Returns the hash of a script or style as a source for a content security policy.
fn source(text: &str) -> String {
    format!(
        "'sha256-{}'",
        STANDARD.encode(Sha256::digest(text.as_bytes()))
    )
}

/// Returns a short hash of a string. It is the same on every machine.
pub(crate) fn digest(text: &str) -> String {
    let hash = Sha256::digest(text.as_bytes());
    hash.iter().take(8).fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}
