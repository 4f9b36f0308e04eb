//! Contents of arrays and strings: saved, queried and searched.

use std::fs;
use std::path::Path;
use std::process::Output;

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
