//! Tests `trace push` with a scripted server. `go tool pprof` reads the profiles that the server receives.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use base64::Engine;
use heapdiff_diff::Verdict;
use heapdiff_report::synthetic;
use heapdiff_trace::synthetic as traces;
use serde_json::Value;
use testdata::stub_server::{Answer, Received, StubServer};

use crate::support::{heapdiff, prepare};

pub(crate) fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    prepare(folder.path());
    folder
}

pub(crate) fn ok() -> Answer {
    Answer::says(200, "application/json", "{}")
}

/// Returns a command that runs heapdiff without the user name and the token from the environment.
pub(crate) fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = heapdiff(folder, args);
    command
        .env_remove("HEAPDIFF_PUSH_TOKEN")
        .env_remove("HEAPDIFF_PUSH_USER");
    command
}

fn push(folder: &Path, url: &str, args: &[&str]) -> Output {
    let all = [&["trace", "push", "shop.db", url], args].concat();
    command(folder, &all).output().expect("a run")
}

pub(crate) fn stderr(done: &Output) -> String {
    String::from_utf8_lossy(&done.stderr).into_owned()
}

/// Returns the labels and the profile of a request to Pyroscope's API.
fn series(request: &Received) -> (Vec<(String, String)>, Vec<u8>) {
    assert_eq!(request.target, "/push.v1.PusherService/Push");
    let body: Value = serde_json::from_slice(&request.body).expect("JSON");
    let all = body["series"].as_array().expect("series");
    let [series] = &all[..] else {
        panic!("{body}");
    };
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let labels = series["labels"].as_array().expect("labels").iter();
    let labels = labels.map(|label| (text(&label["name"]), text(&label["value"])));
    let profile = text(&series["samples"][0]["rawProfile"]);
    let profile = base64::engine::general_purpose::STANDARD.decode(profile);
    (labels.collect(), profile.expect("base64"))
}

/// Runs `go tool pprof` on a profile and returns its output.
fn pprof(folder: &Path, profile: &[u8], args: &[&str]) -> String {
    fs::write(folder.join("pushed.pb.gz"), profile).expect("a written file");
    let done = Command::new("go")
        .args(["tool", "pprof", "-symbolize=none", "-unit=B"])
        .args(args)
        .arg("pushed.pb.gz")
        .current_dir(folder)
        .output()
        .expect("go is needed for this test");
    assert!(done.status.success(), "{}", stderr(&done));
    String::from_utf8(done.stdout).expect("text")
}

/// Returns the live bytes and objects that `trace top` reports.
fn live(folder: &Path, args: &[&str]) -> [u64; 2] {
    let all = [&["trace", "top", "shop.db", "--format", "json"], args].concat();
    let done = command(folder, &all).output().expect("a run");
    let report: Value = serde_json::from_slice(&done.stdout).expect("JSON");
    let totals = &report["totals"];
    let figure = |name: &str| totals[name].as_u64().expect("a figure");
    [figure("live_bytes"), figure("live_objects")]
}

/// Writes a report with a suspect. The suspect holds the objects that the leaking stack of the trace allocates.
fn report(folder: &Path) {
    let mut suspect = synthetic::suspect(1, "com.acme.Interceptor.seen", Verdict::Leak, 4096);
    let mut stack = synthetic::stack(
        "com.acme.Main.main(Main.java:12) com.acme.Handler.handle(Handler.java:40) \
         com.acme.Interceptor.record(Interceptor.java:31)",
        4096,
        0,
    );
    stack.class = "byte[]".to_owned();
    suspect.stacks = vec![stack];
    let report = synthetic::report(vec![suspect], 0);
    let text = serde_json::to_vec(&report).expect("JSON");
    fs::write(folder.join("report.json"), text).expect("a written file");
}

