//! Formats points in time and time spans.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use heapdiff_units::Span;

/// Formats a time in UTC: `2026-11-21 22:05:00`. Times after the year 9999 are written as milliseconds since 1970.
#[must_use]
pub fn utc(ms: u64) -> String {
    // The end of the year 9999, the last year of the format.
    const END: u64 = 253_402_300_799_999;
    let time = SystemTime::checked_add(&UNIX_EPOCH, Duration::from_millis(ms));
    match time.filter(|_| ms <= END) {
        Some(time) => {
            let text = humantime::format_rfc3339_seconds(time).to_string();
            text.replace('T', " ").trim_end_matches('Z').to_owned()
        }
        None => format!("{ms} ms after 1970"),
    }
}

/// Formats milliseconds as a time span: `1h30m`, `12s`, `250ms`. From ten seconds on, milliseconds are dropped; from
/// one hour on, seconds are dropped.
#[must_use]
pub fn span(ms: u64) -> String {
    let rounded = match ms {
        0..10_000 => ms,
        10_000..3_600_000 => ms / 1000 * 1000,
        _ => ms / 60_000 * 60_000,
    };
    Span(Duration::from_millis(rounded)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown() {
        assert_eq!(utc(1_760_000_010_999), "2025-10-09 08:53:30");
        assert_eq!(utc(u64::MAX), format!("{} ms after 1970", u64::MAX));
        assert_eq!(span(119_999), "1m59s");
        assert_eq!(span(7_199_999), "1h59m");
        assert_eq!(span(u64::MAX), span(u64::MAX - 5));
    }
}
