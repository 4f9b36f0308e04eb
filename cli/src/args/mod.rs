//! Arguments that several commands share: settings of the analysis and of the output.

pub(crate) mod labels;

use std::path::PathBuf;
use std::sync::Arc;

use clap::builder::{PathBufValueParser, PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, ArgAction, Args, ValueEnum};
use heapdiff_diff::Frames;
use heapdiff_report::Format;
use heapdiff_units::Size;
use hprof::NameMapping;

use crate::failure::{Failure, Result};
use crate::job::{Formats, Job, Output, Setup, Task, text_and_json};
use crate::mapping;
use crate::progress::Wanted;
use crate::style::When;

/// Help text that explains the selectors of objects.
pub(crate) const SELECTOR_HELP: &str = "\
SELECTOR: an object, class, field, frame or thread, written as in reports. The address, length or
count that a report prints with a name may stay. An address selects this object only.
  0x7f0012345678         an object
  com.acme.Foo           all instances of a class
  com.acme.Foo.field     the value of a static field, or the values of a field in all instances
  'com.acme.Foo[*]'      the elements of all arrays of type com.acme.Foo[]
  'class com.acme.Foo'   the class object
  'com.acme.Foo.run(Foo.java:42)'        the local variables of a frame, in all threads
  'local variable of com.acme.Foo.run'   the local variables of a method, in all threads
  'values of com.acme.Foo.LOCAL'         the values of a ThreadLocal, in all threads
  'worker 1'             a thread
  /regex/                all instances of the classes whose names match
Frames of allocation stacks do not select objects: use `heapdiff sites DUMP --focus FRAME`.";

/// Returns a parser that accepts every format. The help lists only the formats for which `of` returns true. If the user
/// requests another format, the command refuses it, with a hint that names the commands that have this format.
pub(crate) fn formats(of: Formats) -> impl TypedValueParser<Value = Format> {
    let listed = |format: Format| PossibleValue::new(format.name()).hide(!of(format));
    PossibleValuesParser::new(Format::ALL.map(listed))
        .map(|name| Format::by_name(&name).unwrap_or_default())
}

/// Makes the help of a command list only the formats for which `of` returns true. For use in `#[command]`:
/// `mut_arg("format", listing(FORMATS))`.
pub(crate) fn listing(of: Formats) -> impl FnOnce(Arg) -> Arg {
    move |arg| arg.value_parser(formats(of))
}

/// Arguments that are converted to a [`Setup`].
pub(crate) trait SetupArgs: Args {
    fn setup(self) -> Result<Setup>;
}

/// The arguments of a command that writes a report: first those of the task, then those of the analysis and the output.
#[derive(Debug, Args)]
#[command(mut_arg("format", listing(T::formats())))]
pub(crate) struct Reported<T: Args + Task, S: Args = CommonArgs> {
    #[command(flatten)]
    task: T,
    #[command(flatten)]
    setup: S,
}

impl<T: Args + Task + 'static, S: SetupArgs> Reported<T, S> {
    pub(crate) fn job(self) -> Result<Job> {
        Job::new(self.setup.setup()?, self.task)
    }
}

/// Parses an argument that names a dump. `-` means standard input. The path of a segment means the dump to which it
/// belongs.
pub(crate) fn input() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().map(|path| {
        if path.as_os_str() == "-" {
            PathBuf::from(hprof::bytes::STDIN)
        } else {
            hprof::bytes::dump_of(&path)
        }
    })
}

/// Options for the format and the destination of a report.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct CommonArgs {
    /// Write the report to a file, which is replaced only when the report is complete
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    report: ReportArgs,
}

impl SetupArgs for CommonArgs {
    fn setup(self) -> Result<Setup> {
        self.report.setup(self.output)
    }
}

