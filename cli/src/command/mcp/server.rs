//! The MCP server. One thread reads and answers messages, a second thread runs jobs, and the main thread waits for the
//! end.

use std::collections::HashMap;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::answer::{self, Answer};
use super::lines::{INVALID_REQUEST, Message, read, refusal};
use super::protocol::{Asked, Call, Refused, completed, parse_request};
use crate::failure::{Failure, Result};
use crate::index;
use crate::job::{Job, Setup};
use crate::watch::{Followed, Step, Watch};

/// Time that the server may take to end after a pipe is closed: for the last job, and for writing its index.
const GRACE: Duration = Duration::from_secs(2);
/// Maximum number of tool calls that wait or run. Further calls are refused.
const CALLS: usize = 256;

/// The reason why the server stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The client closed a pipe, and no job is running.
    Idle,
    /// The client closed a pipe while a job is still running.
    Busy,
    /// The first message does not belong to this protocol.
    OtherProtocol,
}

/// State that the threads of the MCP server share.
#[derive(Debug)]
pub(super) struct Server {
    setup: Setup,
    state: Mutex<State>,
    /// Notified when `state` changes.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The time at which a pipe was closed.
    closed: Option<Instant>,
    /// True if nobody reads the answers.
    is_output_closed: bool,
    is_other_protocol: bool,
    /// True while a job runs or its index is written.
    is_working: bool,
    /// Tool calls that are not answered yet. The key is the JSON of the call's id.
    calls: HashMap<String, Arc<Watch>>,
}

/// A tool call in the queue.
struct Waiting {
    id: Value,
    job: Job,
    is_stateless: bool,
    watch: Arc<Watch>,
}

impl State {
    fn is_busy(&self) -> bool {
        self.is_working || !self.calls.is_empty()
    }
}

