//! What is wrong with a recording, and where.

use std::io;

/// Why nothing of a recording can be read.
#[derive(Debug, thiserror::Error)]
pub enum JfrError {
    /// The system's word.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The file begins with something else.
    #[error("not a flight recording: it begins with {}", shown(.0))]
    NotARecording(Vec<u8>),
    /// No chunk of it could be read.
    #[error("no part of the recording can be read: {0}")]
    Unreadable(Damage),
}

/// Something in a recording that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("byte {offset}: {fault}")]
pub struct Damage {
    /// Where, in bytes from the start of the file (of what it decompresses to).
    pub offset: u64,
    /// What.
    pub fault: Fault,
}

/// What is wrong there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum Fault {
    #[error("no chunk begins here, but {}", shown(.0))]
    Magic(Vec<u8>),
    #[error("a chunk of format {major}.{minor}; formats 1 and 2 are known")]
    Version { major: u16, minor: u16 },
    #[error("a chunk cannot have {0} bytes")]
    ChunkSize(u64),
    #[error("a chunk of {size} bytes begins here, and the file ends after {there} of them")]
    Cut { size: u64, there: u64 },
    #[error("the rest cannot be decompressed or read: {0}")]
    Stream(String),
    #[error("the JVM was not done with this chunk: what it recorded last is missing")]
    Open,
    #[error("the chunk was never finished: nothing in it says what its events mean")]
    Unfinished,
    #[error("a clock with {0} ticks a second")]
    Clock(i64),
    #[error("an event cannot have {0} bytes here")]
    EventSize(u64),
    #[error("it ends within {0}")]
    Short(&'static str),
    #[error("a string of the encoding {0}")]
    Encoding(u8),
    #[error("string {index} of the metadata, which has {count}")]
    MetadataString { index: u64, count: usize },
    #[error("`{0}` is not a number")]
    Number(String),
    #[error("a field of type {0}, which the metadata does not describe")]
    UnknownType(i64),
    #[error("more than {most} {what}")]
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

/// Bytes as a person can tell what they are.
fn shown(bytes: &[u8]) -> String {
    match bytes {
        [] => "nothing (it is empty)".to_owned(),
        _ => format!("\"{}\"", bytes.escape_ascii()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_is_told_as_what_it_is() {
        let told = [
            (
                Fault::Magic(Vec::new()),
                "no chunk begins here, but nothing (it is empty)",
            ),
            (
                Fault::Magic(b"FL".to_vec()),
                "no chunk begins here, but \"FL\"",
            ),
            (
                Fault::Version { major: 9, minor: 1 },
                "a chunk of format 9.1; formats 1 and 2 are known",
            ),
            (Fault::ChunkSize(3), "a chunk cannot have 3 bytes"),
            (
                Fault::Cut { size: 9, there: 4 },
                "a chunk of 9 bytes begins here, and the file ends after 4 of them",
            ),
            (
                Fault::Stream("crc".to_owned()),
                "the rest cannot be decompressed or read: crc",
            ),
            (
                Fault::Open,
                "the JVM was not done with this chunk: what it recorded last is missing",
            ),
            (
                Fault::Unfinished,
                "the chunk was never finished: nothing in it says what its events mean",
            ),
            (Fault::Clock(0), "a clock with 0 ticks a second"),
            (Fault::EventSize(0), "an event cannot have 0 bytes here"),
            (Fault::Short("an event"), "it ends within an event"),
            (Fault::Encoding(7), "a string of the encoding 7"),
            (
                Fault::MetadataString { index: 5, count: 4 },
                "string 5 of the metadata, which has 4",
            ),
            (Fault::Number("x".to_owned()), "`x` is not a number"),
            (
                Fault::UnknownType(8),
                "a field of type 8, which the metadata does not describe",
            ),
        ];
        for (fault, _) in &told {
            let text = fault.to_string();
            let fits = told.iter().filter(|(_, said)| text == *said);
            assert!(fits.map(|(of, _)| of).eq([fault]), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_read_at_all_is_told() {
        let other = JfrError::NotARecording(b"PK".to_vec()).to_string();
        assert_eq!(other, "not a flight recording: it begins with \"PK\"");
        let unreadable = JfrError::Unreadable(Fault::Open.at(7)).to_string();
        assert!(unreadable.starts_with("no part of the recording can be read: byte 7: the JVM"));
        assert!(
            !other.contains("no part of the recording")
                && !unreadable.contains("not a flight recording")
        );
    }
}
