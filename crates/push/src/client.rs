//! Sends requests to a server, retries a limited number of times, and interprets the answers.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use ureq::http::{Response, StatusCode, Uri, header};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::typestate::WithBody;
use ureq::{Agent, Body, Error, RequestBuilder};

use crate::error::{PushError, TlsFault};
use crate::headers::Header;
use crate::requests::{INGEST, PUSH, Request, Series, ingest, push};

/// Maximum number of bytes that are read of an answer's body, and of its headers.
const MOST_READ: u64 = 64 << 10;
/// Maximum number of characters that an error message quotes from an answer.
const MOST_SAID: usize = 300;
/// Maximum pause before a retry, even if the server requests a longer one.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
const CONNECT: Duration = Duration::from_secs(10);

/// Timeouts and retries.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// The time limit of one request, from the DNS lookup to the end of the answer.
    pub answer: Duration,
    /// Maximum number of attempts if all failures are temporary. At least one.
    pub tries: u32,
    /// The pause before the second attempt. The pause doubles before each later attempt.
    pub pause: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            answer: Duration::from_secs(30),
            tries: 4,
            pause: Duration::from_millis(500),
        }
    }
}

/// The interface by which a server accepts profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Interface {
    /// It is not known yet which of the two interfaces this server has, so both are tried.
    Unknown,
    Push,
    Ingest,
}

/// A server, or a path on it, that accepts profiles.
pub struct Endpoint {
    client: Client,
    /// The URL without the interface's path.
    base: String,
    interface: Interface,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Endpoint");
        shown
            .field("base", &self.base)
            .field("interface", &self.interface);
        shown.finish_non_exhaustive()
    }
}

impl Endpoint {
    /// Creates an endpoint from the URL of a server, such as `https://profiles.example.com`, optionally with a path. If
    /// the URL ends in the path of an interface, only that interface is used. `authorities` is a PEM file with trusted
    /// CA certificates, which replace those of this machine.
    ///
    /// # Errors
    /// Returns an error if the URL is invalid, or if there is no CA certificate. Also refuses a URL with credentials,
    /// because every user of this machine can read a command line.
    pub fn new(
        url: &str,
        headers: Vec<Header>,
        authorities: Option<&Path>,
        patience: Patience,
    ) -> Result<Self, PushError> {
        let (base, interface) = address(url).map_err(|why| PushError::Address {
            url: without_user(url),
            why,
        })?;
        Ok(Self {
            client: Client::new(&base, headers, authorities, patience)?,
            base,
            interface,
        })
    }

    /// Returns the server's URL, without the path of the interface that accepts profiles.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.base
    }

    /// Returns true if nobody can listen in: the connection is encrypted, or does not leave this machine.
    #[must_use]
    pub fn is_private(&self) -> bool {
        self.base.starts_with("https:") || is_this_machine(&self.base)
    }

    /// Sends a profile. Retries after temporary failures.
    ///
    /// # Errors
    /// Returns the error of the last attempt. If the server supports neither interface, returns the error of the first
    /// interface.
    pub fn push(&mut self, series: &Series<'_>) -> Result<(), PushError> {
        if self.interface != Interface::Ingest {
            let missing = match self.send_with_retries(&push(series)) {
                Err(
                    error @ PushError::Refused {
                        status: 404 | 405 | 415 | 501,
                        ..
                    },
                ) if self.interface == Interface::Unknown => error,
                Err(error) => return Err(error),
                Ok(()) => {
                    self.interface = Interface::Push;
                    return Ok(());
                }
            };
            return match self.send_with_retries(&ingest(series)) {
                // The server supports neither interface. The error of the first interface is more useful, so report
                // that error.
                Err(PushError::Refused {
                    status: 404 | 405, ..
                }) => Err(missing),
                Err(error) => Err(error),
                Ok(()) => {
                    self.interface = Interface::Ingest;
                    Ok(())
                }
            };
        }
        self.send_with_retries(&ingest(series))
    }

    fn send_with_retries(&self, request: &Request) -> Result<(), PushError> {
        self.client.with_retries(|| self.send_once(request))
    }

    /// Sends a request once. If the server requests a pause before the next attempt, the pause is returned with the
    /// error.
    fn send_once(&self, request: &Request) -> Result<(), (PushError, Option<Duration>)> {
        let url = format!("{}{}", self.base, request.path);
        // Error messages do not contain the URL's query, because users cannot change it: heapdiff adds it.
        let shown = url.split('?').next().unwrap_or(&url).to_owned();
        let client = &self.client;
        let post = client.agent.post(&url);
        let mut response = client
            .with_headers(post.header(header::CONTENT_TYPE, request.content_type))
            .send(&request.body[..])
            .map_err(|error| (failure(error, &shown, client.patience.answer), None))?;
        let asked = retry_after(&response);
        check_response(&mut response, shown).map_err(|error| (error, asked))
    }
}

