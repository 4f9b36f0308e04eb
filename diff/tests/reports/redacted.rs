//! Tests redacted dumps that contain the agent's samples. In addition, every other test of reports checks that
//! redaction does not change the report (in `common`).

use std::path::Path;

use crate::common;
use heapdiff_diff::redaction_rules;
use hprof::redaction::{Left, Redaction};
use hprof::{Silent, Source};
use testdata::sampled::{AgentHeap, Sampled};
use testdata::writer::{Elements, HeapBuilder, Options};

/// The name of the thread that allocated the sampled objects.
const THREAD: &str = "worker-1";

fn committed(name: &str) -> Source {
    let path = format!("{}/../testdata/{name}.hprof.gz", env!("CARGO_MANIFEST_DIR"));
    Source::open(Path::new(&path)).unwrap()
}

fn redacted(dump: &Source) -> Source {
    let mut out = Vec::new();
    let redaction = Redaction::new(dump, redaction_rules(true)).unwrap();
    redaction.write(&mut out, &Silent).unwrap();
    Source::from_bytes(out)
}

fn left(dump: &Source) -> Left {
    let redaction = Redaction::new(dump, redaction_rules(true)).unwrap();
    redaction.check(&Silent).unwrap().left
}

fn has(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|w| w == text.as_bytes())
}

#[test]
fn redacted_pairs_compare_as_before() {
    for pair in [["before", "after"], ["sampled-before", "sampled-after"]] {
        let report = common::report(pair.map(committed));
        assert!(!report.suspects.is_empty());
    }
}

/// Returns a dump with one sample.
fn sampled() -> Source {
    let mut heap = HeapBuilder::new(Options::default());
    heap.set_system_properties(&[("java.vm.version", "17.0.15+6"), ("user.name", "Ann Lee")]);
    let array = heap.add_primitive_array(Elements::Byte(vec![1; 1000]));
    let mut agent = AgentHeap::new(&[&["com.acme.Registry.add", "com.acme.Main.main"]]);
    agent.sample(Sampled::new(array, 1, 1016, 1));
    agent.add_to(&mut heap);
    Source::from_bytes(heap.build())
}

#[test]
fn the_agents_tables_keep_names_and_no_threads() {
    let dump = sampled();
    assert!(has(&dump, THREAD) && has(&dump, "Ann Lee"));
    let before = left(&dump);
    assert!(before.table_texts.count == 1 && !before.is_clean());
    let redacted = redacted(&dump);
    assert!(!has(&redacted, THREAD) && !has(&redacted, "Ann Lee"));
    for known in [
        "java.vm.version",
        "17.0.15+6",
        "com.acme.Registry",
        "Main.java",
    ] {
        assert!(has(&redacted, known), "{known}");
    }
    let after = left(&redacted);
    assert!(after.is_clean(), "{after:?}");
    assert!(after.kept_tables.count > 3 && after.kept_texts.count > 1);
    assert_eq!(after.kept_tables, before.kept_tables);
}
