//! Sends profiles to a server, and interprets the answers.

use std::path::Path;
use std::time::Duration;

use ureq::Body;
use ureq::http::{Response, Uri, header};

use crate::client::{
    Client, Patience, failure, is_this_machine, read_body, refusal, retry_after, sanitized_excerpt,
    system_message, without_user,
};
use crate::error::PushError;
use crate::headers::Header;
use crate::requests::{INGEST, PUSH, Request, Series, ingest, push};

/// The interface by which a server accepts profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Interface {
    /// The interface of the server is not known yet, so both interfaces are tried.
    Unknown,
    Push,
    Ingest,
}

/// A server, or a path on it, that accepts profiles.
#[derive(Debug)]
pub struct Endpoint {
    client: Client,
    /// The server's URL, without the path of the interface.
    base: String,
    interface: Interface,
}

impl Endpoint {
    /// Creates an endpoint from the URL of a server, such as `https://profiles.example.com`. The URL may have a path.
    /// If the URL ends with the path of an interface, only this interface is used. `authorities` is a PEM file with
    /// trusted CA certificates. They replace the CA certificates that this machine trusts.
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

    /// Returns true if no other machine can read the data: the connection is encrypted, or it does not leave this
    /// machine.
    #[must_use]
    pub fn is_private(&self) -> bool {
        self.base.starts_with("https:") || is_this_machine(&self.base)
    }

    /// Sends a profile. Retries after temporary failures.
    ///
    /// # Errors
    /// Returns the error of the last attempt. If the server supports neither interface, returns the error of
    /// Pyroscope's documented interface, which is tried first.
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
                // The server supports neither interface. Report the error of the documented interface, which is more
                // useful.
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

    /// Sends a request once. If the server requests a pause before the next attempt, this function returns the pause
    /// with the error.
    fn send_once(&self, request: &Request) -> Result<(), (PushError, Option<Duration>)> {
        let url = format!("{}{}", self.base, request.path);
        // Error messages omit the query of the URL, because heapdiff adds it and users cannot change it.
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

/// Splits a URL into the base URL of the server and the interface. If the URL ends with the path of an interface, that
/// path is not part of the base URL. Otherwise, the interface is unknown.
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

#[cfg(test)]
mod tests;
