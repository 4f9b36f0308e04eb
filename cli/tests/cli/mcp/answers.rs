//! Tests that the answer of a tool is short, and equals the report of the command.

use std::fs;

use serde_json::{Value, json};
use testdata::writer::{Elements, FieldType, HeapBuilder, Options, Root, Value as Field};

use super::client::{Client, text};
use super::{AFTER, BEFORE, MOST, SHOP, folder, has, longest};
use crate::schema::faults;

const SESSION: &str = "com.acme.shop.Session";

/// Returns test cases. Each has an MCP tool, its arguments, the equivalent command line, and the name of the schema
/// that the tool's answer and the command's output must match.
fn questions() -> Vec<(&'static str, Value, Vec<&'static str>, &'static str)> {
    let [before, after] = SHOP;
    let sql = "select class, objects from classes order by objects desc";
    let both = "select count(*) from after.objects, before.threads";
    vec![
        (
            "summary",
            json!({ "dump": after }),
            vec!["histo", after, "--retained", "--top", "8"],
            "histo",
        ),
        (
            "suspects",
            json!({ "dumps": [BEFORE, AFTER] }),
            vec![BEFORE, AFTER, "--top", "3"],
            "diff",
        ),
        (
            "suspects",
            json!({ "dumps": [before, after, before], "top": 2, "exclude": "Cart" }),
            vec![before, after, before, "--top", "2", "--exclude", "Cart"],
            "diff",
        ),
        (
            "suspects",
            json!({ "dumps": [after], "top": 1 }),
            vec![after, "--top", "1"],
            "heap",
        ),
        (
            "sizeof",
            json!({ "dump": after, "selectors": [SESSION, "/Cart/"] }),
            vec![
                "sizeof",
                after,
                SESSION,
                "/Cart/",
                "--by-class",
                "--top",
                "5",
            ],
            "sizeof",
        ),
        (
            "paths",
            json!({ "dump": after, "selector": "java.lang.String", "top": 9 }),
            vec!["paths", after, "java.lang.String", "--top", "9"],
            "paths",
        ),
        (
            "query",
            json!({ "dumps": [after], "sql": sql }),
            vec!["query", after, sql, "--max-rows", "20"],
            "query",
        ),
        (
            "query",
            json!({ "dumps": SHOP, "sql": both }),
            vec!["query", before, after, both],
            "query",
        ),
        (
            "sites",
            json!({ "dump": AFTER }),
            vec!["sites", AFTER, "--top", "3"],
            "sites",
        ),
        (
            "sites",
            json!({ "dump": AFTER, "by": "class", "focus": "Orders" }),
            vec![
                "sites", AFTER, "--by", "class", "--focus", "Orders", "--top", "3",
            ],
            "sites",
        ),
        (
            "sites",
            json!({ "dump": AFTER, "allocated": true }),
            vec!["sites", AFTER, "--allocated", "--top", "3"],
            "allocated",
        ),
        (
            "sites",
            json!({ "dump": "testdata/recorded.jfr.gz" }),
            vec!["sites", "testdata/recorded.jfr.gz", "--top", "3"],
            "recording",
        ),
    ]
}

#[test]
fn answers_equal_those_of_the_commands() {
    let folder = folder();
    let mut client = Client::begin(folder.path(), &[]);
    for (tool, asked, command, schema) in questions() {
        let result = client.call(tool, asked.clone());
        let mut data = result["structuredContent"].clone();
        let left_out = data
            .as_object_mut()
            .and_then(|data| data.remove("left_out"));
        let run = |format: &str| {
            let args = [&command[..], &["-q", "--format", format]].concat();
            let done = crate::support::heapdiff(folder.path(), &args).output();
            done.expect("a run").stdout
        };
        let report: Value = serde_json::from_slice(&run("json")).expect("JSON");
        assert_eq!(data, report, "{tool} {asked}");
        assert_eq!(faults(schema, &data), [] as [String; 0], "{tool} {asked}");
        let shown = String::from_utf8(run("text")).expect("text");
        assert_eq!(text(&result), shown, "{tool} {asked}");
        // The JSON answer counts omitted entries if, and only if, the text mentions that there are more entries.
        let more = |text: &str| {
            text.lines()
                .any(|line| line.starts_with("and ") && line.contains(" more"))
        };
        let is_cut = left_out.is_some_and(|all| all.as_object().is_some_and(|all| !all.is_empty()));
        assert_eq!(is_cut, more(&shown), "{tool} {asked}: {shown}");
    }
    assert!(longest(&client) <= MOST);
    assert!(client.close().status.success());
}

