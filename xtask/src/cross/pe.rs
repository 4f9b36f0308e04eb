//! Removes the build time from a program for Windows, so that two builds give the same bytes.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

/// Sets the time in the program's COFF header to zero. Some linkers have no option for this.
pub(super) fn remove_time(program: &Path) -> Result<()> {
    let mut bytes = fs::read(program).with_context(|| program.display().to_string())?;
    let time = time_of(&mut bytes);
    let time = time.with_context(|| format!("{}: not a PE file", program.display()))?;
    if *time != [0; 4] {
        *time = [0; 4];
        fs::write(program, bytes)?;
    }
    Ok(())
}

/// Returns the time field of the COFF header. The DOS header contains the offset of the PE signature. The COFF header
/// follows the signature: two bytes for the machine, two bytes for the number of sections, and then the time.
fn time_of(bytes: &mut [u8]) -> Result<&mut [u8; 4]> {
    let offset = bytes.get(0x3c..0x40).context("no DOS header")?;
    let offset = u32::from_le_bytes(offset.try_into()?) as usize;
    let header = bytes.get_mut(offset..).context("no PE header")?;
    ensure!(header.starts_with(b"PE\0\0"), "no PE signature");
    let time = header.get_mut(8..12).context("no COFF header")?;
    Ok(time.try_into()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_time_is_changed() {
        let folder = tempfile::tempdir().expect("a file");
        let file = folder.path().join("x.exe");
        let mut bytes = vec![7; 0x60];
        bytes[0x3c..0x40].copy_from_slice(&0x40_u32.to_le_bytes());
        bytes[0x40..0x44].copy_from_slice(b"PE\0\0");
        fs::write(&file, &bytes).expect("a file");
        remove_time(&file).expect("a file");
        bytes[0x48..0x4c].fill(0);
        assert_eq!(fs::read(&file).expect("a file"), bytes);
        for wrong in [&b"MZ"[..], &[0; 0x40], &[7; 0x80]] {
            fs::write(&file, wrong).expect("a file");
            assert!(remove_time(&file).is_err());
        }
    }
}
