//! What the fuzz targets and their smoke test run: one function for each way in. Each returns
//! whatever the bytes are; what it must not do is panic, hang, or take memory that they do not
//! justify.

use crate::outline::Outline;
use crate::{Histogram, ObjectIndex, Options, Silent, Snapshot, Source, gzip, record};

/// The header, and a hop over the records.
pub fn outline(bytes: &[u8]) {
    if let Ok(header) = record::header(bytes) {
        let outline = Outline::read(bytes, &header);
        let held: usize = outline.segments.iter().map(|s| s.len()).sum();
        assert!(held <= bytes.len(), "segments overlap");
    }
}

/// Decompression alone.
pub fn gzip(bytes: &[u8]) {
    let mut sink = std::io::sink();
    if gzip::is_gzip(bytes) {
        // A sink takes everything.
        let _ = gzip::decompress(bytes, &mut sink);
    }
}

/// A histogram, in one pass.
pub fn histogram(bytes: &[u8]) {
    let source = Source::from_bytes(bytes.to_vec());
    if let Ok(histogram) = Histogram::of(source, &Options::default(), &Silent) {
        assert_eq!(histogram.totals().len(), histogram.classes().len());
    }
}

/// The whole analysis, and a question or two about the first objects.
pub fn snapshot(bytes: &[u8]) {
    let source = Source::from_bytes(bytes.to_vec());
    let Ok(snapshot) = Snapshot::of(source, &Options::default(), &Silent) else {
        return;
    };
    let totals = snapshot.histogram();
    assert_eq!(totals.len(), snapshot.classes().len());
    let count = u32::try_from(snapshot.object_count()).unwrap_or(u32::MAX);
    let first: Vec<ObjectIndex> = (0..count.min(64)).map(ObjectIndex).collect();
    for &object in &first {
        let own = snapshot.shallow_bytes(object);
        if let Some(retained) = snapshot.retained_bytes(object) {
            assert!(retained >= own, "{object:?} retains less than itself");
        }
        let _ = (snapshot.name(object), snapshot.array_length(object));
    }
    let _ = (snapshot.read_all(&first), snapshot.strings(&first, 100));
    let _ = snapshot.threads();
}
