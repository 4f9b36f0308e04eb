//! Tests the server as clients see it: access control, answers, and robustness.
#![allow(clippy::unwrap_used)]

mod counted;
mod lines;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use heapdiff_sites::{Frame, Line, Originals, OwnedFrame};
use heapdiff_trace::synthetic::{SITES, STARTED_MS, Scene, SceneSite, write};
use heapdiff_ui::{Server, Subject, UiError};
use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(20);

fn subject(files: Vec<PathBuf>) -> Subject {
    Subject::Traces { files, names: None }
}

/// A server and a client for it.
struct Asked {
    server: Server,
    port: u16,
    /// The path `/TOKEN/`.
    base: String,
}

impl Asked {
    fn of(traces: &[&Path]) -> Self {
        let traces = traces.iter().map(|p| p.to_path_buf()).collect();
        Self::with(Server::start(subject(traces), 0).unwrap())
    }

    fn with(server: Server) -> Self {
        let url = server.url();
        let rest = url.strip_prefix("http://127.0.0.1:").unwrap();
        let (port, base) = rest.split_once('/').unwrap();
        let (port, base) = (port.parse().unwrap(), format!("/{base}"));
        Self { server, port, base }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends bytes and returns everything that the server answers.
    fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect();
        stream.write_all(bytes).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8(answer).unwrap()
    }

