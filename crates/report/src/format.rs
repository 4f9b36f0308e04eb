//! The formats of reports.

/// A format of reports: text for people, JSON for programs, and formats of other tools.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Format {
    /// Text for people. Names are cut if the terminal is too narrow.
    #[default]
    Text,
    /// JSON for programs. The figures are exact, and the format is stable.
    Json,
    /// A web page.
    Html,
    /// Markdown.
    Md,
    /// Collapsed stacks, which flame graph tools read.
    Collapsed,
    /// A profile in the format of pprof.
    Pprof,
    /// A flame graph as an image.
    Svg,
    /// JUnit results.
    Junit,
    /// Metrics that Prometheus and other readers of OpenMetrics accept.
    OpenMetrics,
    /// SARIF, a format for results of static analysis, which code scanning reads.
    Sarif,
    /// Workflow commands of GitHub Actions, which annotate a run.
    Github,
    /// Table rows as CSV.
    Csv,
    /// Table rows as Parquet.
    Parquet,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 13] = [
        Self::Text,
        Self::Json,
        Self::Html,
        Self::Md,
        Self::Collapsed,
        Self::Pprof,
        Self::Svg,
        Self::Junit,
        Self::OpenMetrics,
        Self::Sarif,
        Self::Github,
        Self::Csv,
        Self::Parquet,
    ];

    /// Returns the format with this name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// Returns the format's name on the command line, and its file extensions.
    const fn table(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Self::Text => ("text", &["txt"]),
            Self::Json => ("json", &["json"]),
            Self::Html => ("html", &["html", "htm"]),
            Self::Md => ("md", &["md", "markdown"]),
            Self::Collapsed => ("collapsed", &["collapsed", "folded"]),
            Self::Pprof => ("pprof", &["pb.gz", "pprof"]),
            Self::Svg => ("svg", &["svg"]),
            Self::Junit => ("junit", &["xml"]),
            Self::OpenMetrics => ("openmetrics", &["prom"]),
            Self::Sarif => ("sarif", &["sarif"]),
            Self::Github => ("github", &["annotations"]),
            Self::Csv => ("csv", &["csv"]),
            Self::Parquet => ("parquet", &["parquet"]),
        }
    }

    /// Returns the name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.table().0
    }

    /// Returns the extensions of files in this format, the usual one first.
    #[must_use]
    pub const fn extensions(self) -> &'static [&'static str] {
        self.table().1
    }

    /// True if people read the lists of this format from start to end, so that lists must be short.
    #[must_use]
    pub const fn is_read_by_people(self) -> bool {
        matches!(self, Self::Text | Self::Md)
    }

    /// True if the format shows all allocating stacks and nothing else.
    #[must_use]
    pub const fn has_only_stacks(self) -> bool {
        matches!(self, Self::Collapsed | Self::Pprof | Self::Svg)
    }

    /// True if the format needs all allocating stacks.
    #[must_use]
    pub const fn shows_stacks(self) -> bool {
        self.has_only_stacks() || matches!(self, Self::Html)
    }

    /// True if the format shows stacks as a tree, which may begin at the outermost or at the innermost frames.
    #[must_use]
    pub const fn is_flame(self) -> bool {
        matches!(self, Self::Html | Self::Svg | Self::Collapsed)
    }

    /// True if the format contains table rows and nothing else.
    #[must_use]
    pub const fn has_only_rows(self) -> bool {
        matches!(self, Self::Csv | Self::Parquet)
    }

    /// Returns the usual extension of a file in this format.
    #[must_use]
    pub const fn extension(self) -> &'static str {
        self.extensions()[0]
    }
}
