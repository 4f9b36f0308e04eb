//! Tests that the files of a fleet contain the same figures as the traces and reports.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use heapdiff_fleet::{FleetError, Labels, add};
use heapdiff_trace::Database;
use heapdiff_trace::synthetic::{self, Scene};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};

/// Returns the settings of a synthetic trace with three ticks an hour, for slightly more than two days.
fn scene() -> Scene<'static> {
    Scene {
        ticks: 150,
        span_ms: 1_200_000,
        ..Scene::default()
    }
}

fn shop() -> Labels {
    Labels {
        service: Some("shop".to_owned()),
        host: Some("shop-1".to_owned()),
    }
}

fn rows(files: &[PathBuf], table: &str) -> Vec<Row> {
    let of_table = |path: &&PathBuf| path.iter().any(|part| part == table);
    let mut rows = Vec::new();
    for path in files.iter().filter(of_table) {
        let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
        rows.extend(reader.get_row_iter(None).unwrap().map(|row| row.unwrap()));
    }
    rows
}

fn field(row: &Row, name: &str) -> Field {
    let found = row.get_column_iter().find(|(n, _)| *n == name);
    found.unwrap().1.clone()
}

fn int(row: &Row, name: &str) -> i64 {
    match field(row, name) {
        Field::Long(value) => value,
        other => panic!("{name}: {other:?}"),
    }
}

fn text(row: &Row, name: &str) -> String {
    match field(row, name) {
        Field::Str(value) => value,
        other => panic!("{name}: {other:?}"),
    }
}

/// Returns all files below a folder with their content.
fn content(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let bytes = fs::read(&path).unwrap();
                found.insert(path, bytes);
            }
        }
    }
    found
}

#[test]
fn figures_equal_those_of_the_trace() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.db");
    synthetic::write(&path, &scene()).unwrap();
    // The same file also contains a second run, on other days.
    synthetic::write(&path, &scene()).unwrap();
    let added = add(&path, &folder.path().join("fleet"), &shop()).unwrap();
    assert_eq!(added.odd, 0);
    let sites = rows(&added.files, "sites");
    let runs = rows(&added.files, "runs");
    assert_eq!(added.rows as usize, sites.len() + runs.len());

    let database = Database::open(&path).unwrap();
    let one = |sql: &str| -> i64 {
        let connection = database.connection();
        connection.query_row(sql, [], |row| row.get(0)).unwrap()
    };
    let columns = [
        "allocated_samples",
        "allocated_objects",
        "allocated_bytes",
        "collected_objects",
        "collected_bytes",
    ];
    for column in columns {
        let ours: i64 = sites.iter().map(|row| int(row, column)).sum();
        assert_eq!(ours, one(&format!("SELECT sum({column}) FROM site_tick")));
        assert!(ours > 0, "{column}");
    }
    // At the end of each run, the live bytes of all sites in the table add up to those in the trace.
    for run in ["synthetic-1", "synthetic-2"] {
        let mut last: BTreeMap<String, (i64, i64)> = BTreeMap::new();
        for row in sites.iter().filter(|row| text(row, "run") == run) {
            let at = (int(row, "hour_ms"), int(row, "live_bytes"));
            let entry = last.entry(text(row, "site")).or_default();
            *entry = at.max(*entry);
        }
        let live: i64 = last.values().map(|(_, bytes)| bytes).sum();
        let expected = one(&format!(
            "SELECT sum(live_bytes) FROM site_tick AS s JOIN (SELECT site, max(tick) AS tick FROM site_tick
                WHERE tick IN (SELECT tick.id FROM tick JOIN run ON run.id = tick.run WHERE run.uid = '{run}')
                GROUP BY site) USING (site, tick)"
        ));
        assert_eq!(live, expected);
    }
    let sum = |name| runs.iter().map(|row| int(row, name)).sum::<i64>();
    assert_eq!(sum("observed_ms"), one("SELECT sum(span_ms) FROM tick"));
    let collections = sum("minor_collections") + sum("major_collections");
    assert_eq!(collections, one("SELECT count(*) FROM collection"));
    let major = one("SELECT sum(major) FROM collection");
    assert_eq!(sum("major_collections"), major);
    let pauses = one("SELECT sum(pause_us) FROM collection");
    assert_eq!(sum("pause_us"), pauses);
    assert!(runs.iter().all(|row| int(row, "hour_ms") % 3_600_000 == 0));
    let day = "sites/service=shop/host=shop-1/day=2025-10-09/synthetic-1.parquet";
    assert!(added.files.iter().any(|path| path.ends_with(day)));
}

