//! Tests that the server continues after errors, and that it ends when its client is gone.

use std::process::Stdio;
use std::time::Duration;

use serde_json::json;

use super::client::Client;
use super::{AFTER, MOST, SHOP, folder, longest};

/// A query that runs until its time limit.
const ENDLESS: &str =
    "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n";

/// Time limit for the end of a server on a busy machine. The server itself allows two seconds for running work.
pub(crate) const SOON: Duration = Duration::from_secs(30);

#[test]
fn failures_have_the_messages_of_the_commands() {
    let folder = folder();
    let mut client = Client::begin(folder.path(), &[]);
    let after = SHOP[1];
    let nope = "select nope from classes";
    for (tool, asked, command) in [
        (
            "summary",
            json!({ "dump": "none.hprof" }),
            vec!["histo", "none.hprof", "--retained"],
        ),
        (
            "summary",
            json!({ "dump": "letter.txt" }),
            vec!["histo", "letter.txt", "--retained"],
        ),
        (
            "summary",
            json!({ "dump": "folder.hprof" }),
            vec!["histo", "folder.hprof", "--retained"],
        ),
        (
            "suspects",
            json!({ "dumps": ["empty.hprof"] }),
            vec!["diff", "empty.hprof"],
        ),
        (
            "suspects",
            json!({ "dumps": [after, "shop.db"] }),
            vec![after, "shop.db"],
        ),
        (
            "sizeof",
            json!({ "dump": after, "selectors": ["Gone"] }),
            vec!["sizeof", after, "Gone"],
        ),
        (
            "paths",
            json!({ "dump": after, "selector": "0x1" }),
            vec!["paths", after, "0x1"],
        ),
        (
            "query",
            json!({ "dumps": [after], "sql": nope }),
            vec!["query", after, nope],
        ),
        (
            "query",
            json!({ "dumps": [after], "sql": "drop table x" }),
            vec!["query", after, "drop table x"],
        ),
        (
            "query",
            json!({ "dumps": [after], "sql": "" }),
            vec!["query", after, ""],
        ),
        ("sites", json!({ "dump": after }), vec!["sites", after]),
    ] {
        let refusal = client.refusal(tool, asked.clone());
        let done = crate::support::heapdiff(folder.path(), &command)
            .output()
            .expect("a run");
        let stderr = String::from_utf8_lossy(&done.stderr).replace("\n          ", "\n");
        let said = stderr.strip_prefix("heapdiff: ").expect("a failure");
        assert_eq!(refusal, said.trim_end(), "{tool} {asked}");
    }
    assert_eq!(client.close().stderr, "");
}

#[test]
fn invalid_arguments_are_reported() {
    let folder = folder();
    let mut client = Client::begin(folder.path(), &[]);
    let many = vec![AFTER; 9];
    for (tool, asked, part) in [
        ("summary", json!({}), "missing field `dump`"),
        ("summary", json!({ "dump": 7 }), "invalid type: integer `7`"),
        (
            "summary",
            json!({ "dump": AFTER, "tpo": 3 }),
            "unknown field `tpo`, expected `dump` or `top`",
        ),
        (
            "summary",
            json!({ "dump": AFTER, "top": 0 }),
            "0 rows were requested, but only 1 to 200",
        ),
        (
            "summary",
            json!({ "dump": "/dev/stdin" }),
            "/dev/stdin: not a file, but a device or a pipe",
        ),
        (
            "suspects",
            json!({ "dumps": [] }),
            "0 dumps were given, but only 1 to 8",
        ),
        ("suspects", json!({ "dumps": many }), "9 dumps were given"),
        (
            "suspects",
            json!({ "dumps": [AFTER], "include": "(" }),
            "include `(`: unclosed group",
        ),
        (
            "sizeof",
            json!({ "dump": AFTER, "selectors": [] }),
            "no selector was given",
        ),
        (
            "sizeof",
            json!({ "dump": AFTER, "selectors": ["/[/"] }),
            "/[/: unclosed character class",
        ),
        (
            "sites",
            json!({ "dump": AFTER, "by": "site" }),
            "unknown variant `site`",
        ),
        (
            "query",
            json!({ "dumps": [AFTER], "sql": "x".repeat(1 << 20) }),
            "syntax error",
        ),
    ] {
        let refusal = client.refusal(tool, asked);
        assert!(refusal.contains(part), "{tool}: {refusal}");
        assert!(refusal.len() < 6_000, "{tool}: {} bytes", refusal.len());
    }
    let unknown = client.ask("tools/call", json!({ "name": "dump", "arguments": {} }));
    assert_eq!(unknown["error"]["code"], -32602);
    let message = unknown["error"]["message"].as_str().expect("a message");
    assert!(message.contains("summary, suspects, sizeof, paths, query, threads, sites"));
    let unknown = client.ask("no/such", json!({}));
    assert_eq!(unknown["error"]["code"], -32601);
    assert!(client.close().status.success());
}

