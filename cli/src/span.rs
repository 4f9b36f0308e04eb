//! Spans of time as a user writes and reads them.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A span of time. Parses `90s`, `5m`, `1h30m`, and a plain number as seconds; prints alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Span(pub(crate) Duration);

/// Long enough for anybody, and no sum of clock readings overflows.
const LONGEST: u64 = 365 * 86_400_000;

/// In milliseconds, largest first.
const UNITS: [(&str, u64); 5] = [
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1000),
    ("ms", 1),
];

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("`{text}` is not a time such as 90s, 5m or 1h30m");
        let mut rest = text.trim();
        if rest.is_empty() {
            return Err(bad());
        }
        let mut total = 0_u64;
        while !rest.is_empty() {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let (number, after) = rest.split_at(digits);
            let letters = after.bytes().take_while(u8::is_ascii_alphabetic).count();
            let (unit, after) = after.split_at(letters);
            let scale = match unit {
                "" if digits == text.trim().len() => Some(1000),
                _ => UNITS.iter().find(|(name, _)| *name == unit).map(|u| u.1),
            };
            let part = number.parse::<u64>().ok().zip(scale);
            let (number, scale) = part.ok_or_else(bad)?;
            total = number
                .checked_mul(scale)
                .and_then(|ms| total.checked_add(ms))
                .filter(|&ms| ms <= LONGEST)
                .ok_or_else(|| format!("`{text}` is more than a year"))?;
            rest = after;
        }
        Ok(Self(Duration::from_millis(total)))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut left = u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX);
        if left == 0 {
            return f.write_str("0s");
        }
        for (name, scale) in UNITS {
            if left >= scale {
                write!(f, "{}{name}", left / scale)?;
                left %= scale;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_and_shown() {
        for (text, ms, shown) in [
            ("90s", 90_000, "1m30s"),
            ("5m", 300_000, "5m"),
            ("1h30m", 5_400_000, "1h30m"),
            ("10", 10_000, "10s"),
            ("250ms", 250, "250ms"),
            ("1d", 86_400_000, "1d"),
            ("0", 0, "0s"),
        ] {
            let span: Span = text.parse().unwrap();
            assert_eq!(span.0.as_millis(), ms, "{text}");
            assert_eq!(span.to_string(), shown);
        }
        for bad in [
            "",
            "s",
            "-1",
            "5 m",
            "1.5h",
            "5x",
            "1h30",
            "99999999999d",
            "1e3",
            "ü",
        ] {
            assert!(bad.parse::<Span>().is_err(), "{bad}");
        }
    }
}
