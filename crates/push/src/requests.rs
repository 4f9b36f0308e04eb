//! The requests of the two interfaces by which servers accept profiles.
//!
//! `POST /push.v1.PusherService/Push` is Pyroscope's documented interface: the Connect protocol with JSON. `POST
//! /ingest` is the older interface. Pyroscope and Alloy accept both interfaces, and some other servers accept only the
//! older one. Profiles for the older interface have the sample types of Go's heap profiles, which these servers know.

use serde::Serialize;
use twox_hash::XxHash3_128;

/// URL path of Pyroscope's documented interface. A profile is sent to this path first.
pub(crate) const PUSH: &str = "/push.v1.PusherService/Push";
/// URL path of the older interface.
pub(crate) const INGEST: &str = "/ingest";

/// The series name under which servers store heap profiles.
const METRIC: &str = "memory";
/// Length in seconds of the time span of a profile in the older interface. A profile shows one point in time, but the
/// older interface requires a time span. Servers store data in steps of this length.
const SPAN_S: u64 = 10;

/// A profile with its labels and time.
#[derive(Clone, Copy, Debug)]
pub struct Series<'a> {
    /// The name of the application.
    pub service: &'a str,
    /// Further labels of the profile. Names must be valid in Prometheus, unique, and must not begin with `__`.
    pub labels: &'a [(String, String)],
    /// The time of the profile, in milliseconds since 1970.
    pub time_ms: u64,
    /// The gzipped profile in pprof format.
    pub profile: &'a [u8],
}

/// A request to a server: path with query, content type and body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) path: String,
    pub(crate) content_type: &'static str,
    pub(crate) body: Vec<u8>,
}

#[derive(Serialize)]
struct PushRequest<'a> {
    series: [RawSeries<'a>; 1],
}

#[derive(Serialize)]
struct RawSeries<'a> {
    labels: Vec<Label<'a>>,
    samples: [RawSample; 1],
}

#[derive(Serialize)]
struct Label<'a> {
    name: &'a str,
    value: &'a str,
}

#[derive(Serialize)]
struct RawSample {
    #[serde(rename = "ID")]
    id: String,
    #[serde(rename = "rawProfile")]
    raw_profile: String,
}

/// Returns the request for Pyroscope's documented interface ([`PUSH`]).
pub(crate) fn push(series: &Series<'_>) -> Request {
    use base64::Engine;
    let own = [("__name__", METRIC), ("service_name", series.service)];
    let more = series.labels.iter().map(|(n, v)| (&**n, &**v));
    let labels = own.into_iter().chain(more);
    let labels = labels.map(|(name, value)| Label { name, value }).collect();
    let sample = RawSample {
        id: id(series),
        raw_profile: base64::engine::general_purpose::STANDARD.encode(series.profile),
    };
    let request = PushRequest {
        series: [RawSeries {
            labels,
            samples: [sample],
        }],
    };
    Request {
        path: PUSH.to_owned(),
        content_type: "application/json",
        // Converting strings and arrays of strings to JSON cannot fail.
        body: serde_json::to_vec(&request).unwrap_or_default(),
    }
}

/// Returns the request for the older interface ([`INGEST`]).
pub(crate) fn ingest(series: &Series<'_>) -> Request {
    let labels: Vec<String> = series
        .labels
        .iter()
        .map(|(name, value)| format!("{name}={}", plain(value, "{}=,\"")))
        .collect();
    let name = format!("{}{{{}}}", application(series.service), labels.join(","));
    let until = series.time_ms / 1000;
    let from = until.saturating_sub(SPAN_S);
    let query = form_urlencoded::Serializer::new(String::new())
        .append_pair("name", &name)
        .append_pair("from", &from.to_string())
        .append_pair("until", &until.to_string())
        .append_pair("format", "pprof")
        .append_pair("spyName", "heapdiff")
        .finish();
    Request {
        path: format!("{INGEST}?{query}"),
        content_type: "application/octet-stream",
        body: series.profile.to_vec(),
    }
}

/// Returns a form of the application's name that is valid in the older interface (`INGEST`).
fn application(service: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    let name = service.chars().map(|c| if fits(c) { c } else { '_' });
    name.collect()
}

/// Replaces characters by `_`: control characters, and the characters in `ends`, which would end a value in the older
/// interface.
fn plain(value: &str, ends: &str) -> String {
    let fits = |c: char| !ends.contains(c) && !c.is_control();
    let value = value.chars().map(|c| if fits(c) { c } else { '_' });
    value.collect()
}

/// Returns an id for the profile. The id depends only on the content, so a profile that is pushed again has the same
/// id. The id is a UUID of version 8, whose bits applications may choose freely.
fn id(series: &Series<'_>) -> String {
    let mut all = Vec::new();
    let labels = series.labels.iter().flat_map(|(n, v)| [&**n, &**v]);
    for text in std::iter::once(series.service).chain(labels) {
        all.extend_from_slice(text.as_bytes());
        all.push(0);
    }
    all.extend_from_slice(&series.time_ms.to_le_bytes());
    all.extend_from_slice(series.profile);
    let hash = XxHash3_128::oneshot(&all);
    let (version, variant) = (0x8 << 76, 0b10 << 62);
    let hash = hash & !(0xf << 76) & !(0b11 << 62);
    let hash = hash | version | variant;
    let hex = format!("{hash:032x}");
    let parts = [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ];
    parts.join("-")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn labels() -> Vec<(String, String)> {
        let label = |n: &str, v: &str| (n.to_owned(), v.to_owned());
        vec![label("host", "web-3"), label("zone", "a,b}=\"{")]
    }

    fn series<'a>(service: &'a str, labels: &'a [(String, String)]) -> Series<'a> {
        Series {
            service,
            labels,
            time_ms: 1_760_000_120_900,
            profile: b"\x1f\x8b not really",
        }
    }

    #[test]
    fn push_requests_are_as_documented() {
        let labels = labels();
        let request = push(&series("shop", &labels));
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        let series = &body["series"][0];
        assert_eq!(
            series["labels"],
            json!([
                {"name": "__name__", "value": "memory"},
                {"name": "service_name", "value": "shop"},
                {"name": "host", "value": "web-3"},
                {"name": "zone", "value": "a,b}=\"{"},
            ])
        );
        assert_eq!(series["samples"][0]["rawProfile"], "H4sgbm90IHJlYWxseQ==");
        let id = series["samples"][0]["ID"].as_str().unwrap();
        let dashes: Vec<usize> = id.match_indices('-').map(|(at, _)| at).collect();
        assert_eq!((id.len(), dashes), (36, vec![8, 13, 18, 23]));
        assert!(
            id[14..].starts_with('8') && "89ab".contains(&id[19..20]),
            "{id}"
        );
    }

    #[test]
    fn equal_series_have_the_same_id() {
        let labels = labels();
        let one = series("shop", &labels);
        let later = Series {
            time_ms: one.time_ms + 1,
            ..one
        };
        assert_eq!(id(&one), id(&series("shop", &labels)));
        assert_ne!(id(&one), id(&series("shop", &labels[..1])));
        assert_ne!(id(&one), id(&later));
    }

    #[test]
    fn names_are_escaped_in_a_query_string() {
        let labels = labels();
        let request = ingest(&series("com.acme.Shop --port=1{", &labels));
        assert_eq!(
            request.path,
            "/ingest?name=com.acme.Shop_--port_1_%7Bhost%3Dweb-3%2Czone%3Da_b____%7D&from=1760000110\
             &until=1760000120&format=pprof&spyName=heapdiff"
        );
        assert_eq!(request.body, b"\x1f\x8b not really");
    }
}