/// A mapping applies to all tools.
#[test]
fn names_come_from_the_mapping() {
    let folder = folder();
    let mapping = ["--mapping", "mapping.txt"];
    let mut client = Client::begin(folder.path(), &mapping);
    for (tool, asked, command) in [
        (
            "suspects",
            json!({ "dumps": [BEFORE, AFTER] }),
            vec![BEFORE, AFTER, "--top", "3"],
        ),
        (
            "sites",
            json!({ "dump": AFTER, "focus": "Ledger" }),
            vec!["sites", AFTER, "--focus", "Ledger", "--top", "3"],
        ),
        (
            "sizeof",
            json!({ "dump": AFTER, "selectors": ["com.acme.book.Entry"] }),
            vec![
                "sizeof",
                AFTER,
                "com.acme.book.Entry",
                "--by-class",
                "--top",
                "5",
            ],
        ),
    ] {
        let result = client.call(tool, asked);
        let args = [&command[..], &["-q"], &mapping].concat();
        let done = crate::support::heapdiff(folder.path(), &args).output();
        let shown = String::from_utf8(done.expect("a run").stdout).expect("text");
        assert!(shown.contains("com.acme.book."), "{shown}");
        assert_eq!(text(&result), shown, "{tool}");
    }
    let end = client.close();
    assert!(end.status.success() && end.stderr.is_empty());
}

#[test]
fn omitted_entries_are_counted() {
    let folder = folder();
    let mut client = Client::begin(folder.path(), &[]);
    let all = client.data("summary", json!({ "dump": AFTER }));
    let classes = all["totals"]["classes"].as_u64().expect("a number");
    assert_eq!(all["left_out"], json!({ "classes": classes - 8 }));
    let sql = "select * from objects";
    let rows = client.data(
        "query",
        json!({ "dumps": [AFTER], "sql": sql, "max_rows": 200 }),
    );
    assert_eq!(rows["more_rows"], true);
    assert_eq!(rows["row_count"], 200);
    let given = rows["rows"].as_array().expect("rows").len() as u64;
    assert!((10..200).contains(&given));
    assert_eq!(rows["left_out"], json!({ "rows": 200 - given }));
    assert!(longest(&client) <= MOST);
}

/// Returns a dump with long names and strings, and with many entries of every kind.
fn wordy() -> Vec<u8> {
    let mut heap = HeapBuilder::new(Options::default());
    let boot = heap.boot();
    let long = |name: &str| format!("com.{}.{name}", "é\u{1b}[31m\"".repeat(6_000));
    let fields = [("next", FieldType::Object)];
    let mut kept = Vec::new();
    for i in 0..60 {
        let class = heap.add_class(&long(&format!("C{i}")), Some(boot.object), &fields, &[]);
        let mut last = Field::NULL;
        for _ in 0..60 {
            last = heap.add_instance(class, &[last]).into();
        }
        let holder = format!("held{i}{}", "x".repeat(50_000));
        kept.push((holder, last));
    }
    kept.push((
        "text".to_owned(),
        heap.add_string(&"words ".repeat(100_000)).into(),
    ));
    let bytes = heap.add_primitive_array(Elements::Zeros(FieldType::Byte, 1000));
    heap.add_root(Root::JniGlobal { global_ref: 5 }, bytes);
    let statics: Vec<(&str, Field)> = kept.iter().map(|(name, value)| (&**name, *value)).collect();
    heap.add_class(&long("App"), Some(boot.object), &[], &statics);
    heap.build()
}

