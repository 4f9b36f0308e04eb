//! Tests a whole session: the assistant has two dumps, and finds the field that holds the leak and the stack that
//! allocated it.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::client::{Client, Line};
use super::{AFTER, BEFORE, MOST, folder};

/// The file with all messages of the session. If `TRYCMD=overwrite` is set, the test writes this file.
const RECORDED: &str = "tests/mcp/leak.txt";

/// Formats the messages: one line for a sent message, several lines for a received one with its text.
fn told(log: &[Line]) -> String {
    let mut told = String::new();
    for line in log {
        match line {
            Line::Sent(line) => told += &format!("> {line}\n"),
            Line::Received(line) => {
                let mut message: Value = serde_json::from_str(line).expect("JSON");
                let text = message.pointer_mut("/result/content/0/text");
                let text = text.map(|text| text.as_str().expect("text").to_owned());
                if text.is_some() {
                    message["result"]["content"][0]["text"] = json!("(the lines below)");
                }
                let version = message.pointer_mut("/result/serverInfo/version");
                if let Some(version) = version {
                    assert_eq!(version, env!("CARGO_PKG_VERSION"));
                    *version = json!("[VERSION]");
                }
                let message = serde_json::to_string_pretty(&message).expect("JSON");
                for line in message.lines() {
                    told += &format!("< {line}\n");
                }
                for line in text.iter().flat_map(|text| text.lines()) {
                    told += format!("| {line}").trim_end();
                    told.push('\n');
                }
            }
        }
        told.push('\n');
    }
    told
}

#[test]
fn two_dumps_lead_to_holder_and_stack() {
    let folder = folder();
    let mut client = Client::begin(folder.path(), &[]);
    let tools = client.ask("tools/list", json!({}));
    assert_eq!(tools["result"]["tools"].as_array().map(Vec::len), Some(7));

    // The first tool call returns the holder and the allocating stack. Two more tool calls return details.
    let found = client.data("suspects", json!({ "dumps": [BEFORE, AFTER] }));
    let suspect = &found["suspects"][0];
    assert_eq!(suspect["holder"], "Orders.open");
    let class = suspect["class"].as_str().expect("a class");
    assert_eq!(class, "Orders$Order");
    let frames = suspect["stacks"][0]["frames"].as_array().expect("a stack");
    assert!(
        frames.contains(&json!("Orders.book(Orders.java:31)")),
        "{frames:?}"
    );
    let paths = client.data("paths", json!({ "dump": AFTER, "selector": class }));
    assert_eq!(paths["tree"][0]["class"], "class Orders");
    let sql = format!("select count(*) as n from objects where class = '{class}'");
    let rows = client.data("query", json!({ "dumps": [AFTER], "sql": sql }));
    assert_eq!(rows["rows"], json!([[4000]]));

    // The text of everything that the assistant has to read, including the list of tools. A token has about four bytes.
    let received = client.log.iter().map(|line| match line {
        Line::Received(line) => line.len(),
        Line::Sent(_) => 0,
    });
    let bytes: usize = received.sum();
    assert!(bytes <= MOST, "{bytes} bytes");

    let told = told(&client.log);
    let end = client.close();
    end.assert_quiet();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(RECORDED);
    if std::env::var_os("TRYCMD").is_some_and(|how| how == "overwrite") {
        fs::write(&path, &told).expect("a written file");
    }
    let recorded = fs::read_to_string(&path).expect(RECORDED);
    assert!(
        recorded == told,
        "{RECORDED} differs; TRYCMD=overwrite writes it"
    );
}
