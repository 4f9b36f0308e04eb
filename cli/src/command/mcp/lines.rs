//! Lines on standard input, each a message or refused here, and lines on standard output.
//!
//! The protocol's library leaves what is no request that it knows without an answer, or answers without the id: whoever
//! waits for that would wait for ever.

use std::future::Future;
use std::io;
use std::mem::take;
use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, ErrorCode, InitializeRequestParams, PaginatedRequestParams,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Stdin, Stdout, stdin, stdout};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

/// The most bytes of a message; a longer one is not read.
const LONGEST: usize = 2 << 20;

/// Standard input and output.
pub(super) struct Lines {
    input: BufReader<Stdin>,
    /// What was read of a line.
    line: Vec<u8>,
    /// Whether the line is too long, and what is read of it left.
    is_long: bool,
    output: Arc<Mutex<Stdout>>,
    /// A refusal that is being written. Nothing is read meanwhile, so that there is one at most.
    refusal: Option<JoinHandle<io::Result<()>>>,
}

impl Lines {
    pub(super) fn new() -> Self {
        Self {
            input: BufReader::new(stdin()),
            line: Vec::new(),
            is_long: false,
            output: Arc::new(Mutex::new(stdout())),
            refusal: None,
        }
    }

    /// Reads to the end of a line; false at the end of input. Who stops waiting and comes back loses nothing.
    async fn read(&mut self) -> io::Result<bool> {
        loop {
            let read = self.input.fill_buf().await?;
            if read.is_empty() {
                return Ok(false);
            }
            let end = read.iter().position(|&byte| byte == b'\n');
            let part = &read[..end.unwrap_or(read.len())];
            self.is_long |= self.line.len() + part.len() > LONGEST;
            if self.is_long {
                self.line.clear()
            } else {
                self.line.extend_from_slice(part)
            }
            let used = part.len() + usize::from(end.is_some());
            self.input.consume(used);
            if end.is_some() {
                return Ok(true);
            }
        }
    }

    /// What the line that was read says.
    fn heard(&mut self) -> Result<Option<Message>, Value> {
        let line = take(&mut self.line);
        if take(&mut self.is_long) {
            let message = format!("a message can have at most {LONGEST} bytes");
            Err(refusal(&Value::Null, ErrorCode::INVALID_REQUEST, &message))
        } else {
            heard(&line)
        }
    }
}

async fn write(output: Arc<Mutex<Stdout>>, mut line: Vec<u8>) -> io::Result<()> {
    line.push(b'\n');
    let mut output = output.lock().await;
    output.write_all(&line).await?;
    output.flush().await
}

