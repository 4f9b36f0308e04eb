//! Prints the objects that retain the most memory: `cargo run --example biggest -- DUMP`

#![allow(clippy::print_stdout, reason = "this program prints its results")]

use std::error::Error;
use std::path::PathBuf;

use hprof::{Options, Silent, Snapshot};

fn main() -> Result<(), Box<dyn Error>> {
    let path: PathBuf = std::env::args_os()
        .nth(1)
        .ok_or("usage: biggest DUMP")?
        .into();
    let snapshot = Snapshot::open(&path, &Options::default(), &Silent)?;
    let tree = snapshot.tree();
    let mut nodes: Vec<_> = tree.nodes().collect();
    nodes.sort_by_key(|&node| (std::cmp::Reverse(tree.retained_bytes(node)), node));
    println!("{:>14} {:>10}  object", "retained bytes", "objects");
    for node in nodes.into_iter().take(20) {
        let Some(object) = tree.object(node) else {
            continue;
        };
        let (bytes, objects) = (tree.retained_bytes(node), tree.retained_objects(node));
        println!("{bytes:>14} {objects:>10}  {}", snapshot.name(object));
    }
    Ok(())
}
