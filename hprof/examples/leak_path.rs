//! Prints what keeps objects alive: their shortest paths from GC roots.
//! `cargo run --example leak_path -- DUMP com.acme.Order`

#![allow(clippy::print_stdout, reason = "this program prints its results")]

use std::error::Error;
use std::path::PathBuf;

use hprof::answers::{Merge, PathOptions, Selector};
use hprof::{Options, Silent, Snapshot};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(path), Some(selector)) = (args.next(), args.next()) else {
        return Err("usage: leak_path DUMP SELECTOR".into());
    };
    let selector: Selector = selector.parse()?;
    let snapshot = Snapshot::open(&PathBuf::from(path), &Options::default(), &Silent)?;
    let objects = snapshot.select(&selector)?;
    let paths = snapshot.paths(&objects, &PathOptions::default(), &Silent)?;
    let tree = paths.merged(&snapshot, Merge::Class, 20);
    for node in &tree.nodes {
        let indent = usize::try_from(node.depth)? * 2;
        let field = node
            .via
            .map_or_else(String::new, |via| snapshot.via_name(via) + ": ");
        println!(
            "{:indent$}{field}{} ({} of {})",
            "",
            snapshot.name(node.object),
            node.targets,
            objects.len()
        );
    }
    Ok(())
}