    fn request(&self, method: &str, target: &str, host: &str, more: &str) -> String {
        self.raw(format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n").as_bytes())
    }

    fn get(&self, below: &str) -> String {
        let host = format!("127.0.0.1:{}", self.port);
        self.request("GET", &format!("{}{below}", self.base), &host, "")
    }

    fn json(&self, below: &str) -> Value {
        let answer = self.get(below);
        assert_eq!(status(&answer), 200, "{below}: {answer}");
        serde_json::from_str(body(&answer)).unwrap()
    }

    /// Repeats a request until the function `fits` accepts the answer.
    fn until(&self, below: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let answer = self.json(below);
            if fits(&answer) {
                return answer;
            }
            assert!(begun.elapsed() < PATIENCE, "{below}: {answer}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

fn status(answer: &str) -> u16 {
    let code = answer.strip_prefix("HTTP/1.1 ").and_then(|a| a.get(..3));
    code.and_then(|c| c.parse().ok()).unwrap_or(0)
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").map_or("", |(_, body)| body)
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn trace(&self, name: &str, scene: &Scene<'_>) -> PathBuf {
        let path = self.0.path().join(name);
        write(&path, scene).unwrap();
        path
    }
}

#[test]
fn only_requests_with_the_url_and_a_local_host_are_served() {
    let folder = Folder::new();
    let asked = Asked::of(&[&folder.trace("t.db", &Scene::default())]);
    let port = asked.port;
    let own = format!("127.0.0.1:{port}");
    let page = asked.base.clone();
    let runs = format!("{page}api/runs");
    let get =
        |target: &str, host: &str, more: &str| status(&asked.request("GET", target, host, more));
    for host in [
        own.clone(),
        format!("localhost:{port}"),
        format!("LOCALHOST:{port}"),
    ] {
        assert_eq!(get(&page, &host, ""), 200, "{host}");
        assert_eq!(get(&runs, &host, ""), 200, "{host}");
    }
    // The server refuses these hosts. With DNS rebinding, an attacker makes the name of another site resolve to this
    // machine. The other hosts have a different address or port than the server.
    for host in [
        "evil.example".to_owned(),
        format!("evil.example:{port}"),
        "127.0.0.1".to_owned(),
        "localhost:1".to_owned(),
        format!("127.0.0.1:{port}.evil.example"),
        format!("127.0.0.2:{port}"),
        format!("[::1]:{port}"),
        String::new(),
    ] {
        assert_eq!(get(&page, &host, ""), 403, "{host}");
        assert_eq!(get(&runs, &host, ""), 403, "{host}");
    }
    let twice = format!("Host: {own}\r\n");
    assert_eq!(get(&runs, &own, &twice), 403, "two hosts");
    let none = asked.raw(format!("GET {runs} HTTP/1.1\r\n\r\n").as_bytes());
    assert_eq!(status(&none), 403, "no host");
    for (more, expected) in [
        (format!("Origin: http://{own}\r\n"), 200),
        (format!("Origin: http://localhost:{port}\r\n"), 200),
        ("Origin: http://evil.example\r\n".to_owned(), 403),
        (format!("Origin: https://{own}\r\n"), 403),
        ("Origin: null\r\n".to_owned(), 403),
        ("Sec-Fetch-Site: same-origin\r\n".to_owned(), 200),
        ("Sec-Fetch-Site: none\r\n".to_owned(), 200),
        ("Sec-Fetch-Site: cross-site\r\n".to_owned(), 403),
        ("Sec-Fetch-Site: same-site\r\n".to_owned(), 403),
    ] {
        assert_eq!(get(&runs, &own, &more), expected, "{more}");
    }
    let token = page.trim_matches('/');
    let other: String = token.chars().rev().collect();
    for target in [
        "/".to_owned(),
        "/api/runs".to_owned(),
        format!("/{other}/api/runs"),
        format!("/{}/api/runs", &token[1..]),
        format!("/{token}0/api/runs"),
        format!("/{}/api/runs", token.to_uppercase()),
        format!("//{token}/api/runs"),
        format!("/?{token}"),
        format!("/api/runs?token={token}"),
    ] {
        assert_eq!(get(&target, &own, ""), 403, "{target}");
    }
    let elsewhere = Asked::of(&[]);
    assert_ne!(elsewhere.base, asked.base, "each run has its own token");
}

#[test]
fn only_the_page_and_its_api_are_served() {
    let folder = Folder::new();
    let asked = Asked::of(&[&folder.trace("t.db", &Scene::default())]);
    for below in [
        "..",
        "../",
        "../../etc/passwd",
        "%2e%2e/etc/passwd",
        "t.db",
        "api",
        "api/",
        "api/../api/runs",
        "api/nothing",
        "/etc/passwd",
        "index.html",
    ] {
        assert_eq!(status(&asked.get(below)), 404, "{below}");
    }
    let host = format!("127.0.0.1:{}", asked.port);
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "get"] {
        let more = "Content-Length: 5\r\n\r\nhello";
        let answer = asked.request(method, &format!("{}api/runs", asked.base), &host, more);
        assert_eq!(status(&answer), 405, "{method}");
        assert!(answer.contains("Allow: GET, HEAD\r\n"), "{method}");
    }
    let head = asked.request("HEAD", &asked.base, &host, "");
    assert_eq!((status(&head), body(&head)), (200, ""));
    // Send a request in the form that is used for proxies, and input that is not HTTP.
    let absolute = format!("http://{host}{}", asked.base);
    assert_ne!(status(&asked.request("GET", &absolute, &host, "")), 200);
    assert_eq!(status(&asked.raw(b"\x16\x03\x01\x02\x00\x01\r\n\r\n")), 400);
    assert_eq!(status(&asked.raw(b"GET / HTTP/9.9\r\n\r\n")), 400);
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(100_000));
    assert_eq!(status(&asked.raw(long.as_bytes())), 431);
    for wrong in [
        "view?top=-1",
        "view?from=now",
        "view?by=thread",
        "view?what=1",
        "view?runs=0",
        "stacks?at=0.1",
    ] {
        assert_eq!(status(&asked.get(&format!("api/{wrong}"))), 400, "{wrong}");
    }
    assert_eq!(status(&asked.get("api/runs")), 200);
}

#[test]
fn the_page_is_self_contained_and_runs_no_other_script() {
    let folder = Folder::new();
    let asked = Asked::of(&[&folder.trace("t.db", &Scene::default())]);
    let answer = asked.get("");
    let (head, page) = answer.split_once("\r\n\r\n").unwrap();
    for header in [
        "Cache-Control: no-store",
        "Referrer-Policy: no-referrer",
        "X-Content-Type-Options: nosniff",
        "X-Frame-Options: DENY",
        "Cross-Origin-Resource-Policy: same-origin",
    ] {
        assert!(head.contains(header), "{header}");
    }
    let policy = head
        .lines()
        .find_map(|l| l.strip_prefix("Content-Security-Policy: "));
    let policy = policy.unwrap();
    assert!(
        policy.starts_with("default-src 'none'; script-src 'sha256-"),
        "{policy}"
    );
    assert!(
        policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"),
        "{policy}"
    );
    assert_eq!(
        policy.matches("'sha256-").count(),
        3,
        "two scripts and the style"
    );
    assert_eq!(page.matches("<script").count(), 2);
    for outside in [
        "src=",
        "@import",
        "url(",
        "innerHTML =",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
    ] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(asked.get("api/runs").contains("default-src 'none'"));
}

#[test]
fn hostile_names_from_a_jvm_stay_data() {
    const HOSTILE: &str = "<script>alert(1)</script>\u{202e}\"'&\n";
    let site = SceneSite {
        class: HOSTILE,
        frames: &[(HOSTILE, "<img src=x onerror=alert(1)>", "</script>", 1)],
        ..SITES[0]
    };
    let folder = Folder::new();
    let scene = Scene {
        sites: &[site],
        ..Scene::default()
    };
    let asked = Asked::of(&[&folder.trace("t.db", &scene)]);
    for (below, at) in [
        ("api/view?by=frame", "/lines/0/class"),
        ("api/view?by=class", "/lines/0/class"),
        ("api/view?by=site", "/lines/0/class"),
        ("api/stacks", "/names/1"),
    ] {
        let answer = asked.get(below);
        assert!(answer.contains("Content-Type: application/json\r\n"));
        assert!(answer.contains("X-Content-Type-Options: nosniff\r\n"));
        let json: Value = serde_json::from_str(body(&answer)).unwrap();
        assert_eq!(json.pointer(at).unwrap(), HOSTILE, "{below}");
    }
    assert!(
        !asked.get("").contains("alert(1)"),
        "the page itself has no names"
    );
    // The page can request the stacks of this class by its name, although the name contains characters with a meaning
    // in URLs and HTML.
    let query: String = form_urlencoded::byte_serialize(HOSTILE.as_bytes()).collect();
    let stacks = asked.json(&format!("api/stacks?class={query}"));
    assert_eq!(stacks["depth"], serde_json::json!([1, 2]));
}

#[test]
fn two_points_differ_by_added_minus_freed_objects() {
    let folder = Folder::new();
    let asked = Asked::of(&[&folder.trace("t.db", &Scene::default())]);
    let [a, b] = [40_i64, 90].map(|tick| STARTED_MS + tick * 1000);
    for by in ["class", "site", "frame"] {
        let between = asked.json(&format!("api/between?from={a}&to={b}&by={by}"));
        let row = &between["rows"][0];
        assert_eq!(row["class"], "byte[]", "{by}");
        let live = SITES[0].live;
        assert_eq!(row["before_objects"], live(40));
        assert_eq!(row["after_objects"], live(90));
        for row in between["rows"]
            .as_array()
            .unwrap()
            .iter()
            .chain([&between["total"]])
        {
            for of in ["objects", "bytes"] {
                let n = |what: &str| row[format!("{what}_{of}")].as_i64().unwrap();
                assert_eq!(
                    n("after") - n("before"),
                    n("allocated") - n("collected"),
                    "{row}"
                );
            }
        }
        let swapped = asked.json(&format!("api/between?from={b}&to={a}&by={by}"));
        assert_eq!(swapped, between, "their order does not matter");
    }
    let one = asked.get(&format!("api/between?from={a}"));
    assert!(
        status(&one) == 400 && body(&one).contains("`from` and `to`"),
        "{one}"
    );
}

#[test]
fn several_traces_are_one_page() {
    let folder = Folder::new();
    let scene = Scene::default();
    let (one, two) = (
        folder.trace("one.db", &scene),
        folder.trace("two.db", &scene),
    );
    let asked = Asked::of(&[&one, &two]);
    let runs = asked.json("api/runs");
    assert_eq!(runs["runs"].as_array().unwrap().len(), 2);
    let last = |view: &Value| {
        view["lines"][0]["objects"]
            .as_array()
            .unwrap()
            .last()
            .unwrap()
            .as_i64()
    };
    for by in ["class", "site", "frame"] {
        let both = asked.json(&format!("api/view?measure=objects&by={by}"));
        let first = asked.json(&format!("api/view?measure=objects&by={by}&runs=0.1"));
        assert_eq!(both["lines"][0]["key"], first["lines"][0]["key"], "{by}");
        assert_eq!(
            both["lines"].as_array().unwrap().len(),
            first["lines"].as_array().unwrap().len()
        );
        assert_eq!(last(&both), last(&first).map(|n| 2 * n), "{by}");
        assert_eq!(both["heap"].as_array().unwrap().len(), 2);
    }
    // A second run in the same file has the same sites, but its figures are kept separate.
    write(&one, &Scene { ticks: 10, ..scene }).unwrap();
    let second = asked.until("api/view?measure=objects&runs=0.2&by=site", |v| {
        !v["x"].as_array().unwrap().is_empty()
    });
    let sessions = second["lines"]
        .as_array()
        .unwrap()
        .iter()
        .find(|l| l["class"] == "com.acme.Session");
    assert_eq!(sessions.unwrap()["objects"][9], (SITES[3].live)(10));
    let leak = second["lines"]
        .as_array()
        .unwrap()
        .iter()
        .find(|l| l["class"] == "byte[]");
    assert_eq!(leak.unwrap()["objects"][9], (SITES[0].live)(10));
    let first = asked.json("api/view?measure=objects&runs=0.1&by=site");
    assert_eq!(last(&first), Some((SITES[0].live)(120)));
}

/// Opens a stream of server-sent events.
fn listen(asked: &Asked) -> BufReader<TcpStream> {
    let mut stream = asked.connect();
    let request = format!(
        "GET {}events HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n\r\n",
        asked.base, asked.port
    );
    stream.write_all(request.as_bytes()).unwrap();
    BufReader::new(stream)
}

fn next_change(events: &mut impl BufRead) -> u64 {
    for line in events.lines() {
        if let Some(version) = line.unwrap().strip_prefix("data: ") {
            return version.parse().unwrap();
        }
    }
    panic!("the events ended");
}

#[test]
fn listeners_are_notified_of_new_data() {
    let folder = Folder::new();
    let scene = Scene {
        ticks: 5,
        running: true,
        ..Scene::default()
    };
    let trace = folder.trace("t.db", &scene);
    let asked = Asked::of(&[&trace]);
    let mut listeners: Vec<_> = (0..20).map(|_| listen(&asked)).collect();
    let before: Vec<_> = listeners.iter_mut().map(next_change).collect();
    assert_eq!(asked.json("api/runs")["runs"][0]["ended_ms"], Value::Null);
    let database = heapdiff_trace::Database::create(&trace).unwrap();
    let add = "INSERT INTO tick SELECT NULL, run, time_ms + 1000, uptime_ms + 1000, span_ms, 7, 8, 9, 10, 11, 0, 0, 0, NULL \
               FROM tick ORDER BY id DESC LIMIT 1";
    let begun = Instant::now();
    database.connection().execute(add, []).unwrap();
    for (events, before) in listeners.iter_mut().zip(before) {
        assert!(next_change(events) > before);
    }
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "{:?}",
        begun.elapsed()
    );
    let view = asked.json("api/view");
    assert_eq!(view["heap"][0]["used"][5], 7);
    // The command `heapdiff hunt` reports its progress in a note of the trace.
    let note = "INSERT INTO note (run, time_ms, text) VALUES (1, 5, 'hunt: waiting for growth')";
    database.connection().execute(note, []).unwrap();
    assert_eq!(
        asked.json("api/runs")["runs"][0]["hunt"]["text"],
        "hunt: waiting for growth"
    );
}

#[test]
fn misbehaving_clients_do_not_affect_others() {
    let folder = Folder::new();
    let asked = Asked::of(&[&folder.trace("t.db", &Scene::default())]);
    // These clients disconnect before the answer, or in the middle of a request.
    for _ in 0..50 {
        drop(asked.connect());
        let mut half = asked.connect();
        half.write_all(b"GET /").unwrap();
        drop(half);
        drop(listen(&asked));
    }
    let begun = Instant::now();
    while status(&asked.get("api/runs")) != 200 {
        assert!(
            begun.elapsed() < PATIENCE,
            "clients that are gone keep the server"
        );
        std::thread::sleep(Duration::from_millis(100));
    }
    // There are more silent clients than slots, so some of them are rejected or disconnected.
    let silent: Vec<_> = (0..200).map(|_| asked.connect()).collect();
    let begun = Instant::now();
    while status(&asked.get("api/runs")) != 200 {
        assert!(begun.elapsed() < PATIENCE, "silent clients keep the server");
        std::thread::sleep(Duration::from_millis(100));
    }
    drop(silent);
    // Even if many clients listen for events, some connection slots stay free for requests.
    let listeners: Vec<_> = (0..60).map(|_| listen(&asked)).collect();
    let begun = Instant::now();
    while status(&asked.get("api/runs")) != 200 {
        assert!(begun.elapsed() < PATIENCE, "listeners keep the server");
        std::thread::sleep(Duration::from_millis(100));
    }
    drop(listeners);
    // Listeners that disconnect release their slots.
    std::thread::sleep(Duration::from_millis(2500));
    let mut again: Vec<_> = (0..30).map(|_| listen(&asked)).collect();
    for events in &mut again {
        next_change(events);
    }
}

#[test]
fn slow_clients_leave_room_for_requests() {
    let folder = Folder::new();
    let asked = Asked::of(&[&folder.trace("t.db", &Scene::default())]);
    assert_eq!(status(&asked.get("api/runs")), 200);
    // Half of the clients send nothing. The other half sends a byte every 50 ms.
    let mut slow: Vec<TcpStream> = (0..100).map(|_| asked.connect()).collect();
    let over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(std::sync::atomic::Ordering::Relaxed) {
                for client in slow.iter_mut().step_by(2) {
                    // The server may have closed the connection.
                    let _ = client.write_all(b"G");
                }
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        let begun = Instant::now();
        let answers: Vec<u16> = (0..20)
            .map(|_| scope.spawn(|| status(&asked.get("api/runs"))))
            .collect::<Vec<_>>()
            .into_iter()
            .map(|asked| asked.join().unwrap())
            .collect();
        let time = begun.elapsed();
        over.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(answers, [200; 20], "in {time:?}");
        assert!(time < Duration::from_secs(5), "{time:?}");
    });
}