#[test]
fn a_profile_contains_the_live_bytes_of_the_trace() {
    let folder = folder();
    let home = folder.path();
    report(home);
    for window in [&[][..], &["--until", "+1m"], &["--window", "30s"]] {
        let server = StubServer::start(vec![ok()]);
        let more = ["--report", "report.json", "--label", "zone=eu-1"];
        let done = push(home, &server.url(), &[&more[..], window].concat());
        assert!(done.status.success(), "{}", stderr(&done));
        let received = server.received();
        let (labels, profile) = series(&received[0]);
        let label = |name: &str| {
            let found = labels.iter().find(|(n, _)| n == name);
            found.map(|(_, value)| &**value)
        };
        assert_eq!(label("__name__"), Some("memory"));
        assert_eq!(label("service_name"), Some("shop"));
        assert_eq!(label("zone"), Some("eu-1"));
        assert!(label("host").is_some(), "{labels:?}");
        let [bytes, objects] = live(home, window);
        let top = pprof(home, &profile, &["-top", "-sample_index=inuse_space"]);
        assert!(
            top.contains(&format!("of {bytes}B total")),
            "{bytes}: {top}"
        );
        let top = pprof(home, &profile, &["-top", "-sample_index=inuse_objects"]);
        assert!(
            top.contains(&format!("of {objects}B total")),
            "{objects}: {top}"
        );
        // In the profile, the class of the allocated objects is the innermost frame. The frames of the stack are its
        // callers.
        let leaf = top.lines().find(|line| line.ends_with(" com.acme.Page"));
        assert!(leaf.is_some(), "{top}");
        // In the profile, only the allocations of the suspect's stack have the label `holder`.
        let tags = pprof(home, &profile, &["-tags", "-sample_index=inuse_space"]);
        assert!(tags.contains("com.acme.Interceptor.seen"), "{tags}");
        assert_eq!(tags.matches("holder:").count(), 1, "{tags}");
        let held = ["-top", "-tagfocus=holder=com.acme.Interceptor.seen"];
        let held = pprof(home, &profile, &held);
        assert!(
            held.contains("byte[]") && !held.contains("com.acme.Page"),
            "{held}"
        );
        let said = stderr(&done);
        assert!(said.contains("the report shows the holder of "), "{said}");
    }
}

#[test]
fn a_focus_leaves_out_the_rest() {
    let folder = folder();
    let home = folder.path();
    report(home);
    let server = StubServer::start(vec![ok()]);
    let args = ["--focus", "Interceptor", "--report", "report.json"];
    let done = push(home, &server.url(), &args);
    assert!(done.status.success(), "{}", stderr(&done));
    let (_, profile) = series(&server.received()[0]);
    let all = pprof(home, &profile, &["-traces"]);
    assert!(all.contains("com.acme.Interceptor.record"), "{all}");
    assert!(!all.contains("com.acme.Main.main"), "{all}");
    assert!(all.contains("com.acme.Interceptor.seen"), "{all}");
    let nothing = push(home, "http://127.0.0.1:9", &["--focus", "nowhere"]);
    assert!(nothing.status.success());
    let said = stderr(&nothing);
    assert!(said.contains("no stack frame matches"), "{said}");
    assert!(said.contains("nothing was pushed"), "{said}");
}

#[test]
fn a_server_of_the_older_interface_takes_the_same_profile() {
    let folder = folder();
    let home = folder.path();
    let server = StubServer::start(vec![
        ok(),
        Answer::says(404, "text/plain", ""),
        Answer::says(200, "text/plain", ""),
    ]);
    for _ in 0..2 {
        assert!(
            push(home, &server.url(), &["--service", "my shop"])
                .status
                .success()
        );
    }
    let received = server.received();
    let (labels, profile) = series(&received[0]);
    assert!(labels.contains(&("service_name".to_owned(), "my shop".to_owned())));
    assert_eq!(received[2].body, profile);
    let target = &received[2].target;
    assert!(
        target.starts_with("/ingest?name=my_shop%7Bhost%3D"),
        "{target}"
    );
    assert!(target.contains("&format=pprof"), "{target}");
}

