//! The destination and the format of a report. [`Output::new`] checks the destination, and chooses the format if the
//! user gave none.

use std::path::{Path, PathBuf};

use heapdiff_diff::Frames;
use heapdiff_report::{Format, Style};

use crate::failure::{Failure, Result};
use crate::style::When;

/// A format, and the file to write.
#[derive(Clone, Debug, Default)]
pub(crate) struct Output {
    pub(crate) format: Format,
    /// `None` means standard output.
    pub(crate) file: Option<PathBuf>,
    pub(crate) color: When,
    /// The frames of a stack that the text format shows. `None` if no option on the command line selects them.
    pub(crate) frames: Option<Frames>,
    /// True if the text format shows internals: the object layout, and the agent's own memory.
    pub(crate) verbose: bool,
}

impl Output {
    /// Returns a copy of the style `colours` that follows the user's options in [`Self::frames`] and [`Self::verbose`].
    pub(crate) const fn style(&self, colours: Style) -> Style {
        colours
            .with_frames(self.frames)
            .with_internals(self.verbose)
    }

    /// Creates an output. If no format is given, the extension of the file determines the format. Refuses a path that
    /// cannot be a file.
    pub(crate) fn new(format: Option<Format>, file: Option<PathBuf>, color: When) -> Result<Self> {
        let Some(path) = &file else {
            return Ok(Self {
                format: format.unwrap_or_default(),
                color,
                ..Self::default()
            });
        };
        check_file(path)?;
        let format = match format {
            Some(format) => format,
            None => format_of(path)?,
        };
        Ok(Self {
            format,
            file,
            color,
            ..Self::default()
        })
    }
}

/// Refuses a path of `-o` that cannot be a file.
pub(crate) fn check_file(path: &Path) -> Result<()> {
    let shown = path.display();
    if path.is_dir() {
        let message = format!("-o {shown}: this is a directory");
        return Err(Failure::usage(message).with_hint("give a file name"));
    }
    let folder = folder_of(path);
    if !folder.is_dir() {
        let message = format!("-o {shown}: the folder {} does not exist", folder.display());
        return Err(Failure::usage(message));
    }
    Ok(())
}

/// Returns the format for the extension of a file.
fn format_of(path: &Path) -> Result<Format> {
    let name = path
        .file_name()
        .and_then(|n| n.to_str())
        .unwrap_or_default();
    let name = name.to_ascii_lowercase();
    let has = |extension: &str| {
        let stem = name.strip_suffix(extension);
        stem.is_some_and(|stem| stem.ends_with('.'))
    };
    let mut formats = Format::ALL.into_iter();
    let found = formats.find(|format| format.extensions().iter().any(|e| has(e)));
    found.ok_or_else(|| {
        let message = format!("-o {}: unknown extension", path.display());
        let names = Format::ALL.map(Format::name);
        Failure::usage(message)
            .with_hint(format!("give the format with --format {}", names.join("|")))
    })
}

/// Returns the folder that contains a file.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}
