//! The server: listens on the loopback address and uses one thread for each connection, up to a limit.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use heapdiff_sites::Originals;

use crate::api;
use crate::events;
use crate::guard::{Guard, Token};
use crate::http::{self, Answer, Refused, Request, Status};
use crate::metrics::metrics;
use crate::page::{self, Page};
use crate::slots::{Slot, Slots};
use crate::traces::Traces;

/// Maximum number of open connections. A browser opens at most six connections to one server.
const MOST_CONNECTIONS: usize = 64;
/// Maximum number of connections for server-sent events. The limit leaves the other connections free for requests.
const MOST_LISTENERS: usize = 40;
/// The stack size of a connection's thread in bytes. It is that of a main thread, because the thread may create a page
/// of a dump. The system provides only the memory that the thread uses.
const STACK: usize = 8 << 20;

/// The content to show.
#[derive(Clone, Debug)]
pub enum Subject {
    /// One page that shows traces. JVMs may still be writing to them.
    Traces {
        /// The files of the traces.
        files: Vec<PathBuf>,
        /// A mapping that restores the original names of classes and methods that a shrinker renamed.
        names: Option<Arc<dyn Originals>>,
    },
    /// A finished page, such as a report.
    Page(Vec<u8>),
    /// Pages that are created when they are requested.
    Pages(Arc<dyn Pages>),
}

/// A source of pages without scripts.
pub trait Pages: Send + Sync + std::fmt::Debug {
    /// Returns the page for a path, such as `/object`, and its query. Returns `None` if there is no such page.
    fn page(&self, path: &str, query: &str) -> Option<Vec<u8>>;

    /// Returns the text of the `style` element of all pages.
    fn style(&self) -> &'static str;
}

