//! Sizes in bytes.

use std::fmt;
use std::str::FromStr;

/// A number of bytes. Parses `10MiB`, `1.5GiB` and `512k`. Prints `9.5 MiB`.
///
/// `kB`, `MB`, ... are powers of 1000, and `KiB`, `MiB`, ... are powers of 1024. `k`, `m`, `g` alone are also powers of
/// 1024, as in the JVM's `-Xmx512m`. Units are not case-sensitive.
///
/// ```
/// # use heapdiff_units::Size;
/// assert_eq!("1MB".parse(), Ok(Size(1_000_000)));
/// assert_eq!("1MiB".parse(), Ok(Size(1 << 20)));
/// assert_eq!("1m".parse(), Ok(Size(1 << 20)));
/// assert_eq!(Size(9_961_472).to_string(), "9.5 MiB");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Size(pub u64);

/// The reason why a string is not a size.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SizeError {
    /// The string is not a number with a known unit.
    #[error("`{0}` is not a size such as 512, 10MiB or 1.5GiB")]
    NotASize(String),
    /// The size does not fit in 64 bits.
    #[error("`{0}` is more than 2^64 bytes")]
    TooLarge(String),
}

impl FromStr for Size {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, SizeError> {
        let bad = || SizeError::NotASize(text.to_owned());
        let trimmed = text.trim();
        let digits = trimmed
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(digits);
        let scale = unit_bytes(unit.trim()).ok_or_else(bad)?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() || (number.contains('.') && fraction.is_empty()) {
            return Err(bad());
        }
        if fraction.len() > 18 || fraction.contains('.') {
            return Err(bad());
        }
        let whole: u128 = whole.parse().map_err(|_| bad())?;
        let part: u128 = match fraction {
            "" => 0,
            digits => digits.parse().map_err(|_| bad())?,
        };
        let bytes = whole
            .checked_mul(scale)
            .and_then(|b| b.checked_add(part * scale / 10_u128.pow(fraction.len() as u32)))
            .ok_or_else(bad)?;
        u64::try_from(bytes)
            .map(Self)
            .map_err(|_| SizeError::TooLarge(text.to_owned()))
    }
}

fn unit_bytes(unit: &str) -> Option<u128> {
    let unit = unit.to_ascii_lowercase();
    if matches!(&*unit, "" | "b") {
        return Some(1);
    }
    let power = "kmgtp".find(unit.chars().next()?)? as u32 + 1;
    match unit.get(1..)? {
        "" | "i" | "ib" => Some(1024_u128.pow(power)),
        "b" => Some(1000_u128.pow(power)),
        _ => None,
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        if self.0 < 1024 {
            return f.pad(&format!("{} B", self.0));
        }
        let mut unit = (63 - self.0.leading_zeros()) / 10;
        let tenths =
            |unit: u32| (u128::from(self.0) * 10 + (1_u128 << (unit * 10 - 1))) >> (unit * 10);
        if tenths(unit) >= 10_240 {
            unit += 1;
        }
        let tenths = tenths(unit);
        let name = UNITS[(unit - 1) as usize];
        f.pad(&format!("{}.{} {name}", tenths / 10, tenths % 10))
    }
}

/// Formats a change of bytes with its sign: `+9.5 MiB`.
#[must_use]
pub fn signed_size(change: i64) -> String {
    let sign = match change {
        0 => "",
        1.. => "+",
        _ => "-",
    };
    format!("{sign}{}", Size(change.unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Option<u64> {
        text.parse::<Size>().ok().map(|s| s.0)
    }

    #[test]
    fn sizes_are_read() {
        assert_eq!(parsed("0"), Some(0));
        assert_eq!(parsed("512"), Some(512));
        assert_eq!(parsed("10MB"), Some(10_000_000));
        assert_eq!(parsed("1.5GiB"), Some(3 << 29));
        assert_eq!(parsed("1.5 kb"), Some(1500));
        assert_eq!(parsed("512m"), Some(512 << 20));
        for (text, bytes) in [("1MB", 1_000_000), ("1MiB", 1 << 20), ("1m", 1 << 20)] {
            assert_eq!(parsed(text), Some(bytes));
            assert_eq!(parsed(&text.to_lowercase()), Some(bytes));
            assert_eq!(parsed(&text.to_uppercase()), Some(bytes));
        }
        assert_eq!(parsed("2Ki"), Some(2048));
        assert_eq!(parsed("0.1KB"), Some(100));
        for bad in [
            "",
            "MB",
            "-1",
            "1.",
            ".5",
            "1.5.5k",
            "10XB",
            "10MBB",
            "1e9",
            "99999999999P",
        ] {
            assert_eq!(parsed(bad), None, "{bad}");
        }
    }

    #[test]
    fn sizes_are_shown() {
        let shown = |n: u64| Size(n).to_string();
        assert_eq!(shown(0), "0 B");
        assert_eq!(shown(1023), "1023 B");
        assert_eq!(shown(1024), "1.0 KiB");
        assert_eq!(shown(1536), "1.5 KiB");
        assert_eq!(shown((1 << 20) - 1), "1.0 MiB");
        assert_eq!(shown(u64::MAX), "16.0 EiB");
    }
}
