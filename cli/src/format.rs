//! The formats of reports.

use clap::ValueEnum;

// A doc comment on each value would blow `--help` up to a page for each command.
/// How a report is written: text for people, at most 100 columns wide; JSON for programs, exact and stable;
/// what other programs show.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub(crate) enum Format {
    #[default]
    Text,
    Json,
    Html,
    Md,
    Collapsed,
    Pprof,
    Svg,
    Junit,
    Csv,
    Parquet,
}

impl Format {
    /// The name on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
            Self::Html => "html",
            Self::Md => "md",
            Self::Collapsed => "collapsed",
            Self::Pprof => "pprof",
            Self::Svg => "svg",
            Self::Junit => "junit",
            Self::Csv => "csv",
            Self::Parquet => "parquet",
        }
    }

    /// Extensions of files in this format, the usual one first.
    pub(crate) const fn extensions(self) -> &'static [&'static str] {
        match self {
            Self::Text => &["txt"],
            Self::Json => &["json"],
            Self::Html => &["html", "htm"],
            Self::Md => &["md", "markdown"],
            Self::Collapsed => &["collapsed", "folded"],
            Self::Pprof => &["pb.gz", "pprof"],
            Self::Svg => &["svg"],
            Self::Junit => &["xml"],
            Self::Csv => &["csv"],
            Self::Parquet => &["parquet"],
        }
    }

    /// Whether lists are as long as people read them.
    pub(crate) const fn is_read_whole(self) -> bool {
        matches!(self, Self::Text | Self::Md)
    }

    /// Whether the report is made of all allocating stacks, and of nothing else.
    pub(crate) const fn is_of_stacks(self) -> bool {
        matches!(self, Self::Collapsed | Self::Pprof | Self::Svg)
    }

    /// Whether the report is rows, and nothing else.
    pub(crate) const fn is_of_rows(self) -> bool {
        matches!(self, Self::Csv | Self::Parquet)
    }

    /// The extension of a file in this format.
    pub(crate) const fn extension(self) -> &'static str {
        self.extensions()[0]
    }
}
