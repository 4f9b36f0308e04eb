//! `heapdiff trace push`: sends live bytes by stack to a profile server.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use heapdiff_diff::Stack;
use heapdiff_push::{Endpoint, Header, Patience, PushError, Series, TlsFault, headers};
use heapdiff_report::pprof::{About, LiveSample, render_live};
use heapdiff_report::{printable, utc};
use heapdiff_trace::Trace;
use heapdiff_trace::read::{Amount, Run};
use heapdiff_units::{Size, Span, counted};

use super::by_site::BySite;
use super::read::{MOMENT_HELP, RunArgs, WindowArgs, file_of_run, frames, open_named};
use crate::args::NamesArgs;
use crate::args::labels::{label, labels};
use crate::command::history::key;
use crate::failure::{Exit, Failure, Result, system_message};
use crate::interrupt::{self, Wait};
use crate::merge::in_focus;
use crate::messages;
use crate::report_file::{self, ReportFile};

/// Maximum number of stacks in a profile, without the entry [`OTHERS`]. By default, servers accept at most 16,000
/// stacks and 4 MiB.
const STACKS: usize = 10_000;
/// The name of the entry into which all stacks beyond the maximum are merged.
const OTHERS: &str = "(other stacks)";
/// Maximum number of bytes of a label: half of what servers accept by default.
const LABEL: usize = 1024;

/// Environment variables for credentials. Credentials should not be on a command line, because every user of the
/// machine can read command lines.
const TOKEN: &str = "HEAPDIFF_PUSH_TOKEN";
const USER: &str = "HEAPDIFF_PUSH_USER";
/// Maximum number of bytes of a file with headers.
const MOST: u64 = 64 << 10;
const SHORTEST: Duration = Duration::from_secs(1);

const HELP: &str = "\
Examples:
  # send the latest live bytes once
  heapdiff trace push app.db http://localhost:4040
  # send the live bytes every 15 seconds until the JVM ends
  heapdiff trace push app.db http://localhost:4040 --every 15s

URL is the address of the server, with a path if it has one: http://localhost:4040. Profiles are
sent to its /push.v1.PusherService/Push, or to /ingest if that does not exist. To select one of
these two paths, give a URL that ends in this path.

Credentials: the environment variable HEAPDIFF_PUSH_TOKEN is sent as a bearer token. If
HEAPDIFF_PUSH_USER is set too, both are sent as user and password. Use --header for other headers,
for example 'X-Scope-OrgID: shop' for a tenant. @FILE reads headers from a file, one per line.";

#[derive(Debug, Args)]
#[command(after_help = HELP.to_owned() + MOMENT_HELP)]
pub(crate) struct Push {
    /// Trace that the agent wrote (agent option trace=FILE)
    trace: PathBuf,
    /// Address of the server
    url: String,
    /// Report on dumps of the same program (-o report.json): sets the label `holder` to the field
    /// that holds the allocated objects
    #[arg(long, value_name = "REPORT.json")]
    report: Option<PathBuf>,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    window: WindowArgs,
    #[command(flatten)]
    names: NamesArgs,
    /// Program name, as label `service_name` [default: agent option service, else the main class or
    /// jar]
    #[arg(long, value_name = "NAME")]
    service: Option<String>,
    /// Host name, as label `host` [default: from the trace]
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Additional label, such as zone=eu-1; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = label)]
    label: Vec<(String, String)>,
    /// Header to add to each request, or @FILE with one header per line; may be repeated
    #[arg(long, value_name = "NAME: VALUE")]
    header: Vec<String>,
    /// File of CA certificates (PEM) to trust instead of those of this machine
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,
    /// How long to wait for a response; temporary failures are tried four times
    #[arg(long, value_name = "TIME", default_value = "30s")]
    timeout: Span,
    /// Push again at this interval if the trace has grown, until its JVM ends
    #[arg(long, value_name = "TIME", conflicts_with = "until")]
    every: Option<Span>,
    /// Do not print what was pushed
    #[arg(short, long)]
    quiet: bool,
}

