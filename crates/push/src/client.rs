//! The HTTP client: sets up connections, retries a limited number of times, and converts errors.

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

/// Maximum number of bytes that are read of the body of an answer. Also the maximum size of the answer's headers.
const MOST_READ: u64 = 64 << 10;
/// Maximum number of characters that an error message quotes from an answer.
const MOST_SAID: usize = 300;
/// Maximum pause before a retry, even if the server requests a longer one.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
const CONNECT: Duration = Duration::from_secs(10);

/// Limits of time and retries for the requests to a server.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// The time limit of one request, from the DNS lookup to the end of the answer.
    pub answer: Duration,
    /// Maximum number of attempts, at least 1. Only temporary failures are retried.
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

/// An HTTP client for one server, with the headers and the time limits of its requests.
pub(crate) struct Client {
    pub(crate) agent: Agent,
    pub(crate) patience: Patience,
    headers: Vec<Header>,
}

impl std::fmt::Debug for Client {
    /// Formats none of the fields, because headers may be secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
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
    /// pause before the next attempt, `send` returns this pause with the error.
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
            // Do not retry: a server that cannot be reached now is unlikely to be reachable a moment later.
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

/// Returns the CA certificates in a file. Without a file, returns the CA certificates that this machine trusts,
/// including certificates that its administrator added.
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

/// Returns the URL without credentials, for messages.
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

/// Returns true if the host of the URL is this machine. In this case, no proxy is used, and no other machine can read
/// the data.
pub(crate) fn is_this_machine(base: &str) -> bool {
    let uri: Option<Uri> = base.parse().ok();
    let host = uri.as_ref().and_then(Uri::host).unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let is_loopback = |ip: std::net::IpAddr| ip.is_loopback();
    host == "localhost" || bare.parse().is_ok_and(is_loopback)
}

/// Returns an error if the status of the response shows that the server did not accept the request, otherwise `None`.
pub(crate) fn refusal(response: &mut Response<Body>, url: &str) -> Option<PushError> {
    let status = response.status();
    if status.is_success() {
        return None;
    }
    // Ignore an error while the body is read, because the status of the response is enough.
    let body = read_body(response).unwrap_or_default();
    Some(PushError::Refused {
        url: url.to_owned(),
        status: status.as_u16(),
        said: reason(&body, status),
    })
}

pub(crate) fn read_body(response: &mut Response<Body>) -> std::io::Result<Vec<u8>> {
    let mut body = Vec::new();
    let reader = response.body_mut().as_reader();
    reader.take(MOST_READ).read_to_end(&mut body)?;
    Ok(body)
}

/// Returns the error message in an answer. If the body is an error of the Connect protocol, returns the message of this
/// error. Otherwise returns the text of the body.
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

/// Returns the pause that the server requests before the next attempt.
pub(crate) fn retry_after(response: &Response<Body>) -> Option<Duration> {
    let value = response.headers().get(header::RETRY_AFTER)?;
    let seconds: u64 = value.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}