#[test]
fn invalid_requests_are_refused_and_the_next_is_answered() {
    let folder = folder();
    let mut client = Client::start(folder.path(), &[]);
    // Errors before the initialization must not end the server.
    client.send_line(br#"{"jsonrpc":"2.0","id":"first","method":"initialize","params":{}}"#);
    let first = client.receive();
    assert_eq!(
        (&first["id"], &first["error"]["code"]),
        (&json!("first"), &json!(-32602))
    );
    client.initialize();
    let long = vec![b'x'; 3 << 20];
    let deep = "[".repeat(100_000);
    let call = |id: &str, rest: &str| {
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\"{rest}}}").into_bytes()
    };
    for (line, id, code) in [
        (b"no JSON".to_vec(), json!(null), -32700),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":".to_vec(),
            json!(null),
            -32700,
        ),
        (b"\xff\xfe\x00".to_vec(), json!(null), -32700),
        (deep.into_bytes(), json!(null), -32700),
        (long, json!(null), -32600),
        (b"[]".to_vec(), json!(null), -32600),
        (b"{\"jsonrpc\":\"2.0\"}".to_vec(), json!(null), -32600),
        (call("1.5", ""), json!(1.5), -32600),
        (call("18446744073709551615", ""), json!(u64::MAX), -32600),
        (call("8", ",\"params\":[]"), json!(8), -32602),
        (call("9", ""), json!(9), -32602),
        (call("10", ",\"params\":{\"name\":5}"), json!(10), -32602),
        (
            call("11", ",\"params\":{\"name\":\"summary\",\"arguments\":[1]}"),
            json!(11),
            -32602,
        ),
    ] {
        client.send_line(&line);
        let refusal = client.receive();
        let start = String::from_utf8_lossy(&line[..line.len().min(60)]);
        assert_eq!(refusal["id"], id, "{start}: {refusal}");
        assert_eq!(refusal["error"]["code"], code, "{start}: {refusal}");
        assert_eq!(client.ask("ping", json!({}))["result"], json!({}));
    }
    // These messages get no answer.
    for line in [
        "",
        "\r",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/none\",\"params\":7}",
    ] {
        client.send_line(line.as_bytes());
        assert_eq!(client.ask("ping", json!({}))["result"], json!({}));
    }
    let found = client.data("summary", json!({ "dump": AFTER }));
    assert_eq!(found["schema"], "heapdiff.histo/1");
    assert!(longest(&client) <= MOST);
    let end = client.close();
    assert!(end.status.success() && end.unread.is_empty());
}