impl Push {
    /// Sends one profile. With `--every`, sends more profiles until the JVM ends or the user interrupts.
    pub(crate) fn run(&self) -> Result<Exit> {
        if self.timeout.0.is_zero() {
            return Err(Failure::usage("--timeout must be longer than 0s"));
        }
        if self.every.is_some_and(|every| every.0 < SHORTEST) {
            return Err(Failure::usage("--every must be at least 1s"));
        }
        labels(&self.label, &["holder", "host", "service_name"])?;
        let headers = self.headers()?;
        let mapping = self.names.read()?;
        interrupt::handle();
        let holders = match &self.report {
            Some(path) => Holders::read(path)?,
            None => Holders::default(),
        };
        let patience = Patience {
            answer: self.timeout.0,
            ..Patience::default()
        };
        let is_authorized = headers.iter().any(Header::is_authorization);
        let endpoint = Endpoint::new(&self.url, headers, self.cacert.as_deref(), patience);
        let mut endpoint = endpoint.map_err(|e| match e {
            PushError::Address { .. } | PushError::Authorities { .. } => {
                Failure::usage(e.to_string())
            }
            _ => server_failure(&e),
        })?;
        if !endpoint.is_private() && is_authorized {
            messages::warn(
                "credentials are sent unencrypted, because the address begins with http:",
            );
        }
        let Some(every) = self.every else {
            let trace = open_named(mapping.as_ref(), &self.trace)?;
            let profile = Profile::of(&trace, self, &holders)?;
            messages::mapping_of(mapping.as_ref(), self.quiet);
            profile.send(self, &mut endpoint)?;
            return Ok(Exit::Done);
        };
        let wait = Wait::start();
        let mut last = None;
        loop {
            let trace = open_named(mapping.as_ref(), &self.trace)?;
            let profile = Profile::of(&trace, self, &holders)?;
            let moment = Some(profile.run_and_time());
            if last != moment {
                match profile.send(self, &mut endpoint) {
                    Ok(()) if last.is_none() => {
                        messages::mapping_of(mapping.as_ref(), self.quiet);
                        last = moment;
                    }
                    Ok(()) => last = moment,
                    // The server accepted an earlier profile, so try this profile again later.
                    Err(Unsent::Now(error)) if last.is_some() => {
                        messages::warn(&format!("{error}; trying again"));
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            if last == moment && profile.run.ended_ms.is_some() {
                return Ok(Exit::Done);
            }
            drop(trace);
            if !wait.pause(every.0) {
                return Ok(Exit::Done);
            }
        }
    }

    /// Returns the headers from options, their files and the environment.
    fn headers(&self) -> Result<Vec<Header>> {
        let mut headers = headers_of(&self.header)?;
        headers.extend(header_from_environment()?);
        if headers.iter().filter(|h| h.is_authorization()).count() > 1 {
            let message = format!(
                "more than one Authorization header was given; use either {TOKEN} or --header"
            );
            return Err(Failure::usage(message));
        }
        Ok(headers)
    }
}

/// Returns the headers that the values of `--header` contain, and those in the files that the values name (`@FILE`).
pub(in crate::command) fn headers_of(given: &[String]) -> Result<Vec<Header>> {
    let mut headers = Vec::new();
    for text in given {
        match text.strip_prefix('@') {
            Some(path) => headers.extend(of_file(Path::new(path))?),
            None => headers.push(Header::parse(text, "--header").map_err(usage)?),
        }
    }
    Ok(headers)
}

fn usage(error: heapdiff_push::PushError) -> Failure {
    Failure::usage(error.to_string())
}

/// Reads the headers from a file.
fn of_file(path: &Path) -> Result<Vec<Header>> {
    let wrong = |why: &str| Failure::usage(format!("--header @{}: {why}", path.display()));
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(MOST).read_to_string(&mut text))
        .map_err(|e| wrong(&system_message(&e)))?;
    headers(&text, &path.display().to_string()).map_err(usage)
}

/// Returns the `Authorization` header with the credentials from the environment; `None` if the environment has no
/// credentials.
fn header_from_environment() -> Result<Option<Header>> {
    let value = |name: &str| match std::env::var(name) {
        Ok(value) if value.is_empty() => Ok(None),
        Ok(value) => Ok(Some(value)),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(_)) => {
            Err(Failure::usage(format!("{name} is not valid UTF-8")))
        }
    };
    match (value(USER)?, value(TOKEN)?) {
        (None, None) => Ok(None),
        (Some(_), None) => Err(Failure::usage(format!(
            "{USER} is set, but {TOKEN} is not; set both"
        ))),
        (user, Some(token)) => {
            let header = Header::authorization(user.as_deref(), &token, TOKEN);
            header.map(Some).map_err(usage)
        }
    }
}

/// The live bytes of a run at a moment, in the form that a server accepts.
struct Profile {
    run: Run,
    from_ms: u64,
    time_ms: u64,
    /// The stacks with the most bytes first. Equal stacks are merged. The entry [`OTHERS`], if there is one, is the
    /// last.
    stacks: Vec<(Alive, Amount)>,
    /// Number of stacks that were merged into the entry [`OTHERS`]; zero if there is no such entry.
    merged: usize,
    warnings: Vec<String>,
}

/// An allocation stack with the class it allocates and the holder of the objects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Alive {
    holder: Option<String>,
    /// The innermost frame first.
    frames: Vec<String>,
    class: String,
}

