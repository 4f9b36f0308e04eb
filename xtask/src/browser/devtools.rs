//! A headless browser, controlled with the DevTools protocol.

use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use tungstenite::{Message, WebSocket};

/// Maximum time for the browser to start, and for each answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// An error with which the browser answered.
#[derive(Debug, thiserror::Error)]
#[error("{method}: {error}")]
struct Refused {
    method: String,
    error: Value,
}

/// A connection to a browser.
struct Connection {
    socket: WebSocket<TcpStream>,
    session: Option<String>,
    last_id: u64,
    /// Events that arrived while this client waited for an answer.
    events: Vec<Value>,
    /// Maximum time for each answer, however many events arrive before it.
    patience: Duration,
}

impl Connection {
    fn open(url: &str, stream: TcpStream, patience: Duration) -> Result<Self> {
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        let (socket, _) = tungstenite::client(url, stream)
            .map_err(|e| anyhow::anyhow!("no DevTools connection: {e}"))?;
        Ok(Self {
            socket,
            session: None,
            last_id: 0,
            events: Vec::new(),
            patience,
        })
    }

    /// Calls a DevTools method and waits for its result.
    fn call(&mut self, method: &str, params: &Value) -> Result<Value> {
        let until = Instant::now() + self.patience;
        self.last_id += 1;
        let mut message = json!({"id": self.last_id, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.socket.send(Message::text(message.to_string()))?;
        loop {
            let mut answer = self.next(until).with_context(|| method.to_owned())?;
            if answer["id"] != self.last_id {
                self.events.push(answer);
            } else if let Some(error) = answer.get("error") {
                let (method, error) = (method.to_owned(), error.clone());
                return Err(Refused { method, error }.into());
            } else {
                return Ok(answer["result"].take());
            }
        }
    }

    /// See [`Browser::eval`].
    fn eval(&mut self, expression: &str) -> Result<Value> {
        let params = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let mut answer = self.call("Runtime.evaluate", &params)?;
        if let Some(thrown) = answer.get("exceptionDetails") {
            bail!("{expression}: {thrown}");
        }
        Ok(answer["result"]["value"].take())
    }

    /// See [`Browser::wait`].
    fn wait(&mut self, expression: &str) -> Result<Duration> {
        let start = Instant::now();
        loop {
            let missing = match self.eval(expression) {
                Ok(value) if value == true => return Ok(start.elapsed()),
                Ok(value) => anyhow::anyhow!("the value is {value}"),
                // Another page replaced this page before this page answered.
                Err(error) if error.is::<Refused>() => error,
                Err(error) => return Err(error),
            };
            if start.elapsed() > self.patience / 3 {
                return Err(missing)
                    .with_context(|| format!("this condition was not true in time: {expression}"));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn next(&mut self, until: Instant) -> Result<Value> {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            ensure!(!left.is_zero(), "no answer in {:?}", self.patience);
            self.socket.get_ref().set_read_timeout(Some(left))?;
            if let Message::Text(text) = self.socket.read()? {
                return Ok(serde_json::from_str(text.as_str())?);
            }
        }
    }
}

/// A browser with one page. The browser is ended when this value is dropped.
pub(crate) struct Browser {
    child: Child,
    connection: Connection,
    _profile: TempDir,
}

impl Browser {
    /// Starts the browser with a new profile.
    pub(crate) fn start(program: &Path) -> Result<Self> {
        let profile = tempfile::tempdir()?;
        let child = Command::new(program)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
            ])
            .args(["--no-first-run", "--disable-background-networking"])
            .args(["--disable-component-update", "--disable-sync"])
            .args(["--remote-debugging-port=0", "--window-size=1300,1000"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let mut child = Reaped(Some(child));
        let (port, path) = address(profile.path(), &mut child)?;
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        let url = format!("ws://127.0.0.1:{port}{path}");
        let connection = Connection::open(&url, stream, PATIENCE)?;
        let mut browser = Self {
            child: child.0.take().context("the browser's process")?,
            connection,
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}))?;
        let wanted = json!({"targetId": target["targetId"], "flatten": true});
        let attached = browser.call("Target.attachToTarget", wanted)?;
        browser.connection.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}))?;
        }
        Ok(browser)
    }

    /// Calls a DevTools method and waits for its result.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Result<Value> {
        self.connection.call(method, &params)
    }

    /// Returns the events that have arrived, and removes them from the list.
    pub(crate) fn events(&mut self) -> Result<Vec<Value>> {
        // Events and answers arrive in order, so all earlier events have arrived before this answer.
        self.call("Runtime.evaluate", json!({"expression": "0"}))?;
        Ok(std::mem::take(&mut self.connection.events))
    }

    /// Returns the value of a JavaScript expression on the page.
    pub(crate) fn eval(&mut self, expression: &str) -> Result<Value> {
        self.connection.eval(expression)
    }

    /// Waits until a JavaScript expression is true, and returns how long that took. Meanwhile, another page may replace
    /// this page, for example after a click on a link.
    pub(crate) fn wait(&mut self, expression: &str) -> Result<Duration> {
        self.connection.wait(expression)
    }

    /// Returns the number that a JavaScript expression yields.
    pub(crate) fn number(&mut self, expression: &str) -> Result<f64> {
        let value = self.eval(expression)?;
        value
            .as_f64()
            .with_context(|| format!("{expression} is {value}"))
    }

    /// Gives an element the focus. `element` is a JavaScript expression.
    pub(crate) fn focus(&mut self, element: &str) -> Result<()> {
        self.eval(&format!("{element}.focus()"))?;
        Ok(())
    }

    /// Selects an option of a list.
    pub(crate) fn choose(&mut self, list: &str, option: &str) -> Result<()> {
        self.eval(&format!(
            "(() => {{ const s = document.getElementById('{list}'); s.value = '{option}'; \
             s.dispatchEvent(new Event('change')); }})()"
        ))?;
        Ok(())
    }

    /// Sets the size of the window in pixels.
    pub(crate) fn resize(&mut self, width: u32, height: u32) -> Result<()> {
        let window =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", window)?;
        Ok(())
    }

    /// Restores the size that the window had before [`Self::resize`].
    pub(crate) fn reset_size(&mut self) -> Result<()> {
        self.call("Emulation.clearDeviceMetricsOverride", json!({}))?;
        Ok(())
    }

    /// Ensures that the page loads no other files.
    pub(crate) fn is_alone(&mut self) -> Result<()> {
        let others = "document.querySelectorAll('script[src], link[rel=stylesheet], img').length";
        ensure!(
            self.eval(others)? == 0,
            "the page must not load other files"
        );
        Ok(())
    }

    /// Ensures that no name from the data became an HTML element or ran as a script.
    pub(crate) fn is_unharmed(&mut self) -> Result<()> {
        ensure!(
            self.eval("document.querySelectorAll('img').length")? == 0,
            "a name from the dump became an HTML element"
        );
        ensure!(
            self.eval("window.hacked ?? null")?.is_null(),
            "a name from the dump was executed as a script"
        );
        Ok(())
    }

    /// Types a text into a search field.
    pub(crate) fn search(&mut self, field: &str, text: &str) -> Result<()> {
        self.eval(&format!("document.getElementById('{field}').select()"))?;
        self.focus(&format!("document.getElementById('{field}')"))?;
        self.call("Input.insertText", json!({"text": text}))?;
        Ok(())
    }

    /// Sets the colour scheme that the system prefers: light or dark.
    pub(crate) fn prefer(&mut self, scheme: &str) -> Result<()> {
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.call("Emulation.setEmulatedMedia", features)?;
        Ok(())
    }

    /// Moves the mouse, and clicks if `click` is true.
    pub(crate) fn mouse(&mut self, x: f64, y: f64, click: bool) -> Result<()> {
        let kinds: &[&str] = if click {
            &["mouseMoved", "mousePressed", "mouseReleased"]
        } else {
            &["mouseMoved"]
        };
        for kind in kinds {
            let button = if *kind == "mouseMoved" {
                "none"
            } else {
                "left"
            };
            let params = json!({"type": kind, "x": x, "y": y, "button": button, "clickCount": 1});
            self.call("Input.dispatchMouseEvent", params)?;
        }
        Ok(())
    }

    /// Taps on a touch screen.
    pub(crate) fn tap(&mut self, x: f64, y: f64) -> Result<()> {
        let touch = |enabled: bool| json!({"enabled": enabled, "maxTouchPoints": 1});
        self.call("Emulation.setTouchEmulationEnabled", touch(true))?;
        let points = [
            ("touchStart", json!([{"x": x, "y": y}])),
            ("touchEnd", json!([])),
        ];
        for (kind, points) in points {
            let params = json!({"type": kind, "touchPoints": points});
            self.call("Input.dispatchTouchEvent", params)?;
        }
        self.call("Emulation.setTouchEmulationEnabled", touch(false))?;
        Ok(())
    }

    /// Drags the mouse from one point of the window to another.
    pub(crate) fn drag(&mut self, from: (f64, f64), to: (f64, f64)) -> Result<()> {
        let middle = (f64::midpoint(from.0, to.0), f64::midpoint(from.1, to.1));
        let steps = [
            ("mouseMoved", from, 0),
            ("mousePressed", from, 1),
            ("mouseMoved", middle, 1),
            ("mouseMoved", to, 1),
            ("mouseReleased", to, 0),
        ];
        for (kind, (x, y), buttons) in steps {
            let params = json!({
                "type": kind, "x": x, "y": y, "button": "left", "buttons": buttons, "clickCount": 1
            });
            self.call("Input.dispatchMouseEvent", params)?;
        }
        Ok(())
    }

    /// Presses a key by its name.
    pub(crate) fn key(&mut self, key: &str) -> Result<()> {
        let code = match key {
            "Enter" => 13,
            "Escape" => 27,
            "Tab" => 9,
            "ArrowLeft" => 37,
            "ArrowUp" => 38,
            "ArrowRight" => 39,
            "ArrowDown" => 40,
            "Home" => 36,
            "End" => 35,
            "+" => 187,
            letter if letter.len() == 1 => letter.to_ascii_uppercase().as_bytes()[0].into(),
            _ => bail!("this task cannot press the key {key}"),
        };
        for kind in ["keyDown", "keyUp"] {
            let mut params =
                json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code});
            if key == "Enter" && kind == "keyDown" {
                params["text"] = json!("\r");
            }
            self.call("Input.dispatchKeyEvent", params)?;
        }
        Ok(())
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.connection.session = None;
        // Ask the browser to close, because then it also ends its child processes. Kill it if it does not answer.
        let closed = self.call("Browser.close", json!({})).is_ok();
        let start = Instant::now();
        while closed && start.elapsed() < Duration::from_secs(5) {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Owns the browser's process until the connection is made. If the connection fails, dropping this value kills and
/// reaps the process.
struct Reaped(Option<Child>);

impl Drop for Reaped {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Returns the port and path at which the browser listens. The browser writes them into its profile.
fn address(profile: &Path, child: &mut Reaped) -> Result<(u16, String)> {
    let file = profile.join("DevToolsActivePort");
    let start = Instant::now();
    loop {
        let text = fs::read_to_string(&file).unwrap_or_default();
        if let Some((port, path)) = text.split_once('\n')
            && !path.is_empty()
        {
            return Ok((port.trim().parse()?, path.trim().to_owned()));
        }
        if let Some(Some(status)) = child.0.as_mut().map(|c| c.try_wait()).transpose()? {
            bail!("the browser ended: {status}");
        }
        if start.elapsed() > PATIENCE {
            bail!("the browser does not accept connections");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    type Server = std::thread::JoinHandle<Result<()>>;

    /// Connects to a server that runs `serve`.
    fn connect(
        patience: Duration,
        serve: fn(&mut WebSocket<TcpStream>) -> Result<()>,
    ) -> Result<(Connection, Server)> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let server = std::thread::spawn(move || {
            let (stream, _) = listener.accept()?;
            serve(&mut tungstenite::accept(stream)?)
        });
        let stream = TcpStream::connect(address)?;
        let connection = Connection::open(&format!("ws://{address}/"), stream, patience)?;
        Ok((connection, server))
    }

    /// Reads a request, and answers with this text after adding the request's number.
    fn answer(socket: &mut WebSocket<TcpStream>, mut answer: Value) -> Result<()> {
        let request: Value = serde_json::from_str(socket.read()?.to_text()?)?;
        answer["id"] = request["id"].clone();
        Ok(socket.send(Message::text(answer.to_string()))?)
    }

    #[test]
    fn events_do_not_extend_the_time_for_an_answer() -> Result<()> {
        let (mut connection, server) = connect(Duration::from_millis(300), |socket| {
            let event = Message::text(json!({"method": "Log.entryAdded"}).to_string());
            // The answer comes long after the client's time limit, but there is an event every few milliseconds.
            for _ in 0..100 {
                std::thread::sleep(Duration::from_millis(20));
                socket.send(event.clone())?;
            }
            answer(socket, json!({"result": {}}))
        })?;
        let answer = connection.call("Page.enable", &json!({}));
        assert!(answer.is_err(), "{answer:?}");
        drop(connection);
        // The server fails because the client has closed the connection.
        assert!(server.join().is_ok_and(|served| served.is_err()));
        Ok(())
    }

    #[test]
    fn the_page_may_be_replaced_while_a_condition_is_awaited() -> Result<()> {
        let (mut connection, server) = connect(PATIENCE, |socket| {
            let gone = json!({"code": -32000, "message": "Inspected target navigated or closed"});
            answer(socket, json!({"error": gone}))?;
            answer(socket, json!({"result": {"result": {"value": false}}}))?;
            answer(socket, json!({"result": {"result": {"value": true}}}))?;
            answer(
                socket,
                json!({"result": {"exceptionDetails": "ReferenceError"}}),
            )
        })?;
        connection.wait("document.readyState === 'complete'")?;
        let thrown = connection.wait("absent");
        assert!(thrown.is_err(), "{thrown:?}");
        assert!(server.join().is_ok_and(|served| served.is_ok()));
        Ok(())
    }
}
