//! The formats of reports.

/// How a report is written: text for people; JSON for programs, exact and stable; what other programs show.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Format {
    /// For people; names are cut for a terminal that is too narrow.
    #[default]
    Text,
    /// For programs: exact and stable.
    Json,
    /// A web page.
    Html,
    /// Markdown.
    Md,
    /// Collapsed stacks, which tools for flame graphs read.
    Collapsed,
    /// A profile in pprof's format.
    Pprof,
    /// A flame graph.
    Svg,
    /// JUnit results.
    Junit,
    /// Metrics, as Prometheus and what understands OpenMetrics read them.
    OpenMetrics,
    /// SARIF, the format of results of static analysis, which code scanning reads.
    Sarif,
    /// Workflow commands of GitHub Actions, which annotate a run.
    Github,
    /// Rows as CSV.
    Csv,
    /// Rows as Parquet.
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

    /// The format of that name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// The name on the command line, and the extensions of files.
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

    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.table().0
    }

    /// Extensions of files in this format, the usual one first.
    #[must_use]
    pub const fn extensions(self) -> &'static [&'static str] {
        self.table().1
    }

    /// Whether lists are as long as people read them.
    #[must_use]
    pub const fn is_read_whole(self) -> bool {
        matches!(self, Self::Text | Self::Md)
    }

    /// Whether the report is made of all allocating stacks, and of nothing else.
    #[must_use]
    pub const fn is_of_stacks(self) -> bool {
        matches!(self, Self::Collapsed | Self::Pprof | Self::Svg)
    }

    /// Whether all allocating stacks are looked at to write a report about them.
    #[must_use]
    pub const fn shows_stacks(self) -> bool {
        self.is_of_stacks() || matches!(self, Self::Html)
    }

    /// Whether it shows stacks as a tree, from either end.
    #[must_use]
    pub const fn is_flame(self) -> bool {
        matches!(self, Self::Html | Self::Svg | Self::Collapsed)
    }

    /// Whether the report is rows, and nothing else.
    #[must_use]
    pub const fn is_of_rows(self) -> bool {
        matches!(self, Self::Csv | Self::Parquet)
    }

    /// The extension of a file in this format.
    #[must_use]
    pub const fn extension(self) -> &'static str {
        self.extensions()[0]
    }
}
