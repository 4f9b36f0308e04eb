//! An assistant that talks to a server process through pipes, and records all messages.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Time limit for an answer on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    stderr: thread::JoinHandle<String>,
    last_id: u64,
    /// All lines that the client sent and received.
    pub(crate) log: Vec<Line>,
}

pub(crate) enum Line {
    Sent(String),
    Received(String),
}

/// The state and output of a server after its end.
pub(crate) struct End {
    pub(crate) status: ExitStatus,
    /// Output lines that the client had not read before the server ended.
    pub(crate) unread: Vec<String>,
    pub(crate) stderr: String,
    pub(crate) took: Duration,
}

impl End {
    /// Checks that the server succeeded and printed nothing more.
    pub(super) fn assert_quiet(&self) {
        assert!(
            self.status.success() && self.unread.is_empty(),
            "{:?}",
            self.unread
        );
        assert_eq!(self.stderr, "");
    }
}

impl Client {
    /// Starts a server without sending anything.
    pub(crate) fn start(folder: &Path, args: &[&str]) -> Self {
        let mut command = crate::support::heapdiff(folder, &[&["mcp"], args].concat());
        command
            .env("XDG_CACHE_HOME", folder.join("cache"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("a server");
        let stdout = BufReader::new(child.stdout.take().expect("its output"));
        let (send, lines) = channel();
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    break;
                }
            }
        });
        let mut errors = child.stderr.take().expect("its errors");
        let stderr = thread::spawn(move || {
            let mut text = String::new();
            let _ = errors.read_to_string(&mut text);
            text
        });
        Self {
            stdin: child.stdin.take(),
            child,
            lines,
            stderr,
            last_id: 0,
            log: Vec::new(),
        }
    }

    /// Starts a server and initializes it.
    pub(crate) fn begin(folder: &Path, args: &[&str]) -> Self {
        let mut client = Self::start(folder, args);
        client.initialize();
        client
    }

    /// Sends the messages that initialize a session.
    pub(crate) fn initialize(&mut self) {
        let client_info = json!({ "name": "test", "version": "1" });
        let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client_info });
        let answer = self.ask("initialize", params);
        assert_eq!(answer["result"]["serverInfo"]["name"], "heapdiff");
        self.notify("notifications/initialized", json!({}));
    }

    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn send_line(&mut self, line: &[u8]) {
        let pipe = self.stdin.as_mut().expect("an open pipe");
        pipe.write_all(line).expect("a server that reads");
        pipe.write_all(b"\n").expect("a server that reads");
        pipe.flush().expect("a server that reads");
    }

    fn send(&mut self, message: &Value) {
        let line = message.to_string();
        self.send_line(line.as_bytes());
        self.log.push(Line::Sent(line));
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Sends a request without waiting for the answer, and returns its ID.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// Returns the next message.
    pub(crate) fn receive(&mut self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE).expect("an answer");
        let message = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"));
        self.log.push(Line::Received(line));
        message
    }

    /// Sends a request and returns the answer.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        let answer = self.receive();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Calls a tool and returns its result.
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let params = json!({ "name": tool, "arguments": arguments });
        let answer = self.ask("tools/call", params);
        assert!(answer["result"].is_object(), "{tool}: {answer}");
        answer["result"].clone()
    }

    /// Calls a tool that must succeed, and returns its data.
    pub(crate) fn data(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], false, "{tool}: {result}");
        result["structuredContent"].clone()
    }

    /// Calls a tool that must fail, and returns the reason.
    pub(crate) fn refusal(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{tool}: {result}");
        assert!(result["structuredContent"].is_null());
        text(&result).to_owned()
    }

    /// Closes standard input and waits until the server ends.
    pub(crate) fn close(mut self) -> End {
        drop(self.stdin.take());
        self.end()
    }

    /// Waits until the server ends.
    pub(crate) fn end(mut self) -> End {
        let begin = Instant::now();
        let status = loop {
            match self.child.try_wait().expect("a state") {
                Some(status) => break status,
                None if begin.elapsed() > PATIENCE => {
                    let _ = self.child.kill();
                    panic!("the server does not end");
                }
                None => thread::sleep(Duration::from_millis(5)),
            }
        };
        End {
            status,
            took: begin.elapsed(),
            unread: self.lines.iter().collect(),
            stderr: self.stderr.join().expect("text"),
        }
    }
}

/// Returns the text of a tool's answer.
pub(crate) fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().expect("a text")
}
