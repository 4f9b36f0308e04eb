//! Sizes as a user writes and reads them.

use std::fmt;
use std::str::FromStr;

/// A number of bytes. Parses `10MB`, `1.5GiB`, `512k`; prints `9.5 MiB`.
///
/// `kB`, `MB`, ... are powers of 1000 and `KiB`, `MiB`, ... of 1024, as are `k`, `m`, `g` alone,
/// which is how the JVM reads them in `-Xmx512m`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Size(pub u64);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("`{text}` is not a size such as 512, 10MB or 1.5GiB");
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
            .map_err(|_| format!("`{text}` is more than 2^64 bytes"))
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

/// A number with thousands separators: `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// So many of something: `1 object`, `1,234 objects`.
pub fn counted(number: u64, one: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {one}{plural}", grouped(number))
}

/// A change with its sign: `+1,234`, `-5`, `0`.
pub fn signed(change: i64) -> String {
    let sign = match change {
        0 => "",
        1.. => "+",
        _ => "-",
    };
    format!("{sign}{}", grouped(change.unsigned_abs()))
}

/// A change of bytes with its sign: `+9.5 MiB`.
pub fn signed_size(change: i64) -> String {
    let sign = match change {
        0 => "",
        1.. => "+",
        _ => "-",
    };
    format!("{sign}{}", Size(change.unsigned_abs()))
}

/// A share in percent with one digit, in integers: `12.3%`.
pub fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "-".to_owned();
    }
    let permille = (u128::from(part) * 1000 + u128::from(whole) / 2) / u128::from(whole);
    format!("{}.{}%", permille / 10, permille % 10)
}

/// A time after the first dump: `+12.3 s`, `+5 min`, `-3 h`.
#[must_use]
pub fn later(ms: i64) -> String {
    let sign = if ms < 0 { '-' } else { '+' };
    let ms = ms.unsigned_abs();
    match ms {
        0..60_000 => format!("{sign}{}.{} s", ms / 1000, ms % 1000 / 100),
        60_000..7_200_000 => format!("{sign}{} min", ms / 60_000),
        7_200_000..172_800_000 => format!("{sign}{} h", ms / 3_600_000),
        _ => format!("{sign}{} d", ms / 86_400_000),
    }
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

    #[test]
    fn numbers_are_shown() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(signed(-1234), "-1,234");
        assert_eq!(signed(7), "+7");
        assert_eq!(percent(1, 3), "33.3%");
        assert_eq!(percent(1, 0), "-");
    }

    #[test]
    fn times_are_short() {
        assert_eq!(later(12_345), "+12.3 s");
        assert_eq!(later(-61_000), "-1 min");
        assert_eq!(later(86_400_000 * 3), "+3 d");
    }
}
