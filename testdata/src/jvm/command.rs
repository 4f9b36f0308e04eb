//! Runs short-lived helpers such as `jcmd` and `javac` with a time limit.

use super::JvmError;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Runs a command until it ends. Returns standard output followed by standard error. An exit status other than 0 is an
/// error.
pub(super) fn run(command: &mut Command, timeout: Duration) -> Result<String, JvmError> {
    let name = describe(command);
    let failed = |error| JvmError::Process {
        command: name.clone(),
        error,
    };
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    // Read both pipes while the helper program runs, because a full pipe would block the program for ever.
    let out = child.stdout.take().map(drain);
    let err = child.stderr.take().map(drain);
    let ended = wait(&mut child, timeout);
    if !matches!(ended, Ok(Some(_))) {
        kill(&mut child);
    }
    let output = text(out) + &text(err);
    match ended.map_err(failed)? {
        Some(true) => Ok(output),
        Some(false) => Err(JvmError::Failed {
            command: name,
            output,
        }),
        None => Err(JvmError::TimedOut {
            waiting_for: format!("end of {name}"),
            after: timeout,
            output,
        }),
    }
}

/// Kills a child process and reaps it. A child that has ended is only reaped.
pub(super) fn kill(child: &mut Child) {
    // Ignore an error, because it means that the child has already ended.
    let _ = child.kill();
    let _ = child.wait();
}

/// Returns the exit status of a child whose output has ended, as text. A child that still runs after `timeout` is
/// killed.
pub(super) fn ended(child: &mut Child, timeout: Duration) -> String {
    let in_time = matches!(wait(child, timeout), Ok(Some(_)));
    if !in_time {
        let _ = child.kill();
    }
    match child.wait() {
        Ok(status) if in_time => status.to_string(),
        Ok(_) => "killed after its output had ended".to_owned(),
        Err(error) => error.to_string(),
    }
}

/// Returns the command as a person would type it.
pub(super) fn describe(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy().into_owned()];
    words.extend(
        command
            .get_args()
            .map(|arg| arg.to_string_lossy().into_owned()),
    );
    words.join(" ")
}

/// Returns `Some(true)` if the child succeeded and `Some(false)` if it failed, or `None` if it still runs after
/// `timeout`.
fn wait(child: &mut Child, timeout: Duration) -> std::io::Result<Option<bool>> {
    let deadline = Instant::now() + timeout;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status.success()));
        }
        if Instant::now() >= deadline {
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(5));
    }
}

fn drain(mut pipe: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // If reading the pipe fails, ignore the error, because the text read so far is still useful.
        let _ = pipe.read_to_end(&mut bytes);
        bytes
    })
}

fn text(reader: Option<JoinHandle<Vec<u8>>>) -> String {
    let bytes = reader
        .and_then(|reader| reader.join().ok())
        .unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn both_streams_are_returned() {
        let output = run(
            &mut shell("echo out; echo err >&2"),
            Duration::from_secs(10),
        );
        assert_eq!(output.unwrap(), "out\nerr\n");
    }

    #[test]
    fn failure_shows_the_command_and_its_output() {
        let error = run(&mut shell("echo why; exit 3"), Duration::from_secs(10)).unwrap_err();
        assert_eq!(error.to_string(), "sh -c echo why; exit 3 failed:\nwhy");
    }

    #[test]
    fn a_helper_that_hangs_is_ended() {
        let start = Instant::now();
        let error = run(&mut shell("exec sleep 60"), Duration::from_millis(50)).unwrap_err();
        assert!(matches!(error, JvmError::TimedOut { .. }), "{error}");
        assert!(start.elapsed() < Duration::from_secs(30));
    }
}
