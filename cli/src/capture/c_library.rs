//! The C library that a process uses, or for which a build of the agent was made. A JVM can load only an agent that was
//! built for the JVM's own C library.

use std::fmt;
use std::path::Path;

use clap::ValueEnum;
use regex::bytes::Regex;

/// A C library on Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CLibrary {
    /// The GNU C library, which most distributions use.
    Glibc,
    /// The C library of Alpine Linux.
    Musl,
}

impl CLibrary {
    /// The C library for which this program was built.
    pub(super) const OWN: Self = if cfg!(target_env = "musl") {
        Self::Musl
    } else {
        Self::Glibc
    };

    /// Returns the C library that most programs on this machine use. A program that is linked statically runs on
    /// machines with either C library.
    pub(super) fn of_machine() -> Self {
        let loader = match std::env::consts::ARCH {
            "aarch64" => "/lib/ld-linux-aarch64.so.1",
            _ => "/lib64/ld-linux-x86-64.so.2",
        };
        if Path::new(loader).exists() {
            Self::Glibc
        } else {
            Self::OWN
        }
    }

    /// Returns the C library for which a shared library was built. `content` is the content of the shared library,
    /// which includes the file name of the required C library. Returns `None` if `content` names neither glibc nor
    /// musl.
    pub(super) fn of_library(content: &[u8]) -> Option<Self> {
        let name = Regex::new(r"\x00libc\.(so\.6\x00|so\x00|musl-)").ok()?;
        Some(match name.captures(content)?.get(1)?.as_bytes() {
            b"so.6\0" => Self::Glibc,
            _ => Self::Musl,
        })
    }

    /// True if a mapped file with this name is musl. In musl, the loader and the C library are one file, whose name
    /// depends on the distribution. The file of glibc is called `libc.so.6` or `libc-2.31.so`.
    pub(super) fn is_musl(name: &str) -> bool {
        name.starts_with("ld-musl-") || name.starts_with("libc.musl-") || name == "libc.so"
    }

    /// Returns musl for glibc, and glibc for musl.
    pub(super) const fn other(self) -> Self {
        match self {
            Self::Glibc => Self::Musl,
            Self::Musl => Self::Glibc,
        }
    }
}

impl fmt::Display for CLibrary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Glibc => "glibc",
            Self::Musl => "musl",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn musl_is_recognized_under_each_of_its_names() {
        for name in [
            "ld-musl-x86_64.so.1",
            "ld-musl-aarch64.so.1",
            "libc.musl-x86_64.so.1",
            "libc.so",
        ] {
            assert!(CLibrary::is_musl(name), "{name}");
        }
        for name in [
            "libc.so.6",
            "libc-2.31.so",
            "ld-linux-x86-64.so.2",
            "libjvm.so",
        ] {
            assert!(!CLibrary::is_musl(name), "{name}");
        }
    }

    #[test]
    fn a_library_requires_its_c_library_by_name() {
        let this = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        if CLibrary::OWN == CLibrary::Glibc {
            assert_eq!(CLibrary::of_library(&this), Some(CLibrary::Glibc));
        }
        for musl in [
            &b"\0libc.musl-x86_64.so.1\0libc.so.6x\0"[..],
            b"\0libc.so\0",
        ] {
            assert_eq!(CLibrary::of_library(musl), Some(CLibrary::Musl));
        }
        assert_eq!(CLibrary::of_library(b"no library"), None);
    }
}
