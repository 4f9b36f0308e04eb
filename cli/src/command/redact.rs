//! `heapdiff redact`: a dump without its contents, in a file of its own.

use std::io::{self, Write};

use hprof::Source;
use hprof::bytes::GzipBlocks;
use hprof::redaction::{Redacted, Redaction, Rules};

use crate::failure::{Exit, Failure, Result};
use crate::interrupt;
use crate::job::{Place, Redact};
use crate::messages;
use crate::progress::Meter;
use crate::write;

pub(crate) fn run(job: &Redact) -> Result<Exit> {
    interrupt::handle();
    let meter = Meter::new(job.progress, &job.dump);
    let input = |e| Failure::input(&job.dump, &e);
    let source = Source::open(&job.dump).map_err(input)?;
    let redaction = Redaction::of(&source, Rules::default()).map_err(input)?;
    let mut done = Redacted::default();
    let mut refused = false;
    let mut to = |out: &mut (dyn Write + Send)| {
        done = redaction.write(out, &meter)?;
        refused = job.strict && done.warnings.iter().any(|w| w.partial);
        // No file appears of a dump that is refused.
        match refused {
            true => Err(io::Error::other("the dump is damaged")),
            false => Ok(()),
        }
    };
    let (place, written) = match &job.to {
        Place::Stdout => (
            "standard output".to_owned(),
            to(&mut io::BufWriter::new(io::stdout())),
        ),
        Place::File { path, gzip: false } => (path.display().to_string(), write::replace(path, to)),
        Place::File { path, gzip: true } => {
            let written = write::replace(path, |out| {
                let mut blocks = GzipBlocks::new(out);
                to(&mut blocks)?;
                blocks.finish().map(drop)
            });
            (path.display().to_string(), written)
        }
    };
    drop(meter);
    match written {
        Err(_) if refused => return Err(Failure::refused(job.dump.display())),
        written => written.map_err(|e| write::failed(&place, &e))?,
    }
    messages::of_input(&job.dump, &done.warnings, job.progress);
    Ok(Exit::Done)
}
