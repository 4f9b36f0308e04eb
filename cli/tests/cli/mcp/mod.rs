//! Tests `heapdiff mcp` with a real server and a scripted assistant.

mod answers;
mod client;
mod faults;
mod progress;
mod transcript;

use std::path::Path;

pub(crate) const BEFORE: &str = "testdata/sampled-before.hprof.gz";
pub(crate) const AFTER: &str = "testdata/sampled-after.hprof.gz";
/// The two dumps of the example shop.
pub(crate) const SHOP: [&str; 2] = ["testdata/before.hprof.gz", "testdata/after.hprof.gz"];

/// Maximum bytes of an answer: 4,000 tokens of four bytes.
pub(crate) const MOST: usize = 16_000;

/// Returns a folder with the committed dumps.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    crate::support::prepare(folder.path());
    folder
}

/// Returns the length of the longest line that a server sent.
fn longest(client: &client::Client) -> usize {
    let received = client.log.iter().filter_map(|line| match line {
        client::Line::Received(line) => Some(line.len()),
        client::Line::Sent(_) => None,
    });
    received.max().unwrap_or(0)
}

fn has(folder: &Path, name: &str) -> bool {
    folder.join(name).exists()
}
