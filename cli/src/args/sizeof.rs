//! What `heapdiff sizeof` is asked.

use std::path::PathBuf;

use clap::Args;
use heapdiff_diff::pattern;
use hprof::answers::{DeepOptions, Selector};
use regex::Regex;

use super::SELECTOR_HELP;
use super::common::{CommonArgs, input};
use crate::failure::Result;
use crate::job::{Setup, SizeofJob, Task};

#[derive(Debug, Args)]
#[command(after_help = SELECTOR_HELP)]
pub(super) struct SizeofArgs {
    /// Heap dump (HPROF), gzipped or not
    #[arg(value_parser = input())]
    dump: PathBuf,
    /// Objects to measure (see SELECTOR below); several selectors form one set
    #[arg(required = true)]
    selector: Vec<Selector>,
    /// Also show the deep size by class (always in JSON)
    #[arg(long)]
    by_class: bool,
    /// Show a tree of the bytes by field; each object is counted where a breadth-first search first
    /// reaches it
    #[arg(long)]
    tree: bool,
    /// Maximum depth of --tree, in references
    #[arg(long, value_name = "N", default_value_t = 4, requires = "tree")]
    depth: u32,
    /// Leave out shared values: enum constants, string constants, Boolean.TRUE and FALSE, and boxes
    /// cached by valueOf
    #[arg(long, help_heading = "Deep size")]
    skip_flyweights: bool,
    /// Do not follow the static fields of selected class objects (static fields of other classes
    /// are never followed)
    #[arg(long, help_heading = "Deep size")]
    skip_static: bool,
    /// Do not follow final fields; without --classpath, only the final fields of records and
    /// lambdas are known
    #[arg(long, help_heading = "Deep size")]
    skip_final: bool,
    /// Class files that show which fields are final: folders, jars, .jmod files, a JDK home or
    /// lib/modules; separated as in a Java class path
    #[arg(
        long,
        value_name = "PATH",
        value_parser = paths,
        requires = "skip_final",
        help_heading = "Deep size"
    )]
    classpath: Vec<Paths>,
    /// Leave out objects of matching classes, and objects that are reachable only through them
    #[arg(long, value_name = "RE", value_parser = pattern, help_heading = "Deep size")]
    exclude: Vec<Regex>,
    /// Count objects of matching classes, but do not follow their references
    #[arg(long, value_name = "RE", value_parser = pattern, help_heading = "Deep size")]
    stop_at: Vec<Regex>,
    #[command(flatten)]
    common: CommonArgs,
}

/// One value of `--classpath`.
#[derive(Clone, Debug)]
struct Paths(Vec<PathBuf>);

fn paths(text: &str) -> Result<Paths, String> {
    let paths = std::env::split_paths(text).filter(|p| !p.as_os_str().is_empty());
    match paths.collect::<Vec<PathBuf>>() {
        paths if paths.is_empty() => Err("it names no file and no folder".to_owned()),
        paths => Ok(Paths(paths)),
    }
}

impl SizeofArgs {
    pub(super) fn task(self) -> Result<(Setup, Task)> {
        let setup = self.common.setup()?;
        // Which fields are final is read when the dump's classes are known.
        let mut deep = DeepOptions::default();
        deep.skip_flyweights = self.skip_flyweights;
        deep.skip_static = self.skip_static;
        deep.exclude = self.exclude;
        deep.stop_at = self.stop_at;
        let job = SizeofJob {
            selectors: self.selector,
            deep,
            skip_final: self
                .skip_final
                .then(|| self.classpath.into_iter().flat_map(|p| p.0).collect()),
            by_class: self.by_class,
            tree: self.tree.then_some(self.depth),
        };
        let dump = self.dump;
        Ok((setup, Task::Sizeof { dump, job }))
    }
}
