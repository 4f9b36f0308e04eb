//! Tests the allocation rates of counted lines of code, in objects and bytes per second.

use heapdiff_trace::synthetic::{LINES, STARTED_MS, Scene, SceneLine, count};
use serde_json::Value;

use crate::{Asked, Folder};

#[test]
fn lines_that_are_counted_have_their_rates() {
    let folder = Folder::new();
    let path = folder.trace("t.db", &Scene::default());
    let asked = Asked::of(&[&path]);
    let none = asked.json("api/counted");
    assert_eq!(
        (&none["runs"], &none["rows"]),
        (&0.into(), &serde_json::json!([]))
    );
    count(&path, &LINES).unwrap();
    let all = asked.until("api/counted?top=3", |answer| answer["runs"] == 1);
    assert_eq!(all["from_ms"], STARTED_MS);
    assert_eq!(all["to_ms"], STARTED_MS + 120_000);
    assert_eq!(
        (&all["all_rows"], &all["without_bytes"]),
        (&4.into(), &1.into())
    );
    assert_eq!(all["objects_per_second"], 1_000_180);
    assert_eq!(all["bytes_per_second"], 24_000_000 + 165 * 2064 + 14 * 4096);
    let rows = all["rows"].as_array().unwrap();
    let of = |row: &Value, key: &str| row[key].clone();
    let places: Vec<_> = rows.iter().map(|row| of(row, "place")).collect();
    assert_eq!(
        places,
        [
            "com.acme.Handler.handle:41",
            "com.acme.Interceptor.record:31",
            "com.acme.Cache.load:22"
        ]
    );
    assert_eq!(of(&rows[0], "objects"), 120_000_000);
    assert_eq!(of(&rows[0], "objects_per_second"), 1_000_000);
    assert_eq!(of(&rows[1], "bytes"), 120 * 165 * 2064);
    // The compiler removes the allocations of the first line of code, so only counts include them. For all other lines,
    // samples and counts agree, so `sampled_per_second` is null.
    assert_eq!(of(&rows[0], "sampled_per_second"), 0);
    assert!(
        rows[1..]
            .iter()
            .all(|row| row["sampled_per_second"].is_null())
    );
    // The size of these objects is unknown, so their bytes are null.
    let more = asked.json("api/counted?top=9");
    assert!(more["rows"][3]["bytes"].is_null() && more["rows"][3]["objects"] == 120);
    // Request the last 20 seconds of one run. Then request two runs together.
    let from = STARTED_MS + 100_000;
    let window = asked.json(&format!("api/counted?from={from}"));
    assert_eq!(window["from_ms"], from);
    assert_eq!(window["rows"][0]["objects"], 20_000_000);
    assert_eq!(window["rows"][0]["objects_per_second"], 1_000_000);
    let asked = Asked::of(&[&path, &path]);
    let both = asked.json("api/counted");
    assert_eq!((&both["runs"], &both["all_rows"]), (&2.into(), &4.into()));
    assert_eq!(both["rows"][0]["objects_per_second"], 2_000_000);
}

/// Names of lines are untrusted data, like all names.
#[test]
fn hostile_names_of_lines_stay_data() {
    const HOSTILE: &str = "<script>alert(1)</script>\u{202e}\"'&\n";
    let folder = Folder::new();
    let path = folder.trace("t.db", &Scene::default());
    let line = SceneLine {
        place: (HOSTILE, HOSTILE, 1),
        allocated: HOSTILE,
        ..LINES[0]
    };
    count(&path, &[line]).unwrap();
    let asked = Asked::of(&[&path]);
    let answer = asked.json("api/counted");
    assert_eq!(answer["rows"][0]["class"], HOSTILE);
    assert!(!asked.get("").contains("alert(1)"));
}