impl Profile {
    fn of(trace: &Trace, job: &Push, holders: &Holders) -> Result<Self> {
        let sites = BySite::read(trace, &job.run, &job.window)?;
        let focus = job.window.focus.as_ref();
        let mut merged: BTreeMap<Alive, Amount> = BTreeMap::new();
        for candidate in &sites.ranking.candidates {
            let amount = candidate.live.amount;
            let Some(site) = candidate.sites.first().filter(|_| amount.bytes > 0) else {
                continue;
            };
            let Some(shown) = in_focus(&sites.stacks, site, focus) else {
                continue;
            };
            let whole = site.stack.map(|stack| frames(&sites.stacks, stack));
            let holder = holders.of(&candidate.class, &whole.unwrap_or_default());
            let alive = Alive {
                holder: holder.map(str::to_owned),
                frames: shown.iter().map(|f| printable(f).into_owned()).collect(),
                class: printable(&candidate.class).into_owned(),
            };
            let sum = merged.entry(alive).or_default();
            *sum = sum.saturating_add(amount);
        }
        let mut warnings = file_of_run(trace, sites.run.id)?.warnings;
        if let Some(focus) = focus.filter(|_| merged.is_empty()) {
            warnings.push(format!("--focus {focus}: no stack frame matches"));
        }
        let mut stacks: Vec<(Alive, Amount)> = merged.into_iter().collect();
        // The sort is stable: entries of equal size stay in the order of their names.
        stacks.sort_by_key(|(_, amount)| std::cmp::Reverse(amount.bytes));
        let rest = stacks.split_off(stacks.len().min(STACKS));
        if !rest.is_empty() {
            let others = Alive {
                holder: None,
                frames: Vec::new(),
                class: OTHERS.to_owned(),
            };
            let amounts = rest.iter().map(|(_, amount)| *amount);
            stacks.push((
                others,
                amounts.fold(Amount::default(), Amount::saturating_add),
            ));
        }
        if !holders.is_empty() && stacks.iter().all(|(alive, _)| alive.holder.is_none()) {
            let path = job.report.as_deref().unwrap_or(Path::new("")).display();
            warnings.push(format!(
                "{path}: none of the stacks in this report occurs in the trace"
            ));
        }
        Ok(Self {
            from_ms: sites.from().0,
            time_ms: sites.to().0,
            run: sites.run,
            stacks,
            merged: rest.len(),
            warnings,
        })
    }

    /// Returns the id of the run and the time of this profile. Together, the two values distinguish this profile from
    /// other profiles of the same trace.
    fn run_and_time(&self) -> (i64, u64) {
        (self.run.id, self.time_ms)
    }

