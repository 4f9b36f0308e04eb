//! Tests the pages of `heapdiff ui DUMP`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::push::folder;
use crate::support::heapdiff;

const BEFORE: &str = "testdata/before.hprof.gz";
const AFTER: &str = "testdata/after.hprof.gz";

/// A running server. It ends when this value is dropped.
struct Ui {
    child: Child,
    address: String,
    token: String,
    _folder: tempfile::TempDir,
}

impl Ui {
    fn start(dumps: &[&str]) -> Self {
        let folder = folder();
        let args = [&["ui", "--quiet"], dumps].concat();
        let mut child = heapdiff(folder.path(), &args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a server");
        let mut url = String::new();
        let out = child.stdout.take().expect("a pipe");
        BufReader::new(out).read_line(&mut url).expect("a URL");
        let url = url.trim().strip_prefix("http://").expect("a URL");
        let (address, token) = url.trim_end_matches('/').split_once('/').expect("a token");
        Self {
            child,
            address: address.to_owned(),
            token: token.to_owned(),
            _folder: folder,
        }
    }

    /// Returns the answer to a request for a page: its head and its body.
    fn answer(&self, token: &str, page: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).expect("a connection");
        let limit = Some(Duration::from_secs(60));
        stream.set_read_timeout(limit).expect("a time limit");
        let host = &self.address;
        write!(
            stream,
            "GET /{token}/{page} HTTP/1.1\r\nHost: {host}\r\n\r\n"
        )
        .expect("a request");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("an answer");
        text
    }

    fn page(&self, page: &str) -> String {
        let text = self.answer(&self.token, page);
        assert!(text.starts_with("HTTP/1.1 200 OK"), "{page}: {text}");
        text
    }
}

impl Drop for Ui {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the targets of all links.
fn links(page: &str) -> Vec<String> {
    let links = page.split("<a href=\"").skip(1);
    let links = links.filter_map(|rest| rest.split_once('"'));
    links.map(|(link, _)| link.replace("&amp;", "&")).collect()
}

#[test]
fn links_lead_from_the_report_to_the_objects() {
    let ui = Ui::start(&[BEFORE, AFTER]);
    let start = ui.page("");
    assert!(start.contains("com.acme.shop.SessionRegistry.sessions holds 5,000 more"));
    let holder = "object?of=com.acme.shop.SessionRegistry.sessions";
    assert!(links(&start).contains(&holder.to_owned()), "{start}");
    let object = ui.page(holder);
    assert!(object.contains("10,000 keys in 16,384 buckets"), "{object}");
    assert!(object.contains("Objects that it dominates"), "{object}");
    let address = "object?of=0xfacab0b8";
    assert!(links(&object).contains(&address.to_owned()), "{object}");
    let found = ui.page(address);
    assert!(found.contains("retains 2,952,368 bytes"), "{found}");
    let paths = ui.page("paths?of=0xfacab0b8");
    assert!(paths.contains("com.acme.shop.SessionRegistry"), "{paths}");
    // This page shows the elements of the map from index 9,990 on.
    let next = ui.page("object?of=0xfacab0b8&from=9990");
    assert!(next.contains("10000 -&gt; "), "{next}");
}

#[test]
fn each_page_shows_one_of_the_dumps() {
    let ui = Ui::start(&[BEFORE, AFTER]);
    for page in ["classes", "largest", "owners", "threads", "waste"] {
        let [first, last] = ["?dump=1", "?dump=2"].map(|dump| ui.page(&format!("{page}{dump}")));
        assert_ne!(first, last, "{page}");
        assert_eq!(ui.page(page), last, "{page}");
    }
    let first = ui.page("classes?dump=1");
    let objects = links(&first);
    let objects = objects.iter().filter(|link| link.starts_with("object?"));
    assert!(objects.clone().count() > 20, "{first}");
    assert!(
        objects.clone().all(|link| link.ends_with("&dump=1")),
        "{first}"
    );
    let object = ui.page("object?of=com.acme.shop.SessionRegistry.sessions&dump=1");
    assert!(object.contains("5,000 keys"), "{object}");
}

#[test]
fn every_link_leads_to_a_page() {
    let ui = Ui::start(&[AFTER]);
    let start = ui.page("");
    assert!(
        start.contains("com.acme.shop.SessionRegistry.sessions"),
        "{start}"
    );
    let mut links = links(&start);
    links.extend(self::links(&ui.page("largest")));
    links.sort();
    links.dedup();
    assert!(links.len() > 30, "{links:?}");
    for link in &links {
        let page = ui.page(link.trim_start_matches("./"));
        assert!(!page.contains("role=\"alert\""), "{link}: {page}");
    }
}

#[test]
fn wrong_requests_are_refused_with_a_reason() {
    let ui = Ui::start(&[AFTER]);
    let forbidden = ui.answer("0123456789", "");
    assert!(!forbidden.starts_with("HTTP/1.1 200"), "{forbidden}");
    for page in ["none", "../../etc/passwd", "object/0x1"] {
        let missing = ui.answer(&ui.token, page);
        assert!(missing.starts_with("HTTP/1.1 404"), "{page}: {missing}");
    }
    let page = ui.page("object?of=com.acme.Nothing");
    assert!(
        page.contains("role=\"alert\"") && page.contains("com.acme.Nothing"),
        "{page}"
    );
    let page = ui.page("object?of=%3Cscript%3Ealert(1)%3C/script%3E&dump=77");
    assert!(!page.contains("<script"), "{page}");
    let head = ui.page("");
    let policy = "Content-Security-Policy: default-src 'none'; style-src 'sha256-";
    assert!(head.contains(policy), "{head}");
}