#[test]
fn credentials_come_from_the_environment_and_from_files() {
    let folder = folder();
    let home = folder.path();
    fs::write(home.join("headers"), "# tenant\nX-Scope-OrgID: acme\n").expect("a written file");
    let header = |env: &[(&str, &str)], args: &[&str]| {
        let server = StubServer::start(vec![ok()]);
        let url = server.url();
        let all = [&["trace", "push", "shop.db", &url, "-q"], args].concat();
        let mut run = command(home, &all);
        let done = run.envs(env.iter().copied()).output().expect("a run");
        assert_eq!(
            (stderr(&done), done.status.success()),
            (String::new(), true)
        );
        server.received().remove(0)
    };
    let token = [("HEAPDIFF_PUSH_TOKEN", "s3cret")];
    let request = header(&token, &["--header", "@headers"]);
    assert_eq!(request.header("authorization"), Some("Bearer s3cret"));
    assert_eq!(request.header("x-scope-orgid"), Some("acme"));
    let both = [("HEAPDIFF_PUSH_USER", "17"), token[0]];
    let request = header(&both, &[]);
    assert_eq!(request.header("authorization"), Some("Basic MTc6czNjcmV0"));
    let request = header(&[], &["--header", "X-Scope-OrgID: b"]);
    assert_eq!(request.header("x-scope-orgid"), Some("b"));
    assert_eq!(request.header("authorization"), None);
}

#[test]
fn server_errors_are_reported() {
    let folder = folder();
    let home = folder.path();
    let failed = |script: Vec<Answer>, args: &[&str]| {
        let server = StubServer::start(script);
        let done = push(home, &server.url(), args);
        let said = stderr(&done).replace(&server.url(), "URL");
        assert_eq!(done.status.code(), Some(3), "{said}");
        (said, server.received().len())
    };
    let no = |status| Answer::says(status, "text/plain", "no");
    let (said, asked) = failed(vec![no(401), ok()], &[]);
    assert!(said.contains("the server responded with 401: no"), "{said}");
    assert!(said.contains("HEAPDIFF_PUSH_TOKEN"), "{said}");
    assert_eq!(asked, 1);
    let (said, asked) = failed(vec![no(404), no(404)], &[]);
    assert!(said.contains("no profile server at this address"), "{said}");
    assert_eq!(asked, 2);
    let (said, _) = failed(vec![no(400)], &[]);
    assert!(said.contains("push while the trace is written"), "{said}");
    let elsewhere = vec!["Location: https://example.com/login".to_owned()];
    let (said, _) = failed(vec![Answer::Says(302, elsewhere, Vec::new())], &[]);
    assert!(
        said.contains("redirects to https://example.com/login"),
        "{said}"
    );
    let silence = vec![Answer::Silence; 4];
    let (said, asked) = failed(silence, &["--timeout", "400ms"]);
    assert!(said.contains("no response within 0.4 s"), "{said}");
    assert_eq!(asked, 4);
    // Temporary errors are retried.
    let server = StubServer::start(vec![no(500), ok()]);
    assert!(push(home, &server.url(), &[]).status.success());
    assert_eq!(server.received().len(), 2);
    let done = push(home, &server_that_left(), &[]);
    assert_eq!(done.status.code(), Some(3));
    assert!(
        stderr(&done).contains("Connection refused"),
        "{}",
        stderr(&done)
    );
}

/// Returns the URL of a server that has stopped.
fn server_that_left() -> String {
    let server = StubServer::start(Vec::new());
    let url = server.url();
    assert_eq!(server.received(), []);
    url
}

