//! Detects whether a debugger is attached to this JVM.
//!
//! The JVM's debugger library (libjdwp) caches the line table of a method when it first needs the table. If the
//! method's class is changed afterwards, the library sets breakpoints in the middle of instructions, and JDK 17
//! crashes. So the agent changes no loaded class while a debugger is attached. It may change a class that is just being
//! loaded, because the library reads the line tables of this class later.

use std::fs;

/// Name of libjdwp's thread while a debugger is connected. The full name is `JDWP Command Reader`, but Linux keeps only
/// the first 15 bytes.
const READER: &str = "JDWP Command Re";
/// The reason, for messages, why the agent does not change classes.
pub(crate) const ATTACHED: &str =
    "a debugger is attached, and changing classes now could crash the JVM";

/// True if a debugger is connected.
pub(crate) fn is_attached() -> bool {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten();
    tasks.flatten().any(|task| {
        let name = fs::read(task.path().join("comm"));
        name.is_ok_and(|name| name.trim_ascii_end() == READER.as_bytes())
    })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::{Duration, Instant};

    use super::is_attached;

    #[test]
    fn a_debugger_is_detected_by_its_reader_thread() {
        assert!(!is_attached());
        let ((up, is_up), (end, ends)) = (mpsc::channel(), mpsc::channel::<()>());
        let reader = std::thread::Builder::new().name("JDWP Command Reader".to_owned());
        let reader = reader.spawn(move || {
            up.send(()).unwrap();
            let _ = ends.recv();
        });
        is_up.recv().unwrap();
        assert!(is_attached());
        drop(end);
        reader.unwrap().join().unwrap();
        // Linux may list a thread for a moment after it was joined.
        let waited = Instant::now();
        while is_attached() && waited.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(!is_attached());
    }
}
