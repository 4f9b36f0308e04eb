//! Tests `trace push` over TLS, to servers whose certificate authority the test creates.

use std::fs;
use std::path::Path;
use std::process::Output;
use std::time::{Duration, Instant};

use testdata::authority::Authority;
use testdata::stub_server::{Answer, Received, StubServer};

use crate::push::{command, folder, ok, stderr};

const CACERT: &str = "authority.pem";
const COMPANY: &str = "Acme Root";

/// Returns a folder with a trace and a file with the authority's certificate.
fn prepared() -> (tempfile::TempDir, Authority) {
    let folder = folder();
    let authority = Authority::new(COMPANY);
    fs::write(folder.path().join(CACERT), authority.pem()).expect("a written file");
    (folder, authority)
}

fn url(server: &StubServer) -> String {
    format!("https://localhost:{}", server.port())
}

/// Runs a push. `file` is the value of `SSL_CERT_FILE` for this run. No other certificate authorities from the
/// environment are used.
fn push(folder: &Path, url: &str, args: &[&str], file: Option<&str>) -> Output {
    let all = [&["trace", "push", "shop.db", url], args].concat();
    let mut command = command(folder, &all);
    for name in ["SSL_CERT_FILE", "SSL_CERT_DIR"] {
        command.env_remove(name);
    }
    if let Some(file) = file {
        command.env("SSL_CERT_FILE", file);
    }
    command.output().expect("a run")
}

/// Runs a push that must fail. Returns its message and the requests that the server received.
fn refused(
    server: StubServer,
    folder: &Path,
    args: &[&str],
    file: Option<&str>,
) -> (String, Vec<Received>) {
    let done = push(folder, &url(&server), args, file);
    let said = stderr(&done);
    assert_eq!(done.status.code(), Some(3), "{said}");
    (said, server.received())
}

#[test]
fn a_server_of_a_trusted_authority_gets_a_profile() {
    let (folder, authority) = prepared();
    for (args, file) in [
        (&["--cacert", CACERT][..], None),
        (&[], Some(CACERT)),
        // The option has precedence over the environment, as with curl.
        (&["--cacert", CACERT], Some("shop.db")),
    ] {
        let server = StubServer::encrypted(vec![ok()], authority.server("localhost"));
        let token = [args, &["--header", "X-Scope-OrgID: shop"]].concat();
        let done = push(folder.path(), &url(&server), &token, file);
        assert!(done.status.success(), "{}", stderr(&done));
        let received = server.received();
        assert_eq!(received[0].target, "/push.v1.PusherService/Push");
        assert_eq!(received[0].header("x-scope-orgid"), Some("shop"));
        assert!(!received[0].body.is_empty());
        assert!(!stderr(&done).contains("unencrypted"), "{}", stderr(&done));
    }
}

#[test]
fn an_untrusted_server_gets_nothing() {
    let (folder, authority) = prepared();
    let home = folder.path();
    let nothing = |received: Vec<Received>| assert_eq!(received, [Received::default()]);
    // The certificate was issued by an authority that is not trusted. In the first case, the name of this authority
    // differs from the name of the trusted authority. In the second case, both authorities have the same name.
    for name in ["Other Root", COMPANY] {
        let server = StubServer::encrypted(vec![ok()], Authority::new(name).server("localhost"));
        let (said, received) = refused(server, home, &["--cacert", CACERT], None);
        assert!(
            said.contains("cannot establish a trusted connection: "),
            "{said}"
        );
        let hint = "give the CA certificate of the server with --cacert FILE";
        assert!(said.contains(hint), "{said}");
        nothing(received);
    }
    // The certificate belongs to another server.
    let server = StubServer::encrypted(vec![ok()], authority.server("profiles.example.com"));
    let (said, received) = refused(server, home, &[], Some(CACERT));
    assert!(
        said.contains("cannot establish a trusted connection: "),
        "{said}"
    );
    assert!(
        said.contains("use the host name that is in the certificate"),
        "{said}"
    );
    nothing(received);
    // The server does not use TLS.
    let server = StubServer::start(vec![Answer::Raw(b"HTTP/1.1 400 Bad\r\n\r\n".to_vec())]);
    let (said, received) = refused(server, home, &["--cacert", CACERT], None);
    assert!(
        said.contains("the server may not support TLS at this address"),
        "{said}"
    );
    nothing(received);
    // The files contain no certificates.
    fs::write(home.join("empty.pem"), "").expect("a written file");
    for file in ["none.pem", "empty.pem"] {
        let done = push(home, "https://localhost:1", &["--cacert", file], None);
        let said = stderr(&done);
        assert_eq!(done.status.code(), Some(2), "{said}");
        let starts = format!("heapdiff: {file}: cannot read CA certificates: ");
        assert!(said.starts_with(&starts), "{said}");
    }
    let done = push(home, "https://localhost:1", &[], Some("empty.pem"));
    let said = stderr(&done);
    assert!(
        said.contains("this machine has no CA certificates"),
        "{said}"
    );
    assert!(said.contains("SSL_CERT_FILE"), "{said}");
}

#[test]
fn a_stalled_server_times_out() {
    let (folder, authority) = prepared();
    let args = ["--cacert", CACERT, "--timeout", "100ms"];
    // The server stalls after the request, or before the TLS handshake.
    for server in [
        StubServer::encrypted(vec![Answer::Silence; 4], authority.server("localhost")),
        StubServer::start(vec![Answer::Silence; 4]),
    ] {
        let begun = Instant::now();
        let (said, received) = refused(server, folder.path(), &args, None);
        assert!(said.contains("no response within 0.1 s"), "{said}");
        assert!(begun.elapsed() < Duration::from_secs(30), "{said}");
        assert_eq!(received.len(), 4);
    }
}

#[test]
fn redirects_are_not_followed() {
    let (folder, authority) = prepared();
    let elsewhere = StubServer::encrypted(vec![ok()], authority.server("localhost"));
    let to = format!("Location: {}/other", url(&elsewhere));
    let answer = Answer::Says(307, vec![to], Vec::new());
    let server = StubServer::encrypted(vec![answer], authority.server("localhost"));
    let (said, received) = refused(server, folder.path(), &["--cacert", CACERT], None);
    assert!(said.contains("the server redirects to "), "{said}");
    assert!(
        said.contains("push to the new address if you trust it"),
        "{said}"
    );
    assert_eq!(received.len(), 1);
    assert_eq!(elsewhere.received(), []);
}
