//! Errors: damage in recordings, with its offset.

use std::io;

/// The reason why nothing of a recording can be read.
#[derive(Debug, thiserror::Error)]
pub enum JfrError {
    /// The operating system reported an error.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The first bytes of the file are not those of a recording.
    #[error("not a JFR recording: it begins with {}", format_first_bytes(.0))]
    NotARecording(Vec<u8>),
    /// No chunk could be read.
    #[error("no part of the recording can be read: {0}")]
    Unreadable(Damage),
}

/// Damage in a recording.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("byte {offset}: {fault}")]
pub struct Damage {
    /// The offset of the damage in bytes, from the start of the file. In a gzipped file, the offset is in the
    /// decompressed content.
    pub offset: u64,
    /// The kind of damage.
    pub fault: Fault,
}

/// A kind of damage.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the error messages describe the variants")]
pub enum Fault {
    #[error("expected the start of a chunk, found {}", format_first_bytes(.0))]
    Magic(Vec<u8>),
    #[error("a chunk has the format {major}.{minor}; heapdiff reads formats 1 and 2")]
    Version { major: u16, minor: u16 },
    #[error("a chunk has the impossible size of {0} bytes")]
    ChunkSize(u64),
    #[error("a chunk is truncated: it needs {size} bytes, but the file has only {there} more")]
    Cut { size: u64, there: u64 },
    #[error("the rest of the recording cannot be decompressed or read: {0}")]
    Stream(String),
    #[error("the JVM had not finished this chunk: the last events are missing")]
    Open,
    #[error("the chunk is incomplete: the description of its events is missing")]
    Unfinished,
    #[error("the clock has the impossible rate of {0} ticks per second")]
    Clock(i64),
    #[error("an event has the impossible size of {0} bytes")]
    EventSize(u64),
    #[error("the data ends inside {0}")]
    Short(&'static str),
    #[error("a string has the unknown encoding {0}")]
    Encoding(u8),
    #[error("the metadata has {count} strings, but no string {index}")]
    MetadataString { index: u64, count: usize },
    #[error("`{0}` is not a number")]
    Number(String),
    #[error("the metadata does not describe the type {0} of a field")]
    UnknownType(i64),
    #[error("the recording has more than {most} {what}")]
    Limit { what: &'static str, most: u64 },
}

impl Fault {
    pub(crate) fn at(self, offset: u64) -> Damage {
        Damage {
            offset,
            fault: self,
        }
    }
}

/// Formats the first bytes of a file for an error message.
fn format_first_bytes(bytes: &[u8]) -> String {
    match bytes {
        [] => "nothing (the file is empty)".to_owned(),
        _ => format!("\"{}\"", bytes.escape_ascii()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_has_its_own_message() {
        let told = [
            (
                Fault::Magic(Vec::new()),
                "expected the start of a chunk, found nothing (the file is empty)",
            ),
            (
                Fault::Magic(b"FL".to_vec()),
                "expected the start of a chunk, found \"FL\"",
            ),
            (
                Fault::Version { major: 9, minor: 1 },
                "a chunk has the format 9.1; heapdiff reads formats 1 and 2",
            ),
            (
                Fault::ChunkSize(3),
                "a chunk has the impossible size of 3 bytes",
            ),
            (
                Fault::Cut { size: 9, there: 4 },
                "a chunk is truncated: it needs 9 bytes, but the file has only 4 more",
            ),
            (
                Fault::Stream("crc".to_owned()),
                "the rest of the recording cannot be decompressed or read: crc",
            ),
            (
                Fault::Open,
                "the JVM had not finished this chunk: the last events are missing",
            ),
            (
                Fault::Unfinished,
                "the chunk is incomplete: the description of its events is missing",
            ),
            (
                Fault::Clock(0),
                "the clock has the impossible rate of 0 ticks per second",
            ),
            (
                Fault::EventSize(0),
                "an event has the impossible size of 0 bytes",
            ),
            (Fault::Short("an event"), "the data ends inside an event"),
            (Fault::Encoding(7), "a string has the unknown encoding 7"),
            (
                Fault::MetadataString { index: 5, count: 4 },
                "the metadata has 4 strings, but no string 5",
            ),
            (Fault::Number("x".to_owned()), "`x` is not a number"),
            (
                Fault::UnknownType(8),
                "the metadata does not describe the type 8 of a field",
            ),
        ];
        for (fault, _) in &told {
            let text = fault.to_string();
            let fits = told.iter().filter(|(_, said)| text == *said);
            assert!(fits.map(|(of, _)| of).eq([fault]), "{text}");
        }
    }

    #[test]
    fn unreadable_recordings_are_reported() {
        let other = JfrError::NotARecording(b"PK".to_vec()).to_string();
        assert_eq!(other, "not a JFR recording: it begins with \"PK\"");
        let unreadable = JfrError::Unreadable(Fault::Open.at(7)).to_string();
        assert!(unreadable.starts_with("no part of the recording can be read: byte 7: the JVM"));
        assert!(
            !other.contains("no part of the recording")
                && !unreadable.contains("not a JFR recording")
        );
    }
}
