//! Contents of arrays and strings: saved, queried and searched.

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::Value as Json;
use testdata::writer::{Elements, HeapBuilder, Options, Root};

use crate::support::heapdiff;

/// A dump with one array of each kind of content, and a string.
struct Dump {
    folder: tempfile::TempDir,
    ids: Vec<String>,
}

const IMAGE: [u8; 6] = [0x89, b'P', b'N', b'G', 0, 255];

impl Dump {
    fn new() -> Self {
        let mut heap = HeapBuilder::new(Options::default());
        heap.boot();
        let arrays = [
            Elements::Byte(IMAGE.to_vec()),
            Elements::Byte("größe 7\0\0".into()),
            Elements::Char("größe 8".encode_utf16().collect()),
            Elements::Int(vec![1, -1]),
        ];
        let arrays = arrays.map(|elements| heap.add_primitive_array(elements));
        let string = heap.add_string("größe 9 und 漢");
        let objects = [&arrays[..], &[string]].concat();
        for &object in &objects {
            heap.add_root(Root::JniGlobal { global_ref: 5 }, object);
        }
        let ids = objects.iter().map(|o| format!("{:#x}", heap.address(*o)));
        let ids = ids.collect();
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("a.hprof"), heap.build()).expect("a dump");
        Self { folder, ids }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn run(&self, args: &[&str]) -> Output {
        heapdiff(self.path(), args).output().expect("a run")
    }

    fn text(&self, args: &[&str]) -> String {
        let done = self.run(args);
        assert!(done.status.success(), "{done:?}");
        String::from_utf8(done.stdout).expect("text")
    }
}

#[test]
fn saved_content_is_exact() {
    let dump = Dump::new();
    let saved: [&[u8]; 5] = [
        &IMAGE,
        "größe 7\0\0".as_bytes(),
        &"größe 8"
            .encode_utf16()
            .flat_map(u16::to_be_bytes)
            .collect::<Vec<u8>>(),
        &[0, 0, 0, 1, 255, 255, 255, 255],
        "größe 9 und 漢".as_bytes(),
    ];
    let file = dump.path().join("saved");
    for (id, saved) in dump.ids.iter().zip(saved) {
        dump.text(&["show", "a.hprof", id, "--save", "saved"]);
        assert_eq!(fs::read(&file).expect("a file"), saved, "{id}");
    }
}

#[test]
fn arrays_are_text_or_bytes() {
    let dump = Dump::new();
    let shown = |at: usize| dump.text(&["show", "a.hprof", &dump.ids[at]]);
    assert!(shown(0).contains("00000000  89 50 4e 47 00 ff"));
    assert!(shown(0).contains("  .PNG..\n"));
    assert!(shown(1).contains("text     \"größe 7\"\n"));
    assert!(shown(2).contains("text     \"größe 8\"\n"));
    assert!(shown(3).contains("    1 -1\n"));
    let sql = format!(
        "select text(id), bytes(id) from objects where id in ({}) order by id",
        dump.ids.join(", ")
    );
    let rows = dump.text(&["query", "a.hprof", &sql, "--format", "csv"]);
    let rows: Vec<&str> = rows.lines().skip(1).collect();
    assert_eq!(
        rows,
        [
            ",89504e4700ff",
            "größe 7,6772c3b6c39f6520370000",
            "größe 8,0067007200f600df006500200038",
            ",00000001ffffffff",
            "größe 9 und 漢,"
        ]
    );
}

/// Returns the ids, offsets and excerpts of the matches.
fn found(dump: &Dump, pattern: &str) -> Vec<(String, u64, String)> {
    let text = dump.text(&["find", "a.hprof", pattern, "--format", "json"]);
    let report: Json = serde_json::from_str(&text).expect("JSON");
    let matches = report["matches"].as_array().expect("a list").iter();
    let word = |value: &Json| value.as_str().expect("a word").to_owned();
    let rows = matches.map(|row| {
        let offset = row["offset"].as_u64().expect("a number");
        (word(&row["id"]), offset, word(&row["excerpt"]))
    });
    let mut rows: Vec<_> = rows.collect();
    rows.sort_unstable();
    rows
}

#[test]
fn content_is_found_in_each_encoding() {
    let dump = Dump::new();
    let row = |at: usize, offset, text: &str| (dump.ids[at].clone(), offset, text.to_owned());
    let sizes = [
        row(1, 0, "größe 7\0\0"),
        row(2, 0, "größe 8"),
        row(4, 0, "größe 9 und 漢"),
    ];
    assert_eq!(found(&dump, "größe"), sizes);
    // The offset in a byte[] is in bytes.
    let inner = [
        row(1, 2, "größe 7\0\0"),
        row(2, 2, "größe 8"),
        row(4, 2, "größe 9 und 漢"),
    ];
    assert_eq!(found(&dump, "öße"), inner);
    assert_eq!(found(&dump, "e 7"), [row(1, 6, "größe 7\0\0")]);
    assert_eq!(found(&dump, "/gr..e [89]/"), sizes[1..]);
    assert_eq!(found(&dump, "漢"), [row(4, 12, "größe 9 und 漢")]);
    assert_eq!(found(&dump, "hex:504e"), [row(0, 1, "504e4700ff")]);
    assert_eq!(found(&dump, "/absent/"), []);
}

/// `find` must find as many strings as an SQL query on the table `strings`.
#[test]
fn found_strings_are_those_of_the_table_of_strings() {
    let folder = tempfile::tempdir().expect("a folder");
    crate::support::prepare(folder.path());
    let text = |args: &[&str]| {
        let done = heapdiff(folder.path(), args).output().expect("a run");
        assert!(done.status.success(), "{done:?}");
        String::from_utf8(done.stdout).expect("text")
    };
    const DUMP: &str = "testdata/after.hprof.gz";
    for (pattern, condition) in [
        ("SKU-1", "instr(value, 'SKU-1') > 0"),
        ("e", "instr(value, 'e') > 0"),
        ("java.lang", "instr(value, 'java.lang') > 0"),
        ("/^[A-Z]+$/", "value regexp '^[A-Z]+$'"),
        ("/(?i)session/", "value regexp '(?i)session'"),
    ] {
        let sql = format!("select count(*) from strings where {condition}");
        let counted = text(&["query", DUMP, &sql, "--format", "csv"]);
        let counted: usize = counted
            .lines()
            .nth(1)
            .expect("a row")
            .parse()
            .expect("a number");
        assert!(counted > 0, "{pattern}");
        let report = text(&[
            "find", DUMP, pattern, "--top", "1000000", "--format", "json",
        ]);
        let report: Json = serde_json::from_str(&report).expect("JSON");
        let matches = report["matches"].as_array().expect("a list").iter();
        let strings = matches.filter(|row| row["class"] == "java.lang.String");
        assert_eq!(strings.count(), counted, "{pattern}");
    }
}
