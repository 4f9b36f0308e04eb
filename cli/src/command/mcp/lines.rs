//! Reads messages of the client. Each line of standard input is a request or a notification. If a line is invalid, the
//! server answers with an error. It ignores empty lines, answers and malformed notifications.

use std::io::{self, BufRead};

use serde_json::{Map, Value, json};

/// Maximum number of bytes of a message. A longer message is read and refused.
const LONGEST: usize = 2 << 20;

/// Error codes of JSON-RPC 2.0.
pub(super) const PARSE_ERROR: i32 = -32700;
pub(super) const INVALID_REQUEST: i32 = -32600;
pub(super) const METHOD_NOT_FOUND: i32 = -32601;
pub(super) const INVALID_PARAMS: i32 = -32602;

/// A message of the client.
#[derive(Debug, PartialEq)]
pub(super) enum Message {
    /// The server must answer with this `id`, a string or a 64-bit integer.
    Request {
        id: Value,
        method: String,
        params: Map<String, Value>,
    },
    /// The server must not answer.
    Notification {
        method: String,
        params: Map<String, Value>,
    },
}

/// Reads one message. Returns `Ok(None)` at the end of the input, and `Err` with an answer if the message is refused.
pub(super) fn read(input: &mut impl BufRead) -> io::Result<Option<Result<Message, Value>>> {
    loop {
        let Some(line) = line(input)? else {
            return Ok(None);
        };
        let message = match line {
            Line::Whole(line) => message(&line),
            Line::TooLong => {
                let message = format!("a message can have at most {LONGEST} bytes");
                Err(refusal(&Value::Null, INVALID_REQUEST, &message))
            }
        };
        if let Some(message) = message.transpose() {
            return Ok(Some(message));
        }
    }
}

enum Line {
    Whole(Vec<u8>),
    TooLong,
}

/// Reads a line, and stores at most [`LONGEST`] bytes of it. If the last line has no line end, it is dropped.
fn line(input: &mut impl BufRead) -> io::Result<Option<Line>> {
    let mut line = Vec::new();
    let mut is_long = false;
    loop {
        let read = match input.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        if read.is_empty() {
            return Ok(None);
        }
        let end = read.iter().position(|&byte| byte == b'\n');
        let part = &read[..end.unwrap_or(read.len())];
        is_long |= line.len() + part.len() > LONGEST;
        if is_long {
            line.clear();
        } else {
            line.extend_from_slice(part);
        }
        let used = part.len() + usize::from(end.is_some());
        input.consume(used);
        if end.is_some() {
            let whole = Line::Whole(line);
            return Ok(Some(if is_long { Line::TooLong } else { whole }));
        }
    }
}

/// Parses a line. Returns `Ok(None)` if there is nothing to do: for an empty line, an answer, or a malformed
/// notification.
fn message(line: &[u8]) -> Result<Option<Message>, Value> {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    if line.trim_ascii().is_empty() {
        return Ok(None);
    }
    let refused = |code, message: &str| Err(refusal(&Value::Null, code, message));
    let mut message = match serde_json::from_slice(line) {
        Ok(Value::Object(message)) => message,
        Ok(_) => {
            let message = "a message must be one JSON object; batches are not supported";
            return refused(INVALID_REQUEST, message);
        }
        Err(e) => return refused(PARSE_ERROR, &format!("not JSON: {e}")),
    };
    let id = message.remove("id");
    // The error contains the id of the message if the id has a valid type. So the client can find the request to which
    // the error belongs.
    let known = id.clone().filter(|id| id.is_string() || id.is_number());
    let known = known.unwrap_or_default();
    let refused = |code, message: &str| Err(refusal(&known, code, message));
    let method = match message.remove("method") {
        Some(Value::String(method)) => method,
        None if message.contains_key("result") || message.contains_key("error") => return Ok(None),
        _ => return refused(INVALID_REQUEST, "`method` is missing or not a string"),
    };
    let is_version_2 = message.get("jsonrpc").and_then(Value::as_str) == Some("2.0");
    let params = match message.remove("params") {
        None | Some(Value::Null) => Some(Map::new()),
        Some(Value::Object(params)) => Some(params),
        Some(_) => None,
    };
    let Some(id) = id else {
        let params = params.filter(|_| is_version_2);
        return Ok(params.map(|params| Message::Notification { method, params }));
    };
    if !id.is_string() && !id.is_i64() {
        let message = "`id` is neither a string nor a signed 64-bit integer";
        return refused(INVALID_REQUEST, message);
    }
    if !is_version_2 {
        return refused(INVALID_REQUEST, "`jsonrpc` is not \"2.0\"");
    }
    match params {
        Some(params) => Ok(Some(Message::Request { id, method, params })),
        None => {
            let message = format!("`params` of {method}: not an object");
            refused(INVALID_PARAMS, &message)
        }
    }
}

/// Returns the error answer for a message that the server cannot process.
pub(super) fn refusal(id: &Value, code: i32, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_requests_are_refused_with_their_id() {
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
        ] {
            let refusal = message(line.as_bytes()).expect_err(line);
            assert_eq!(refusal["id"], id, "{line}");
            assert_eq!(refusal["error"]["code"], code, "{line}");
        }
    }

    #[test]
    fn requests_and_notifications_are_read_and_other_lines_skipped() {
        let lines = concat!(
            "{\"jsonrpc\":\"2.0\",\"id\":-5,\"method\":\"ping\"}\n",
            "\n\r\n \n",
            "{\"method\":\"notifications/initialized\"}\n",
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/none\",\"params\":7}\n",
            "{\"result\":7}\n",
            "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"tools/list\",\"params\":null}\r\n",
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n",
            "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"cut off\"}",
        );
        let mut input = lines.as_bytes();
        let request = |id, method: &str| Message::Request {
            id,
            method: method.to_owned(),
            params: Map::new(),
        };
        let mut next = || read(&mut input).unwrap();
        assert_eq!(next(), Some(Ok(request(json!(-5), "ping"))));
        assert_eq!(next(), Some(Ok(request(json!("a"), "tools/list"))));
        let method = "notifications/initialized".to_owned();
        let params = Map::new();
        let notification = Message::Notification { method, params };
        assert_eq!(next(), Some(Ok(notification)));
        assert_eq!(next(), None);
    }

    #[test]
    fn a_line_that_is_too_long_is_refused_and_the_next_is_read() {
        let mut lines = vec![b'x'; LONGEST + 1];
        lines.extend(b"\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n");
        let mut input = &lines[..];
        let refusal = read(&mut input).unwrap().unwrap().unwrap_err();
        assert_eq!(refusal["error"]["code"], INVALID_REQUEST);
        assert!(matches!(
            read(&mut input),
            Ok(Some(Ok(Message::Request { .. })))
        ));
    }
}