/// Options for the format of a report.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct ReportArgs {
    /// Format of the report [default: text, or from the extension of -o]
    #[arg(long, value_parser = formats(text_and_json), value_name = "FORMAT")]
    pub(crate) format: Option<Format>,
    /// Maximum rows of each list [default: one screen in text, more in JSON and HTML]
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// When to use colors
    #[arg(long, value_enum, value_name = "WHEN", default_value_t)]
    color: When,
    #[command(flatten)]
    frames: FramesArgs,
    #[command(flatten)]
    work: WorkArgs,
}

impl ReportArgs {
    pub(crate) fn setup(self, output: Option<PathBuf>) -> Result<Setup> {
        let output = Output::new(self.format, output, self.color)?;
        let setup = self.work.setup()?;
        let verbose = setup.progress.verbose;
        Ok(Setup {
            output: Output {
                verbose,
                ..self.frames.choose(output)
            },
            top: self.top,
            ..setup
        })
    }
}

/// Options that select the shown frames of a stack.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
struct FramesArgs {
    /// Frames that text shows of each stack: all, application frames only (app), or at most N lines [default: 12
    /// lines, with JDK and framework frames folded]
    #[arg(long, value_name = "all|app|N", value_parser = frames)]
    frames: Option<Frames>,
    /// Also fold frames of classes whose names begin with PREFIX, like frames of known frameworks;
    /// may be repeated
    #[arg(long, value_name = "PREFIX")]
    framework: Vec<String>,
}

fn frames(text: &str) -> std::result::Result<Frames, String> {
    match text {
        "all" => Ok(Frames::All),
        "app" => Ok(Frames::Application),
        _ => match text.parse() {
            Ok(limit) if limit > 0 => Ok(Frames::Folded(limit)),
            _ => Err("expected `all`, `app` or a number of lines, such as 20".to_owned()),
        },
    }
}

impl FramesArgs {
    /// Returns `output` with the value of `--frames`. Also adds the prefixes of `--framework` to the known frameworks.
    fn choose(self, output: Output) -> Output {
        if !self.framework.is_empty() {
            heapdiff_diff::add_frameworks(self.framework);
        }
        Output {
            frames: self.frames,
            ..output
        }
    }
}

/// Options for reading a dump, for commands with an output of their own.
#[derive(Debug, Args)]
pub(crate) struct WorkArgs {
    #[command(flatten)]
    progress: Wanted,
    #[command(flatten)]
    analysis: AnalysisArgs,
}

impl SetupArgs for WorkArgs {
    fn setup(self) -> Result<Setup> {
        let args = self.analysis;
        let mut analysis = hprof::Options::default();
        analysis.refs = match args.refs {
            Refs::Strong => hprof::Refs::Strong,
            Refs::Soft => hprof::Refs::Soft,
            Refs::All => hprof::Refs::All,
        };
        analysis.dump = args.dump_number.map_or(0, |n| n as usize - 1);
        analysis.mapping = args.names.read()?;
        analysis.max_memory = args.max_memory.map(|size| size.0);
        Ok(Setup {
            output: Output {
                verbose: self.progress.verbose,
                ..Output::default()
            },
            progress: self.progress,
            analysis,
            threads: args.threads.map(usize::from),
            strict: args.strict,
            index: !args.no_index,
            ..Setup::default()
        })
    }
}

/// Options for the analysis of a dump.
#[derive(Debug, Args)]
#[command(next_help_heading = "Analysis")]
struct AnalysisArgs {
    /// Number of the dump to read, if the file contains several [default: 1, the first]
    #[arg(long = "dump", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    dump_number: Option<u32>,
    #[command(flatten)]
    names: NamesArgs,
    /// Number of worker threads [default: one per processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Maximum memory for large arrays; the rest goes to temporary files
    #[arg(long, value_name = "SIZE")]
    max_memory: Option<Size>,
    /// References that retain their referent: strong only, strong and soft, or all (weak included)
    #[arg(long, value_enum, default_value_t)]
    refs: Refs,
    /// Do not read or write the index (DUMP.hdx) and summary (DUMP.hds) that make later commands
    /// fast
    #[arg(long, action = ArgAction::SetTrue)]
    no_index: bool,
    /// Refuse damaged or truncated dumps (exit code 3)
    #[arg(long)]
    strict: bool,
}

