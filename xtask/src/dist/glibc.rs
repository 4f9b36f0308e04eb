//! Which versions of glibc's symbols a program needs, and so on which systems it starts.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail, ensure};

use crate::tryout::output;

/// Fails where a file needs a symbol of a later glibc, or a library that is not everywhere.
pub(super) fn check(file: &Path, oldest: (u32, u32)) -> Result<()> {
    const EVERYWHERE: [&str; 7] = [
        "libc.so.6",
        "libm.so.6",
        "libdl.so.2",
        "librt.so.1",
        "libpthread.so.0",
        "ld-linux-x86-64.so.2",
        "ld-linux-aarch64.so.1",
    ];
    let read = |what: &str| output(Command::new("readelf").args(["-W", what]).arg(file));
    let symbols = read("--dyn-syms")?;
    let Some((highest, symbol)) = highest(&symbols) else {
        bail!(
            "{}: no symbol of glibc is needed, which cannot be",
            file.display()
        );
    };
    let (major, minor) = highest;
    println!(
        "{}: needs GLIBC_{major}.{minor} at most ({symbol})",
        file.display()
    );
    ensure!(
        highest <= oldest,
        "that is later than {}.{}",
        oldest.0,
        oldest.1
    );
    for library in needed(&read("--dynamic")?) {
        ensure!(
            EVERYWHERE.contains(&library),
            "{}: needs {library}",
            file.display()
        );
    }
    Ok(())
}

/// The highest version of glibc's that a symbol of `readelf --dyn-syms` has, and that symbol.
fn highest(symbols: &str) -> Option<((u32, u32), &str)> {
    let versions = symbols.split_whitespace().filter_map(|word| {
        let (symbol, version) = word.split_once("@GLIBC_")?;
        let mut parts = version.split('.').map(str::parse);
        let (Some(Ok(major)), Some(Ok(minor))) = (parts.next(), parts.next()) else {
            return None;
        };
        Some(((major, minor), symbol))
    });
    versions.max()
}

/// The libraries that `readelf --dynamic` lists.
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
