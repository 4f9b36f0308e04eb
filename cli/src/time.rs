//! Points in time within a run, in the form that users write.

use std::str::FromStr;
use std::time::UNIX_EPOCH;

use heapdiff_units::{Span, SpanError};

/// A point in time. Parses `10m` (10 minutes before the end), `+5m` (5 minutes after the start), and a time in UTC such
/// as `2026-11-21T22:05:00Z`.
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
            format!("`{text}` is not a time such as 10m (before the end), +5m (after the start) or 2026-11-21T22:05:00Z")
        })
    }
}

impl Moment {
    /// Converts the point in time to milliseconds since the start of a run. The run began at `started_ms`, in
    /// milliseconds since 1970, and lasted `uptime_ms`.
    pub(crate) fn uptime_ms(self, started_ms: u64, uptime_ms: u64) -> u64 {
        let ms = |span: Span| u64::try_from(span.0.as_millis()).unwrap_or(u64::MAX);
        match self {
            Self::BeforeEnd(span) => uptime_ms.saturating_sub(ms(span)),
            Self::AfterStart(span) => ms(span),
            Self::At(time) => time.saturating_sub(started_ms),
        }
    }
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
}
