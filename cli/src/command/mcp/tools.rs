//! The tools that an assistant can call: their arguments, and the job that each call becomes.

use std::fs;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use heapdiff_diff::pattern;
use heapdiff_query::Limits;
use heapdiff_report::Format;
use hprof::answers::Selector;
use regex::Regex;
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema};
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error};
use serde_json::{Map, Value, json};

use crate::command::diff::Diff;
use crate::command::growth::Question;
use crate::command::heap::Heap;
use crate::command::histo::Histo;
use crate::command::query::{self, default_names};
use crate::command::sites::{self, SitesBy};
use crate::command::{paths, sizeof, threads};
use crate::failure::{Failure, Result};
use crate::fits::ClassFilter;
use crate::job::{Job, Output, Setup, Task};
use crate::watch;

/// Maximum number of rows that a call may request. The answer has fewer rows if it would be too large.
const ROWS: usize = 200;
/// Maximum number of dumps in one call.
const DUMPS: usize = 8;
/// Maximum run time of a SELECT.
const TIME: Duration = Duration::from_secs(60);
/// Memory for sorting and grouping in a SELECT, in bytes, if there is no `--max-memory`.
const MEMORY: u64 = 1 << 30;

/// The arguments of a tool.
trait Asked: DeserializeOwned + JsonSchema {
    /// Converts the arguments to a job. The report of the job is written as text and as JSON.
    fn job(self, setup: &Setup) -> Result<Job>;
}

/// Returns a job that runs `task`. The lists of its report have at most `rows` rows.
fn job(setup: &Setup, task: impl Task + 'static, rows: usize) -> Result<Job> {
    let output = |format| Output {
        format,
        ..Output::default()
    };
    let setup = Setup {
        output: output(Format::Text),
        more: vec![output(Format::Json)],
        top: Some(rows),
        ..setup.clone()
    };
    Job::new(setup, task)
}

type JsonObject = Map<String, Value>;

/// A tool that assistants can call.
#[derive(Debug)]
pub(super) struct Tool {
    pub(super) name: &'static str,
    title: &'static str,
    about: &'static str,
    schema: fn() -> JsonObject,
    job: fn(&Setup, Value) -> Result<Job>,
}

impl Tool {
    pub(super) const ALL: [Self; 7] = [
        Self::of::<Summary>(
            "summary",
            "Summarize a heap dump",
            "Objects and bytes of one dump, its JVM, whether the agent was loaded, and the classes that retain the most (heapdiff.histo/1).",
        ),
        Self::of::<Suspects>(
            "suspects",
            "Find memory leaks",
            "Begin here. With two or more dumps of one program: what grew, the field that holds it, verdict (leak, growth, cache, warmup) with reasons, path from the GC root, allocating stacks (heapdiff.diff/1). With one dump: what retains the most (heapdiff.heap/1).",
        ),
        Self::of::<Sizeof>(
            "sizeof",
            "Sizes of objects",
            "Shallow, deep and retained bytes of the selected objects, for each object and for all together, and the \
             classes that these bytes belong to (heapdiff.sizeof/1).",
        ),
        Self::of::<Paths>(
            "paths",
            "Find why objects are not freed",
            "Shortest paths from GC roots to selected objects, merged into a tree (heapdiff.paths/1).",
        ),
        Self::of::<Query>(
            "query",
            "SQL over heap dumps",
            "Rows of one SELECT (SQLite) over objects, classes, refs, roots, strings, threads, frames, samples \
             (heapdiff.query/1). Instead of a SELECT, `.tables` lists the tables and `.schema TABLE` the columns.",
        ),
        Self::of::<Threads>(
            "threads",
            "Threads and pending work",
            "Threads that retain the most, with stacks, and pending work by shape: equal stacks, queued tasks, futures, \
             coroutines (heapdiff.threads/1).",
        ),
        Self::of::<Sites>(
            "sites",
            "Where live objects were allocated",
            "Sampled bytes by allocating frame, stack or class, from a dump taken with the agent, or from a JFR recording \
             (heapdiff.sites/1, heapdiff.allocated/1, heapdiff.recording/1).",
        ),
    ];

    const fn of<A: Asked>(name: &'static str, title: &'static str, about: &'static str) -> Self {
        Self {
            name,
            title,
            about,
            schema: schema::<A>,
            job: |setup, arguments| {
                let asked: A = serde_json::from_value(arguments)
                    .map_err(|e| Failure::usage(format!("wrong arguments: {e}")))?;
                asked.job(setup)
            },
        }
    }

