//! Uploads files with HTTP PUT, for example to object storage.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use ureq::http::{StatusCode, Uri, header};

use crate::client::{
    Client, Patience, failure, refusal, retry_after, sanitized_excerpt, system_message,
    without_user,
};
use crate::error::PushError;
use crate::headers::Header;

/// Maximum number of redirects that are followed, all on the same server.
const REDIRECTS: usize = 3;
/// Minimum speed of an upload in bytes per second. The time limit of an upload is computed from this speed.
const SLOWEST: u64 = 1 << 20;

/// A URL to which files are uploaded.
pub struct Upload {
    client: Client,
    url: Uri,
}

impl std::fmt::Debug for Upload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Upload");
        shown
            .field("target", &self.target())
            .finish_non_exhaustive()
    }
}

impl Upload {
    /// Creates an upload to a URL. If the path of the URL ends in `/`, the name of each file is added to the path.
    /// Otherwise the URL is the target of a single file. The query of the URL may contain a signature. `authorities` is
    /// a PEM file with trusted CA certificates. They replace the CA certificates that this machine trusts.
    ///
    /// # Errors
    /// Returns an error if the URL is invalid or contains credentials, or if there is no CA certificate.
    pub fn new(
        url: &str,
        headers: Vec<Header>,
        authorities: Option<&Path>,
        patience: Patience,
    ) -> Result<Self, PushError> {
        let wrong = |why| PushError::Address {
            url: without_user(url.split(['?', '#']).next().unwrap_or_default()),
            why,
        };
        let uri: Uri = url
            .parse()
            .map_err(|_| wrong("the address must have the form https://host/folder/"))?;
        let is_http = matches!(uri.scheme_str(), Some("http" | "https"));
        if !is_http || uri.host().is_none_or(str::is_empty) {
            return Err(wrong("the address must have the form https://host/folder/"));
        }
        if uri.authority().is_some_and(|of| of.as_str().contains('@')) {
            return Err(wrong(
                "do not put a user or a password into the address, where every user of this machine can read them; use --header @FILE",
            ));
        }
        Ok(Self {
            client: Client::new(&origin(&uri), headers, authorities, patience)?,
            url: uri,
        })
    }

    /// Returns the URL without its query, for messages.
    #[must_use]
    pub fn target(&self) -> String {
        shown(&self.url)
    }

    /// Returns true if the URL is a folder, to which several files can be uploaded.
    #[must_use]
    pub fn is_folder(&self) -> bool {
        self.url.path().ends_with('/')
    }

    /// Uploads a file, and returns the URL of the uploaded file without the query. Retries after temporary failures.
    ///
    /// # Errors
    /// Returns the error of the last attempt. A redirect to another server is an error.
    pub fn put(&self, file: &Path) -> Result<String, PushError> {
        let url = if self.is_folder() {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            let query = self.url.query().map(|query| format!("?{query}"));
            let (origin, path) = (origin(&self.url), self.url.path());
            let full = format!(
                "{origin}{path}{}{}",
                encoded(&name),
                query.unwrap_or_default()
            );
            full.parse().map_err(|_| PushError::Address {
                url: self.target(),
                why: "the address is too long",
            })?
        } else {
            self.url.clone()
        };
        self.client
            .with_retries(|| self.put_to(url.clone(), file))?;
        Ok(shown(&url))
    }

