//! Progress on standard error: a bar on a terminal, lines elsewhere.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::Args;
use heapdiff_report::printable;
use heapdiff_units::{Size, Span, grouped};
use hprof::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::messages;
use crate::style::When;
use crate::watch::{self, Watch};

/// Progress and messages on standard error, as the user wants them.
#[derive(Clone, Copy, Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct Wanted {
    /// When to show progress on standard error
    #[arg(
        id = "progress",
        long,
        value_enum,
        value_name = "WHEN",
        default_value_t
    )]
    pub(crate) when: When,
    /// Print only errors to standard error: no progress, no warnings
    #[arg(short, long, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Print the time of each phase to standard error; in text, show all frames, stacks and the
    /// layout
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

/// Shows the progress of the work on one dump.
#[derive(Debug)]
pub(crate) struct Meter {
    bar: ProgressBar,
    lines: bool,
    quiet: bool,
    done: AtomicU64,
    phase: Mutex<Option<Phase>>,
    /// The time at which [`Self::classes`] last printed a line. Used only if there is no bar.
    printed: Mutex<Option<Instant>>,
    /// The follower that receives the progress messages, if there is one, and the name of the dump in these messages.
    watch: Option<(Arc<Watch>, String)>,
}

/// The remaining time is shown only when 1/20 of all classes is done, because earlier estimates would be too uncertain.
const FORESEEN: u64 = 20;
/// Minimum time between two lines that [`Meter::classes`] prints if there is no bar.
const LINES: Duration = Duration::from_secs(5);

#[derive(Debug)]
struct Phase {
    name: &'static str,
    total: u64,
    start: Instant,
}

impl Meter {
    /// Creates a meter for the work on `dump`.
    pub(crate) fn new(wanted: Wanted, dump: &Path) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let shown = match wanted.when {
            When::Always => true,
            When::Never => false,
            When::Auto => terminal && !wanted.quiet,
        };
        let target = if shown && terminal && !wanted.verbose {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(None, target);
        let name = dump.file_name().unwrap_or(dump.as_os_str());
        let name = name.to_string_lossy();
        let watch = watch::current().map(|watch| (watch, printable(&name).into_owned()));
        if !bar.is_hidden() {
            // The text that is shown before the first phase begins. At that time, a gzipped dump is decompressed.
            bar.set_style(style(0));
            bar.set_message("opening");
            bar.set_prefix(name.into_owned());
            bar.enable_steady_tick(Duration::from_millis(100));
        }
        Self {
            lines: wanted.verbose || (shown && !terminal),
            quiet: wanted.quiet,
            bar,
            done: AtomicU64::new(0),
            phase: Mutex::new(None),
            printed: Mutex::new(None),
            watch,
        }
    }

    /// Starts a phase whose amount of work is not known.
    pub(crate) fn begin_unbounded_phase(&self, name: &'static str) {
        self.phase(name, 0);
        self.set_template("{prefix}: {msg} {spinner} {bytes:>10} {bytes_per_sec:>12} {elapsed}");
    }

    /// Shows that `bytes` bytes of this phase are done.
    pub(crate) fn set_done(&self, bytes: u64) {
        self.bar.set_position(bytes);
        if let Ok(mut phase) = self.phase.lock()
            && let Some(phase) = &mut *phase
        {
            phase.total = phase.total.max(bytes);
        }
    }

    /// Shows how many classes of a JVM have been changed. Estimates the remaining time from `spent`, the time that has
    /// passed. If there is no bar, prints a line at most once per [`LINES`].
    pub(crate) fn classes(&self, what: &str, (done, all): (u64, u64), spent: Duration) {
        let mut text = format!("{what}, {} of {}", grouped(done), grouped(all));
        if done * FORESEEN >= all {
            let left = spent.as_secs_f64() * all.saturating_sub(done) as f64 / done.max(1) as f64;
            text += &format!(", {} left", Span(Duration::from_secs(left.ceil() as u64)));
        }
        if !self.bar.is_hidden() {
            self.bar.set_length(all);
            self.bar.set_position(done);
            self.set_template("{prefix}: {msg} {bar:24}");
            self.bar.set_message(text);
            return;
        }
        let Ok(mut printed) = self.printed.lock() else {
            return;
        };
        if self.lines && printed.is_none_or(|printed| printed.elapsed() >= LINES) {
            *printed = Some(Instant::now());
            messages::print_done(&text);
        }
    }

