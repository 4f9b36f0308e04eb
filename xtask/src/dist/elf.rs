//! Checks what a program or library for Linux needs from the system: versions of glibc symbols, other libraries, or
//! nothing.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail, ensure};

use crate::tryout::output;

/// Fails if a file needs a glibc that is later than `oldest`, or a library that some systems lack. The error lists the
/// symbols of the later glibc.
pub(super) fn check_glibc(file: &Path, oldest: (u32, u32)) -> Result<()> {
    const EVERYWHERE: [&str; 7] = [
        "libc.so.6",
        "libm.so.6",
        "libdl.so.2",
        "librt.so.1",
        "libpthread.so.0",
        "ld-linux-x86-64.so.2",
        "ld-linux-aarch64.so.1",
    ];
    let symbols = read(file, "--dyn-syms")?;
    let Some(((major, minor), symbol)) = highest(&symbols) else {
        bail!(
            "{}: found no glibc symbol, but each build needs some",
            file.display()
        );
    };
    println!(
        "{}: needs glibc {major}.{minor} or later (for {symbol})",
        file.display()
    );
    let versions = read(file, "--version-info")?;
    let later = later(&symbols, &versions, oldest);
    ensure!(
        later.is_empty(),
        "{} does not start with glibc {}.{}, because it needs {}",
        file.display(),
        oldest.0,
        oldest.1,
        later.join(", ")
    );
    for library in needed(&read(file, "--dynamic")?) {
        ensure!(
            EVERYWHERE.contains(&library),
            "{}: needs {library}",
            file.display()
        );
    }
    Ok(())
}

/// Fails if a library needs any library except the C library of musl, whose symbols have no versions.
pub(super) fn check_musl(file: &Path) -> Result<()> {
    let dynamic = read(file, "--dynamic")?;
    let libraries: Vec<&str> = needed(&dynamic).collect();
    ensure!(
        libraries.iter().all(|name| *name == "libc.so"),
        "{}: needs {}",
        file.display(),
        libraries.join(", ")
    );
    Ok(())
}

/// Fails if a program needs a library or a loader of the system.
pub(crate) fn check_static(file: &Path) -> Result<()> {
    let dynamic = read(file, "--dynamic")?;
    let headers = read(file, "--program-headers")?;
    ensure!(
        needed(&dynamic).next().is_none() && !headers.contains("INTERP"),
        "{} is not static",
        file.display()
    );
    Ok(())
}

fn read(file: &Path, what: &str) -> Result<String> {
    output(Command::new("readelf").args(["-W", what]).arg(file))
}

/// Prefix of the version names of glibc.
const VERSION: &str = "GLIBC_";

/// Returns the symbols (from `readelf --dyn-syms`) and versions (from `readelf --version-info`) that glibc `oldest`
/// lacks. Versions are checked in addition to symbols, because the loader also requires versions that no symbol has. An
/// example is the version for a certain kind of relocations.
fn later<'t>(symbols: &'t str, versions: &'t str, oldest: (u32, u32)) -> Vec<&'t str> {
    // Treat a version name without a number as later than `oldest`, because it is unknown which glibc has it.
    let is_later = |version: &str| match version.strip_prefix(VERSION) {
        Some(rest) => number(rest).is_none_or(|number| number > oldest),
        None => false,
    };
    let mut later: Vec<&str> = symbols
        .split_whitespace()
        .filter(|symbol| version_of(symbol).is_some_and(&is_later))
        .collect();
    let named = versions.lines().filter_map(|line| {
        let (_, rest) = line.split_once("Name: ")?;
        rest.split_whitespace().next()
    });
    for version in named.filter(|version| is_later(version)) {
        let is_it = |symbol: &&str| *symbol == version || version_of(symbol) == Some(version);
        if !later.iter().any(is_it) {
            later.push(version);
        }
    }
    later
}

/// Returns the version in a symbol's name, if it has one.
fn version_of(symbol: &str) -> Option<&str> {
    symbol.rsplit_once('@').map(|(_, version)| version)
}

/// Returns the first two numbers of a version. For `2.2.5` these are 2 and 2.
fn number(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split('.').map(str::parse);
    match (parts.next(), parts.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => Some((major, minor)),
        _ => None,
    }
}

/// Returns the highest glibc version among the symbols of `readelf --dyn-syms`, and the symbol that needs it.
fn highest(symbols: &str) -> Option<((u32, u32), &str)> {
    let versions = symbols.split_whitespace().filter_map(|word| {
        let (symbol, version) = word.split_once('@')?;
        Some((number(version.strip_prefix(VERSION)?)?, symbol))
    });
    versions.max()
}

