//! A file in memory that shows how far a count has come: the JVM answers no other command meanwhile.

use std::cell::Cell;
use std::fs::File;
use std::os::unix::fs::FileExt;

use heapdiff_sites::attach::{Counting, counting_sign};

use crate::jvmti::memory_file;

/// The file, if there is one, and what it shows.
pub(super) struct Progress(Option<File>, Cell<Counting>);

impl Progress {
    /// Creates the file for a token. Nothing is shown without a token, or if there is no memory.
    pub(super) fn new(token: Option<&str>) -> Self {
        let file = token.and_then(|token| memory_file(&counting_sign(token)).ok());
        let progress = Self(file, Cell::default());
        progress.write();
        progress
    }

    /// Shows that `done` of `all` classes are done.
    pub(super) fn reached(&self, done: usize, all: usize) {
        let [done, all] = [done, all].map(|classes| classes as u64);
        self.1.set(Counting {
            done,
            all,
            ..self.1.get()
        });
        self.beat();
    }

    /// Shows that the agent goes on.
    pub(super) fn beat(&self) {
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
            // The next write makes up for one that fails.
            let _ = file.write_all_at(&self.1.get().encode(), 0);
        }
    }

    /// True if the other side emptied the file: it wants the count to end.
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
        progress.reached(7, 9);
        let file = progress.0.as_ref().unwrap();
        let mut bytes = [0; Counting::LEN];
        file.read_exact_at(&mut bytes, 0).unwrap();
        let (done, all, beats) = (7, 9, 1);
        assert_eq!(Counting::decode(bytes), Counting { done, all, beats });
        assert!(!progress.is_ended() && !Progress::new(None).is_ended());
        file.set_len(0).unwrap();
        progress.reached(8, 9);
        assert!(progress.is_ended());
    }
}