#[test]
fn a_lost_or_damaged_trace_does_not_stop_the_server() {
    let folder = Folder::new();
    let trace = folder.trace("t.db", &Scene::default());
    let other = folder.trace("other.db", &Scene::default());
    let asked = Asked::of(&[&trace, &other]);
    let fault = |v: &Value| {
        v["traces"][0]["fault"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    assert_eq!(fault(&asked.json("api/runs")), "");
    for side in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(format!("{}{side}", trace.display()));
    }
    let runs = asked.until("api/runs", |v| !fault(v).is_empty());
    assert!(fault(&runs).contains("t.db"), "{runs}");
    assert_eq!(
        runs["runs"].as_array().unwrap().len(),
        1,
        "the other one is still there"
    );
    let view = asked.json("api/view");
    assert_eq!(view["lines"][0]["class"], "byte[]");
    // Another file with the same name replaces the trace.
    write(
        &trace,
        &Scene {
            ticks: 7,
            ..Scene::default()
        },
    )
    .unwrap();
    asked.until("api/runs", |v| {
        fault(v).is_empty() && v["runs"].as_array().unwrap().len() == 2
    });
    assert_eq!(
        asked.json("api/view?runs=0.1")["x"]
            .as_array()
            .unwrap()
            .len(),
        7
    );
    // The table contains wrong values.
    let database = heapdiff_trace::Database::create(&other).unwrap();
    database
        .connection()
        .execute_batch("UPDATE site_tick SET live_bytes = 'many'")
        .unwrap();
    let view = asked.json("api/view?runs=1.1");
    assert!(view["odd"].as_u64() > Some(100), "{}", view["odd"]);
    assert_eq!(asked.json("api/view?runs=0.1")["odd"], 0);
    let huge = i64::MAX;
    database
        .connection()
        .execute_batch(&format!(
            "UPDATE site_tick SET live_bytes = {huge}, live_objects = -{huge}; \
            UPDATE tick SET uptime_ms = uptime_ms * 1000000000000; UPDATE stack SET parent = id"
        ))
        .unwrap();
    for question in [
        "view?runs=1.1",
        "view?runs=1.1&by=site",
        "stacks?runs=1.1",
        "between?runs=1.1&from=0&to=9e9",
    ] {
        assert_ne!(
            status(&asked.get(&format!("api/{question}"))),
            0,
            "{question}"
        );
    }
    fs::write(&other, b"no longer a database").unwrap();
    asked.until("api/runs", |v| v["traces"][1]["fault"] != Value::Null);
    assert_eq!(status(&asked.get("")), 200);
    drop(asked.server);
}

#[test]
fn files_that_are_not_traces_are_refused_at_once() {
    let folder = Folder::new();
    let path = folder.0.path().join("text");
    fs::write(&path, "no trace").unwrap();
    for path in [path, folder.0.path().join("none.db")] {
        let refused = Server::start(subject(vec![path]), 0);
        assert!(matches!(refused, Err(UiError::Trace(_))));
    }
    let taken = Asked::of(&[]);
    let again = Server::start(subject(Vec::new()), taken.port);
    assert!(matches!(again, Err(UiError::Listen { .. })));
}

#[test]
fn the_server_waits_for_a_trace_that_is_being_created() {
    let folder = Folder::new();
    let path = folder.0.path().join("t.db");
    fs::write(&path, "").unwrap();
    let making = path.clone();
    let writer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        write(&making, &Scene::default()).unwrap();
    });
    let asked = Asked::of(&[&path]);
    writer.join().unwrap();
    asked.until("api/view", |v| v["lines"][0]["class"] == "byte[]");
    fs::write(folder.0.path().join("empty"), "").unwrap();
    let refused = Server::start(subject(vec![folder.0.path().join("empty")]), 0);
    assert!(matches!(refused, Err(UiError::Trace(_))));
}