/// The reason why the server could not start.
#[derive(Debug, thiserror::Error)]
pub enum UiError {
    /// One of the traces cannot be read.
    #[error(transparent)]
    Trace(#[from] heapdiff_trace::TraceError),
    /// The port cannot be used. Another program may use it.
    #[error("cannot listen on 127.0.0.1:{port}: {source}")]
    Listen {
        /// The requested port, or 0 for any.
        port: u16,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The operating system returned no random bytes for the token.
    #[error("the system returned no random bytes for the token of the URL: {0}")]
    Random(getrandom::Error),
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

/// The state that the server's threads share.
struct Shared {
    guard: Guard,
    shown: Shown,
    events: events::Events,
    /// True if the server must end.
    ends: AtomicBool,
    connections: Arc<Slots>,
    listeners: Arc<AtomicUsize>,
}

enum Shown {
    Traces { page: Page, traces: Traces },
    Page(Page),
    Pages(Arc<dyn Pages>),
}

/// A running server. Dropping it ends the server.
pub struct Server {
    shared: Arc<Shared>,
    address: SocketAddr,
    threads: Vec<JoinHandle<()>>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("address", &self.address)
            .finish()
    }
}

impl Server {
    /// Starts a server on 127.0.0.1. If `port` is 0, the system chooses a free port.
    ///
    /// # Errors
    /// Returns an error if one of the traces cannot be read, if the port is taken, or if the system provides no random
    /// bytes or no thread.
    pub fn start(subject: Subject, port: u16) -> Result<Self, UiError> {
        let shown = match subject {
            Subject::Traces { files, names } => Shown::Traces {
                page: page::live(),
                traces: Traces::open(files, &names)?,
            },
            Subject::Page(html) => Shown::Page(page::whole(html)),
            Subject::Pages(pages) => Shown::Pages(pages),
        };
        let listen = |source| UiError::Listen { port, source };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let guard = Guard {
            token: Token::new().map_err(UiError::Random)?,
            port: address.port(),
        };
        let shared = Arc::new(Shared {
            guard,
            shown,
            events: events::Events::default(),
            ends: AtomicBool::new(false),
            connections: Slots::new(MOST_CONNECTIONS),
            listeners: Arc::default(),
        });
        let mut server = Self {
            shared: Arc::clone(&shared),
            address,
            threads: Vec::new(),
        };
        let watched = Arc::clone(&shared);
        server.spawn("watch", move || {
            if let Shown::Traces { traces, .. } = &watched.shown {
                events::watch(traces, &watched.events, &watched.ends);
            }
        })?;
        server.spawn("accept", move || accept(&listener, &shared))?;
        Ok(server)
    }

    fn spawn(&mut self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), UiError> {
        let thread = std::thread::Builder::new().name(format!("ui {name}"));
        self.threads
            .push(thread.spawn(work).map_err(UiError::Thread)?);
        Ok(())
    }

    /// Returns the URL of the page, including its token.
    #[must_use]
    pub fn url(&self) -> String {
        format!(
            "http://{}/{}/",
            self.address,
            self.shared.guard.token.text()
        )
    }

    /// Serves until the process ends.
    pub fn wait(mut self) {
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::Relaxed);
        self.shared.events.wake();
        // Connects to the server itself, to wake the accepting thread.
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// A permit for one listener (connection for server-sent events). At most [`MOST_LISTENERS`] permits exist at a time.
/// Dropping this value returns the permit.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn acquire(taken: &Arc<AtomicUsize>, most: usize) -> Option<Self> {
        let more = |n| (n < most).then_some(n + 1);
        let got = taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
        got.is_ok().then(|| Self(Arc::clone(taken)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for number in 0.. {
        let accepted = listener.accept();
        if shared.ends.load(Ordering::Relaxed) {
            return;
        }
        let Ok((mut stream, peer)) = accepted else {
            // The process may have no file descriptors left. Wait until other connections end and free some.
            std::thread::sleep(Duration::from_millis(50));
            continue;
        };
        if !peer.ip().is_loopback() {
            continue;
        }
        let Some(slot) = shared.connections.take(&stream, number) else {
            // Writing a few bytes to a new connection never blocks.
            let _ = stream.set_write_timeout(Some(Duration::from_millis(100)));
            let head = http::head(Status::Busy, "text/plain", http::NO_POLICY, "");
            let _ = io::Write::write_all(&mut stream, head.as_bytes());
            continue;
        };
        let shared = Arc::clone(shared);
        let thread = std::thread::Builder::new().name("ui answer".to_owned());
        let _ = thread.stack_size(STACK).spawn(move || {
            serve(&mut stream, &slot, &shared);
        });
    }
}

fn serve(stream: &mut TcpStream, slot: &Slot, shared: &Shared) {
    let waits = || slot.waits();
    let _ = stream.set_nodelay(true);
    let request = match http::read(stream) {
        Ok(request) => request,
        Err(Refused::Gone) => return,
        Err(Refused::With(status)) => {
            let _ = Answer::plain(status, "not a valid HTTP request").send(stream, false, waits);
            return;
        }
    };
    slot.mark_waiting();
    let only_head = request.method == "HEAD";
    let answer = match shared.guard.authorize(&request) {
        Err((status, said)) => Answer::plain(status, said),
        Ok("/events") if !only_head => match Place::acquire(&shared.listeners, MOST_LISTENERS) {
            Some(_place) => return events::send_events(stream, &shared.events, &shared.ends),
            None => Answer::plain(Status::Busy, "too many browser pages are open"),
        },
        Ok(path) => answer(path, &request, shared),
    };
    // The client may be gone already. This is not an error.
    let _ = answer.send(stream, only_head, waits);
}

fn answer(path: &str, request: &Request, shared: &Shared) -> Answer {
    let (_, query) = request.parts();
    match (path, &shared.shown) {
        ("/", Shown::Traces { page, .. } | Shown::Page(page)) => page.answer(),
        (path, Shown::Pages(pages)) => match pages.page(path, query) {
            Some(html) => page::without_scripts(html, pages.style()).answer(),
            None => not_found(),
        },
        ("/metrics", Shown::Traces { traces, .. }) => Answer::metrics(metrics(traces)),
        (path, Shown::Traces { traces, .. }) => match path.strip_prefix("/api/") {
            Some(question) => api::answer(question, query, traces),
            None => not_found(),
        },
        _ => not_found(),
    }
}

fn not_found() -> Answer {
    Answer::plain(Status::NotFound, "page not found")
}