    /// Shows a progress bar for a wait of the length `span`. `until` describes the end of the wait, such as `until the
    /// second dump`. If the bar is hidden, prints `message` once, unless the user wants no messages.
    pub(crate) fn countdown(&self, span: Span, until: &str, message: &str) {
        if self.bar.is_hidden() {
            if !self.quiet {
                let _ = writeln!(std::io::stderr(), "{message}");
            }
            return;
        }
        self.bar.set_length(millis(span.0));
        self.set_template("{prefix}: {bar:24} {elapsed} {msg}");
        self.bar.set_message(format!("of {span} {until}"));
    }

    /// Shows how much of a wait is over.
    pub(crate) fn waited(&self, time: Duration) {
        self.bar.set_position(millis(time));
    }

    /// Prints a message on its own line, above the bar.
    pub(crate) fn print_above_bar(&self, text: Option<String>) {
        if let (Some(text), false) = (text, self.quiet) {
            self.bar.suspend(|| messages::print_done(&text));
        }
    }

    fn set_template(&self, template: &str) {
        self.bar.set_style(styled(template));
    }

    fn change(&self, next: Option<Phase>) {
        let Ok(mut phase) = self.phase.lock() else {
            return;
        };
        if let (true, Some(last)) = (self.lines, &*phase) {
            let seconds = last.start.elapsed().as_secs_f64();
            let mut line = format!("heapdiff: {}: {seconds:.2} s", last.name);
            if last.total > 0 {
                let rate = Size((last.total as f64 / seconds.max(1e-3)) as u64);
                line += &format!(", {} at {rate}/s", Size(last.total));
            }
            // Ignore errors: if standard error is closed, there is no other place for the message.
            let _ = writeln!(std::io::stderr(), "{line}");
        }
        *phase = next;
    }
}

/// Returns the style of a bar if the amount of work is known, or of a spinner.
fn style(total: u64) -> ProgressStyle {
    let template = if total > 0 {
        "{prefix}: {msg} {bar:24} {bytes:>10} of {total_bytes} {bytes_per_sec:>12} {eta:>4}"
    } else {
        "{prefix}: {msg} {spinner} {elapsed}"
    };
    styled(template)
}

fn styled(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("=> ")
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Ends the last phase and removes the bar.
impl Drop for Meter {
    fn drop(&mut self) {
        self.change(None);
        self.bar.finish_and_clear();
    }
}

impl Progress for Meter {
    fn phase(&self, name: &'static str, total: u64) {
        self.done.store(0, Ordering::Relaxed);
        if let Some((watch, dump)) = &self.watch {
            watch.phase(dump, name);
        }
        self.change(Some(Phase {
            name,
            total,
            start: Instant::now(),
        }));
        if self.bar.is_hidden() {
            return;
        }
        self.bar.set_position(0);
        self.bar.set_length(total);
        self.bar.set_style(style(total));
        self.bar.set_message(name);
        self.bar.reset_elapsed();
        self.bar.reset_eta();
    }

    fn advance(&self, amount: u64) {
        let done = self.done.fetch_add(amount, Ordering::Relaxed) + amount;
        if !self.bar.is_hidden() {
            self.bar.set_position(done);
        }
        if let Some((watch, dump)) = &self.watch {
            // Release the lock on the current phase before the progress message is sent. Otherwise a client that reads
            // slowly would keep this lock held.
            let phase = {
                let phase = self.phase.lock().unwrap_or_else(PoisonError::into_inner);
                phase.as_ref().map(|phase| (phase.name, phase.total))
            };
            if let Some((name, total)) = phase {
                watch.report_done(dump, name, (done, total));
            }
        }
    }

    fn cancelled(&self) -> bool {
        let watch = self.watch.as_ref();
        watch.is_some_and(|(watch, _)| watch.is_cancelled())
    }
}
