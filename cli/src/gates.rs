//! Gates for continuous integration, in words: growth that makes a run end with exit code 1.

use heapdiff_diff::{Grave, Grown, TooMuch};
use heapdiff_report::junit::Gate;
use heapdiff_units::{Size, grouped};

use heapdiff_report::DiffReport;

/// Each gate that was asked for, and why it tripped if it did. Gates look at all suspects, listed or not, but those
/// that are known.
pub(crate) fn outcomes(report: &DiffReport) -> Vec<Gate> {
    let (gates, diff, more) = (&report.gates, &report.diff, &report.more_suspects);
    let growth = gates.growth.map(|limit| Gate {
        name: format!("--fail-on-growth {}", Size(limit)),
        tripped: gates
            .too_much(diff, more, report.known.iter().map(|known| &known.0))
            .map(|too_much| growth(&too_much)),
    });
    let suspect = gates.suspect.then(|| Gate {
        name: "--fail-on-suspect".to_owned(),
        tripped: gates.grave(diff, more).map(|grave| suspects(&grave)),
    });
    growth.into_iter().chain(suspect).collect()
}

fn growth(too_much: &TooMuch<'_>) -> String {
    let what = match too_much.what {
        Grown::Heap { less_known: false } => "the heap".to_owned(),
        Grown::Heap { less_known: true } => "the heap, without known growth,".to_owned(),
        Grown::Suspect(suspect) => format!("what {} holds", suspect.holder),
    };
    format!(
        "--fail-on-growth: {what} grew by {} ({} bytes, the limit is {})",
        Size(too_much.bytes),
        grouped(too_much.bytes),
        grouped(too_much.limit)
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
    fn what_tripped_is_told() {
        let told = |less_known: bool| {
            growth(&TooMuch {
                what: Grown::Heap { less_known },
                bytes: 4096,
                limit: 1000,
            })
        };
        let all = "--fail-on-growth: the heap grew by 4.0 KiB (4,096 bytes, the limit is 1,000)";
        assert_eq!(told(false), all);
        let less = all.replace("the heap", "the heap, without known growth,");
        assert_eq!(told(true), less);
    }
}
