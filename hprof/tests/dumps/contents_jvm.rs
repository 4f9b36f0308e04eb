//! Compares the contents of collections in a dump with the elements that the collections' own methods return. For every
//! JDK found, each collection of `Contents.java` is read.

use std::ops::Range;

use hprof::answers::{Content, Contents, Entry, Value};
use hprof::{ObjectIndex, Options, Silent, Snapshot};
use testdata::jvm::{DumpOptions, Jdk, Launch};

/// A line of the program's output, about the collection in one field.
struct Said {
    field: String,
    kind: String,
    size: u64,
    elements: Vec<String>,
}

fn said(line: &str) -> Said {
    let mut parts = line.split('\t').skip(1).map(str::to_owned);
    let mut next = || parts.next().unwrap_or_default();
    let (field, kind, size, elements) = (next(), next(), next(), next());
    let split = |s: &String| !s.is_empty();
    let elements = Some(elements)
        .filter(split)
        .map(|s| s.split('|').map(str::to_owned).collect());
    Said {
        field,
        kind,
        size: size.parse().unwrap(),
        elements: elements.unwrap_or_default(),
    }
}

/// Returns values as `String.valueOf` prints them. The values are strings, boxed values, enum constants, and records
/// with a name. All objects are read in one batch.
fn shown(snapshot: &Snapshot, values: &[Value]) -> Vec<String> {
    let objects: Vec<ObjectIndex> = values.iter().filter_map(|v| v.object()).collect();
    let texts = snapshot.strings(&objects, 1000);
    let others: Vec<ObjectIndex> = objects
        .iter()
        .zip(&texts)
        .filter_map(|(&o, text)| text.is_none().then_some(o))
        .collect();
    let within = |(&object, record): (&ObjectIndex, Option<hprof::answers::Record<'_>>)| {
        let Content::Instance(fields) = record.unwrap().content else {
            panic!("{} is no value", snapshot.name(object));
        };
        let own = fields
            .iter()
            .find(|f| f.name == "value" || f.name == "name");
        own.and_then(|f| f.value).unwrap()
    };
    let values_within: Vec<Value> = others
        .iter()
        .zip(snapshot.read_all(&others))
        .map(within)
        .collect();
    let mut other_texts = if values_within.is_empty() {
        Vec::new()
    } else {
        shown(snapshot, &values_within)
    }
    .into_iter();
    let mut texts = texts.into_iter();
    let one = |value: &Value| match *value {
        Value::Object(id, _) if id.is_null() => "null".to_owned(),
        Value::Object(_, object) => {
            object.unwrap();
            let text = texts.next().unwrap();
            text.unwrap_or_else(|| other_texts.next().unwrap())
        }
        Value::Boolean(v) => v.to_string(),
        other => other.integer().unwrap().to_string(),
    };
    values.iter().map(one).collect()
}

fn elements(snapshot: &Snapshot, contents: &Contents) -> Vec<String> {
    let of = |entry: &Entry| entry.key.into_iter().chain([entry.value]);
    let values: Vec<Value> = contents.entries.iter().flat_map(of).collect();
    let mut texts = shown(snapshot, &values).into_iter();
    let one = |entry: &Entry| match entry.key {
        Some(_) => format!("{}={}", texts.next().unwrap(), texts.next().unwrap()),
        None => texts.next().unwrap(),
    };
    let text = contents.text.clone().into_iter();
    text.chain(contents.entries.iter().map(one)).collect()
}

/// Collections whose elements Java iterates in another order than that of the table in the heap.
const UNORDERED: [&str; 5] = ["setOf2", "setOf5", "mapOf3", "hashtable", "weakMap"];

fn check(jdk: &Jdk, flag: &str) -> Vec<String> {
    let label = format!("JDK {} {flag}", jdk.major());
    let classes = jdk.compile(&testdata::programs::contents()).unwrap();
    let mut target = Launch::class(jdk, classes, "Contents")
        .flags([
            "-Xmx128m",
            "-Dfile.encoding=UTF-8",
            "-Dstdout.encoding=UTF-8",
            flag,
        ])
        .start()
        .unwrap();
    let mut list: Vec<Said> = Vec::new();
    while list.last().is_none_or(|last| last.field != "buffer") {
        list.push(said(&target.wait_line("HOLDS").unwrap()));
    }
    target.wait_ready(1).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("contents.hprof");

    target.dump(&file, DumpOptions::default()).unwrap();
    drop(target);
    let snapshot = Snapshot::open(&file, &Options::default(), &Silent).unwrap();
    let class = snapshot.classes().by_name("Contents")[0];
    let mut failures = Vec::new();
    for said in &mut list {
        let field = &said.field;
        let object: ObjectIndex = snapshot
            .static_value(class, field)
            .unwrap()
            .object()
            .unwrap();
        let read = |range: Range<u64>| snapshot.contents(object, range);
        let Some(all) = read(0..1000) else {
            failures.push(format!("{label}: {field} is taken for no collection"));
            continue;
        };
        let mut texts = elements(&snapshot, &all);
        // Java iterates over these tables backwards or begins at another element, so compare the elements without their
        // order.
        if UNORDERED.contains(&&**field) {
            texts.sort_unstable();
            said.elements.sort_unstable();
        }
        let ours = (all.kind.name(), all.size.unwrap_or(u64::MAX), texts);
        if (ours.0, ours.1, &ours.2) != (&*said.kind, said.size, &said.elements) || !all.whole {
            let Said {
                kind,
                size,
                elements,
                ..
            } = said;
            failures.push(format!(
                "{label}: {field}: {ours:?}, whole: {}; the JVM says {kind}, {size}, {elements:?}",
                all.whole
            ));
            continue;
        }
        // A range of elements must equal the same range of the list of all elements.
        if all.entries.len() > 90 {
            for (start, end) in [(1, 3), (90, 101)] {
                let page = read(start..end).unwrap();
                let cut = |at: u64| all.entries.len().min(at as usize);
                if page.entries != all.entries[cut(start)..cut(end)]
                    || !page.whole
                    || page.size.is_some_and(|size| size != said.size)
                {
                    failures.push(format!("{label}: {field} from {start} to {end}: {page:?}"));
                }
            }
        }
    }
    println!(
        "{label}: {} collections compared, {failures:#?}",
        list.len()
    );
    if list.len() < 80 {
        failures.push(format!("{label}: only {} collections", list.len()));
    }
    failures
}

#[test]
fn contents_equal_those_that_the_program_prints() {
    let jdks = Jdk::all_for_scenarios();
    assert!(!jdks.is_empty(), "no JDK found");
    let plain = jdks.iter().map(|jdk| (jdk, "-XX:+UseSerialGC"));
    // Without compact strings every string consists of two-byte characters.
    let wide = jdks.last().map(|jdk| (jdk, "-XX:-CompactStrings"));
    let modes = plain.chain(wide);
    let failures: Vec<String> = modes.flat_map(|(jdk, flag)| check(jdk, flag)).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