    /// Returns the sum of live bytes and objects over the stacks for which `such` returns true.
    fn sum(&self, such: impl Fn(&Alive) -> bool) -> Amount {
        let amounts = self.stacks.iter().filter(|(alive, _)| such(alive));
        amounts.fold(Amount::default(), |sum, (_, amount)| {
            sum.saturating_add(*amount)
        })
    }

    fn send(&self, job: &Push, endpoint: &mut Endpoint) -> Result<(), Unsent> {
        let run = &self.run;
        for warning in self.warnings.iter().filter(|_| !job.quiet) {
            messages::warn(warning);
        }
        if self.stacks.is_empty() {
            let path = job.trace.display();
            messages::warn(&format!(
                "{path}: nothing was pushed, because the trace has no live objects"
            ));
            return Ok(());
        }
        let samples: Vec<LiveSample<'_>> = self
            .stacks
            .iter()
            .map(|(alive, amount)| LiveSample {
                frames: alive.frames.iter().map(|f| &**f).collect(),
                class: &alive.class,
                holder: alive.holder.as_deref(),
                live: [amount.objects, amount.bytes],
            })
            .collect();
        let about = About {
            from_ms: self.from_ms,
            to_ms: self.time_ms,
            interval_bytes: run.interval_bytes,
            dumps: vec![format!("trace: {}", job.trace.display())],
            warnings: Vec::new(),
        };
        let mut profile = Vec::new();
        render_live(&samples, &about, &mut profile)
            .map_err(|e| Failure::usage(format!("cannot make a profile: {e}")))?;
        let program = || program(&run.command);
        let own = job.service.clone().or_else(|| run.service.clone());
        let service = cut(&own.unwrap_or_else(program));
        let host = job.host.as_deref().unwrap_or(&run.host);
        let mut labels = job.label.clone();
        if !host.is_empty() {
            labels.push(("host".to_owned(), cut(host)));
        }
        let series = Series {
            service: &service,
            labels: &labels,
            time_ms: self.time_ms,
            profile: &profile,
        };
        endpoint.push(&series)?;
        if !job.quiet {
            messages::print_done(&self.sent_message(
                &service,
                endpoint.address(),
                job.report.is_some(),
            ));
        }
        Ok(())
    }

    /// Returns the message about a profile that was sent.
    fn sent_message(&self, service: &str, to: &str, holders: bool) -> String {
        let all = self.sum(|_| true);
        let stacks = self.stacks.len() - usize::from(self.merged > 0) + self.merged;
        let mut told = format!(
            "pushed to {to} as {service}: {bytes} alive at {time} UTC, {objects} in {stacks}",
            bytes = Size(all.bytes),
            time = utc(self.time_ms),
            objects = counted(all.objects, "object"),
            stacks = counted(stacks as u64, "stack"),
        );
        if holders {
            let held = self.sum(|alive| alive.holder.is_some());
            told.push_str(&format!(
                "; the report shows the holder of {} of these bytes",
                Size(held.bytes)
            ));
        }
        if self.merged > 0 {
            let merged = counted(self.merged as u64, "stack");
            told.push_str(&format!(
                "; {merged} with few bytes were merged into {OTHERS}"
            ));
        }
        told
    }
}

/// Returns the main class or jar of a command. Arguments are left out, because they may be secret.
fn program(command: &str) -> String {
    let first = command.split_whitespace().next().unwrap_or_default();
    let name = first.rsplit(['/', '\\']).next().unwrap_or(first);
    match name {
        "" => "unknown".to_owned(),
        name => name.to_owned(),
    }
}

/// Cuts the value of a label to the length that servers accept.
fn cut(text: &str) -> String {
    let text = printable(text);
    let ends = text.char_indices().map(|(at, c)| at + c.len_utf8());
    let end = ends.take_while(|&end| end <= LABEL).last().unwrap_or(0);
    text[..end].to_owned()
}

