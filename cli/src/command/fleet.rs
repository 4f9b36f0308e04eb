//! `heapdiff fleet`: traces and reports of many JVMs, for a company's own engine.

use std::io::{self, Write};

use heapdiff_fleet::FleetError;

use crate::failure::{Exit, Failure, Result};
use crate::job::Fleet;

/// Adds one input after the other. The first that cannot be added ends it; those before it stay.
pub(crate) fn run(fleet: &Fleet) -> Result<Exit> {
    for input in &fleet.inputs {
        let added = heapdiff_fleet::add(input, &fleet.folder, &fleet.labels).map_err(failure)?;
        if added.odd > 0 {
            let mut stderr = io::stderr().lock();
            let _ = writeln!(
                stderr,
                "warning: {}: {} impossible figures were replaced by 0; the trace may be damaged",
                input.display(),
                added.odd
            );
        }
        if !fleet.quiet {
            let (rows, files) = (added.rows, added.files.len());
            let plural = if files == 1 { "" } else { "s" };
            // A closed pipe is no reason to stop adding.
            let _ = writeln!(
                io::stdout().lock(),
                "{}: added {rows} rows in {files} file{plural} to {}",
                input.display(),
                fleet.folder.display()
            );
        }
    }
    Ok(Exit::Done)
}

fn failure(error: FleetError) -> Failure {
    let exit = match error {
        FleetError::Write { .. } => Exit::Usage,
        _ => Exit::Input,
    };
    Failure {
        exit,
        message: error.to_string(),
        hint: None,
    }
}