    /// Sends the file once. Follows redirects on the same server.
    fn put_to(&self, mut url: Uri, file: &Path) -> Result<(), (PushError, Option<Duration>)> {
        for _ in 0..=REDIRECTS {
            let target = shown(&url);
            let unreadable = |e| {
                let (file, why) = (file.to_owned(), system_message(&e));
                (PushError::File { file, why }, None)
            };
            let content = File::open(file).map_err(unreadable)?;
            let bytes = content.metadata().map_err(unreadable)?.len();
            let within = self.client.patience.answer + Duration::from_secs(bytes / SLOWEST);
            let request = self
                .client
                .agent
                .put(&url)
                .config()
                .timeout_global(Some(within))
                .build()
                .header(header::CONTENT_TYPE, "application/octet-stream")
                .header(header::CONTENT_LENGTH, bytes);
            let mut response = self
                .client
                .with_headers(request)
                .send(&content)
                .map_err(|error| (failure(error, &target, within), None))?;
            let status = response.status();
            if !status.is_redirection() {
                let asked = retry_after(&response);
                return refusal(&mut response, &target).map_or(Ok(()), |e| Err((e, asked)));
            }
            let to = response.headers().get(header::LOCATION);
            let to = to.and_then(|to| to.to_str().ok()).unwrap_or_default();
            let next = resolved(&url, to);
            let keeps_method = matches!(
                status,
                StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
            );
            match next {
                Some(next) if keeps_method && origin(&next) == origin(&url) => url = next,
                _ => {
                    let to = next.map_or_else(|| without_query(to), |next| shown(&next));
                    let to = sanitized_excerpt(&to);
                    return Err((PushError::Redirect { url: target, to }, None));
                }
            }
        }
        let target = shown(&url);
        Err((
            PushError::Redirect {
                to: target.clone(),
                url: target,
            },
            None,
        ))
    }
}

/// Returns scheme, host and port of a URL, in a form that can be compared with that of another URL.
fn origin(url: &Uri) -> String {
    let scheme = url.scheme_str().unwrap_or_default();
    let host = url.host().unwrap_or_default().to_ascii_lowercase();
    let default = if scheme == "https" { 443 } else { 80 };
    format!("{scheme}://{host}:{}", url.port_u16().unwrap_or(default))
}

/// Returns the target of a redirect: an absolute URL, or a path on the same server.
fn resolved(from: &Uri, to: &str) -> Option<Uri> {
    if to.starts_with('/') && !to.starts_with("//") {
        return format!("{}{to}", origin(from)).parse().ok();
    }
    let to: Uri = to.parse().ok()?;
    let is_plain = !to.authority()?.as_str().contains('@');
    (to.scheme().is_some() && is_plain).then_some(to)
}

fn shown(url: &Uri) -> String {
    without_query(&url.to_string())
}

fn without_query(url: &str) -> String {
    without_user(url.split(['?', '#']).next().unwrap_or_default())
}

