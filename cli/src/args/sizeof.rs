//! What `heapdiff sizeof` is asked.

use std::path::PathBuf;

use clap::Args;
use hprof::{DeepOptions, Selector};
use regex::Regex;

use super::common::CommonArgs;
use super::diff::pattern;
use super::{SELECTOR_HELP, Setup, Task};
use crate::failure::Result;

#[derive(Debug, Args)]
#[command(after_help = SELECTOR_HELP)]
pub(super) struct SizeofArgs {
    /// A heap dump (HPROF), gzipped or not
    dump: PathBuf,
    /// Which objects; what several selectors name is one set
    #[arg(required = true)]
    selector: Vec<Selector>,
    /// Also what the deep size is made of, class by class (always in JSON)
    #[arg(long)]
    by_class: bool,
    /// Where the bytes are, field by field: each object at the first place where a breadth-first walk
    /// comes upon it
    #[arg(long)]
    tree: bool,
    /// References that --tree goes down
    #[arg(long, value_name = "N", default_value_t = 4, requires = "tree")]
    depth: u32,
    /// Leave out values that all of a program shares: enum constants, string constants, Boolean.TRUE and
    /// FALSE, and the boxes that valueOf caches
    #[arg(long, help_heading = "Deep size")]
    skip_flyweights: bool,
    /// Do not follow static fields (of class objects that are selected: no others are followed)
    #[arg(long, help_heading = "Deep size")]
    skip_static: bool,
    /// Leave out objects of classes that match, and what only they reach
    #[arg(long, value_name = "RE", value_parser = pattern, help_heading = "Deep size")]
    exclude: Vec<Regex>,
    /// Count objects of classes that match, but not what they refer to
    #[arg(long, value_name = "RE", value_parser = pattern, help_heading = "Deep size")]
    stop_at: Vec<Regex>,
    #[command(flatten)]
    common: CommonArgs,
}

/// The objects whose size is asked for, and by which rules.
#[derive(Debug)]
pub(crate) struct SizeofJob {
    pub(crate) selectors: Vec<Selector>,
    pub(crate) deep: DeepOptions,
    /// Whether text lists classes.
    pub(crate) by_class: bool,
    /// How deep the tree is, if one is asked for.
    pub(crate) tree: Option<u32>,
}

impl SizeofArgs {
    pub(super) fn task(self) -> Result<(Setup, Task)> {
        let setup = self.common.setup(std::slice::from_ref(&self.dump))?;
        let job = SizeofJob {
            selectors: self.selector,
            deep: DeepOptions {
                skip_flyweights: self.skip_flyweights,
                skip_static: self.skip_static,
                exclude: self.exclude,
                stop_at: self.stop_at,
                except: Vec::new(),
            },
            by_class: self.by_class,
            tree: self.tree.then_some(self.depth),
        };
        let dump = self.dump;
        Ok((setup, Task::Sizeof { dump, job }))
    }
}
