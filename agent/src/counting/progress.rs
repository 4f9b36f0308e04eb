//! Reports the progress of starting or ending an allocation count. The report is a file in memory, because the JVM
//! answers no other attach command meanwhile.

use std::cell::Cell;
use std::fs::File;
use std::os::unix::fs::FileExt;

use heapdiff_sites::attach::{Counting, counting_file_name};

use crate::jvmti::memory_file;

/// The file that shows the progress, and the content of this file. The file is `None` if no progress is reported.
pub(super) struct Progress(Option<File>, Cell<Counting>);

impl Progress {
    /// Creates the file in which progress is reported. Its name contains the token. Without a token, or if memory is
    /// short, no progress is reported.
    pub(super) fn new(token: Option<&str>) -> Self {
        let file = token.and_then(|token| memory_file(&counting_file_name(token)).ok());
        let progress = Self(file, Cell::default());
        progress.write();
        progress
    }

    /// Reports that `done` of `all` classes have been changed.
    pub(super) fn report_done(&self, done: usize, all: usize) {
        let [done, all] = [done, all].map(|classes| classes as u64);
        self.1.set(Counting {
            done,
            all,
            ..self.1.get()
        });
        self.heartbeat();
    }

    /// Reports that the agent is still running.
    pub(super) fn heartbeat(&self) {
        let counting = self.1.get();
        self.1.set(Counting {
            beats: counting.beats + 1,
            ..counting
        });
        if !self.is_ended() {
            self.write();
        }
    }

    fn write(&self) {
        if let Some(file) = &self.0 {
            // If this write fails, the next write contains the newer state anyway.
            let _ = file.write_all_at(&self.1.get().encode(), 0);
        }
    }

    /// True if the requester has emptied the file. This is a request to end the count.
    pub(super) fn is_ended(&self) -> bool {
        let file = self.0.as_ref();
        file.is_some_and(|file| file.metadata().is_ok_and(|meta| meta.len() == 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_emptied_file_ends_a_count() {
        let progress = Progress::new(Some("test"));
        progress.report_done(7, 9);
        let file = progress.0.as_ref().unwrap();
        let mut bytes = [0; Counting::LEN];
        file.read_exact_at(&mut bytes, 0).unwrap();
        let (done, all, beats) = (7, 9, 1);
        assert_eq!(Counting::decode(bytes), Counting { done, all, beats });
        assert!(!progress.is_ended() && !Progress::new(None).is_ended());
        file.set_len(0).unwrap();
        progress.report_done(8, 9);
        assert!(progress.is_ended());
    }
}
