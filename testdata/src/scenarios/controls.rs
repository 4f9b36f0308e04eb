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
pub const CONTROLS: &[Control] = &[
    Control {
        name: "lru_filling",
        about: "a bounded cache is half full, then full for good",
        main_class: "com.acme.control.LruService",
        allowed: &["cache", "warmup"],
        class: "com.acme.control.Quote",
        instances: [10000, 20000, 20000, 20000],
    },
    Control {
        name: "soft_cache",
        about: "thumbnails behind soft references, which memory is ample for",
        main_class: "com.acme.control.SoftCacheService",
        allowed: &["cache"],
        class: "com.acme.control.Thumbnail",
        instances: [400, 800, 1200, 1600],
    },
    Control {
        name: "weak_cache",
        about: "a weak map whose keys come and go",
        main_class: "com.acme.control.WeakCacheService",
        allowed: &["cache"],
        class: "com.acme.control.Layout",
        instances: [3000, 3000, 3000, 3000],
    },
    Control {
        name: "pool_to_its_cap",
        about: "a pool of connections grows to its cap",
        main_class: "com.acme.control.PoolService",
        allowed: &["cache", "warmup"],
        class: "com.acme.control.Connection",
        instances: [25, 60, 60, 60],
    },
    Control {
        name: "churn",
        about: "as many sessions end as begin",
        main_class: "com.acme.control.ChurnService",
        allowed: &[],
        class: "com.acme.control.LiveSession",
        instances: [10000, 10000, 10000, 10000],
    },
    Control {
        name: "class_loading",
        about: "a start-up that loads 1,500 classes in two phases",
        main_class: "com.acme.control.StartupService",
        allowed: &["warmup"],
        class: "com.acme.control.Feature",
        instances: [500, 1500, 1500, 1500],
    },
    Control {
        name: "warming_up",
        about: "reflection, lambdas, interned strings and a dictionary, until all is known",
        main_class: "com.acme.control.WarmService",
        allowed: &["cache", "warmup"],
        class: "com.acme.control.Word",
        instances: [6000, 12000, 12000, 12000],
    },
    Control {
        name: "table_loaded_once",
        about: "a table is loaded when it is first asked for",
        main_class: "com.acme.control.TableService",
        allowed: &["cache", "warmup"],
        class: "com.acme.control.Rate",
        instances: [0, 20000, 20000, 20000],
    },
    Control {
        name: "sawtooth",
        about: "orders wait for a batch, are written and collect again",
        main_class: "com.acme.control.BatchService",
        allowed: &["cache", "warmup"],
        class: "com.acme.control.WaitingOrder",
        instances: [4000, 18000, 9000, 15000],
    },
    Control {
        name: "thread_pool_to_its_cap",
        about: "threads of a pool keep one buffer each, by intent",
        main_class: "com.acme.control.WorkerPoolService",
        allowed: &["cache", "warmup"],
        class: "com.acme.control.Scratch",
        instances: [4, 10, 10, 10],
    },
    Control {
        name: "expiring_sessions",
        about: "visits add up until the first expire",
        main_class: "com.acme.control.SessionService",
        allowed: &["cache", "warmup"],
        class: "com.acme.control.Visit",
        instances: [8000, 16000, 16000, 16000],
    },
];

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