#[test]
fn sites_have_stable_ids_and_adding_again_replaces() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("1.db"), folder.path().join("2.db"));
    // The sites are in reverse order, so the same sites have different row ids in the two databases.
    let mut sites = synthetic::SITES.to_vec();
    sites.reverse();
    synthetic::write(&one, &scene()).unwrap();
    let turned = Scene {
        sites: &sites,
        ..scene()
    };
    synthetic::write(&two, &turned).unwrap();
    let fleet = folder.path().join("fleet");
    let first = add(&one, &fleet, &shop()).unwrap();
    let keys = |files: &[PathBuf]| {
        let rows = rows(files, "sites");
        let keys = rows
            .iter()
            .map(|row| (text(row, "site"), text(row, "stack")));
        keys.collect::<BTreeSet<_>>()
    };
    let other = Labels {
        host: Some("shop-2".to_owned()),
        ..shop()
    };
    let second = add(&two, &fleet, &other).unwrap();
    assert_eq!(keys(&first.files), keys(&second.files));
    assert_eq!(keys(&first.files).len(), synthetic::SITES.len());

    let before = content(&fleet);
    assert_eq!(add(&one, &fleet, &shop()).unwrap(), first);
    assert_eq!(content(&fleet), before);
    assert_eq!(before.len(), first.files.len() + second.files.len());
}

#[test]
fn labels_stay_in_their_folder_and_the_trace_names_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.db");
    synthetic::write(&path, &scene()).unwrap();
    let fleet = folder.path().join("a/fleet");
    let labels = Labels {
        service: Some("../../../escape".to_owned()),
        host: Some(String::new()),
    };
    let added = add(&path, &fleet, &labels).unwrap();
    assert!(
        added
            .files
            .iter()
            .all(|p| p.exists() && p.starts_with(&fleet))
    );
    // SQLite writes files beside the trace `t.db`. They are not in the fleet's folder, so ignore them.
    let of_trace = |p: &Path| {
        p.file_name()
            .is_some_and(|n| n.to_string_lossy().starts_with("t.db"))
    };
    let outside = |p: &&PathBuf| !p.starts_with(&fleet) && !of_trace(p);
    let strays: Vec<PathBuf> = content(folder.path()).into_keys().collect();
    assert_eq!(strays.iter().filter(outside).count(), 0, "{strays:?}");
    let unknown = |p: &PathBuf| p.to_string_lossy().contains("/host=unknown/");
    assert!(added.files.iter().all(unknown), "{:?}", added.files);
    let added = add(&path, &fleet, &Labels::default()).unwrap();
    let named = |p: &PathBuf| p.to_string_lossy().contains("/service=shop/host=shop-1/");
    assert!(added.files.iter().all(named), "{:?}", added.files);
}