    pub(super) fn by_name(name: &str) -> Option<&'static Self> {
        Self::ALL.iter().find(|tool| tool.name == name)
    }

    /// Returns the description of the tool for an assistant.
    pub(super) fn described(&self) -> Value {
        json!({
            "name": self.name,
            "description": self.about,
            "inputSchema": (self.schema)(),
            "annotations": { "title": self.title, "readOnlyHint": true, "openWorldHint": false },
        })
    }

    /// Returns the job for these arguments.
    pub(super) fn job(&self, setup: &Setup, arguments: JsonObject) -> Result<Job> {
        (self.job)(setup, Value::Object(arguments))
    }
}

/// Returns the JSON schema of a tool's arguments, as short as possible.
fn schema<A: JsonSchema>() -> JsonObject {
    let mut settings = SchemaSettings::draft2020_12();
    settings.meta_schema = None;
    settings.inline_subschemas = true;
    let mut schema = settings.into_generator().into_root_schema_for::<A>();
    let mut short = RecursiveTransform(|schema: &mut Schema| {
        for key in ["format", "title"] {
            schema.remove(key);
        }
    });
    short.transform(&mut schema);
    schema.remove("description");
    schema.as_object().cloned().unwrap_or_default()
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Summary {
    /// Path of a heap dump (HPROF), gzipped or not
    dump: PathBuf,
    /// Classes listed
    #[serde(default = "rows::<8>", deserialize_with = "bounded_rows")]
    #[schemars(range(min = 1, max = ROWS))]
    top: usize,
}

impl Asked for Summary {
    fn job(self, setup: &Setup) -> Result<Job> {
        let dump = file(self.dump)?;
        let retained = true;
        job(setup, Histo { dump, retained }, self.top)
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Suspects {
    /// Paths of heap dumps, oldest first
    #[schemars(length(min = 1, max = DUMPS))]
    dumps: Vec<PathBuf>,
    /// Suspects and classes listed
    #[serde(default = "rows::<3>", deserialize_with = "bounded_rows")]
    #[schemars(range(min = 1, max = ROWS))]
    top: usize,
    /// Regular expression: only classes, and holders of classes, that match
    include: Option<String>,
    /// As include: leave these out
    exclude: Option<String>,
    /// Recordings of the same JVM (JFR, async-profiler): adds probable allocating stacks
    #[serde(default)]
    #[schemars(length(max = DUMPS))]
    recordings: Vec<PathBuf>,
}

impl Asked for Suspects {
    fn job(self, setup: &Setup) -> Result<Job> {
        let mut dumps = files(self.dumps)?;
        let classes = ClassFilter {
            include: regex("include", self.include)?.into_iter().collect(),
            exclude: regex("exclude", self.exclude)?.into_iter().collect(),
        };
        let recordings = match self.recordings {
            none if none.is_empty() => none,
            some => files(some)?,
        };
        let question = Question {
            classes,
            recordings,
            ..Question::default()
        };
        if dumps.len() > 1 {
            let trace = None;
            let diff = Diff {
                dumps,
                trace,
                owners: None,
                question,
            };
            return job(setup, diff, self.top);
        }
        let dump = dumps.remove(0);
        job(setup, Heap { dump, question }, self.top)
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Sizeof {
    /// Path of a heap dump
    dump: PathBuf,
    /// Which objects, as one set: 0x7f00 (id), a.Foo (instances), a.Foo.field (static field), /regex/ (classes)
    #[schemars(length(min = 1))]
    selectors: Vec<String>,
    /// Objects and classes listed
    #[serde(default = "rows::<5>", deserialize_with = "bounded_rows")]
    #[schemars(range(min = 1, max = ROWS))]
    top: usize,
}

impl Asked for Sizeof {
    fn job(self, setup: &Setup) -> Result<Job> {
        let dump = file(self.dump)?;
        let selector = self.selectors.iter().map(|text| selector(text));
        let task = sizeof::Sizeof {
            dump,
            selector: selector.collect::<Result<_>>()?,
            by_class: true,
            ..sizeof::Sizeof::default()
        };
        job(setup, task, self.top)
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Paths {
    /// Path of a heap dump
    dump: PathBuf,
    /// Which objects, as for sizeof
    selector: String,
    /// Lines of the tree
    #[serde(default = "rows::<12>", deserialize_with = "bounded_rows")]
    #[schemars(range(min = 1, max = ROWS))]
    top: usize,
    /// Fields (com.acme.Cache.entries) or classes to avoid
    #[serde(default)]
    exclude: Vec<String>,
}

impl Asked for Paths {
    fn job(self, setup: &Setup) -> Result<Job> {
        let dump = file(self.dump)?;
        let selector = selector(&self.selector)?;
        job(
            setup,
            paths::Paths {
                dump,
                selector,
                exclude: self.exclude,
                alternatives: None,
            },
            self.top,
        )
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Threads {
    /// Path of a heap dump
    dump: PathBuf,
    /// Threads and groups listed
    #[serde(default = "rows::<5>", deserialize_with = "bounded_rows")]
    #[schemars(range(min = 1, max = ROWS))]
    top: usize,
}

impl Asked for Threads {
    fn job(self, setup: &Setup) -> Result<Job> {
        let dump = file(self.dump)?;
        job(
            setup,
            threads::Threads {
                dump,
                classpath: Vec::new(),
            },
            self.top,
        )
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Query {
    /// Paths of heap dumps; two are named before and after in SQL (after.classes), more dump1, dump2, ...
    #[schemars(length(min = 1, max = DUMPS))]
    dumps: Vec<PathBuf>,
    /// The SELECT
    sql: String,
    /// Rows given
    #[serde(default = "rows::<20>", deserialize_with = "bounded_rows")]
    #[schemars(range(min = 1, max = ROWS))]
    max_rows: usize,
}

impl Asked for Query {
    fn job(self, setup: &Setup) -> Result<Job> {
        let dumps = files(self.dumps)?;
        let names = default_names(dumps.len(), 0);
        let limits = Limits {
            rows: Some(self.max_rows as u64),
            memory: setup.analysis.max_memory.or(Some(MEMORY)),
            time: Some(TIME),
            temporary_files: None,
            is_given_up: Some(watch::is_cancelled),
        };
        let task = query::Query::new(dumps, names, self.sql, limits)?;
        job(setup, task, self.max_rows)
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Sites {
    /// Path of a heap dump, or of a flight recording
    dump: PathBuf,
    /// Show everything allocated, not only what is still alive
    #[serde(default)]
    allocated: bool,
    /// What rows are
    #[serde(default)]
    by: SitesBy,
    /// Regular expression: only stacks with a frame or class that matches
    focus: Option<String>,
    /// Stacks or classes listed
    #[serde(default = "rows::<3>", deserialize_with = "bounded_rows")]
    #[schemars(range(min = 1, max = ROWS))]
    top: usize,
}

impl Asked for Sites {
    fn job(self, setup: &Setup) -> Result<Job> {
        let dump = file(self.dump)?;
        let task = sites::Sites {
            dump,
            allocated: self.allocated,
            // Grouping by frame is only possible for live objects.
            by: Some(self.by).filter(|by| !self.allocated || *by != SitesBy::Frame),
            reverse: false,
            focus: regex("focus", self.focus)?,
        };
        job(setup, task, self.top)
    }
}

/// Returns `N`, the default number of rows of a call.
const fn rows<const N: usize>() -> usize {
    N
}

fn bounded_rows<'de, D: Deserializer<'de>>(from: D) -> Result<usize, D::Error> {
    match usize::deserialize(from)? {
        rows @ 1..=ROWS => Ok(rows),
        other => Err(D::Error::custom(format!(
            "{other} rows were requested, but only 1 to {ROWS} are possible"
        ))),
    }
}

/// Checks that reading from a path comes to an end. Standard input is not allowed, because the server receives its
/// messages there. Pipes and devices are not allowed, because they may have no end.
fn file(path: PathBuf) -> Result<PathBuf> {
    match fs::metadata(&path) {
        Ok(meta) if !meta.is_file() && !meta.is_dir() => Err(Failure::usage(format!(
            "{}: not a file, but a device or a pipe",
            path.display()
        ))),
        // Other errors are reported later, when the file is read.
        _ => Ok(hprof::bytes::dump_of(&path)),
    }
}

fn files(paths: Vec<PathBuf>) -> Result<Vec<PathBuf>> {
    if !(1..=DUMPS).contains(&paths.len()) {
        let message = format!(
            "{} dumps were given, but only 1 to {DUMPS} are possible",
            paths.len()
        );
        return Err(Failure::usage(message));
    }
    paths.into_iter().map(file).collect()
}

fn selector(text: &str) -> Result<Selector> {
    Selector::from_str(text).map_err(|e| Failure::usage(e.to_string()))
}

fn regex(name: &str, text: Option<String>) -> Result<Option<Regex>> {
    let regex = text
        .map(|text| pattern(&text).map_err(|e| Failure::usage(format!("{name} `{text}`: {e}"))));
    regex.transpose()
}
