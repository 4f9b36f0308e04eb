//! Time spans.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A time span in whole milliseconds. Parses `90s`, `5m`, `1h30m` and `250ms`. A number without a unit means seconds.
/// Prints the same format.
///
/// ```
/// # use std::time::Duration;
/// # use heapdiff_units::Span;
/// assert_eq!("1h30m".parse(), Ok(Span(Duration::from_secs(5400))));
/// assert_eq!("90".parse(), Ok(Span(Duration::from_secs(90))));
/// assert_eq!(Span(Duration::from_secs(90)).to_string(), "1m30s");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Span(pub Duration);

/// Maximum time span in milliseconds: ten years. Sums of such spans and clock readings cannot overflow.
const LONGEST: u64 = 3660 * 86_400_000;

/// Units in milliseconds, the largest first.
const UNITS: [(&str, u64); 5] = [
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1000),
    ("ms", 1),
];

/// The reason why a string is not a time span.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SpanError {
    /// The string does not consist of numbers with units.
    #[error("`{0}` is not a duration such as 90s, 5m or 1h30m")]
    NotASpan(String),
    /// The time span is longer than ten years.
    #[error("`{0}` is more than ten years")]
    TooLong(String),
}

impl FromStr for Span {
    type Err = SpanError;

    fn from_str(text: &str) -> Result<Self, SpanError> {
        let bad = || SpanError::NotASpan(text.to_owned());
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
                "min" => Some(60_000),
                _ => UNITS.iter().find(|(name, _)| *name == unit).map(|u| u.1),
            };
            let part = number.parse::<u64>().ok().zip(scale);
            let (number, scale) = part.ok_or_else(bad)?;
            total = number
                .checked_mul(scale)
                .and_then(|ms| total.checked_add(ms))
                .filter(|&ms| ms <= LONGEST)
                .ok_or_else(|| SpanError::TooLong(text.to_owned()))?;
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

/// Formats a time relative to the first dump: `+12.3 s`, `+5m04s`, `-3h20m`.
#[must_use]
pub fn later(ms: i64) -> String {
    let sign = if ms < 0 { '-' } else { '+' };
    let ms = ms.unsigned_abs();
    match ms {
        0..60_000 => format!("{sign}{}.{} s", ms / 1000, ms % 1000 / 100),
        60_000..3_600_000 => format!("{sign}{}m{:02}s", ms / 60_000, ms / 1000 % 60),
        3_600_000..86_400_000 => {
            format!("{sign}{}h{:02}m", ms / 3_600_000, ms / 60_000 % 60)
        }
        _ => format!("{sign}{}d{:02}h", ms / 86_400_000, ms / 3_600_000 % 24),
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
            ("10min", 600_000, "10m"),
            ("3660d", 316_224_000_000, "3660d"),
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
            "3661d",
            "3660d1ms",
            "1e3",
            "ü",
        ] {
            assert!(bad.parse::<Span>().is_err(), "{bad}");
        }
    }

    #[test]
    fn times_are_short() {
        assert_eq!(later(12_345), "+12.3 s");
        assert_eq!(later(-61_000), "-1m01s");
        assert_eq!(later(3_600_000 * 5 / 2), "+2h30m");
        assert_eq!(later(86_400_000 * 3), "+3d00h");
    }
}
