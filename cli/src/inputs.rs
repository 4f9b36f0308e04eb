//! Dumps and indexes that change while they are read: no report is made of them.

use std::io::{self, IsTerminal, Write};

use hprof::bytes;

use crate::failure::{Exit, Failure};
use crate::interrupt;
use crate::messages;

/// From now on a file that cannot be read any more, since it was cut or its disk failed, ends the run with a line
/// that says so, and so does one whose change made the reader panic.
pub(crate) fn watch() {
    // Without this such a file ends the run all the same, by a signal.
    let _ = bytes::on_lost_file(|error| end(&error));
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| match bytes::changed_file() {
        Some(error) => end(&error),
        None => usual(panic),
    }));
}

/// Ends the run when a file that was read has changed while it was.
pub(crate) fn end_if_changed() {
    if let Some(error) = bytes::changed_file() {
        end(&error);
    }
}

fn end(error: &hprof::Error) {
    // No file is begun or gets its name any more.
    let _state = interrupt::remove_unfinished();
    let mut out = io::stderr();
    if out.is_terminal() {
        // Nothing can be done about a standard error that is closed.
        let _ = write!(out, "\r\x1b[K");
    }
    messages::error(&Failure::changed(error));
    std::process::exit(Exit::Input as i32);
}
