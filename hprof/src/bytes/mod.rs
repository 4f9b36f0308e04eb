//! The bytes of a dump and the memory of its analysis: files, gzip streams, mapped arrays, disks.

pub(crate) mod array;
pub(crate) mod disk;
pub(crate) mod gzip;
pub(crate) mod mem;
pub(crate) mod source;
pub(crate) mod stamp;
