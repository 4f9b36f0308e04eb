//! The sentences about the time to OutOfMemoryError.

use heapdiff_diff::Report;
use heapdiff_model::diff::Oom;
use heapdiff_units::{Size, signed_size};

use crate::times::span;

/// Returns the sentence about the trend of the reachable heap over several dumps. Returns `None` if the report has no
/// trend.
pub(crate) fn of_dumps(report: &Report) -> Option<String> {
    let trend = report.heap_trend.as_ref()?;
    let rate = signed_size(trend.bytes_per_hour);
    let end = heap_end(&trend.outlook, report.oom, trend.limit_bytes, false);
    Some(format!("reachable heap: {rate}/h, {end}"))
}

/// Returns the sentence that says when the heap reaches its limit, or why this time is not known.
pub(crate) fn heap_end(
    outlook: &str,
    oom: Option<Oom>,
    limit: Option<u64>,
    is_container: bool,
) -> String {
    match (outlook, oom, limit) {
        ("ends", Some(oom), Some(limit)) => {
            let [at, from, to] = [oom.at_ms, oom.from_ms, oom.to_ms].map(span);
            let limit = Size(limit);
            let what = if is_container {
                format!("reaches the container's limit of {limit}")
            } else {
                format!("OutOfMemoryError at {limit}")
            };
            format!("{what} in {at} ({from} to {to})")
        }
        ("irregular", ..) => "too irregular to estimate the time to OutOfMemoryError".to_owned(),
        ("no-limit", ..) => {
            "give the maximum heap (--heap-limit) for the time to OutOfMemoryError".to_owned()
        }
        ("too-few", ..) => "five dumps give the time to OutOfMemoryError".to_owned(),
        _ => "the heap may have stopped growing, so no time to OutOfMemoryError is estimated"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use heapdiff_model::diff::HeapTrend;

    use super::*;
    use crate::Format;
    use crate::tests::diff_report;

    #[test]
    fn each_document_has_the_time_to_oom() {
        let mut report = crate::synthetic::report(Vec::new(), 1);
        assert_eq!(of_dumps(&report), None);
        report.heap_trend = Some(HeapTrend {
            outlook: "ends".into(),
            bytes_per_hour: 3 << 20,
            ci95: None,
            limit_bytes: Some(1 << 30),
        });
        report.oom = Some(Oom {
            at_ms: 20_000,
            from_ms: 10_000,
            to_ms: 40_000,
        });
        let sentence = "eachable heap: +3.0 MiB/h, OutOfMemoryError at 1.0 GiB in 20s (10s to 40s)";
        for format in [Format::Text, Format::Md, Format::Html] {
            let whole = crate::Report::Diff(Box::new(diff_report(report.clone())));
            let mut out = Vec::new();
            crate::render(format, &whole, crate::Style::plain(), &mut out).unwrap();
            let text = String::from_utf8(out).unwrap();
            assert!(text.contains(sentence), "{format:?}: {text}");
        }
        report.oom = None;
        for (outlook, end) in [
            (
                "no-end",
                "the heap may have stopped growing, so no time to OutOfMemoryError is estimated",
            ),
            ("too-few", "five dumps give the time to OutOfMemoryError"),
        ] {
            report.heap_trend.as_mut().unwrap().outlook = outlook.into();
            let sentence = of_dumps(&report).unwrap();
            assert_eq!(sentence, format!("reachable heap: +3.0 MiB/h, {end}"));
        }
    }
}
