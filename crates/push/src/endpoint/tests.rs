use std::net::TcpListener;
use std::time::Instant;

use testdata::stub_server::{Answer, Received, StubServer};

use super::*;
use crate::error::TlsFault;

const QUICK: Patience = Patience {
    answer: Duration::from_secs(5),
    tries: 3,
    pause: Duration::from_millis(1),
};

fn ok() -> Answer {
    Answer::says(200, "application/json", "{}")
}

fn no(status: u16, body: &str) -> Answer {
    Answer::says(status, "text/plain", body)
}

fn send(url: &str, patience: Patience) -> Result<(), PushError> {
    let header = Header::parse("X-Scope-OrgID: acme", "--header")?;
    let mut endpoint = Endpoint::new(url, vec![header], None, patience)?;
    endpoint.push(&Series {
        service: "shop",
        labels: &[],
        time_ms: 1_760_000_120_000,
        profile: b"bytes",
    })
}

/// Pushes a profile to a test server that gives the answers in `script`. Returns the result and the requests that the
/// server received.
fn pushed(path: &str, script: Vec<Answer>) -> (Result<(), PushError>, Vec<Received>) {
    let server = StubServer::start(script);
    let sent = send(&format!("{}{path}", server.url()), QUICK);
    (sent, server.received())
}

fn paths(received: &[Received]) -> Vec<&str> {
    let paths = received.iter().map(|r| &*r.target);
    paths
        .map(|path| path.split('?').next().unwrap_or_default())
        .collect()
}

/// Returns the error's message without the URL.
fn words(sent: Result<(), PushError>) -> String {
    let error = sent.unwrap_err().to_string();
    let at = error.find(": ").unwrap_or(0);
    error[at..].trim_start_matches(": ").to_owned()
}

#[test]
fn a_profile_goes_to_the_documented_interface() {
    let (sent, received) = pushed("/profiles/", vec![ok()]);
    sent.unwrap();
    assert_eq!(paths(&received), ["/profiles/push.v1.PusherService/Push"]);
    let request = &received[0];
    assert_eq!(request.method, "POST");
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert_eq!(request.header("x-scope-orgid"), Some("acme"));
    let agent = request.header("user-agent").unwrap();
    assert!(agent.starts_with("heapdiff/"), "{agent}");
}

#[test]
fn a_server_that_has_only_the_older_interface_is_asked_there() {
    for status in [404, 405, 415, 501] {
        let server = StubServer::start(vec![no(status, "no"), no(200, ""), no(200, "")]);
        let mut endpoint = Endpoint::new(&server.url(), Vec::new(), None, QUICK).unwrap();
        let series = Series {
            service: "shop",
            labels: &[],
            time_ms: 0,
            profile: b"bytes",
        };
        endpoint.push(&series).unwrap();
        // From now on, the client knows the interface of the server.
        endpoint.push(&series).unwrap();
        let received = server.received();
        assert_eq!(paths(&received), [PUSH, INGEST, INGEST], "{status}");
        assert_eq!(received[1].body, b"bytes");
    }
}

#[test]
fn an_address_can_name_the_interface() {
    let (sent, received) = pushed("/x/ingest", vec![no(200, "")]);
    sent.unwrap();
    assert_eq!(paths(&received), ["/x/ingest"]);
    let (sent, received) = pushed(PUSH, vec![no(404, "nothing here")]);
    assert_eq!(words(sent), "the server responded with 404: nothing here");
    assert_eq!(paths(&received), [PUSH]);
}

#[test]
fn temporary_failures_are_retried() {
    for status in [429, 500, 502, 503, 504] {
        let (sent, received) = pushed("", vec![no(status, "busy"), ok()]);
        sent.unwrap();
        assert_eq!(paths(&received), [PUSH, PUSH], "{status}");
    }
    let busy = || no(503, "busy");
    let (sent, received) = pushed("", vec![busy(), busy(), busy(), ok()]);
    assert_eq!(words(sent), "the server responded with 503: busy");
    assert_eq!(received.len(), 3);
}

#[test]
fn the_header_retry_after_is_respected() {
    let wait = vec!["Retry-After: 1".to_owned()];
    let begun = Instant::now();
    let (sent, _) = pushed("", vec![Answer::Says(429, wait, Vec::new()), ok()]);
    sent.unwrap();
    assert!(begun.elapsed() >= Duration::from_secs(1));
}

#[test]
fn refused_requests_are_not_retried() {
    let connect =
        r#"{"code":"invalid_argument","message":"outside of the ingestion  window\u001b[2J"}"#;
    let (sent, received) = pushed("", vec![no(400, connect), ok()]);
    assert_eq!(
        words(sent),
        "the server responded with 400: outside of the ingestion window?[2J"
    );
    assert_eq!(received.len(), 1);
    for status in [401, 403, 413, 422] {
        let page = Answer::says(status, "text/html", "<html><b>no</b></html>");
        let (sent, received) = pushed("", vec![page, ok()]);
        let words = words(sent);
        assert!(words.contains(&status.to_string()), "{words}");
        assert!(!words.contains('<'), "{words}");
        assert_eq!(received.len(), 1);
    }
    let (sent, _) = pushed("", vec![no(400, &"long ".repeat(50_000))]);
    assert!(words(sent).len() < 400);
}