/// Returns the libraries that `readelf --dynamic` lists.
fn needed(dynamic: &str) -> impl Iterator<Item = &str> {
    dynamic
        .lines()
        .filter(|line| line.contains("(NEEDED)"))
        .filter_map(|line| {
            let (_, name) = line.split_once('[')?;
            name.strip_suffix(']')
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_numbers() {
        let symbols = "
     1: 0000000000000000     0 FUNC    GLOBAL DEFAULT  UND malloc@GLIBC_2.2.5 (2)
     2: 0000000000000000     0 FUNC    GLOBAL DEFAULT  UND getrandom@GLIBC_2.25 (3)
     3: 0000000000000000     0 FUNC    WEAK   DEFAULT  UND gnu_get_libc_version@GLIBC_2.9 (4)
     4: 0000000000000000     0 NOTYPE  WEAK   DEFAULT  UND statx
     5: 0000000000000000     0 FUNC    GLOBAL DEFAULT  UND __errno_location@GLIBC_PRIVATE (5)";
        assert_eq!(highest(symbols), Some(((2, 25), "getrandom")));
        assert_eq!(highest(""), None);
    }

    #[test]
    fn symbols_missing_in_an_older_glibc_are_named() {
        let symbols = "
     1: 0000000000000000     0 FUNC    GLOBAL DEFAULT  UND malloc@GLIBC_2.2.5 (2)
     2: 0000000000000000     0 FUNC    GLOBAL DEFAULT  UND clock_gettime@GLIBC_2.17 (7)
     3: 0000000000000000     0 FUNC    GLOBAL DEFAULT  UND dlopen@GLIBC_2.34 (3)
     4: 0000000000000000     0 FUNC    GLOBAL DEFAULT  UND _Unwind_Resume@GCC_3.0 (4)
     5: 0000000000000000     0 FUNC    GLOBAL DEFAULT  UND __res@GLIBC_PRIVATE (5)
     6: 0000000000000000     0 NOTYPE  WEAK   DEFAULT  UND statx";
        let versions = "
  000000: Version: 1  File: libc.so.6  Cnt: 5
  0x0010:   Name: GLIBC_2.2.5  Flags: none  Version: 2
  0x0020:   Name: GLIBC_2.17  Flags: none  Version: 7
  0x0030:   Name: GLIBC_2.34  Flags: none  Version: 3
  0x0040:   Name: GLIBC_PRIVATE  Flags: none  Version: 5
  0x0050:   Name: GLIBC_ABI_DT_RELR  Flags: none  Version: 6";
        let lacks = |oldest| later(symbols, versions, oldest);
        let always = ["__res@GLIBC_PRIVATE", "GLIBC_ABI_DT_RELR"];
        assert_eq!(
            lacks((2, 17)),
            [&["dlopen@GLIBC_2.34"], &always[..]].concat()
        );
        assert_eq!(lacks((2, 34)), always);
        assert_eq!(later("", "", (2, 17)), [""; 0]);
    }

    /// The executable of this test is linked to the glibc of this machine, so the check must reject it.
    #[test]
    fn a_program_for_later_systems_is_refused() {
        let this = std::env::current_exe().expect("a path");
        let error = check_glibc(&this, (2, 1))
            .expect_err("it is later")
            .to_string();
        assert!(
            error.contains("does not start with glibc 2.1, because it needs "),
            "{error}"
        );
        assert!(
            error.contains("malloc@GLIBC_2.") && !error.contains("@GCC_"),
            "{error}"
        );
    }

    /// The executable of this test is linked to libraries of this machine, so the check must reject it.
    #[test]
    fn a_program_that_needs_libraries_is_not_static() {
        let this = std::env::current_exe().expect("a path");
        let error = check_static(&this).expect_err("it is dynamic").to_string();
        assert!(error.ends_with("is not static"), "{error}");
        let error = check_musl(&this).expect_err("it is for glibc").to_string();
        assert!(error.contains("libc.so.6"), "{error}");
    }

    #[test]
    fn libraries_are_read() {
        let dynamic = "
 0x0000000000000001 (NEEDED)             Shared library: [libm.so.6]
 0x0000000000000001 (NEEDED)             Shared library: [libc.so.6]
 0x000000000000000e (SONAME)             Library soname: [libheapdiff_agent.so]";
        assert_eq!(
            needed(dynamic).collect::<Vec<_>>(),
            ["libm.so.6", "libc.so.6"]
        );
    }
}