#[test]
fn an_existing_page_is_served_unchanged() {
    let html = b"<!DOCTYPE html><title>t</title>".to_vec();
    let asked = Asked::with(Server::start(Subject::Page(html.clone()), 0).unwrap());
    assert_eq!(body(&asked.get("")).as_bytes(), html);
    assert_eq!(status(&asked.get("api/runs")), 404);
}

/// The page explains which live amounts the verdicts are based on ([`Basis`](heapdiff_trace::Basis)). It has a sentence
/// for each basis. The last sentence is for traces without GCs.
#[test]
fn the_page_has_a_sentence_for_each_basis() {
    use heapdiff_trace::Basis;
    let script = include_str!("../../assets/lines.js");
    let told = |basis: Basis| script.contains(&format!("told.basis === \"{}\"", basis.name()));
    assert!([Basis::Major, Basis::Collections, Basis::Survivors].map(told) == [true; 3]);
    assert!(!told(Basis::Ticks));
}

/// Original names for the tests. The interceptor's method `record` has two original frames, because a method was
/// inlined into another one.
#[derive(Debug)]
struct Names;

impl Originals for Names {
    fn class(&self, name: &str) -> Option<String> {
        (name == "com.acme.Page").then(|| "com.acme.web.Sheet".to_owned())
    }

