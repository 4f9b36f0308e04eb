//! The gates of `heapdiff trace top`: conditions that end the run with exit code 1.

use std::fmt;
use std::str::FromStr;

use clap::Args;
use heapdiff_report::junit::Gate;
use heapdiff_report::span;
use heapdiff_trace::{Candidate, HeapLimit, HeapOutlook, HeapState, LimitSource, Verdict};
use heapdiff_units::{Size, Span};

/// A rate of growth, in bytes per hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rate(u64);

impl FromStr for Rate {
    type Err = String;

    /// Parses `10MiB/h`. Without a unit of time, the rate is per hour.
    fn from_str(text: &str) -> Result<Self, String> {
        let (size, unit) = text.split_once('/').unwrap_or((text, "h"));
        let size: Size = size.parse().map_err(|e| format!("{e}"))?;
        let per_hour = match unit {
            "s" => size.0.checked_mul(3600),
            "m" => size.0.checked_mul(60),
            "h" => Some(size.0),
            "d" => Some(size.0 / 24),
            _ => return Err(format!("`{text}` is not a rate such as 10MiB/h or 1GiB/d")),
        };
        per_hour
            .map(Self)
            .ok_or_else(|| format!("`{text}` is too large"))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/h", Size(self.0))
    }
}

/// The options of the gates.
#[derive(Debug, Default, Args)]
pub(super) struct GateArgs {
    /// Exit with 1 if any site or class has the verdict `leak` or `growth`
    #[arg(long)]
    pub(super) fail_on_suspect: bool,
    /// Exit with 1 if the heap after full GCs, or a site that grows, grows by at least this: 10MiB/h
    /// (or /s, /m, /d)
    #[arg(long = "fail-on-growth", value_name = "RATE")]
    pub(super) growth: Option<Rate>,
    /// Exit with 1 if the estimated time to OutOfMemoryError is at most this, such as 24h
    #[arg(long, value_name = "TIME")]
    pub(super) oom_within: Option<Span>,
    /// Maximum heap, such as 2GiB [default: the smaller of -Xmx and the container's limit]
    #[arg(long, value_name = "SIZE")]
    pub(super) heap_limit: Option<Size>,
}

impl GateArgs {
    /// Returns the heap limit that the user gave. If the user gave none, returns `found`, the limit in the trace.
    pub(super) fn limit(&self, found: Option<HeapLimit>) -> Option<HeapLimit> {
        let given = self.heap_limit.filter(|size| size.0 > 0);
        let given = given.map(|size| HeapLimit {
            bytes: size.0,
            source: LimitSource::Option,
        });
        given.or(found)
    }

    /// Returns true if a gate (a condition under which the run fails) needs the ranked list of possible leaks.
    pub(super) const fn needs_candidates(&self) -> bool {
        self.fail_on_suspect || self.growth.is_some()
    }

    /// Returns the reason why `--oom-within` cannot be checked, and a hint for the user.
    pub(super) fn undecided(&self, outlook: &HeapOutlook) -> Option<(String, &'static str)> {
        let lacks_limit = self.oom_within.is_some() && outlook.state == HeapState::NoLimit;
        lacks_limit.then(|| {
            let why = "--oom-within needs the maximum heap, which the trace does not contain";
            (why.to_owned(), "add --heap-limit SIZE")
        })
    }

    /// Returns each requested gate, with the reason if its condition is met. `name` returns the name of a possible
    /// leak.
    pub(super) fn outcomes<E>(
        &self,
        candidates: &[Candidate],
        outlook: &HeapOutlook,
        name: impl Fn(&Candidate) -> Result<String, E>,
    ) -> Result<Vec<Gate>, E> {
        let mut gates = Vec::new();
        let is_grave = |c: &&Candidate| c.trending.verdict <= Verdict::Growth;
        if self.fail_on_suspect {
            let grave = || candidates.iter().filter(is_grave);
            let tripped = grave().next().map(|first| {
                let more = match grave().count() {
                    1 => String::new(),
                    count => format!(" and {} more", count - 1),
                };
                Ok(format!("--fail-on-suspect: {}{more}", name(first)?))
            });
            gates.push(Gate {
                name: "--fail-on-suspect".to_owned(),
                tripped: tripped.transpose()?,
            });
        }
        if let Some(limit) = self.growth {
            let over = |slope: i64| {
                u64::try_from(slope)
                    .ok()
                    .filter(|s| *s > 0 && *s >= limit.0)
            };
            let heap = outlook.slope.filter(|_| outlook.state.grows());
            let heap = heap.and_then(|slope| over(slope.slope));
            let site = candidates.iter().filter(is_grave).find_map(|c| {
                let rate = over(c.trending.bytes.slope)?;
                c.trending.bytes.is_sure().then_some((c, rate))
            });
            let what = match (heap, site) {
                (Some(rate), _) => Some(("the heap after full GCs".to_owned(), rate)),
                (None, Some((site, rate))) => Some((name(site)?, rate)),
                (None, None) => None,
            };
            gates.push(Gate {
                name: format!("--fail-on-growth {limit}"),
                tripped: what.map(|(what, rate)| {
                    let rate = Rate(rate);
                    format!("--fail-on-growth: {what} grows by {rate} (the limit is {limit})")
                }),
            });
        }
        if let Some(within) = self.oom_within {
            let most = u64::try_from(within.0.as_millis()).unwrap_or(u64::MAX);
            let left = outlook.left.filter(|left| left.at_ms <= most);
            gates.push(Gate {
                name: format!("--oom-within {within}"),
                tripped: left.map(|left| {
                    let [at, from, to] = [left.at_ms, left.from_ms, left.to_ms].map(span);
                    format!("--oom-within {within}: the heap is full in {at} ({from} to {to})")
                }),
            });
        }
        Ok(gates)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_a_unit_of_time() {
        let of = |text: &str| text.parse::<Rate>().map(|rate| rate.0);
        assert_eq!(of("1MiB"), Ok(1 << 20));
        assert_eq!(of("1MiB/h"), Ok(1 << 20));
        assert_eq!(of("1KiB/s"), Ok(3600 << 10));
        assert_eq!(of("1KiB/m"), Ok(60 << 10));
        assert_eq!(of("48MiB/d"), Ok(2 << 20));
        for bad in ["", "10%", "1MiB/y", "1MiB/", "/h", "9000PiB/s"] {
            assert!(of(bad).is_err(), "{bad}");
        }
    }
}