#[test]
fn excess_stacks_are_merged_into_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let home = folder.path();
    let names: Vec<String> = (0..10_003).map(|i| format!("com.acme.C{i}")).collect();
    let site = |class: &'static str| traces::SceneSite {
        class,
        frames: &[("com.acme.Main", "main", "Main.java", 12)],
        size: 16,
        live: |t| t * 16,
        churn: 0,
    };
    let sites: Vec<_> = names.iter().map(|n| site(n.clone().leak())).collect();
    let scene = traces::Scene {
        sites: &sites,
        ticks: 2,
        ..traces::Scene::default()
    };
    traces::write(&home.join("shop.db"), &scene).expect("a trace");
    let server = StubServer::start(vec![ok()]);
    let done = push(home, &server.url(), &[]);
    let said = stderr(&done);
    assert!(
        said.contains("3 stacks with few bytes were merged into (other stacks)"),
        "{said}"
    );
    assert!(said.contains("in 10,003 stacks"), "{said}");
    let (_, profile) = series(&server.received()[0]);
    let [bytes, _] = live(home, &[]);
    let top = pprof(home, &profile, &["-top", "-sample_index=inuse_space"]);
    assert!(
        top.contains(&format!("of {bytes}B total")),
        "{bytes}: {top}"
    );
    let others = [
        "-traces",
        "-sample_index=inuse_space",
        "-focus=other stacks",
    ];
    let others = pprof(home, &profile, &others);
    assert!(others.contains("(other stacks)"), "{others}");
}

/// A run that has ended is pushed once. A run that still continues is pushed repeatedly, until an interrupt.
#[test]
fn a_growing_trace_is_pushed_repeatedly() {
    let folder = folder();
    let home = folder.path();
    let server = StubServer::start(vec![ok(), ok()]);
    let done = push(home, &server.url(), &["--every", "1s"]);
    assert!(done.status.success(), "{}", stderr(&done));
    assert_eq!(server.received().len(), 1);
    let server = StubServer::start(vec![ok(), ok()]);
    let url = server.url();
    // A shell makes processes in the background ignore interrupts (SIGINT), and their children inherit this. So start
    // the program through the command `env`, which resets the action of SIGINT.
    let mut child = Command::new("env")
        .arg("--default-signal=INT")
        .arg(env!("CARGO_BIN_EXE_heapdiff"))
        .args(["trace", "push", "young.db", &url, "--every", "1s"])
        .env_remove("HEAPDIFF_PUSH_TOKEN")
        .env_remove("HEAPDIFF_PUSH_USER")
        .current_dir(home)
        .stderr(Stdio::piped())
        .spawn()
        .expect("a run");
    // Wait for the line of output that reports that the profile was pushed.
    let mut said = String::new();
    let mut lines = std::io::BufReader::new(child.stderr.take().expect("a pipe"));
    std::io::BufRead::read_line(&mut lines, &mut said).expect("a line");
    assert!(said.contains("pushed to"), "{said}");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("a signal");
    let begun = Instant::now();
    while child.try_wait().expect("a child").is_none() {
        assert!(begun.elapsed() < Duration::from_secs(20), "it goes on");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(child.wait().expect("a status").success());
    // No new data was written to the trace after the first push, so nothing more was pushed.
    assert_eq!(server.received().len(), 1);
}

#[test]
fn a_profile_has_the_names_of_a_mapping() {
    let folder = folder();
    let home = folder.path();
    let server = StubServer::start(vec![ok()]);
    let mapping = ["--mapping", "shop-mapping.txt"];
    let done = push(home, &server.url(), &mapping);
    assert!(done.status.success(), "{}", stderr(&done));
    let (_, profile) = series(&server.received()[0]);
    let traces = pprof(home, &profile, &["-traces", "-sample_index=inuse_space"]);
    assert!(traces.contains("com.acme.web.Audit.audit"), "{traces}");
    assert!(traces.contains("com.acme.web.Log.note"), "{traces}");
    assert!(!traces.contains("com.acme.Interceptor"), "{traces}");
    let server = StubServer::start(vec![ok()]);
    let done = push(home, &server.url(), &["--mapping", "mapping.txt"]);
    let said = stderr(&done);
    assert!(
        done.status.success() && said.contains("--mapping contains no class of this input"),
        "{said}"
    );
}
