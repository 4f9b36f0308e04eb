//! Determines the paths of the files of a fleet (a folder with tables about many JVMs), and writes the files
//! atomically.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use heapdiff_tables::{Column, ParquetOptions, ParquetWriter};
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

use crate::{FleetError, Labels};

/// A partition of a table: the folder for the rows of one service, host and day.
pub(crate) struct Partition<'a> {
    pub(crate) service: &'a str,
    pub(crate) host: &'a str,
    /// Days since 1970, UTC.
    pub(crate) day: u64,
}

/// Milliseconds in a day.
pub(crate) const DAY_MS: u64 = 86_400_000;

impl<'a> Partition<'a> {
    pub(crate) fn new(labels: &'a Labels, service: &'a str, host: &'a str, day: u64) -> Self {
        let or_unknown = |name: &'a str| if name.is_empty() { "unknown" } else { name };
        Self {
            service: or_unknown(labels.service.as_deref().unwrap_or(service)),
            host: or_unknown(labels.host.as_deref().unwrap_or(host)),
            day,
        }
    }

    fn folder(&self, fleet: &Path, table: &str) -> PathBuf {
        fleet
            .join(table)
            .join(format!("service={}", escaped(self.service)))
            .join(format!("host={}", escaped(self.host)))
            .join(format!("day={}", date(self.day)))
    }
}

/// Formats a day as `2026-11-21`. A day after 9999-12-30 can come only from a damaged trace, and is formatted as
/// `9999-12-30`.
fn date(day: u64) -> String {
    const LAST: u64 = 2_932_895;
    let time = UNIX_EPOCH + Duration::from_secs(day.min(LAST) * 24 * 60 * 60);
    let mut text = humantime::format_rfc3339_seconds(time).to_string();
    text.truncate("2026-11-21".len());
    text
}

/// Escapes a partition value as Hive does: a character that a path or a partition cannot contain becomes `%2F`, for
/// example. A long value is truncated, and a hash of the whole value is appended, so that it stays unique.
fn escaped(value: &str) -> String {
    const LONGEST: usize = 120;
    let mut name = String::new();
    for byte in value.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'+' | b'@' | b' ' => {
                name.push(char::from(byte));
            }
            // Keep a dot that is not at the start. At the start it is escaped, because a folder must not be called
            // `..`.
            b'.' if !name.is_empty() => name.push('.'),
            _ => name.push_str(&format!("%{byte:02X}")),
        }
    }
    if name.len() > LONGEST {
        name.truncate(LONGEST);
        // If the value was truncated within an escape sequence, remove the incomplete sequence.
        if let Some(at) = name.rfind('%').filter(|&at| at + 3 > name.len()) {
            name.truncate(at);
        }
        name.push('-');
        name.push_str(&hash(&[value]));
    }
    name
}

/// Returns a hash of these strings as sixteen hexadecimal digits.
pub(crate) fn hash(texts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update(text.as_bytes());
        hash.update([0]);
    }
    let digest = hash.finalize();
    digest[..8].iter().map(|b| format!("{b:02x}")).collect()
}

/// A file that is being written.
pub(crate) struct Table {
    place: PathBuf,
    writer: ParquetWriter<BufWriter<NamedTempFile>>,
}

impl Table {
    /// Creates the file for the rows of one input in a partition.
    pub(crate) fn begin(
        fleet: &Path,
        table: &str,
        partition: &Partition<'_>,
        name: &str,
        columns: &[Column],
    ) -> Result<Self, FleetError> {
        let folder = partition.folder(fleet, table);
        let place = folder.join(format!("{}.parquet", escaped(name)));
        let begun = || {
            if is_foreign(&place) {
                let why = "the file exists and is not a Parquet file";
                return Err(std::io::Error::other(why).into());
            }
            std::fs::create_dir_all(&folder)?;
            // Query engines ignore files whose name begins with a dot.
            let mut temporary = tempfile::Builder::new();
            temporary.prefix(".heapdiff-").suffix(".parquet.tmp");
            // Set the permissions that an ordinary new file gets. A temporary file has fewer permissions.
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt;
                temporary.permissions(std::fs::Permissions::from_mode(0o666));
            }
            let file = temporary.tempfile_in(&folder)?;
            let options = ParquetOptions {
                created_by: concat!("heapdiff version ", env!("CARGO_PKG_VERSION")).to_owned(),
                ..ParquetOptions::default()
            };
            ParquetWriter::new(BufWriter::new(file), columns, options)
        };
        match begun() {
            Ok(writer) => Ok(Self { place, writer }),
            Err(source) => Err(FleetError::Write {
                path: place,
                source,
            }),
        }
    }

    pub(crate) fn row(&mut self, cells: &[heapdiff_tables::Cell<'_>]) -> Result<(), FleetError> {
        let written = heapdiff_tables::RowWriter::row(&mut self.writer, cells);
        written.map_err(|source| FleetError::Write {
            path: self.place.clone(),
            source,
        })
    }

    /// Moves the file to its final path. Returns the path and the number of rows.
    pub(crate) fn finish(self) -> Result<(PathBuf, u64), FleetError> {
        let Self { place, writer } = self;
        let rows = writer.rows();
        let finished = || {
            let mut out = writer.finish()?;
            out.flush()?;
            let file = out
                .into_inner()
                .map_err(std::io::IntoInnerError::into_error)?;
            file.persist(&place).map_err(|e| e.error)?;
            Ok(())
        };
        match finished() {
            Ok(()) => Ok((place, rows)),
            Err(source) => Err(FleetError::Write {
                path: place,
                source,
            }),
        }
    }
}

/// Returns true if the path leads to a file that is not a Parquet file. The file may be an input, so it must not be
/// overwritten.
fn is_foreign(place: &Path) -> bool {
    let mut start = Vec::new();
    let read = File::open(place).and_then(|file| file.take(4).read_to_end(&mut start));
    read.is_ok() && start != *b"PAR1"
}

#[cfg(test)]
mod tests {
    use super::{date, escaped};

    #[test]
    fn days_have_names() {
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(20_778), "2026-11-21");
        assert_eq!(date(u64::MAX), "9999-12-30");
    }

    #[test]
    fn label_values_cannot_leave_their_folder() {
        assert_eq!(escaped("shop-1.example"), "shop-1.example");
        assert_eq!(escaped("../../etc"), "%2E.%2F..%2Fetc");
        assert_eq!(escaped("a=b/c\n"), "a%3Db%2Fc%0A");
        let long = "ü".repeat(1000);
        assert!(escaped(&long).len() < 150, "{}", escaped(&long));
        assert_ne!(escaped(&long), escaped(&format!("{long}x")));
    }
}
