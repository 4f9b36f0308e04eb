//! Sends diagnostic commands to a JVM over its socket, as `jcmd` does. `jcmd` itself is a JVM, whose start takes more
//! time than most commands.

use std::fs::{self, File};
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// Maximum time until a JVM has created its socket.
const LISTENING: Duration = Duration::from_secs(5);

/// Connects to a JVM's socket. If the JVM has no socket yet, makes the JVM create it.
pub(super) fn connect(pid: u32) -> Result<UnixStream> {
    let socket = format!("/tmp/.java_pid{pid}");
    if let Ok(stream) = UnixStream::connect(&socket) {
        return Ok(stream);
    }
    // A JVM that gets the signal SIGQUIT and finds this file begins to listen.
    let request = format!("/tmp/.attach_pid{pid}");
    File::create(&request)?;
    let pid = pid.to_string();
    let connected = Command::new("kill")
        .args(["-QUIT", &pid])
        .status()
        .and_then(|_| wait(&socket));
    fs::remove_file(&request)?;
    connected
}

fn wait(socket: &str) -> Result<UnixStream> {
    let deadline = Instant::now() + LISTENING;
    loop {
        match UnixStream::connect(socket) {
            Err(_) if Instant::now() < deadline => thread::sleep(Duration::from_millis(5)),
            result => return result,
        }
    }
}

/// Sends a command, and returns true if the command succeeded, with the JVM's answer.
pub(super) fn send(
    mut jvm: UnixStream,
    command: &str,
    timeout: Duration,
) -> Result<(bool, String)> {
    jvm.set_read_timeout(Some(timeout))?;
    // The message contains the version of the protocol, the command `jcmd`, and three arguments.
    jvm.write_all(format!("1\0jcmd\0{command}\0\0\0").as_bytes())?;
    let mut answer = Vec::new();
    jvm.read_to_end(&mut answer)?;
    let answer = String::from_utf8_lossy(&answer);
    let (code, text) = answer
        .split_once('\n')
        .ok_or_else(|| Error::new(ErrorKind::UnexpectedEof, "the JVM sent no answer"))?;
    Ok((code == "0", text.to_owned()))
}