#[test]
fn a_server_without_both_interfaces_is_reported() {
    let (sent, received) = pushed("", vec![no(404, ""), no(404, "")]);
    let error = sent.unwrap_err();
    assert!(
        matches!(error, PushError::Refused { status: 404, .. }),
        "{error}"
    );
    assert_eq!(paths(&received), [PUSH, INGEST]);
}

#[test]
fn redirects_to_another_server_are_not_followed() {
    let other = StubServer::start(vec![ok()]);
    for status in [301, 302, 303, 307, 308] {
        let location = format!("Location: {}/login", other.url());
        let (sent, _) = pushed("", vec![Answer::Says(status, vec![location], Vec::new())]);
        assert_eq!(
            words(sent),
            format!("the server redirects to {}/login", other.url())
        );
    }
    assert_eq!(other.received(), []);
}

#[test]
fn a_web_server_is_not_taken_for_a_profile_server() {
    let page = Answer::says(200, "text/html; charset=utf-8", "<html>Welcome</html>");
    let (sent, _) = pushed("", vec![page]);
    assert!(words(sent).ends_with("a web page"));
    for bytes in [&b"SSH-2.0-OpenSSH_9.2\r\n"[..], b"", b"HTTP/1.1 200 OK\r\n"] {
        let raw = || Answer::Raw(bytes.to_vec());
        let (sent, _) = pushed("", vec![raw(), raw(), raw()]);
        sent.unwrap_err();
    }
    let endless = format!("HTTP/1.1 200 OK\r\nX: {}", "x".repeat(1 << 20));
    let (sent, _) = pushed("", vec![Answer::Raw(endless.into_bytes())]);
    sent.unwrap_err();
}

#[test]
fn a_silent_server_times_out() {
    let server = StubServer::start(vec![Answer::Silence, Answer::Silence]);
    let patience = Patience {
        answer: Duration::from_millis(200),
        tries: 2,
        ..QUICK
    };
    let begun = Instant::now();
    let error = send(&server.url(), patience).unwrap_err();
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert!(error.is_retryable(), "{error}");
    assert!(
        error.to_string().ends_with("no response within 0.2 s"),
        "{error}"
    );
    assert_eq!(server.received().len(), 2);
}

#[test]
fn a_refused_connection_is_reported() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    let error = send(&url, QUICK).unwrap_err();
    assert!(error.is_retryable());
    assert_eq!(
        error.to_string(),
        format!("{url}{PUSH}: Connection refused")
    );
    let error = send("http://no-such-host.invalid:4040", QUICK).unwrap_err();
    assert!(matches!(error, PushError::Unreachable { .. }), "{error}");
}

#[test]
fn an_unencrypted_server_is_reported_as_unencrypted() {
    let server = StubServer::start(vec![Answer::Raw(b"HTTP/1.1 400 Bad\r\n\r\n".to_vec())]);
    let url = server.url().replace("http:", "https:");
    // On a machine without CA certificates, the error is about the missing certificates.
    let error = send(&url, QUICK).unwrap_err();
    assert!(matches!(error, PushError::Tls { .. }), "{error}");
}

#[test]
fn each_fault_of_a_certificate_has_its_kind() {
    use rustls::{CertificateError as Bad, Error};
    let kind = |bad| TlsFault::from_error(&Error::InvalidCertificate(bad));
    assert_eq!(kind(Bad::UnknownIssuer), TlsFault::Authority);
    assert_eq!(kind(Bad::BadSignature), TlsFault::Authority);
    assert_eq!(kind(Bad::NotValidForName), TlsFault::Name);
    assert_eq!(kind(Bad::Expired), TlsFault::Time);
    assert_eq!(kind(Bad::Revoked), TlsFault::Other);
    assert_eq!(TlsFault::from_error(&Error::DecryptError), TlsFault::Other);
}

#[test]
fn addresses_are_checked_before_anything_is_sent() {
    for bad in [
        "",
        "localhost:4040",
        "ftp://localhost",
        "http://",
        "http:///x",
        "http://a b",
        "file:///etc/passwd",
        "http://localhost:99999",
        "http://localhost?x=1",
        "http://localhost/#x",
    ] {
        let error = Endpoint::new(bad, Vec::new(), None, QUICK).unwrap_err();
        assert!(matches!(error, PushError::Address { .. }), "{bad}: {error}");
    }
    let error =
        Endpoint::new("https://me:s3cret@example.com/x", Vec::new(), None, QUICK).unwrap_err();
    let error = error.to_string();
    assert!(!error.contains("s3cret"), "{error}");
    assert!(
        error.contains("every user of this machine can read them"),
        "{error}"
    );
}

#[test]
fn only_local_and_encrypted_connections_are_private() {
    for (url, private) in [
        ("http://localhost:4040", true),
        ("http://127.0.0.2", true),
        ("http://[::1]:4040/x", true),
        ("http://localhost.example.com", false),
        ("http://192.168.0.1", false),
    ] {
        let endpoint = Endpoint::new(url, Vec::new(), None, QUICK).unwrap();
        assert_eq!(endpoint.is_private(), private, "{url}");
    }
}
