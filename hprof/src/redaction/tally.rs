//! What a dump still holds, counted.

use std::ops::AddAssign;

/// So many things with content, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Things.
    pub count: u64,
    /// Bytes of them.
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

/// What a dump holds besides ids, sizes and references. Zeros count for nothing, nor do tokens where texts were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Left {
    /// Arrays of bytes and characters that hold texts or other content.
    pub texts: Amount,
    /// Other arrays of numbers.
    pub arrays: Amount,
    /// Names that no class, field, method or frame has: constants of programs among them.
    pub unused_names: Amount,
    /// Hashes of texts and keys, in fields of the JDK's classes.
    pub hashes: Amount,
    /// Texts in the tables that are kept that are no names, such as names of threads.
    pub table_texts: Amount,
    /// Numbers in fields that are to go.
    pub numbers: Amount,
    /// Bytes that no reader understands.
    pub unknown: Amount,
    /// Kept: names of classes, fields, methods and files.
    pub kept_names: Amount,
    /// Kept: texts that everybody knows, and what tells the JVM.
    pub kept_texts: Amount,
    /// Kept: arrays of the tables that are kept.
    pub kept_tables: Amount,
    /// Kept: numbers in fields.
    pub kept_numbers: Amount,
    /// Kept: numbers in the fields that the user requested.
    pub requested_numbers: Amount,
}

impl Left {
    /// Whether nothing is left that a redaction takes away.
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
