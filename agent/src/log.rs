//! Messages of the agent, on the standard error of its JVM.

use std::io::Write;

/// Writes one line to standard error. If that is closed, the line is lost.
pub(crate) fn print_line(text: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr().lock(), "heapdiff agent: {text}");
}

/// Makes panics print one line, like all other messages.
pub(crate) fn set_panic_hook() {
    std::panic::set_hook(Box::new(|panic| {
        let text = panic.to_string().replace('\n', " ");
        print_line(format_args!("internal error: {text}"));
    }));
}
