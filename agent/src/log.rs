//! Messages of the agent, on the standard error of its JVM.

use std::io::Write;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// The importance of a message, the most important first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Level {
    /// The agent could not do what the user requested.
    Error,
    /// A result is incomplete, or the guard acts.
    Warn,
    /// The agent did what the user requested.
    #[default]
    Info,
    /// A decision of the agent, such as a larger sampling interval.
    Debug,
}

/// The least important level that is printed.
static LEAST: AtomicU8 = AtomicU8::new(Level::Info as u8);

/// Sets the least important level that is printed (agent option `log`).
pub(crate) fn set_level(least: Level) {
    LEAST.store(least as u8, Relaxed);
}

fn is_printed(level: Level) -> bool {
    level as u8 <= LEAST.load(Relaxed)
}

/// Writes one line to standard error, if messages of this level are printed. If standard error is closed, the line is
/// lost.
pub(crate) fn print_line(level: Level, text: impl std::fmt::Display) {
    if is_printed(level) {
        let _ = writeln!(std::io::stderr().lock(), "heapdiff agent: {text}");
    }
}

/// Makes panics print one line, like all other messages.
pub(crate) fn set_panic_hook() {
    std::panic::set_hook(Box::new(|panic| {
        let text = panic.to_string().replace('\n', " ");
        print_line(Level::Error, format_args!("internal error: {text}"));
    }));
}