    fn frames(&self, frame: &Frame<'_>) -> Option<Vec<OwnedFrame>> {
        let at = |class: &str, method: &str, line| OwnedFrame {
            class: class.to_owned(),
            method: method.to_owned(),
            file: Some("Audit.java".to_owned()),
            line: Line::At(line),
        };
        let inlined = || {
            vec![
                at("com.acme.web.Log", "note", 3),
                at("com.acme.web.Audit", "audit", 70),
            ]
        };
        (frame.class == "com.acme.Interceptor").then(inlined)
    }
}

#[test]
fn names_come_from_the_mapping() {
    let folder = Folder::new();
    let files = vec![folder.trace("t.db", &Scene::default())];
    let names: Option<Arc<dyn Originals>> = Some(Arc::new(Names));
    let asked = Asked::with(Server::start(Subject::Traces { files, names }, 0).unwrap());
    for question in [
        "api/view?by=frame",
        "api/view?by=site",
        "api/view?by=class",
        "api/stacks",
    ] {
        let answer = asked.json(question).to_string();
        assert!(!answer.contains("Interceptor"), "{question}: {answer}");
        assert!(!answer.contains("com.acme.Page"), "{question}: {answer}");
        assert!(
            answer.contains("com.acme.web.Sheet"),
            "{question}: {answer}"
        );
    }
    let [inner, outer] = [
        "com.acme.web.Log.note(Audit.java:3)",
        "com.acme.web.Audit.audit(Audit.java:70)",
    ];
    let view = asked.json("api/view?by=frame");
    assert_eq!(view["lines"][0]["place"], inner);
    // The tree contains both frames.
    let stacks = asked.json("api/stacks").to_string();
    assert!(stacks.contains(inner) && stacks.contains(outer), "{stacks}");
}
