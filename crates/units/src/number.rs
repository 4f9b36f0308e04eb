//! Whole numbers, and figures in thousandths.

use std::fmt;

/// Formats a number with thousands separators: `1,234,567`.
#[must_use]
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

/// Formats a number with its noun: `1 object`, `1,234 objects`, `2 classes`.
#[must_use]
pub fn counted(number: u64, one: &str) -> String {
    let plural = match number {
        1 => "",
        _ if one.ends_with("class") => "es",
        _ => "s",
    };
    format!("{} {one}{plural}", grouped(number))
}

/// Formats a change with its sign: `+1,234`, `-5`, `0`.
#[must_use]
pub fn signed(change: i64) -> String {
    let sign = match change {
        0 => "",
        1.. => "+",
        _ => "-",
    };
    format!("{sign}{}", grouped(change.unsigned_abs()))
}

/// Formats `part / whole` in percent with one decimal: `12.3%`. Uses integer arithmetic only.
#[must_use]
pub fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "-".to_owned();
    }
    let permille = (u128::from(part) * 1000 + u128::from(whole) / 2) / u128::from(whole);
    format!("{}.{}%", permille / 10, permille % 10)
}

/// A probability in thousandths. Formats the probability with one decimal place, or with two below 0.1: `probability
/// 0.9`, `probability 0.04`, `probability below 0.01`. Shows at most 0.9, because an estimate is never certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probability(pub u64);

impl fmt::Display for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0..10 => f.write_str("probability below 0.01"),
            10..95 => write!(f, "probability 0.0{}", (self.0 + 5) / 10),
            _ => write!(f, "probability 0.{}", ((self.0 + 50) / 100).min(9)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_probability_never_looks_like_zero_or_one() {
        let shown = [0, 10, 94, 95, 749, 750, 934, 1000].map(|p| Probability(p).to_string());
        let digits = shown.map(|text| text.replace("probability ", ""));
        assert_eq!(
            digits,
            [
                "below 0.01",
                "0.01",
                "0.09",
                "0.1",
                "0.7",
                "0.8",
                "0.9",
                "0.9"
            ]
        );
    }
}
