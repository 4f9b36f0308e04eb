//! Moments of a run as a user writes and reads them.

use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use heapdiff_units::{Span, SpanError};

/// A moment. Parses `10m` (that long before the end), `+5m` (that long after the start), and a time of
/// day in UTC such as `2026-11-21T22:05:00Z`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Moment {
    BeforeEnd(Span),
    AfterStart(Span),
    At(u64),
}

impl FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if let Some(span) = text.strip_prefix('+') {
            let after = span.parse().map(Self::AfterStart);
            return after.map_err(|e: SpanError| e.to_string());
        }
        if let Ok(time) = humantime::parse_rfc3339_weak(text) {
            let since = time.duration_since(UNIX_EPOCH);
            let ms = since.ok().and_then(|t| u64::try_from(t.as_millis()).ok());
            return ms
                .map(Self::At)
                .ok_or_else(|| format!("`{text}` is before 1970"));
        }
        text.parse().map(Self::BeforeEnd).map_err(|_| {
            format!("`{text}` is no moment such as 10m (before the end), +5m (after the start) or 2026-11-21T22:05:00Z")
        })
    }
}

impl Moment {
    /// Milliseconds since the run began, of a run that began at `started_ms` (since 1970) and is as long as
    /// `uptime_ms`.
    pub(crate) fn uptime_ms(self, started_ms: u64, uptime_ms: u64) -> u64 {
        let ms = |span: Span| u64::try_from(span.0.as_millis()).unwrap_or(u64::MAX);
        match self {
            Self::BeforeEnd(span) => uptime_ms.saturating_sub(ms(span)),
            Self::AfterStart(span) => ms(span),
            Self::At(time) => time.saturating_sub(started_ms),
        }
    }
}

/// A time of day in UTC: `2026-11-21 22:05:00`. What no calendar has is shown as milliseconds since 1970.
pub(crate) fn utc(ms: u64) -> String {
    // The year 9999: what the format can tell.
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

/// Milliseconds as a span without those that nobody reads: `1h30m`, `12s`, `250ms`.
pub(crate) fn span(ms: u64) -> String {
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
    fn moments_are_read() {
        let at = |text: &str| {
            text.parse::<Moment>()
                .unwrap()
                .uptime_ms(1_760_000_000_000, 600_000)
        };
        assert_eq!(at("1m"), 540_000);
        assert_eq!(at("1h"), 0);
        assert_eq!(at("+90s"), 90_000);
        assert_eq!(at("2025-10-09T08:53:30Z"), 10_000);
        assert_eq!(at("2025-10-09 08:53:30"), 10_000);
        assert_eq!(at("1999-01-01T00:00:00Z"), 0);
        for bad in [
            "",
            "+",
            "now",
            "-1m",
            "1960-01-01T00:00:00Z",
            "2026-13-01T00:00:00Z",
        ] {
            assert!(bad.parse::<Moment>().is_err(), "{bad}");
        }
    }

    #[test]
    fn times_are_shown() {
        assert_eq!(utc(1_760_000_010_999), "2025-10-09 08:53:30");
        assert_eq!(utc(u64::MAX), format!("{} ms after 1970", u64::MAX));
        assert_eq!(span(119_999), "1m59s");
        assert_eq!(span(7_199_999), "1h59m");
        assert_eq!(span(u64::MAX), span(u64::MAX - 5));
    }
}