impl Transport<RoleServer> for Lines {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let output = Arc::clone(&self.output);
        async move { write(output, serde_json::to_vec(&message)?).await }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if let Some(refusal) = &mut self.refusal {
                let written = refusal.await;
                self.refusal = None;
                written.ok()?.ok()?;
            }
            if !self.read().await.ok()? {
                return None;
            }
            match self.heard() {
                Ok(Some(message)) => return Some(message),
                Ok(None) => {}
                Err(refusal) => {
                    let output = Arc::clone(&self.output);
                    let line = refusal.to_string().into_bytes();
                    self.refusal = Some(tokio::spawn(write(output, line)));
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}

type Message = RxJsonRpcMessage<RoleServer>;

/// The message of a line, if it is one that is for the server; or what it is refused with.
fn heard(line: &[u8]) -> Result<Option<Message>, Value> {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    if line.trim_ascii().is_empty() {
        return Ok(None);
    }
    let refused = |code, message: &str| Err(refusal(&Value::Null, code, message));
    let mut message = match serde_json::from_slice(line) {
        Ok(Value::Object(message)) => message,
        Ok(_) => {
            let message = "a message must be one JSON object; batches are not supported";
            return refused(ErrorCode::INVALID_REQUEST, message);
        }
        Err(e) => return refused(ErrorCode::PARSE_ERROR, &format!("not JSON: {e}")),
    };
    let id = message.get("id").cloned();
    // Whatever it is, who sent it may know it again.
    let told = id.clone().filter(|id| id.is_string() || id.is_number());
    let told = told.unwrap_or_default();
    let refused = |code, message: &str| Err(refusal(&told, code, message));
    let method = match message.get("method") {
        Some(Value::String(method)) => method.clone(),
        // Answers have none.
        None if message.contains_key("result") || message.contains_key("error") => {
            return Ok(serde_json::from_value(message.into()).ok());
        }
        _ => {
            return refused(
                ErrorCode::INVALID_REQUEST,
                "`method` is missing or not a string",
            );
        }
    };
    let Some(id) = id else {
        // Notifications are not answered, right or wrong.
        return Ok(serde_json::from_value(message.into()).ok());
    };
    if !id.is_string() && !id.is_i64() {
        let message = "`id` is neither a string nor a signed 64-bit integer";
        return refused(ErrorCode::INVALID_REQUEST, message);
    }
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return refused(ErrorCode::INVALID_REQUEST, "`jsonrpc` is not \"2.0\"");
    }
    if message.get("params").is_some_and(Value::is_null) {
        message.remove("params");
    }
    if let Some(misfit) = misfit(&method, message.get("params")) {
        let message = format!("`params` of {method}: {misfit}");
        return refused(ErrorCode::INVALID_PARAMS, &message);
    }
    match serde_json::from_value(message.into()) {
        Ok(message) => Ok(Some(message)),
        Err(e) => refused(ErrorCode::INVALID_REQUEST, &format!("no request: {e}")),
    }
}

/// Why parameters are not those of a method. Other methods are the server's to refuse.
fn misfit(method: &str, params: Option<&Value>) -> Option<String> {
    let none = Value::Object(Map::new());
    let params = params.unwrap_or(&none);
    if !params.is_object() {
        return Some("not an object".to_owned());
    }
    let fits = match method {
        "initialize" => InitializeRequestParams::deserialize(params).map(drop),
        "tools/call" => CallToolRequestParams::deserialize(params).map(drop),
        "tools/list" => PaginatedRequestParams::deserialize(params).map(drop),
        _ => Ok(()),
    };
    fits.err().map(|e| e.to_string())
}

fn refusal(id: &Value, code: ErrorCode, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code.0, "message": message } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_request_is_refused_with_its_id() {
        let initialize = r#"{"jsonrpc":"2.0","id":3,"method":"initialize","params":{}}"#;
        let call = |id: &str, params: &str| {
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call"{params}}}"#)
        };
        for (line, id, code) in [
            ("garbage", json!(null), -32700),
            (r#"{"id":7,"method":"#, json!(null), -32700),
            ("123", json!(null), -32600),
            ("null", json!(null), -32600),
            ("{}", json!(null), -32600),
            (
                r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
                json!(null),
                -32600,
            ),
            (r#"{"id":"a","method":"ping"}"#, json!("a"), -32600),
            (r#"{"id":[],"method":1}"#, json!(null), -32600),
            (&call("18446744073709551615", ""), json!(u64::MAX), -32600),
            (&call("1.5", ""), json!(1.5), -32600),
            (&call("null", ""), json!(null), -32600),
            (&call("8", r#","params":[]"#), json!(8), -32602),
            (&call("9", ""), json!(9), -32602),
            (&call("\"b\"", r#","params":null"#), json!("b"), -32602),
            (&call("77", r#","params":{"name":5}"#), json!(77), -32602),
            (
                &call("78", r#","params":{"name":"summary","arguments":[1]}"#),
                json!(78),
                -32602,
            ),
            (initialize, json!(3), -32602),
        ] {
            let refusal = heard(line.as_bytes()).expect_err(line);
            assert_eq!(refusal["id"], id, "{line}");
            assert_eq!(refusal["error"]["code"], code, "{line}");
        }
    }

    #[test]
    fn messages_are_passed_on_and_what_nobody_waits_for_is_left() {
        for line in [
            r#"{"jsonrpc":"2.0","id":-5,"method":"ping"}"#,
            "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"tools/list\",\"params\":null}\r",
            r#"{"jsonrpc":"2.0","id":1,"method":"no/such"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        ] {
            assert!(matches!(heard(line.as_bytes()), Ok(Some(_))), "{line}");
        }
        for line in [
            "",
            "\r",
            " ",
            r#"{"method":"notifications/initialized"}"#,
            r#"{"result":7}"#,
        ] {
            assert!(matches!(heard(line.as_bytes()), Ok(None)), "{line}");
        }
    }
}
