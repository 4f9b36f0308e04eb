//! A local HTTP server that returns prepared answers and records the requests.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// Time limit for every operation. A test that needs more time fails.
const LONGEST: Duration = Duration::from_secs(30);
/// Maximum size of a request in bytes.
const MOST: u64 = 64 << 20;

/// The server's behaviour for one request.
#[derive(Clone, Debug)]
pub enum Answer {
    /// An answer with a status, headers (`Name: value`) and a body.
    Says(u16, Vec<String>, Vec<u8>),
    /// An answer that consists of these raw bytes. The server then closes the connection.
    Raw(Vec<u8>),
    /// No answer. The server waits until the client closes the connection.
    Silence,
}

impl Answer {
    /// Returns an answer with this status, and a body of this type.
    #[must_use]
    pub fn says(status: u16, content_type: &str, body: &str) -> Self {
        let header = format!("Content-Type: {content_type}");
        Self::Says(status, vec![header], body.as_bytes().to_vec())
    }
}

/// A request as it was received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// The method, such as `POST`.
    pub method: String,
    /// The path and query of the URL.
    pub target: String,
    /// Headers, with their names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Received {
    /// Returns the value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(n, _)| n == name);
        found.map(|(_, value)| &**value)
    }
}

/// A running server. The server ends after its last answer, or when [`received`](Self::received) is called.
#[derive(Debug)]
pub struct StubServer {
    address: SocketAddr,
    ends: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Received>>,
}

impl StubServer {
    /// Listens on a free port of the loopback address. Each connection gets the next answer.
    ///
    /// # Panics
    /// Panics if the server cannot listen.
    #[must_use]
    pub fn start(script: Vec<Answer>) -> Self {
        Self::with(script, None)
    }

    /// Starts a server as [`start`](Self::start) does, but with TLS
    /// ([`Authority::server`](crate::authority::Authority::server)).
    ///
    /// # Panics
    /// Panics as [`start`](Self::start) does.
    #[must_use]
    pub fn encrypted(script: Vec<Answer>, config: Arc<ServerConfig>) -> Self {
        Self::with(script, Some(config))
    }

    fn with(script: Vec<Answer>, config: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        listener.set_nonblocking(true).expect("a listener");
        let address = listener.local_addr().expect("an address");
        let ends = Arc::new(AtomicBool::new(false));
        let thread = spawn({
            let ends = Arc::clone(&ends);
            move || serve(&listener, script, (config, &ends))
        });
        Self {
            address,
            ends,
            thread,
        }
    }

    /// Returns the port of the server.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns the URL of the server, such as `http://127.0.0.1:4711`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Ends the server and returns the requests.
    ///
    /// # Panics
    /// Panics if a request was invalid.
    #[must_use]
    pub fn received(self) -> Vec<Received> {
        self.ends.store(true, Ordering::Relaxed);
        self.thread.join().expect("the server's thread")
    }
}

fn serve(
    listener: &TcpListener,
    script: Vec<Answer>,
    (config, ends): (Option<Arc<ServerConfig>>, &AtomicBool),
) -> Vec<Received> {
    let begun = Instant::now();
    let mut received = Vec::new();
    for answer in script {
        let stream = loop {
            match listener.accept() {
                Ok((stream, _)) => break stream,
                Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                Err(e) => panic!("cannot accept: {e}"),
            }
            if ends.load(Ordering::Relaxed) || begun.elapsed() > LONGEST {
                return received;
            }
            sleep(Duration::from_millis(2));
        };
        stream.set_nonblocking(false).expect("a stream");
        stream.set_read_timeout(Some(LONGEST)).expect("a stream");
        received.push(match &config {
            None => one(stream, answer),
            Some(config) => {
                let connection = ServerConnection::new(Arc::clone(config));
                one(
                    StreamOwned::new(connection.expect("a connection"), stream),
                    answer,
                )
            }
        });
    }
    received
}

/// Reads one request and sends the answer. Returns the request.
fn one(stream: impl Read + Write, answer: Answer) -> Received {
    let mut reader = BufReader::new(stream);
    let request = request(&mut reader);
    let mut out = reader.into_inner();
    // Ignore errors, because the client may have closed the connection.
    let _ = match answer {
        Answer::Silence => out.read(&mut [0]).map(drop),
        Answer::Raw(bytes) => out.write_all(&bytes),
        Answer::Says(status, headers, body) => {
            let mut head = format!("HTTP/1.1 {status} Said\r\nConnection: close\r\n");
            for header in headers {
                head.push_str(&header);
                head.push_str("\r\n");
            }
            head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
            out.write_all(head.as_bytes())
                .and_then(|()| out.write_all(&body))
        }
    };
    let _ = out.flush();
    request
}

/// Reads a request. Returns an empty request if the client sends something else, such as a TLS handshake. Also returns
/// an empty request if the client rejected the certificate and sends nothing.
fn request(reader: &mut impl BufRead) -> Received {
    let first = reader.fill_buf().ok().and_then(|bytes| bytes.first());
    if !first.is_some_and(|byte| byte.is_ascii_uppercase()) {
        return Received::default();
    }
    let mut line = || {
        let mut line = String::new();
        reader
            .read_line(&mut line)
            .expect("a request has a complete line");
        line.trim_end().to_owned()
    };
    let first = line();
    let mut words = first.split(' ').map(str::to_owned);
    let mut request = Received {
        method: words.next().unwrap_or_default(),
        target: words.next().unwrap_or_default(),
        ..Received::default()
    };
    loop {
        let header = line();
        if header.is_empty() {
            break;
        }
        let (name, value) = header.split_once(':').expect("a header");
        request
            .headers
            .push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = request.header("content-length").map(str::parse);
    let length: u64 = length.map_or(0, |length| length.expect("a length"));
    assert!(length <= MOST, "{length} bytes");
    let mut body = reader.take(length);
    body.read_to_end(&mut request.body).expect("a body");
    request
}
