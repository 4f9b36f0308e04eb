//! Ends the run if a dump or an index changes while it is being read, because a report would be wrong.

use std::io::{self, IsTerminal, Write};

use hprof::bytes;

use crate::failure::{Exit, Failure};
use crate::interrupt;
use crate::messages;

/// Installs handlers that end the run with a message if a file becomes unreadable, because it was truncated or its disk
/// failed. A panic that a changed file caused also ends the run with that message.
pub(crate) fn watch() {
    // If installing the handler fails, an unreadable file ends the run by a signal.
    let _ = bytes::set_read_error_handler(|error| end(&error));
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| match bytes::changed_file() {
        Some(error) => end(&error),
        None => usual(panic),
    }));
}

/// Ends the run if a file changed while it was being read.
pub(crate) fn exit_if_changed() {
    if let Some(error) = bytes::changed_file() {
        end(&error);
    }
}

fn end(error: &hprof::Error) {
    // While this lock is held, no other thread creates or renames an output file.
    let _state = interrupt::remove_unfinished();
    let mut out = io::stderr();
    if out.is_terminal() {
        // Ignore errors: if standard error is closed, there is no other place for the message.
        let _ = write!(out, "\r\x1b[K");
    }
    messages::error(&Failure::changed(error));
    std::process::exit(Exit::Input as i32);
}