#[test]
fn other_messages_are_answered_during_an_analysis() {
    let folder = folder();
    let mut client = Client::begin(folder.path(), &[]);
    let endless = json!({ "name": "query", "arguments": { "dumps": [AFTER], "sql": ENDLESS } });
    let running = client.request("tools/call", endless.clone());
    assert_eq!(client.ask("ping", json!({}))["result"], json!({}));
    let tools = client.ask("tools/list", json!({}));
    assert!(tools["result"]["tools"].is_array());
    // A waiting request and a running query can be cancelled. Neither gets an answer.
    let waiting = client.request("tools/call", endless);
    for id in [waiting, running] {
        let cancelled = json!({ "requestId": id, "reason": "no need" });
        client.notify("notifications/cancelled", cancelled);
    }
    assert_eq!(client.ask("ping", json!({}))["result"], json!({}));
    let end = client.close();
    assert!(
        end.status.success() && end.unread.is_empty(),
        "{:?}",
        end.unread
    );
    assert!(end.took < SOON, "{:?}", end.took);
}

/// A call with wrong arguments does not wait for the call before it.
#[test]
fn wrong_arguments_are_refused_during_an_analysis() {
    let folder = folder();
    let mut client = Client::begin(folder.path(), &[]);
    let endless = json!({ "name": "query", "arguments": { "dumps": [AFTER], "sql": ENDLESS } });
    client.request("tools/call", endless);
    let refusal = client.refusal("summary", json!({ "dumb": AFTER }));
    assert!(refusal.contains("wrong arguments"), "{refusal}");
    let end = client.close();
    assert!(
        end.status.success() && end.took < SOON,
        "{:?} {}",
        end.took,
        end.stderr
    );
}

/// The id of a call can be used again as soon as the call is answered, even while the server still writes an index.
#[test]
fn an_answered_id_can_be_used_again() {
    let folder = folder();
    let mut client = Client::begin(folder.path(), &[]);
    let call = json!({ "jsonrpc": "2.0", "id": "same", "method": "tools/call",
        "params": { "name": "summary", "arguments": { "dump": AFTER } } });
    for _ in 0..5 {
        client.send_line(call.to_string().as_bytes());
        let answer = client.receive();
        assert_eq!(answer["result"]["isError"], false, "{answer}");
    }
    assert!(client.close().status.success());
}

#[test]
fn a_server_ends_with_its_standard_input() {
    let folder = folder();
    let end = Client::start(folder.path(), &[]).close();
    assert!(end.status.success() && end.unread.is_empty() && end.stderr.is_empty());
    let end = Client::begin(folder.path(), &[]).close();
    assert!(end.status.success() && end.stderr.is_empty());
    // The client sends a request and closes its side at once. A request that takes no time is still answered.
    let mut client = Client::begin(folder.path(), &[]);
    let none = json!({ "name": "summary", "arguments": { "dump": "none.hprof" } });
    client.request("tools/call", none);
    let end = client.close();
    assert!(end.status.success());
    assert!(end.unread.len() == 1 && end.unread[0].contains("No such file"));
    // Close the server's input during an analysis.
    let mut client = Client::begin(folder.path(), &[]);
    let query = json!({ "dumps": [AFTER], "sql": ENDLESS });
    client.request("tools/call", json!({ "name": "query", "arguments": query }));
    let end = client.close();
    assert!(end.status.success() && end.took < SOON, "{:?}", end.took);
}

