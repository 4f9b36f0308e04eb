//! The dump's bytes: a mapped file, or what a gzip file decompresses to.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use memmap2::Mmap;

use crate::error::{Error, Result, Warning};
use crate::{gzip, mem};

/// Decompressed dumps larger than this go to an unlinked temporary file.
const IN_MEMORY: usize = 64 << 20;

/// The bytes of one dump.
#[derive(Debug)]
pub struct Source {
    bytes: Bytes,
    path: PathBuf,
    file_bytes: u64,
    warnings: Vec<Warning>,
}

#[derive(Debug)]
enum Bytes {
    Mapped(Mmap),
    Memory(Vec<u8>),
}

impl Source {
    /// Opens a dump. A gzip file (plain, or block-wise as `jcmd GC.heap_dump -gz` writes it, whose
    /// blocks are decompressed in parallel) is decompressed first: in memory when small, else to
    /// a temporary file that has no name and goes with this process.
    ///
    /// # Errors
    /// When the file cannot be opened or read, or there is no room for the temporary file.
    pub fn open(path: &Path) -> Result<Self> {
        let fail = |source| Error::Io {
            path: path.to_path_buf(),
            source,
        };
        let file = File::open(path).map_err(fail)?;
        let meta = file.metadata().map_err(fail)?;
        if meta.is_dir() {
            return Err(fail(std::io::Error::other(
                "is a directory, not a heap dump",
            )));
        }
        let mapped = if meta.is_file() {
            if meta.len() == 0 {
                return Err(Error::NotADump("the file is empty".into()));
            }
            Bytes::Mapped(mem::map_file(&file).map_err(fail)?)
        } else {
            // A pipe (`<(zcat x)`) has no length and cannot be mapped.
            let mut sink = Sink::new(path);
            std::io::copy(&mut &file, &mut sink).map_err(fail)?;
            sink.finish()?
        };
        let mut source = Self {
            file_bytes: mapped.len() as u64,
            bytes: mapped,
            path: path.to_path_buf(),
            warnings: Vec::new(),
        };
        if gzip::is_gzip(&source) {
            let mut sink = Sink::new(path);
            let warning = gzip::decompress(&source, &mut sink).map_err(fail)?;
            source.bytes = sink.finish()?;
            source.warnings.extend(warning);
        }
        Ok(source)
    }

    /// A dump already in memory (tests, fuzzing).
    #[must_use]
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        let file_bytes = bytes.len() as u64;
        let path = PathBuf::from("(memory)");
        let mut source = Self {
            bytes: Bytes::Memory(bytes),
            path,
            file_bytes,
            warnings: Vec::new(),
        };
        if gzip::is_gzip(&source) {
            let mut sink = Sink::new(&source.path);
            match gzip::decompress(&source, &mut sink).map(|w| (w, sink.finish())) {
                Ok((warning, Ok(bytes))) => {
                    source.bytes = bytes;
                    source.warnings.extend(warning);
                }
                Ok((_, Err(e))) => source.warnings.push(Warning::damage(0, e.to_string())),
                Err(e) => source.warnings.push(Warning::damage(0, e.to_string())),
            }
        }
        source
    }

    /// Where the dump was read from.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file's size on disk, compressed if it is.
    #[must_use]
    pub const fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    pub(crate) fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Prepares a range for one sequential pass.
    pub(crate) fn will_read(&self, offset: usize, len: usize) {
        if let Bytes::Mapped(map) = &self.bytes {
            mem::populate(map, offset, len);
        }
    }
}

impl Bytes {
    fn len(&self) -> usize {
        match self {
            Self::Mapped(m) => m.len(),
            Self::Memory(v) => v.len(),
        }
    }
}

impl std::ops::Deref for Source {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Mapped(m) => m,
            Bytes::Memory(v) => v,
        }
    }
}

/// Collects decompressed bytes: in memory at first, in an unlinked file once they are many.
struct Sink {
    memory: Vec<u8>,
    file: Option<File>,
    path: PathBuf,
}

impl Sink {
    fn new(path: &Path) -> Self {
        Self {
            memory: Vec::new(),
            file: None,
            path: path.to_path_buf(),
        }
    }

    fn spill(&mut self) -> std::io::Result<()> {
        let mut file = tempfile::tempfile()?;
        file.write_all(&self.memory)?;
        self.memory = Vec::new();
        self.file = Some(file);
        Ok(())
    }

    fn finish(self) -> Result<Bytes> {
        let fail = |source| Error::Io {
            path: self.path.clone(),
            source,
        };
        match self.file {
            None if self.memory.is_empty() => Err(Error::NotADump("the file is empty".into())),
            None => Ok(Bytes::Memory(self.memory)),
            Some(file) => Ok(Bytes::Mapped(mem::map_file(&file).map_err(fail)?)),
        }
    }
}

impl Write for Sink {
    fn write(&mut self, buf: &[u8]) -> std::io::Result<usize> {
        if self.file.is_none() && self.memory.len() + buf.len() > IN_MEMORY {
            self.spill()?;
        }
        match &mut self.file {
            Some(file) => file.write_all(buf).map_err(|e| {
                std::io::Error::new(
                    e.kind(),
                    format!("writing the decompressed dump to a temporary file: {e}"),
                )
            })?,
            None => self.memory.extend_from_slice(buf),
        }
        Ok(buf.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