/// What all requests to a server have in common.
pub(crate) struct Client {
    pub(crate) agent: Agent,
    pub(crate) patience: Patience,
    headers: Vec<Header>,
}

impl Client {
    /// Creates a client for the server with this URL.
    pub(crate) fn new(
        base: &str,
        headers: Vec<Header>,
        authorities: Option<&Path>,
        patience: Patience,
    ) -> Result<Self, PushError> {
        let roots = if base.starts_with("https:") {
            roots(base, authorities)?
        } else {
            Vec::new()
        };
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::Specific(Arc::new(roots)))
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .build();
        let mut config = Agent::config_builder()
            .tls_config(tls)
            .user_agent(concat!("heapdiff/", env!("CARGO_PKG_VERSION")))
            .http_status_as_error(false)
            .max_redirects(0)
            .max_response_header_size(MOST_READ as usize)
            .timeout_connect(Some(CONNECT.min(patience.answer)))
            .timeout_global(Some(patience.answer));
        if is_this_machine(base) {
            config = config.proxy(None);
        }
        Ok(Self {
            agent: config.build().new_agent(),
            patience,
            headers,
        })
    }

    pub(crate) fn with_headers(
        &self,
        mut request: RequestBuilder<WithBody>,
    ) -> RequestBuilder<WithBody> {
        for Header { name, value } in &self.headers {
            request = request.header(name, value);
        }
        request
    }

    /// Sends a request until it succeeds, fails permanently, or has used up its attempts. If the server requests a
    /// pause before the next attempt, `send` returns the pause with the error.
    pub(crate) fn with_retries(
        &self,
        mut send: impl FnMut() -> Result<(), (PushError, Option<Duration>)>,
    ) -> Result<(), PushError> {
        let mut pause = self.patience.pause;
        for _ in 1..self.patience.tries {
            let (error, asked) = match send() {
                Ok(()) => return Ok(()),
                Err((error, _)) if !error.is_retryable() => return Err(error),
                Err(failed) => failed,
            };
            // The server cannot be reached, and another attempt a moment later would fail in the same way.
            if matches!(error, PushError::Unreachable { .. }) {
                return Err(error);
            }
            thread::sleep(asked.unwrap_or(pause).min(LONGEST_PAUSE));
            pause = pause.saturating_mul(2);
        }
        send().map_err(|(error, _)| error)
    }
}

