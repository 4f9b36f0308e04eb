//! Figures as sentences have them.

/// A number with thousands separators: `1,234,567`.
pub(crate) fn grouped(number: u64) -> String {
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

/// Bytes, cut to whole units of at least ten: `12 MiB`.
pub(crate) fn bytes(number: u64) -> String {
    const UNITS: [(&str, u32); 4] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let fits = UNITS.iter().find(|(_, shift)| number >> shift >= 10);
    match fits {
        Some((unit, shift)) => format!("{} {unit}", grouped(number >> shift)),
        None => format!("{} bytes", grouped(number)),
    }
}

/// How a number of things changed: `12 tasks, up from 5`.
pub(crate) fn changed(first: u64, last: u64, what: &str) -> String {
    let now = grouped(last);
    match last.cmp(&first) {
        std::cmp::Ordering::Greater => format!("{now} {what}, up from {}", grouped(first)),
        std::cmp::Ordering::Equal => format!("{now} {what}, as before"),
        std::cmp::Ordering::Less => format!("{now} {what}, down from {}", grouped(first)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(bytes(9_000), "9,000 bytes");
        assert_eq!(bytes(64 << 20), "64 MiB");
        assert_eq!(changed(5, 12, "tasks"), "12 tasks, up from 5");
        assert_eq!(changed(5, 5, "tasks"), "5 tasks, as before");
    }
}
