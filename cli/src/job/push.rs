//! Profiles to push to a server, checked.

use std::path::PathBuf;
use std::sync::Arc;

use heapdiff_push::Header;
use heapdiff_units::Span;
use hprof::NameMapping;
use regex::Regex;

use super::RunWindow;

/// Which profiles are pushed, and to whom.
#[derive(Debug)]
pub(crate) struct Push {
    pub(crate) trace: PathBuf,
    pub(crate) url: String,
    /// Names the holders of what stacks allocate.
    pub(crate) report: Option<PathBuf>,
    pub(crate) mapping: Option<Arc<dyn NameMapping>>,
    pub(crate) part: RunWindow,
    pub(crate) focus: Option<Regex>,
    /// In place of what the trace says.
    pub(crate) service: Option<String>,
    pub(crate) host: Option<String>,
    pub(crate) labels: Vec<(String, String)>,
    pub(crate) headers: Vec<Header>,
    /// A file of authorities, in place of those that the machine trusts.
    pub(crate) authorities: Option<PathBuf>,
    /// For one answer.
    pub(crate) timeout: Span,
    /// Time from one profile to the next; one alone without it.
    pub(crate) every: Option<Span>,
    pub(crate) quiet: bool,
}
