//! Compresses dumps as one stream, like `gzip`, or in independent blocks, like the JDK.

use std::io::{self, Write};

use flate2::{Compression, GzBuilder};

/// The compression of a dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gzip {
    /// No compression.
    None,
    /// One gzip member, as `gzip` writes it.
    Plain,
    /// One gzip member for each block of `bytes` bytes. The comment in the first member's header contains this number,
    /// as in the output of `jcmd GC.heap_dump -gz=1`.
    Blocks {
        /// Uncompressed bytes of a block.
        bytes: usize,
    },
}

/// Compresses a whole dump.
pub fn compress(dump: &[u8], gzip: Gzip) -> io::Result<Vec<u8>> {
    match gzip {
        Gzip::None => Ok(dump.to_vec()),
        Gzip::Plain => member(dump, GzBuilder::new(), Vec::new()),
        Gzip::Blocks { bytes } => {
            let mut out = Vec::new();
            for (i, block) in dump.chunks(bytes.max(1)).enumerate() {
                let builder = match i {
                    0 => GzBuilder::new().comment(format!("HPROF BLOCKSIZE={bytes}")),
                    _ => GzBuilder::new(),
                };
                out = member(block, builder, out)?;
            }
            Ok(out)
        }
    }
}

fn member(bytes: &[u8], builder: GzBuilder, out: Vec<u8>) -> io::Result<Vec<u8>> {
    let mut encoder = builder.write(out, Compression::fast());
    encoder.write_all(bytes)?;
    encoder.finish()
}