/// The holders of the objects that each stack allocates, according to a report.
#[derive(Debug, Default)]
struct Holders {
    /// For each stack: its estimated bytes according to the report, and its holder.
    by_stack: HashMap<String, (u64, String)>,
}

impl Holders {
    fn read(path: &Path) -> Result<Self> {
        let mut holders = Self::default();
        match report_file::open(path)? {
            ReportFile::Growth(report) => {
                for suspect in &report.suspects {
                    holders.add(&suspect.holder, &suspect.stacks);
                }
            }
            ReportFile::Heap(report) => {
                for suspect in &report.suspects {
                    holders.add(&suspect.holder, &suspect.stacks);
                }
            }
        }
        if holders.is_empty() {
            messages::warn(&format!(
                "{}: the report has no allocation stacks, so the profile names no holders; take the dumps with the agent loaded",
                path.display()
            ));
        }
        Ok(holders)
    }

    fn is_empty(&self) -> bool {
        self.by_stack.is_empty()
    }

    /// Adds the stacks of a suspect. If several suspects share a stack, the stack belongs to the suspect that holds the
    /// most bytes from this stack. If several suspects hold equally many bytes, the stack belongs to the first of these
    /// suspects.
    fn add(&mut self, holder: &str, stacks: &[Stack]) {
        for stack in stacks {
            let bytes = stack.estimated_bytes;
            let known = self.by_stack.entry(key(&stack.class, &stack.frames));
            let known = known.or_insert_with(|| (bytes, cut(holder)));
            if known.0 < bytes {
                *known = (bytes, cut(holder));
            }
        }
    }

    fn of(&self, class: &str, frames: &[String]) -> Option<&str> {
        if self.is_empty() {
            return None;
        }
        let found = self.by_stack.get(&key(class, frames));
        found.map(|(_, holder)| &**holder)
    }
}

/// The reason why a profile was not sent.
enum Unsent {
    /// A temporary error: the server may accept the profile later.
    Now(PushError),
    /// A permanent error.
    Ever(Failure),
}

impl From<Failure> for Unsent {
    fn from(failure: Failure) -> Self {
        Self::Ever(failure)
    }
}

impl From<PushError> for Unsent {
    fn from(error: PushError) -> Self {
        if error.is_retryable() {
            Self::Now(error)
        } else {
            Self::Ever(server_failure(&error))
        }
    }
}

impl From<Unsent> for Failure {
    fn from(unsent: Unsent) -> Self {
        match unsent {
            Unsent::Now(error) => server_failure(&error),
            Unsent::Ever(failure) => failure,
        }
    }
}

/// The failure for a server that accepts no profile at all, with a hint for the user.
fn server_failure(error: &PushError) -> Failure {
    let hint = match error {
        PushError::Refused {
            status: 401 | 403, ..
        } => {
            "set HEAPDIFF_PUSH_TOKEN in the environment, or put the header into a file: --header @FILE"
        }
        PushError::Refused {
            status: 404 | 405, ..
        } => "no profile server at this address; check the host, port and path of your Pyroscope",
        PushError::Refused {
            status: 400 | 422, ..
        } => {
            "most servers refuse data older than an hour; push while the trace is written: --every 15s"
        }
        PushError::Refused { status: 413, .. } => "use --focus RE to push fewer stacks",
        PushError::Redirect { .. } => "push to the new address if you trust it",
        PushError::Timeout { .. } => "allow more time, for example --timeout 2m",
        PushError::Tls { fault, .. } => match fault {
            TlsFault::Authority | TlsFault::NoAuthorities => {
                "give the CA certificate of the server with --cacert FILE, or with the environment variable SSL_CERT_FILE"
            }
            TlsFault::Name => "use the host name that is in the certificate",
            TlsFault::Time => {
                "the certificate is not valid now; check its dates and the clock of this machine"
            }
            TlsFault::Other => {
                "the server may not support TLS at this address; if so, use an address that begins with http:"
            }
        },
        _ => "",
    };
    Failure {
        exit: Exit::Input,
        message: error.to_string(),
        hint: (!hint.is_empty()).then(|| hint.to_owned()),
    }
}
