//! A page as large as one has to bear: `cargo run --example page -- SUSPECTS STACKS FILE`.

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};

use heapdiff_report::html::{self, Context};
use heapdiff_report::synthetic;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [suspects, stacks, file] = &args[..] else {
        return Err("usage: page SUSPECTS STACKS FILE".into());
    };
    let (report, allocated) = synthetic::large(suspects.parse()?, stacks.parse()?);
    let context = Context {
        allocated: Some(&allocated),
        ..Context::default()
    };
    let mut out = BufWriter::new(File::create(file)?);
    html::render(&report, &context, &mut out)?;
    out.flush()?;
    Ok(())
}