#[test]
fn a_server_ends_when_its_output_is_closed() {
    use std::io::{BufRead, BufReader, Write};
    let folder = folder();
    let mut server = crate::support::heapdiff(folder.path(), &["mcp"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a server");
    let mut input = server.stdin.take().expect("its input");
    let ping = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
    let init = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } });
    input
        .write_all(format!("{init}\n").as_bytes())
        .expect("a server");
    let mut output = BufReader::new(server.stdout.take().expect("its output"));
    output.read_line(&mut String::new()).expect("an answer");
    drop(output);
    // The server's input stays open. The server ends because it cannot write the answer.
    let _ = input.write_all(ping);
    let end = std::time::Instant::now() + SOON;
    let status = loop {
        match server.try_wait().expect("a state") {
            Some(status) => break status,
            None if std::time::Instant::now() > end => {
                let _ = server.kill();
                panic!("the server does not end");
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    assert_eq!(status.code(), Some(0));
}

#[test]
fn another_protocol_is_reported() {
    let folder = folder();
    let mut client = Client::start(folder.path(), &[]);
    client.notify("notifications/initialized", json!({}));
    let end = client.end();
    assert_eq!(end.status.code(), Some(2));
    assert!(end.unread.is_empty());
    assert!(
        end.stderr
            .contains("does not use the Model Context Protocol"),
        "{}",
        end.stderr
    );
}

/// If a user types the command `heapdiff mcp`, a message explains that it waits for messages of a client.
#[cfg(target_os = "linux")]
#[test]
fn a_terminal_gets_an_explanation_of_the_command() {
    use rustix::pty::{OpenptFlags, openpt, ptsname, unlockpt};
    use std::io::{BufRead, BufReader};
    let other_end = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    unlockpt(&other_end).expect("a terminal");
    let name = ptsname(&other_end, Vec::new()).expect("a name");
    let name = name.to_str().expect("a path");
    let terminal = std::fs::File::open(name).expect("a terminal");
    let folder = folder();
    let mut server = crate::support::heapdiff(folder.path(), &["mcp"])
        .stdin(terminal)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a server");
    let mut said = String::new();
    let stderr = server.stderr.take().expect("its errors");
    BufReader::new(stderr).read_line(&mut said).expect("a line");
    server.kill().expect("an end");
    server.wait().expect("an end");
    assert_eq!(
        said,
        "heapdiff: waiting for an AI assistant on standard input (see docs/assistants.md); Ctrl-C stops\n"
    );
}

/// The answer contains warnings about dumps. Standard error contains them, too, as with other commands.
#[test]
fn damage_is_reported_and_refused_on_request() {
    let folder = folder();
    let cut = json!({ "dump": "cut.hprof" });
    let mut client = Client::begin(folder.path(), &[]);
    let result = client.call("summary", cut.clone());
    assert_eq!(result["structuredContent"]["snapshot"]["partial"], true);
    assert!(super::client::text(&result).starts_with("warning: cut.hprof: at byte "));
    assert!(
        client
            .close()
            .stderr
            .starts_with("warning: cut.hprof: at byte ")
    );
    let mut client = Client::begin(folder.path(), &["-q"]);
    client.data("summary", cut.clone());
    assert_eq!(client.close().stderr, "");
    let mut client = Client::begin(folder.path(), &["-q", "--strict"]);
    let refusal = client.refusal("summary", cut);
    assert!(
        refusal.contains("--strict refuses damaged files"),
        "{refusal}"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_dump_that_changes_is_refused_and_the_next_answered() {
    use std::fs::{self, OpenOptions};
    use std::time::Instant;
    let folder = folder();
    let dump = folder.path().join("changing.hprof");
    let bytes =
        testdata::dumps::unpacked(&crate::support::testdata().join("sampled-after.hprof.gz"));
    fs::write(&dump, bytes).expect("a dump");
    let mut client = Client::begin(folder.path(), &[]);
    let sql = ENDLESS.replace("from n)", "from n where i < 5000000)");
    let query = json!({ "dumps": ["changing.hprof"], "sql": sql });
    client.request(
        "tools/call",
        json!({ "name": "query", "arguments": query.clone() }),
    );
    let maps = format!("/proc/{}/maps", client.process());
    let end = Instant::now() + SOON;
    while !fs::read_to_string(&maps).is_ok_and(|maps| maps.contains("changing.hprof")) {
        assert!(Instant::now() < end, "the dump was not mapped");
    }
    let file = OpenOptions::new()
        .append(true)
        .open(&dump)
        .expect("the dump");
    file.set_len(file.metadata().expect("its size").len() + 1)
        .expect("a longer file");
    let answer = client.receive();
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    let told = answer["result"]["content"][0]["text"]
        .as_str()
        .expect("text");
    assert!(told.contains("while heapdiff read it"), "{told}");
    let next = client.data("summary", json!({ "dump": AFTER }));
    assert_eq!(next["schema"], "heapdiff.histo/1");
}
