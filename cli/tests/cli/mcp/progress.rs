//! Tests progress messages and cancellation.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::Path;

use serde_json::{Value, json};
use testdata::writer::linked;

use super::client::Client;
use super::{AFTER, BEFORE, folder};

const BIG: &str = "big.hprof";
/// Number of nodes in a tree. A dump with this tree takes about 130 MB.
const NODES: u64 = 3_000_000;

/// Returns a folder with a dump whose analysis takes some time.
fn with_big_dump() -> tempfile::TempDir {
    let folder = folder();
    let file = File::create(folder.path().join(BIG)).expect("a file");
    let made = linked::tree(NODES, &mut BufWriter::new(file)).expect("a dump");
    assert!(made.bytes > 100_000_000, "{} bytes", made.bytes);
    folder
}

/// Returns the parameters of a call that requests progress with this token.
fn followed(tool: &str, arguments: Value, token: &Value) -> Value {
    json!({ "name": tool, "arguments": arguments, "_meta": { "progressToken": token } })
}

/// Returns the progress messages that arrive before the answer, and the answer.
fn progress_notifications(client: &mut Client, id: u64) -> (Vec<Value>, Value) {
    let mut progress_notifications = Vec::new();
    loop {
        let message = client.receive();
        if message["id"] == id {
            return (progress_notifications, message);
        }
        assert_eq!(message["method"], "notifications/progress", "{message}");
        progress_notifications.push(message["params"].clone());
    }
}

/// Checks that the progress value grows with each message, and that each message names the current work.
fn assert_grows(progress_notifications: &[Value], token: &Value) {
    let figures: Vec<f64> = progress_notifications
        .iter()
        .map(|step| step["progress"].as_f64().expect("a figure"))
        .collect();
    assert!(figures.windows(2).all(|two| two[0] < two[1]), "{figures:?}");
    for step in progress_notifications {
        assert_eq!(step["progressToken"], *token);
        let message = step["message"].as_str().expect("a message");
        assert!(message.contains(".hprof"), "{message}");
    }
}

/// Returns the files that heapdiff created beside the big dump.
fn beside(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name());
    let names = names.map(|name| name.to_string_lossy().into_owned());
    let is_new = |name: &String| name.starts_with(".heapdiff-") || name.starts_with("big.hprof.");
    names.filter(is_new).collect()
}

#[test]
fn progress_is_reported_on_request() {
    let folder = with_big_dump();
    let mut client = Client::begin(folder.path(), &["--no-index"]);
    for (tool, asked, token, phase) in [
        (
            "summary",
            json!({ "dump": BIG }),
            json!("a token"),
            "big.hprof: reading objects",
        ),
        (
            "suspects",
            json!({ "dumps": [BEFORE, AFTER] }),
            json!(7),
            "sampled-after.hprof.gz: retained sizes",
        ),
    ] {
        let call = followed(tool, asked, &token);
        let id = client.request("tools/call", call);
        let (progress_notifications, answer) = progress_notifications(&mut client, id);
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        assert_grows(&progress_notifications, &token);
        let has = |step: &Value| {
            step["message"]
                .as_str()
                .is_some_and(|m| m.starts_with(phase))
        };
        assert!(
            progress_notifications.iter().any(has),
            "{progress_notifications:?}"
        );
    }
    // Without a token no progress is sent.
    client.data("summary", json!({ "dump": AFTER }));
    let end = client.close();
    assert!(end.status.success() && end.unread.is_empty());
}

#[test]
fn a_cancelled_request_ends_its_analysis() {
    let folder = with_big_dump();
    let mut client = Client::begin(folder.path(), &["--threads", "1"]);
    let token = json!("big");
    for (tool, asked) in [
        ("suspects", json!({ "dumps": [BIG] })),
        ("suspects", json!({ "dumps": [BIG, BIG] })),
        ("paths", json!({ "dump": BIG, "selector": "linked.Node" })),
    ] {
        let running = client.request("tools/call", followed(tool, asked, &token));
        let first = client.receive();
        assert_eq!(first["method"], "notifications/progress", "{first}");
        client.notify("notifications/cancelled", json!({ "requestId": running }));
        // The next request asks for no progress messages. So any progress message before its answer belongs to the
        // cancelled request.
        let next = client.request(
            "tools/call",
            json!({ "name": "summary", "arguments": { "dump": AFTER } }),
        );
        let (progress_notifications, answer) = progress_notifications(&mut client, next);
        assert_eq!(
            answer["result"]["structuredContent"]["schema"],
            "heapdiff.histo/1"
        );
        assert_grows(&progress_notifications, &token);
        assert_eq!(beside(folder.path()), [] as [String; 0], "{tool}");
    }
    let end = client.close();
    end.assert_quiet();
}

#[test]
fn a_closed_input_ends_an_analysis() {
    let folder = with_big_dump();
    let mut client = Client::begin(folder.path(), &["--threads", "1"]);
    let asked = json!({ "dumps": [BIG, BIG] });
    client.request("tools/call", followed("suspects", asked, &json!(1)));
    let first = client.receive();
    assert_eq!(first["method"], "notifications/progress", "{first}");
    let end = client.close();
    assert!(end.status.success(), "{}", end.stderr);
    assert!(end.took < super::faults::SOON, "{:?}", end.took);
    let unfinished = beside(folder.path());
    assert!(
        !unfinished.iter().any(|name| name.starts_with(".heapdiff-")),
        "{unfinished:?}"
    );
}