impl Server {
    /// Serves one client until a pipe is closed. After that, it returns within [`GRACE`].
    pub(super) fn run(setup: Setup) -> Stop {
        let server = Arc::new(Self {
            setup,
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let (calls, waiting) = channel();
        let worker = Arc::clone(&server);
        thread::spawn(move || worker.work(&waiting));
        let reader = Arc::clone(&server);
        thread::spawn(move || {
            // A read error or a panic is treated like the end of the input.
            let _ = catch_unwind(AssertUnwindSafe(|| reader.listen(&calls)));
            reader.close(false);
        });
        server.stopped()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self, is_output: bool) {
        let mut state = self.state();
        state.closed.get_or_insert_with(Instant::now);
        state.is_output_closed |= is_output;
        drop(state);
        self.changed.notify_all();
    }

    /// Waits until a pipe is closed. Then waits until all calls are done, but not longer than [`GRACE`] after the pipe
    /// was closed.
    fn stopped(&self) -> Stop {
        let wait = self
            .changed
            .wait_while(self.state(), |state| state.closed.is_none());
        let state = wait.unwrap_or_else(PoisonError::into_inner);
        if state.is_other_protocol {
            return Stop::OtherProtocol;
        }
        let since = state.closed.map_or(GRACE, |closed| closed.elapsed());
        let left = GRACE.saturating_sub(since);
        let is_busy = |state: &mut State| state.is_busy();
        let wait = self.changed.wait_timeout_while(state, left, is_busy);
        let (state, _) = wait.unwrap_or_else(PoisonError::into_inner);
        if state.is_busy() {
            Stop::Busy
        } else {
            Stop::Idle
        }
    }

    /// Reads and answers messages until a pipe is closed.
    fn listen(self: &Arc<Self>, calls: &Sender<Waiting>) -> io::Result<()> {
        let mut input = io::stdin().lock();
        let mut has_begun = false;
        while let Some(message) = read(&mut input)? {
            match message {
                Ok(Message::Request { id, method, params }) => {
                    has_begun = true;
                    match parse_request(&method, params) {
                        Ok(Asked::Answer(result)) => self.send(&result_response(&id, &result)),
                        Ok(Asked::Call(call)) => self.enqueue(id, call, calls),
                        Err(refused) => self.send(&refused.answer(&id)),
                    }
                }
                Ok(Message::Notification { method, params }) => {
                    if !has_begun {
                        self.state().is_other_protocol = true;
                        return Ok(());
                    }
                    if method == "notifications/cancelled" {
                        self.cancel(params.get("requestId"));
                    }
                }
                Err(refusal) => self.send(&refusal),
            }
            if self.state().is_output_closed {
                break;
            }
        }
        Ok(())
    }

    /// Queues a call for the thread that runs jobs. A call is refused at once if its arguments are wrong, if [`CALLS`]
    /// calls are not answered yet, or if its id is in use.
    fn enqueue(self: &Arc<Self>, id: Value, call: Call, calls: &Sender<Waiting>) {
        let is_stateless = call.is_stateless;
        let job = match call.tool.job(&self.setup, call.arguments) {
            Ok(job) => job,
            Err(failure) => {
                let result = completed(result(Err(failure)), is_stateless);
                return self.send(&result_response(&id, &result));
            }
        };
        let key = id.to_string();
        let watch = match &call.progress {
            Some(token) => {
                let (server, token) = (Arc::clone(self), token.clone());
                Watch::new(move |step| server.send(&progress(&token, &step)))
            }
            None => Watch::new(drop),
        };
        let mut state = self.state();
        let refused = if state.calls.len() >= CALLS {
            Some(format!("{CALLS} calls are waiting"))
        } else if state.calls.contains_key(&key) {
            Some(format!("a request with the id {key} is still running"))
        } else {
            None
        };
        if let Some(refused) = refused {
            drop(state);
            return self.send(&refusal(&id, INVALID_REQUEST, &refused));
        }
        state.calls.insert(key, Arc::clone(&watch));
        drop(state);
        // Sending cannot fail: the worker catches panics, so it lives as long as the process.
        let _ = calls.send(Waiting {
            id,
            job,
            is_stateless,
            watch,
        });
    }

    fn cancel(&self, id: Option<&Value>) {
        let id = id.map(Value::to_string);
        if let Some(watch) = id.and_then(|id| self.state().calls.get(&id).cloned()) {
            watch.cancel();
        }
    }

    /// Runs the jobs one after the other, because two jobs at once would need the memory of both.
    fn work(&self, waiting: &Receiver<Waiting>) {
        for call in waiting {
            self.state().is_working = true;
            self.serve(&call);
            let mut state = self.state();
            // A cancelled call has no answer.
            state.calls.remove(&call.id.to_string());
            state.is_working = false;
            drop(state);
            self.changed.notify_all();
        }
    }

    fn serve(&self, call: &Waiting) {
        if call.watch.is_cancelled() || self.state().is_output_closed {
            return;
        }
        let followed = Followed::by(Arc::clone(&call.watch));
        let done = catch_unwind(AssertUnwindSafe(|| answer::of(&call.job)));
        drop(followed);
        let done = done.unwrap_or_else(|_| {
            let message = "the analysis failed; see the standard error of the server";
            Err(Failure::usage(message))
        });
        if call.watch.is_cancelled() {
            return index::drop_pending();
        }
        // After the answer, the client may use the id again.
        self.state().calls.remove(&call.id.to_string());
        let result = completed(result(done), call.is_stateless);
        self.send(&result_response(&call.id, &result));
        // Write the index after the answer, as other commands do, so that the next question is answered faster.
        if catch_unwind(index::write_pending).is_err() {
            index::drop_pending();
        }
    }

    /// Writes a line. If writing fails, nobody reads the output, so the server stops.
    fn send(&self, message: &Value) {
        let mut output = io::stdout().lock();
        let sent = writeln!(output, "{message}").and_then(|()| output.flush());
        drop(output);
        if sent.is_err() {
            self.close(true);
        }
    }
}

impl Refused {
    fn answer(self, id: &Value) -> Value {
        let mut answer = refusal(id, self.code, &self.message);
        if let Some(data) = self.data {
            answer["error"]["data"] = data;
        }
        answer
    }
}

fn result_response(id: &Value, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

/// Returns a notification of a job's progress.
fn progress(token: &Value, step: &Step) -> Value {
    json!({
        "jsonrpc": "2.0",
        "method": "notifications/progress",
        "params": { "progressToken": token, "progress": step.done, "message": step.told },
    })
}

/// Returns the result of a call: the report, or the message of the failure.
fn result(done: Result<Answer>) -> Value {
    let text = |text: &str| json!([{ "type": "text", "text": text }]);
    match done {
        Ok(Answer { text: shown, data }) => {
            json!({ "content": text(&shown), "structuredContent": data, "isError": false })
        }
        Err(failure) => json!({ "content": text(&answer::refusal(&failure)), "isError": true }),
    }
}
