//! What the agent says, on the standard error of the JVM that it is in.

use std::io::Write;

/// Writes one line to standard error. Where that is closed the line is lost.
pub(crate) fn say(text: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr().lock(), "heapdiff agent: {text}");
}

/// Has panics told in one line, as all else.
pub(crate) fn say_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let text = panic.to_string().replace('\n', " ");
        say(format_args!("internal error: {text}"));
    }));
}