#[test]
fn answers_are_short_despite_long_names_and_strings() {
    let folder = folder();
    let dump = folder.path().join("wordy.hprof");
    fs::write(&dump, wordy()).expect("a dump");
    let dump = dump.to_str().expect("a path");
    let eight = [vec![AFTER; 7], vec![dump]].concat();
    let mut client = Client::begin(folder.path(), &["--no-index"]);
    for (tool, asked) in [
        ("summary", json!({ "dump": dump, "top": 200 })),
        ("suspects", json!({ "dumps": [dump], "top": 200 })),
        ("suspects", json!({ "dumps": [AFTER, dump], "top": 200 })),
        ("suspects", json!({ "dumps": eight, "top": 200 })),
        (
            "sizeof",
            json!({ "dump": dump, "selectors": ["/com/"], "top": 200 }),
        ),
        (
            "paths",
            json!({ "dump": dump, "selector": "/com/", "top": 200 }),
        ),
        (
            "query",
            json!({ "dumps": [dump], "sql": "select * from strings", "max_rows": 200 }),
        ),
        (
            "query",
            json!({ "dumps": vec![dump; 8], "sql": "select * from dump1.objects", "max_rows": 200 }),
        ),
    ] {
        let data = client.data(tool, asked.clone());
        let is_cut = data["left_out"].is_object() || data.to_string().contains('…');
        assert!(is_cut, "{tool} {asked}");
    }
    let longest = longest(&client);
    assert!(longest <= MOST, "{longest} bytes");
    assert!(longest > MOST / 2, "answers use the room that they have");
    let selector = format!("a.{}", "b".repeat(1_000_000));
    let refusal = client.refusal("paths", json!({ "dump": dump, "selector": selector }));
    assert!(refusal.len() < 1_000, "{} bytes", refusal.len());
}

#[test]
fn tools_describe_their_arguments() {
    let folder = folder();
    let mut client = Client::begin(folder.path(), &[]);
    let tools = client.ask("tools/list", json!({}))["result"]["tools"].clone();
    let page =
        fs::read_to_string(crate::support::root().join("docs/assistants.md")).expect("a page");
    for tool in tools.as_array().expect("tools") {
        let name = tool["name"].as_str().expect("a name");
        assert!(
            page.contains(&format!("| `{name}` |")),
            "the page lacks {name}"
        );
        assert_eq!(tool["annotations"]["readOnlyHint"], true);
        let schema = &tool["inputSchema"];
        jsonschema::validator_for(schema).expect("a schema");
        for (key, about) in schema["properties"].as_object().expect("parameters") {
            assert!(about["description"].is_string(), "{name}.{key}");
            assert!(
                page.contains(&format!("`{key}`")),
                "the page lacks {name}.{key}"
            );
        }
    }
    // The arguments of each question in these tests must fit the tool's schema.
    for (name, asked, ..) in questions() {
        let mut tools = tools.as_array().expect("tools").iter();
        let tool = tools.find(|tool| tool["name"] == name).expect("a tool");
        assert!(
            jsonschema::is_valid(&tool["inputSchema"], &asked),
            "{name} {asked}"
        );
    }
}

/// Checks the client configurations that the documentation shows.
#[test]
fn configurations_are_json_that_starts_the_server() {
    let page =
        fs::read_to_string(crate::support::root().join("docs/assistants.md")).expect("a page");
    let mut found = 0;
    for block in page.split("```json\n").skip(1) {
        let block = block.split("```").next().unwrap_or_default();
        let config: Value = serde_json::from_str(block).expect("JSON");
        for servers in ["mcpServers", "servers"] {
            let Some(server) = config[servers]
                .as_object()
                .and_then(|all| all.get("heapdiff"))
            else {
                continue;
            };
            assert_eq!(server["command"], "heapdiff");
            let args = server["args"].as_array().expect("arguments").iter();
            let args: Vec<&str> = args.map(|arg| arg.as_str().expect("text")).collect();
            assert_eq!(args[0], "mcp");
            let folder = folder();
            assert!(
                Client::begin(folder.path(), &args[1..])
                    .close()
                    .status
                    .success()
            );
            found += 1;
        }
    }
    assert!(found > 1, "{found} configurations");
}

#[test]
fn indexes_are_written_unless_disabled() {
    let folder = folder();
    let mut heap = HeapBuilder::new(Options::default());
    let large = heap.add_primitive_array(Elements::Zeros(FieldType::Long, 5 << 19));
    heap.add_root(Root::JniGlobal { global_ref: 5 }, large);
    fs::write(folder.path().join("large.hprof"), heap.build()).expect("a dump");
    for (args, wanted) in [(&["--no-index"][..], false), (&[], true)] {
        let mut client = Client::begin(folder.path(), args);
        let first = client.data("summary", json!({ "dump": "large.hprof" }));
        // Calls run one after the other. So the second call waits until the index of the first call's dump is written.
        assert_eq!(
            client.data("summary", json!({ "dump": "large.hprof" })),
            first
        );
        assert_eq!(has(folder.path(), "large.hprof.hdx"), wanted, "{args:?}");
    }
}
