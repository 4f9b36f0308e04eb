//! Reads the performance counters that a JVM writes to a file for `jps` and `jstat`, unless it runs with
//! `-XX:-UsePerfData`.
//!
//! The file is `/tmp/hsperfdata_USER/PID`. A header of 32 bytes is followed by entries. Integers have the byte order of
//! the machine. HotSpot's source describes the format in `perfMemory.hpp` and `perfData.hpp`, version 2.0.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::folder::Folder;

/// Maximum number of bytes that are read from a JVM's file of performance counters. HotSpot reserves 32 KiB for this
/// file.
const LARGEST: u64 = 1 << 20;
/// The first bytes of the file. They do not depend on the byte order.
const MAGIC: [u8; 4] = [0xca, 0xfe, 0xc0, 0xc0];
/// Offset of the byte that gives the byte order: 1 if integers are little-endian.
const ORDER: usize = 4;
/// Positions of two header fields: the offset of the first entry, and the number of entries.
const FIRST: usize = 24;
const ENTRIES: usize = 28;
/// Maximum difference in bytes between two sizes that HotSpot reports with G1: the maximum size of a generation, and
/// the maximum size of the whole heap.
const PADDING: u64 = 64;
/// The type of an entry with one 64-bit integer.
const LONG: u8 = b'J';

/// The integer counters of a JVM, each with its name.
#[derive(Debug, Default)]
pub(super) struct PerfData(HashMap<String, i64>);

impl PerfData {
    /// Reads the counters of a process from the file with this name; `None` if this user may not read the file, or if
    /// it is malformed.
    pub(super) fn read(pid: u32, file: &str) -> Option<Self> {
        Self::parse(&read(pid, Path::new(file)).ok()?)
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        if bytes.get(..MAGIC.len())? != MAGIC {
            return None;
        }
        let little = *bytes.get(ORDER)? == 1;
        let int = |at: usize| -> Option<usize> {
            let raw: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
            let value = if little {
                u32::from_le_bytes(raw)
            } else {
                u32::from_be_bytes(raw)
            };
            usize::try_from(value).ok().filter(|&v| v <= bytes.len())
        };
        let mut counters = HashMap::new();
        let mut at = int(FIRST)?;
        for _ in 0..int(ENTRIES)? {
            // Layout of an entry. The fields in order: length of the entry, offset of the name, length of an array,
            // type (1 byte), 3 unused bytes, offset of the value.
            let (length, name, elements) = (int(at)?, int(at + 4)?, int(at + 8)?);
            let (kind, value) = (*bytes.get(at + 12)?, int(at + 16)?);
            if length == 0 {
                break;
            }
            if kind == LONG && elements == 0 {
                let name = bytes.get(at + name..)?.split(|&b| b == 0).next()?;
                let raw: [u8; 8] = bytes.get(at + value..at + value + 8)?.try_into().ok()?;
                let value = if little {
                    i64::from_le_bytes(raw)
                } else {
                    i64::from_be_bytes(raw)
                };
                counters.insert(String::from_utf8_lossy(name).into_owned(), value);
            }
            at += length;
        }
        Some(Self(counters))
    }

    /// Returns the used bytes and the maximum size of the heap. Most garbage collectors update the used bytes at each
    /// GC.
    pub(super) fn heap(&self) -> Option<(u64, u64)> {
        let is_used = |name: &str| {
            name.starts_with("sun.gc.generation.")
                && name.contains(".space.")
                && name.ends_with(".used")
        };
        let used = self.0.iter().filter(|(name, _)| is_used(name));
        let used = used.map(|(_, &bytes)| u64::try_from(bytes).unwrap_or(0));
        let [young, eden, old] = ["0", "0.space.0", "1"].map(|part| {
            let name = format!("sun.gc.generation.{part}.maxCapacity");
            let bytes = self.0.get(&name).copied().unwrap_or(0);
            u64::try_from(bytes).unwrap_or(0)
        });
        // With G1, the maximum size of each generation is nearly that of the whole heap. So the sizes of the
        // generations are not added up.
        let max = if young > 0 && young.abs_diff(eden) <= PADDING {
            old & !(PADDING - 1)
        } else {
            young.saturating_add(old)
        };
        (max > 0).then(|| (used.fold(0, u64::saturating_add), max))
    }
}

/// Reads a file by its path in the file system of the process. Links cannot lead outside the root of the process.
fn read(pid: u32, path: &Path) -> io::Result<Vec<u8>> {
    let file: File = Folder::root_of(pid)?.file(path)?;
    let mut bytes = Vec::new();
    file.take(LARGEST).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the bytes of a performance data file with these counters.
    fn file(counters: &[(&str, i64)]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([1, 2, 0, 1]);
        bytes.resize(FIRST, 0);
        bytes.extend(32u32.to_le_bytes());
        bytes.extend((counters.len() as u32).to_le_bytes());
        for (name, value) in counters {
            let value_at = (20 + name.len() + 1).next_multiple_of(8);
            let length = value_at + 8;
            let mut entry = Vec::new();
            entry.extend((length as u32).to_le_bytes());
            entry.extend(20u32.to_le_bytes());
            entry.extend(0u32.to_le_bytes());
            entry.extend([LONG, 0, 0, 0]);
            entry.extend((value_at as u32).to_le_bytes());
            entry.extend(name.as_bytes());
            entry.resize(value_at, 0);
            entry.extend(value.to_le_bytes());
            bytes.extend(entry);
        }
        bytes
    }

    fn heap(counters: &[(&str, i64)]) -> Option<(u64, u64)> {
        PerfData::parse(&file(counters))?.heap()
    }

    #[test]
    fn the_heap_size_is_read_for_each_collector() {
        let serial = [
            ("sun.gc.generation.0.maxCapacity", 69_861_376),
            ("sun.gc.generation.0.space.0.maxCapacity", 55_967_744),
            ("sun.gc.generation.0.space.0.used", 1_085_056),
            ("sun.gc.generation.1.maxCapacity", 139_853_824),
            ("sun.gc.generation.1.space.0.used", 23_332_952),
            ("sun.gc.metaspace.used", 7),
        ];
        assert_eq!(heap(&serial), Some((24_418_008, 209_715_200)));
        let g1 = [
            ("sun.gc.generation.0.maxCapacity", 209_715_224),
            ("sun.gc.generation.0.space.0.maxCapacity", 209_715_208),
            ("sun.gc.generation.1.maxCapacity", 209_715_208),
            ("sun.gc.generation.1.space.0.used", 44_957_848),
        ];
        assert_eq!(heap(&g1), Some((44_957_848, 209_715_200)));
        let zgc = [
            ("sun.gc.generation.1.maxCapacity", 209_715_200),
            ("sun.gc.generation.1.space.0.used", 50_331_648),
        ];
        assert_eq!(heap(&zgc), Some((50_331_648, 209_715_200)));
        assert_eq!(heap(&[]), None);
    }

    #[test]
    fn a_hostile_file_has_no_counters_and_does_no_harm() {
        let whole = file(&[("sun.gc.generation.1.maxCapacity", -1)]);
        assert_eq!(PerfData::parse(&whole).and_then(|data| data.heap()), None);
        for cut in 0..whole.len() {
            let _ = PerfData::parse(&whole[..cut]);
        }
        for at in 0..whole.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut changed = whole.clone();
                changed[at] = value;
                let _ = PerfData::parse(&changed);
            }
        }
    }
}
