//! Counts the content in a dump: what a redaction has to remove, and what it keeps.

use std::ops::AddAssign;

/// A number of items with content, such as strings or arrays, and the bytes of these items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Number of items.
    pub count: u64,
    /// Number of bytes of these items.
    pub bytes: u64,
}

impl Amount {
    pub(super) const fn add(&mut self, bytes: usize) {
        self.count += 1;
        self.bytes += bytes as u64;
    }
}

impl AddAssign for Amount {
    fn add_assign(&mut self, other: Self) {
        self.count += other.count;
        self.bytes += other.bytes;
    }
}

/// The content of a dump, apart from ids, sizes and references. Zeros are not counted. Tokens, which replace strings,
/// are not counted either.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Left {
    /// Arrays of bytes and characters with the text of strings or other content.
    pub texts: Amount,
    /// Arrays of other primitive types.
    pub arrays: Amount,
    /// Names that belong to no class, field, method or frame, such as string constants of programs.
    pub unused_names: Amount,
    /// Hashes of strings and keys, in fields of JDK classes.
    pub hashes: Amount,
    /// Strings in kept tables, except names of classes, methods and files. Examples are names of threads.
    pub table_texts: Amount,
    /// Numbers in fields, if numbers are to be redacted.
    pub numbers: Amount,
    /// Bytes whose meaning is unknown.
    pub unknown: Amount,
    /// Kept: names of classes, fields, methods and files.
    pub kept_names: Amount,
    /// Kept: well-known strings, and strings that identify the JVM.
    pub kept_texts: Amount,
    /// Kept: arrays of the tables that reports need (see [`KeptTables`](super::KeptTables)).
    pub kept_tables: Amount,
    /// Kept: numbers in fields.
    pub kept_numbers: Amount,
    /// Kept: numbers in fields that the user requested to keep.
    pub requested_numbers: Amount,
}

impl Left {
    /// True if the dump has no content that a redaction removes.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        let left = [
            self.texts,
            self.arrays,
            self.unused_names,
            self.hashes,
            self.table_texts,
            self.numbers,
            self.unknown,
        ];
        left.iter().all(|l| l.count == 0)
    }
}

impl AddAssign for Left {
    fn add_assign(&mut self, other: Self) {
        self.texts += other.texts;
        self.arrays += other.arrays;
        self.unused_names += other.unused_names;
        self.hashes += other.hashes;
        self.table_texts += other.table_texts;
        self.numbers += other.numbers;
        self.unknown += other.unknown;
        self.kept_names += other.kept_names;
        self.kept_texts += other.kept_texts;
        self.kept_tables += other.kept_tables;
        self.kept_numbers += other.kept_numbers;
        self.requested_numbers += other.requested_numbers;
    }
}