#[test]
fn reports_are_rows_of_suspects() {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report.json");
    let suspect = |rank: u32| {
        format!(
            r#"{{"rank":{rank},"verdict":"leak","reasons":["it grew","and grew"],"root":"static com.acme.Foo",
               "path":["com.acme.Foo.all","java.util.List"],"holder":"com.acme.Foo.all","class":"byte[]",
               "growth":{{"objects":5,"shallow_bytes":80,"retained_bytes":{rank}00}},
               "stacks":[{{"frames":["a.B.leaf(B.java:1)","a.B.main(B.java:9)"],"estimated_bytes":70}}]}}"#
        )
    };
    let snapshots = r#"[{"path":"a","taken_ms":1000,"jvm":null,"reachable_bytes":1},
        {"path":"b","taken_ms":1760000000000,"jvm":"17","reachable_bytes":2}]"#;
    let whole = format!(
        r#" {{"schema":"heapdiff.diff/1","snapshots":{snapshots},"suspects":[{},{}],"more":1}}"#,
        suspect(1),
        suspect(2)
    );
    fs::write(&report, &whole).unwrap();
    let fleet = folder.path().join("fleet");
    let added = add(&report, &fleet, &shop()).unwrap();
    assert_eq!((added.rows, added.files.len()), (2, 1));
    let day = |p: &PathBuf| p.to_string_lossy().contains("/day=2025-10-09/");
    assert!(day(&added.files[0]), "{:?}", added.files);
    let rows = rows(&added.files, "suspects");
    let stack = "a.B.main(B.java:9);a.B.leaf(B.java:1)";
    assert_eq!(text(&rows[0], "stack"), stack);
    assert_eq!(int(&rows[1], "growth_retained_bytes"), 200);
    assert_eq!(text(&rows[1], "reasons"), "it grew\nand grew");
    assert_eq!(int(&rows[0], "from_ms"), 1000);

    let other = whole.replace("diff/1", "diff/2");
    for wrong in ["{", "{}", "{\"schema\":\"x\"}", "text", "", &other] {
        fs::write(&report, wrong).unwrap();
        let error = add(&report, &fleet, &shop()).unwrap_err();
        assert!(
            matches!(error, FleetError::Foreign { .. }),
            "{wrong}: {error}"
        );
    }
    assert_eq!(content(&fleet).len(), 1);
    let missing = add(&folder.path().join("none"), &fleet, &shop()).unwrap_err();
    assert!(matches!(missing, FleetError::Read { .. }), "{missing}");
}

#[test]
fn a_damaged_trace_leaves_no_half_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.db");
    synthetic::write(&path, &scene()).unwrap();
    // Without a write-ahead log, all data of the trace is in one file.
    let database = Database::create(&path).unwrap();
    let mode = database
        .connection()
        .pragma_update(None, "journal_mode", "delete");
    mode.unwrap();
    drop(database);
    let whole = fs::read(&path).unwrap();
    let fleet = folder.path().join("fleet");
    let mut refused = 0;
    for step in 1..40 {
        let mut damaged = whole.clone();
        let at = whole.len() * step / 40;
        for byte in damaged.iter_mut().skip(at).take(64) {
            *byte = byte.wrapping_mul(31).wrapping_add(step as u8);
        }
        fs::write(&path, &damaged).unwrap();
        // Damage that changes figures cannot be detected. Damage that makes the trace unreadable must be an error.
        refused += usize::from(add(&path, &fleet, &shop()).is_err());
        for (file, bytes) in content(&fleet) {
            assert!(bytes.ends_with(b"PAR1"), "{}", file.display());
        }
    }
    assert!(refused > 0);
    fs::write(&path, &whole[..whole.len() / 3]).unwrap();
    assert!(add(&path, &fleet, &shop()).is_err());
}

#[test]
fn a_file_that_is_no_table_is_not_replaced() {
    let home = tempfile::tempdir().unwrap();
    let (trace, fleet) = (home.path().join("t.db"), home.path().join("fleet"));
    synthetic::write(&trace, &scene()).unwrap();
    let added = add(&trace, &fleet, &shop()).unwrap();
    add(&trace, &fleet, &shop()).unwrap();
    let place = &added.files[0];
    fs::copy(&trace, place).unwrap();
    let before = fs::read(place).unwrap();
    let error = add(place, &fleet, &shop()).unwrap_err();
    assert!(matches!(error, FleetError::Write { .. }), "{error}");
    assert!(
        error.to_string().contains("is not a Parquet file"),
        "{error}"
    );
    assert_eq!(fs::read(place).unwrap(), before);
}
