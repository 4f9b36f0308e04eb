//! A limit on memory moves the analysis' arrays to files and changes nothing else.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use hprof::{ClassTotal, ObjectIndex, Options, Silent, Snapshot};

type Figures = (Vec<(Option<u64>, Option<u64>)>, Vec<ClassTotal>);

fn figures(dump: &Path, max_memory: Option<u64>) -> Figures {
    let options = Options {
        max_memory,
        ..Options::default()
    };
    let snapshot = Snapshot::open(dump, &options, &Silent).unwrap();
    let objects = (0..snapshot.object_count() as u32).map(ObjectIndex);
    let retained = objects
        .map(|o| (snapshot.retained_bytes(o), snapshot.retained_objects(o)))
        .collect();
    (retained, snapshot.histogram())
}

#[test]
fn results_do_not_depend_on_the_limit() {
    for name in ["before", "after"] {
        let dump = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../testdata")
            .join(format!("{name}.hprof.gz"));
        let free = figures(&dump, None);
        assert!(free.0.len() > 100_000);
        for limit in [0, 300_000, 2_000_000] {
            assert!(free == figures(&dump, Some(limit)), "{name}, {limit} bytes");
        }
    }
}