/// Converts an error of the HTTP client.
pub(crate) fn failure(error: Error, url: &str, within: Duration) -> PushError {
    let url = url.to_owned();
    let unreachable = |why: &str| PushError::Unreachable {
        url: url.clone(),
        why: why.to_owned(),
    };
    match error {
        Error::Timeout(_) => PushError::Timeout { url, within },
        Error::HostNotFound => unreachable("the host name is unknown"),
        Error::ConnectionFailed => unreachable("no connection"),
        Error::ConnectProxyFailed(why) => unreachable(&format!(
            "the proxy refused the connection: {}",
            sanitized_excerpt(&why)
        )),
        Error::InvalidProxyUrl => unreachable(
            "HTTPS_PROXY, HTTP_PROXY or ALL_PROXY does not contain the address of a proxy",
        ),
        Error::Tls(why) => PushError::Tls {
            url,
            why: why.to_owned(),
            fault: TlsFault::Other,
        },
        Error::Rustls(why) => untrusted(url, &why),
        Error::Io(error) => match error.get_ref().and_then(|e| e.downcast_ref()) {
            Some::<&rustls::Error>(why) => untrusted(url, why),
            None => unreachable(&system_message(&error)),
        },
        Error::Protocol(_) | Error::LargeResponseHeader(..) | Error::Http(_) => {
            PushError::Foreign {
                url,
                why: sanitized_excerpt(&error.to_string()),
            }
        }
        other => unreachable(&sanitized_excerpt(&other.to_string())),
    }
}

/// Converts an error of the TLS layer.
fn untrusted(url: String, why: &rustls::Error) -> PushError {
    PushError::Tls {
        url,
        why: sanitized_excerpt(&why.to_string()),
        fault: TlsFault::from_error(why),
    }
}

/// Returns the CA certificates in a file. Without a file, returns the certificates that this machine trusts, including
/// those that a company has added.
fn roots(url: &str, file: Option<&Path>) -> Result<Vec<Certificate<'static>>, PushError> {
    let found = match file {
        Some(_) => rustls_native_certs::load_certs_from_paths(file, None),
        None => rustls_native_certs::load_native_certs(),
    };
    let roots = found.certs.iter();
    let roots: Vec<_> = roots
        .map(|root| Certificate::from_der(root).to_owned())
        .collect();
    if !roots.is_empty() {
        return Ok(roots);
    }
    let why = found
        .errors
        .first()
        .map(|why| sanitized_excerpt(&why.to_string()));
    if let Some(file) = file {
        return Err(PushError::Authorities {
            file: file.to_owned(),
            why: why.unwrap_or_else(|| "the file contains no certificate".to_owned()),
        });
    }
    let why = why.map_or(String::new(), |why| format!(" ({why})"));
    Err(PushError::Tls {
        url: url.to_owned(),
        why: format!("this machine has no CA certificates{why}"),
        fault: TlsFault::NoAuthorities,
    })
}

/// Splits a URL into the part before the interface's path, and the interface.
fn address(url: &str) -> Result<(String, Interface), &'static str> {
    const FORM: &str = "the address must have the form http://localhost:4040";
    let uri: Uri = url.parse().map_err(|_| FORM)?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err(FORM);
    }
    let authority = uri.authority().ok_or(FORM)?;
    let host = authority.host();
    let port = authority.as_str().rsplit_once(host).map_or("", |p| p.1);
    if host.is_empty() || (!port.is_empty() && authority.port_u16().is_none()) {
        return Err(FORM);
    }
    if authority.as_str().contains('@') {
        return Err(
            "do not put credentials into the address, where every user of this machine can read them; set HEAPDIFF_PUSH_TOKEN",
        );
    }
    if uri.query().is_some() || url.contains('#') {
        return Err("the address must not contain ? or #");
    }
    let url = url.trim_end_matches('/');
    let ends = [(PUSH, Interface::Push), (INGEST, Interface::Ingest)];
    let named = ends
        .into_iter()
        .find_map(|(path, interface)| Some((url.strip_suffix(path)?, interface)));
    let (base, interface) = named.unwrap_or((url, Interface::Unknown));
    Ok((base.trim_end_matches('/').to_owned(), interface))
}

