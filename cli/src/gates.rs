//! Messages of the gates, which make a run in continuous integration fail. For example, `--fail-on-growth` ends a run
//! with exit code 1 after growth.

use std::str::FromStr;

use heapdiff_diff::{Grave, Grown, TooMuch};
use heapdiff_report::junit::Gate;
use heapdiff_units::{Size, grouped};

use heapdiff_report::DiffReport;

/// The limit of `--fail-on-growth`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GrowthLimit {
    /// A number of bytes.
    Bytes(u64),
    /// A part of the heap size in the first dump, in hundredths of a percent: 150 means 1.5 %.
    Part(u32),
}

impl GrowthLimit {
    /// Returns the limit in bytes, for a heap of `before` bytes in the first dump.
    pub(crate) fn bytes(self, before: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Part(part) => {
                let bytes = u128::from(before) * u128::from(part) / 10_000;
                u64::try_from(bytes).unwrap_or(u64::MAX)
            }
        }
    }
}

impl FromStr for GrowthLimit {
    type Err = String;

    /// Parses `10MiB`, or `10%` with at most two decimal places.
    fn from_str(text: &str) -> Result<Self, String> {
        let Some(number) = text.strip_suffix('%') else {
            let size = text.parse::<Size>().map_err(|e| e.to_string())?;
            return Ok(Self::Bytes(size.0));
        };
        let (whole, places) = number.split_once('.').unwrap_or((number, "0"));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let part = (is_number(whole) && is_number(places) && places.len() <= 2)
            .then(|| format!("{whole}{places:0<2}").parse().ok())
            .flatten();
        part.map(Self::Part)
            .ok_or_else(|| format!("`{text}` is not a percentage such as 10% or 0.5%"))
    }
}

/// Returns each requested gate, with the reason if its condition is met. Gates do not check known suspects. They check
/// all other suspects, including those that the report does not list.
pub(crate) fn outcomes(report: &DiffReport) -> Vec<Gate> {
    let (gates, diff, more) = (&report.more.gates, &report.data, &report.more.more_suspects);
    let growth = gates.growth.map(|limit| Gate {
        name: format!("--fail-on-growth {}", Size(limit)),
        tripped: gates
            .growth_over_gate(diff, more, report.more.known.iter().map(|known| &known.0))
            .map(|too_much| growth(&too_much)),
    });
    let suspect = gates.suspect.then(|| Gate {
        name: "--fail-on-suspect".to_owned(),
        tripped: gates
            .failing_suspects(diff, more)
            .map(|grave| suspects(&grave)),
    });
    growth.into_iter().chain(suspect).collect()
}

fn growth(too_much: &TooMuch<'_>) -> String {
    let what = match too_much.what {
        Grown::Heap { less_known: false } => "the heap".to_owned(),
        Grown::Heap { less_known: true } => {
            "the heap (without the growth that --ignore excludes)".to_owned()
        }
        Grown::Suspect(suspect) => suspect.holder.clone(),
    };
    format!(
        "--fail-on-growth: {what} grew by {size} ({bytes} bytes; the limit is {limit})",
        size = Size(too_much.bytes),
        bytes = grouped(too_much.bytes),
        limit = grouped(too_much.limit)
    )
}

fn suspects(grave: &Grave<'_>) -> String {
    let more = match grave.count {
        1 => String::new(),
        count => format!(" and {} more", count - 1),
    };
    format!("--fail-on-suspect: {}{more}", grave.first.holder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_bytes_or_a_part_of_the_heap() {
        let of = |text: &str, before| text.parse::<GrowthLimit>().map(|l| l.bytes(before));
        assert_eq!(of("1MB", 5), Ok(1_000_000));
        assert_eq!(of("10%", 1_000), Ok(100));
        assert_eq!(of("0.5%", 1_000), Ok(5));
        assert_eq!(of("12.25%", 10_000), Ok(1_225));
        assert_eq!(of("0%", 1_000), Ok(0));
        assert_eq!(of("400%", u64::MAX), Ok(u64::MAX));
        for bad in [
            "%",
            "-1%",
            "1.%",
            ".5%",
            "1.234%",
            "ten%",
            "99999999999%",
            "1 MB%",
        ] {
            assert!(of(bad, 1).is_err(), "{bad}");
        }
    }

    #[test]
    fn tripped_gates_are_reported() {
        let told = |less_known: bool| {
            growth(&TooMuch {
                what: Grown::Heap { less_known },
                bytes: 4096,
                limit: 1000,
            })
        };
        let all = "--fail-on-growth: the heap grew by 4.0 KiB (4,096 bytes; the limit is 1,000)";
        assert_eq!(told(false), all);
        let less = all.replace(
            "the heap",
            "the heap (without the growth that --ignore excludes)",
        );
        assert_eq!(told(true), less);
    }
}
