//! What is pushed to a server of profiles.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use heapdiff_push::{Header, headers};
use heapdiff_units::Span;

use super::common::NamesArgs;
use super::labels::{label, labels};
use super::trace::{RunArgs, WindowArgs};
use crate::failure::{Failure, Result, plain};
use crate::job::{Action, Push};

/// The environment's variables with credentials: what stands on a command line all on the machine can read.
const TOKEN: &str = "HEAPDIFF_PUSH_TOKEN";
const USER: &str = "HEAPDIFF_PUSH_USER";
/// The most bytes of a file of headers.
const MOST: u64 = 64 << 10;
const SHORTEST: Duration = Duration::from_secs(1);

const AFTER_HELP: &str = "\
URL is the server's address, with a path if it has one: http://localhost:4040. Profiles go to its
/push.v1.PusherService/Push, and where that is not, to /ingest; a URL that ends in one of them
names that one.

HEAPDIFF_PUSH_TOKEN in the environment is a bearer's token; with HEAPDIFF_PUSH_USER both are sent
as user and password. Other headers are for --header: 'X-Scope-OrgID: shop' is a tenant, @FILE
stands for the headers in a file, one a line.

MOMENT: 10m (that long before the end), +5m (that long after the start), 2026-11-21T22:05:00Z (UTC).";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct PushArgs {
    /// A trace, as the agent writes it (trace=FILE)
    trace: PathBuf,
    /// The server
    url: String,
    /// A report of dumps of the same program (-o report.json): its suspects name the fields that hold what stacks
    /// allocate, which become the label `holder`
    #[arg(long, value_name = "REPORT.json")]
    report: Option<PathBuf>,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    window: WindowArgs,
    #[command(flatten)]
    names: NamesArgs,
    /// The program's name, the label `service_name` [default: the agent's option service, else the main class or jar]
    #[arg(long, value_name = "NAME")]
    service: Option<String>,
    /// The machine that it runs on, the label `host` [default: what the trace says]
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// One more label, such as zone=eu-1; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = label)]
    label: Vec<(String, String)>,
    /// A header of each request, or @FILE with one a line; may be repeated
    #[arg(long, value_name = "NAME: VALUE")]
    header: Vec<String>,
    /// A file with certificates of authorities (PEM), which are trusted in place of those that the machine trusts
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,
    /// How long an answer may take; what fails for a moment is tried four times
    #[arg(long, value_name = "TIME", default_value = "30s")]
    timeout: Span,
    /// Push again whenever so much time has passed and the trace has grown, until its JVM ends
    #[arg(long, value_name = "TIME", conflicts_with = "until")]
    every: Option<Span>,
    /// Do not say what was pushed
    #[arg(short, long)]
    quiet: bool,
}

impl PushArgs {
    pub(super) fn action(self) -> Result<Action> {
        if self.timeout.0.is_zero() {
            return Err(Failure::usage("--timeout must be more than zero"));
        }
        if self.every.is_some_and(|every| every.0 < SHORTEST) {
            return Err(Failure::usage("--every must be a second or more"));
        }
        labels(&self.label, &["holder", "host", "service_name"])?;
        let mut headers = Vec::new();
        for text in &self.header {
            match text.strip_prefix('@') {
                Some(path) => headers.extend(of_file(Path::new(path))?),
                None => headers.push(Header::parse(text, "--header").map_err(usage)?),
            }
        }
        headers.extend(of_environment()?);
        if headers.iter().filter(|h| h.is_authorization()).count() > 1 {
            let message =
                format!("more than one Authorization: {TOKEN} and --header give each one");
            return Err(Failure::usage(message));
        }
        Ok(Action::Push(Box::new(Push {
            part: self.window.of(self.run),
            focus: self.window.focus,
            mapping: self.names.read()?,
            trace: self.trace,
            url: self.url,
            report: self.report,
            service: self.service,
            host: self.host,
            labels: self.label,
            headers,
            authorities: self.cacert,
            timeout: self.timeout,
            every: self.every,
            quiet: self.quiet,
        })))
    }
}

fn usage(error: heapdiff_push::PushError) -> Failure {
    Failure::usage(error.to_string())
}

/// The headers of a file.
fn of_file(path: &Path) -> Result<Vec<Header>> {
    let wrong = |why: &str| Failure::usage(format!("--header @{}: {why}", path.display()));
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(MOST).read_to_string(&mut text))
        .map_err(|e| wrong(&plain(&e)))?;
    headers(&text, &path.display().to_string()).map_err(usage)
}

/// The header that the environment asks for.
fn of_environment() -> Result<Option<Header>> {
    let value = |name: &str| match std::env::var(name) {
        Ok(value) if value.is_empty() => Ok(None),
        Ok(value) => Ok(Some(value)),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(_)) => {
            Err(Failure::usage(format!("{name} is not text in UTF-8")))
        }
    };
    match (value(USER)?, value(TOKEN)?) {
        (None, None) => Ok(None),
        (Some(_), None) => Err(Failure::usage(format!("{USER} is set, and {TOKEN} is not"))),
        (user, Some(token)) => {
            let header = Header::authorization(user.as_deref(), &token, TOKEN);
            header.map(Some).map_err(usage)
        }
    }
}