/// Returns a URL for messages, without credentials.
pub(crate) fn without_user(url: &str) -> String {
    let (scheme, rest) = match url.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), url),
    };
    let end = rest.find('/').unwrap_or(rest.len());
    match rest[..end].rfind('@') {
        Some(at) => format!("{scheme}...@{}", sanitized_excerpt(&rest[at + 1..])),
        None => sanitized_excerpt(url),
    }
}

/// Returns true if the host of the URL is this machine. In this case no proxy is used, and nobody can listen in.
fn is_this_machine(base: &str) -> bool {
    let uri: Option<Uri> = base.parse().ok();
    let host = uri.as_ref().and_then(Uri::host).unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let is_loopback = |ip: std::net::IpAddr| ip.is_loopback();
    host == "localhost" || bare.parse().is_ok_and(is_loopback)
}

/// Converts a server's response to a `Result`. Returns an error unless the response says that the server accepted the
/// profile.
fn check_response(response: &mut Response<Body>, url: String) -> Result<(), PushError> {
    let status = response.status();
    let text = |name| {
        let value = response.headers().get(name);
        value
            .and_then(|v: &ureq::http::HeaderValue| v.to_str().ok())
            .map(str::to_owned)
    };
    if status.is_redirection() {
        let to = text(header::LOCATION).unwrap_or_default();
        return Err(PushError::Redirect {
            url,
            to: sanitized_excerpt(&to),
        });
    }
    let is_page = text(header::CONTENT_TYPE).is_some_and(|t| t.starts_with("text/html"));
    if let Some(refused) = refusal(response, &url) {
        return Err(refused);
    }
    let read = read_body(response).map(drop);
    if is_page {
        return Err(PushError::Foreign {
            url,
            why: "a web page".to_owned(),
        });
    }
    match read {
        Ok(()) => Ok(()),
        Err(error) => Err(PushError::Foreign {
            url,
            why: system_message(&error),
        }),
    }
}

/// Returns the error of a response whose status says that the server did not accept the request.
pub(crate) fn refusal(response: &mut Response<Body>, url: &str) -> Option<PushError> {
    let status = response.status();
    if status.is_success() {
        return None;
    }
    // The status has the same meaning even if only a part of the body was read.
    let body = read_body(response).unwrap_or_default();
    Some(PushError::Refused {
        url: url.to_owned(),
        status: status.as_u16(),
        said: reason(&body, status),
    })
}

fn read_body(response: &mut Response<Body>) -> std::io::Result<Vec<u8>> {
    let mut body = Vec::new();
    let reader = response.body_mut().as_reader();
    reader.take(MOST_READ).read_to_end(&mut body)?;
    Ok(body)
}

/// Returns the error message in an answer: the message of a Connect error if the body is one, otherwise the text of the
/// body.
fn reason(body: &[u8], status: StatusCode) -> String {
    #[derive(serde::Deserialize)]
    struct Reason {
        #[serde(alias = "error")]
        message: String,
    }
    let text = match serde_json::from_slice(body) {
        Ok(Reason { message }) => message,
        Err(_) => String::from_utf8_lossy(body).into_owned(),
    };
    let is_page = text.trim_start().starts_with('<');
    match text.trim() {
        "" => status.canonical_reason().unwrap_or_default().to_owned(),
        _ if is_page => status.canonical_reason().unwrap_or_default().to_owned(),
        text => sanitized_excerpt(text),
    }
}

/// Returns the first part of an untrusted text, on one line and without control characters.
pub(crate) fn sanitized_excerpt(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut shown: String = text.chars().take(MOST_SAID).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    let plain = shown.chars().map(|c| if c.is_control() { '?' } else { c });
    plain.collect()
}

/// Returns the message of a system error without Rust's "(os error 2)".
pub(crate) fn system_message(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error ") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}

/// Returns the pause that the server requests.
pub(crate) fn retry_after(response: &Response<Body>) -> Option<Duration> {
    let value = response.headers().get(header::RETRY_AFTER)?;
    let seconds: u64 = value.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests;
