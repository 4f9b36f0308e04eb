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
URL is the address of the server, with a path if it has one: http://localhost:4040. Profiles are
sent to its /push.v1.PusherService/Push, or to /ingest if that does not exist. To select one of
these two paths, give a URL that ends in this path.

Credentials: the environment variable HEAPDIFF_PUSH_TOKEN is sent as a bearer token. If
HEAPDIFF_PUSH_USER is set too, both are sent as user and password. Use --header for other headers,
for example 'X-Scope-OrgID: shop' for a tenant. @FILE reads headers from a file, one per line.

MOMENT: 10m (10 minutes before the end of the run), +5m (5 minutes after the start of the run), or
2026-11-21T22:05:00Z.";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct PushArgs {
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

impl PushArgs {
    pub(super) fn action(self) -> Result<Action> {
        if self.timeout.0.is_zero() {
            return Err(Failure::usage("--timeout must be longer than 0s"));
        }
        if self.every.is_some_and(|every| every.0 < SHORTEST) {
            return Err(Failure::usage("--every must be at least 1s"));
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
            let message = format!(
                "more than one Authorization header was given; use either {TOKEN} or --header"
            );
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
