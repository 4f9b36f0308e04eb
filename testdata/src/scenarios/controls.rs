//! The table of controls: programs that do not leak, however they look.
//!
//! Each does its work in four phases, by the protocol of [`Target`]. What it keeps is known for every phase: a
//! cache that fills in the first two and is level then, say. A report of the first three dumps, or of all
//! four, may name that growth as what it is and must not call it a leak.

use super::{launch, source_path_of};
use crate::jvm::{Jdk, JvmError, Launch, Target};
use std::path::PathBuf;

/// A program that must not be called a leak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Control {
    /// A short name for tests.
    pub name: &'static str,
    /// What it does, for the reader of a failed test.
    pub about: &'static str,
    /// The class with `main`; its name gives the source file.
    pub main_class: &'static str,
    /// The verdicts that a suspect may bear; a report without suspects is always right.
    pub allowed: &'static [&'static str],
    /// The class whose live instances are counted.
    pub class: &'static str,
    /// How many there are when each phase is done, a twentieth more or less.
    pub instances: [u64; CONTROL_PHASES as usize],
}

/// How many times each control prints `READY`.
pub const CONTROL_PHASES: u32 = 4;

/// Every control.
pub const CONTROLS: &[Control] = &[];

impl Control {
    /// The source file.
    pub fn source_path(&self) -> PathBuf {
        source_path_of(self.main_class)
    }

    /// Compiles the program, unless that has been done before, and says how to start it; flags may be added.
    pub fn launch(&self, jdk: &Jdk) -> Result<Launch, JvmError> {
        launch(jdk, self.main_class)
    }

    /// Starts the program and waits for its first phase.
    pub fn start(&self, jdk: &Jdk) -> Result<Target, JvmError> {
        let mut target = self.launch(jdk)?.start()?;
        target.wait_ready(1)?;
        Ok(target)
    }
}