/// Percent-encodes a file name for a URL. Only bytes that never need encoding stay as they are.
fn encoded(name: &str) -> String {
    let mut text = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use testdata::stub_server::{Answer, Received, StubServer};

    use super::*;

    fn uri(text: &str) -> Uri {
        text.parse().unwrap()
    }

    #[test]
    fn redirects_are_compared_by_server() {
        let from = uri("https://Store.example/dumps/");
        let same = |to: &str| resolved(&from, to).map(|to| origin(&to) == origin(&from));
        assert_eq!(same("/other?x=1"), Some(true));
        assert_eq!(same("https://store.example:443/y"), Some(true));
        for to in [
            "https://store.example.evil.com/",
            "http://store.example/",
            "https://store.example:444/",
        ] {
            assert_eq!(same(to), Some(false), "{to}");
        }
        for to in [
            "//evil.com/",
            "https://store.example@evil.com/",
            "relative",
            "",
        ] {
            assert_eq!(same(to), None, "{to}");
        }
    }

    #[test]
    fn messages_lack_the_query_and_the_user() {
        let new = |url: &str| Upload::new(url, Vec::new(), None, Patience::default());
        let upload = new("http://localhost:9/dumps/?X-Signature=secret").unwrap();
        assert_eq!(upload.target(), "http://localhost:9/dumps/");
        assert!(upload.is_folder() && !format!("{upload:?}").contains("secret"));
        for url in [
            "http://me:secret@host/x",
            "ftp://host/?secret",
            "host?secret",
        ] {
            let error = new(url).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn names_are_encoded() {
        assert_eq!(encoded("a-1.heap"), "a-1.heap");
        assert_eq!(encoded("a b/?ü"), "a%20b%2F%3F%C3%BC");
    }

    const QUICK: Patience = Patience {
        answer: Duration::from_secs(5),
        tries: 3,
        pause: Duration::from_millis(1),
    };

    fn says(status: u16, headers: &[String]) -> Answer {
        Answer::Says(status, headers.to_vec(), Vec::new())
    }

    fn moved(to: &str) -> Answer {
        says(307, &[format!("Location: {to}")])
    }

    /// Uploads a file of 100,000 bytes to a test server that gives the answers in `script`.
    fn uploaded(script: Vec<Answer>) -> (Result<String, PushError>, Vec<Received>) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a b.heap");
        std::fs::write(&file, vec![7; 100_000]).unwrap();
        let server = StubServer::start(script);
        let url = format!("{}/dumps/?sig=secret", server.url());
        let header = Header::parse("X-Tenant: acme", "--header").unwrap();
        let upload = Upload::new(&url, vec![header], None, QUICK).unwrap();
        let result = upload.put(&file);
        (result, server.received())
    }

    #[test]
    fn a_file_is_put_below_the_folder_with_its_length_and_the_query() {
        let (result, received) = uploaded(vec![says(201, &[])]);
        let place = result.unwrap();
        assert!(place.ends_with("/dumps/a%20b.heap"), "{place}");
        let request = &received[0];
        assert_eq!(request.method, "PUT");
        assert_eq!(request.target, "/dumps/a%20b.heap?sig=secret");
        assert_eq!(request.header("content-length"), Some("100000"));
        assert_eq!(request.header("x-tenant"), Some("acme"));
        assert_eq!(request.body, vec![7; 100_000]);
    }

    #[test]
    fn temporary_failures_are_tried_again_with_the_whole_file() {
        let (result, received) = uploaded(vec![says(503, &[]), says(200, &[])]);
        result.unwrap();
        assert_eq!(received.len(), 2);
        assert_eq!(received[1].body.len(), 100_000);
        let (result, received) = uploaded(vec![says(403, &[])]);
        let error = result.unwrap_err().to_string();
        assert!(error.contains("responded with 403"), "{error}");
        assert!(received.len() == 1 && !error.contains("secret"), "{error}");
    }

    #[test]
    fn only_redirects_on_the_same_server_are_followed() {
        let (result, received) = uploaded(vec![moved("/other?sig=new"), says(200, &[])]);
        result.unwrap();
        assert_eq!(received[1].target, "/other?sig=new");
        assert_eq!(received[1].body.len(), 100_000);

        let other = StubServer::start(vec![says(200, &[])]);
        let to = format!("{}/dumps/x?sig=secret", other.url());
        let (result, received) = uploaded(vec![moved(&to)]);
        let error = result.unwrap_err().to_string();
        assert!(
            error.contains("redirects to") && !error.contains("secret"),
            "{error}"
        );
        assert_eq!(received.len(), 1);
        assert!(other.received().is_empty(), "the other server got nothing");

        let (result, received) = uploaded(vec![moved("/loop"); 5]);
        assert!(matches!(result, Err(PushError::Redirect { .. })));
        assert_eq!(received.len(), REDIRECTS + 1);
        let see_other = says(303, &["Location: /other".to_owned()]);
        assert!(uploaded(vec![see_other]).0.is_err(), "303 asks for a GET");
    }

    #[test]
    fn a_file_that_is_missing_is_an_error() {
        let upload = Upload::new("http://127.0.0.1:9/x", Vec::new(), None, QUICK).unwrap();
        let missing = PathBuf::from("/does/not/exist");
        let error = upload.put(&missing).unwrap_err();
        assert!(matches!(error, PushError::File { .. }), "{error}");
    }
}
