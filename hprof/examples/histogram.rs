//! Prints the classes that use the most memory: `cargo run --example histogram -- DUMP`

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this program prints its results"
)]

use std::error::Error;
use std::path::PathBuf;

use hprof::answers::Histogram;
use hprof::{Options, Silent};

fn main() -> Result<(), Box<dyn Error>> {
    let path: PathBuf = std::env::args_os()
        .nth(1)
        .ok_or("usage: histogram DUMP")?
        .into();
    let histogram = Histogram::open(&path, &Options::default(), &Silent)?;
    for warning in histogram.warnings() {
        eprintln!("{warning}");
    }
    let classes = histogram.classes().iter().zip(histogram.totals());
    let mut lines: Vec<_> = classes
        .map(|((_, class), total)| (total.all, class))
        .collect();
    lines.sort_by_key(|(total, class)| (std::cmp::Reverse(total.bytes), class.name.clone()));
    println!("{:>12} {:>14}  class", "objects", "shallow bytes");
    for (total, class) in lines.into_iter().take(20) {
        println!("{:>12} {:>14}  {}", total.objects, total.bytes, class.name);
    }
    Ok(())
}