/// Files with the original names of classes and members that a shrinker renamed.
#[derive(Debug, Args)]
#[command(next_help_heading = "Analysis")]
pub(crate) struct NamesArgs {
    /// ProGuard or R8 mapping file, to show the original names of classes, fields and methods; may
    /// be repeated
    #[arg(long, value_name = "FILE")]
    mapping: Vec<PathBuf>,
}

impl NamesArgs {
    pub(crate) fn read(&self) -> Result<Option<Arc<dyn NameMapping>>> {
        mapping::read(&self.mapping)
    }
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Refs {
    Strong,
    #[default]
    Soft,
    All,
}

/// Like [`CommonArgs`], but the report can be written to several files.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputsArgs {
    /// Write the report to a file, in the format of its extension; may be repeated
    #[arg(short, long, value_name = "FILE")]
    output: Vec<PathBuf>,
    #[command(flatten)]
    report: ReportArgs,
}

impl SetupArgs for OutputsArgs {
    fn setup(self) -> Result<Setup> {
        let mut files = self.output.into_iter();
        let first = files.next();
        let more: Vec<PathBuf> = files.collect();
        if let (Some(format), [another, ..]) = (self.report.format, &more[..]) {
            let message = format!(
                "--format {} allows only one -o, but there is a second one: -o {}",
                format.name(),
                another.display()
            );
            return Err(Failure::usage(message).with_hint(
                "leave out --format; each file is written in the format of its extension",
            ));
        }
        let color = self.report.color;
        let setup = self.report.setup(first)?;
        let (frames, verbose) = (setup.output.frames, setup.output.verbose);
        let more = more.into_iter().map(|file| {
            Ok(Output {
                frames,
                verbose,
                ..Output::new(None, Some(file), color)?
            })
        });
        Ok(Setup {
            more: more.collect::<Result<_>>()?,
            ..setup
        })
    }
}

/// Options for the output of a report that needs no analysis of a dump.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct ViewArgs {
    /// Write the report to a file, which is replaced only when the report is complete
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Format of the report [default: text, or from the extension of -o]
    #[arg(long, value_parser = formats(text_and_json), value_name = "FORMAT")]
    format: Option<Format>,
    /// When to use colors
    #[arg(long, value_enum, value_name = "WHEN", default_value_t)]
    color: When,
    #[command(flatten)]
    frames: FramesArgs,
    #[command(flatten)]
    progress: Wanted,
}

impl SetupArgs for ViewArgs {
    fn setup(self) -> Result<Setup> {
        let output = Output::new(self.format, self.output, self.color)?;
        Ok(Setup {
            output: self.frames.choose(output),
            progress: self.progress,
            ..Setup::default()
        })
    }
}

/// Like [`ViewArgs`], for a report that consists of lists.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct ListArgs {
    #[command(flatten)]
    view: ViewArgs,
    /// Maximum rows of each list [default: 10; 100 in JSON]
    #[arg(long, value_name = "N")]
    top: Option<usize>,
}

impl SetupArgs for ListArgs {
    fn setup(self) -> Result<Setup> {
        let top = self.top;
        self.view.setup().map(|setup| Setup { top, ..setup })
    }
}

/// Adds the files of `--mapping` to other options, for a report that shows the original names.
#[derive(Debug, Args)]
pub(crate) struct NamedArgs<S: Args> {
    #[command(flatten)]
    names: NamesArgs,
    #[command(flatten)]
    view: S,
}

impl<S: SetupArgs> SetupArgs for NamedArgs<S> {
    fn setup(self) -> Result<Setup> {
        let mut setup = self.view.setup()?;
        setup.analysis.mapping = self.names.read()?;
        Ok(setup)
    }
}
