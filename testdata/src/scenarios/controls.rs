//! The table of controls: programs that look like leaks, but do not leak.
//!
//! Each program has four phases, and ends each phase with a line `READY` ([`Target`]). The number of objects that it
//! keeps is known for every phase. For example, a cache fills in the first two phases, and its size is constant
//! afterwards. A report on the first three dumps, or on all four, may describe that growth, but must not call it a
//! leak.

use super::{launch, source_path_of};
use crate::jvm::{Jdk, JvmError, Launch, Target};
use std::path::PathBuf;

/// A program that must not be reported as a leak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Control {
    /// A short name for tests.
    pub name: &'static str,
    /// A description of the program's work. A failed test shows it.
    pub about: &'static str,
    /// The class with the method `main`. The source file has the name of this class.
    pub main_class: &'static str,
    /// The verdicts that suspects in a report may have. A report without suspects is always accepted.
    pub allowed: &'static [&'static str],
    /// The class whose live instances are counted in each phase.
    pub class: &'static str,
    /// Number of instances at the end of each phase. A deviation of at most 5 % is accepted.
    pub instances: [u64; CONTROL_PHASES as usize],
    /// True if the program uses published libraries, which [`super::fetch_libraries`] fetches.
    pub libraries: bool,
    /// The runs whose heaps are dumped.
    pub dumped: Dumped,
}

/// The runs whose dumps a report compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dumped {
    /// One run, dumped after each phase.
    Phases,
    /// One run for each dump. All runs use one JDK, and each is dumped after its last phase.
    Runs,
    /// Like [`Dumped::Runs`], but the JDK changes from run to run, if at least two JDKs are installed.
    Jdks,
}

/// The values of fields that most controls have in common.
const LEVEL: Control = Control {
    name: "",
    about: "",
    main_class: "",
    allowed: &["cache", "warmup"],
    class: "",
    instances: [0; CONTROL_PHASES as usize],
    libraries: false,
    dumped: Dumped::Phases,
};

/// Number of `READY` lines that each control prints.
pub const CONTROL_PHASES: u32 = 4;

/// Every control.
pub const CONTROLS: &[Control] = &[
    Control {
        name: "lru_filling",
        about: "a bounded cache is half full at the first dump, and full at all later dumps",
        main_class: "com.acme.control.LruService",
        allowed: &["cache", "warmup"],
        class: "com.acme.control.Quote",
        instances: [10000, 20000, 20000, 20000],
        ..LEVEL
    },
    Control {
        name: "soft_cache",
        about: "a map holds thumbnails by soft references, and the GC clears none of them",
        main_class: "com.acme.control.SoftCacheService",
        allowed: &["cache"],
        class: "com.acme.control.Thumbnail",
        instances: [400, 800, 1200, 1600],
        ..LEVEL
    },
    Control {
        name: "weak_cache",
        about: "a weak map loses entries as documents are closed, and gets as many new entries",
        main_class: "com.acme.control.WeakCacheService",
        allowed: &["cache"],
        class: "com.acme.control.Layout",
        instances: [3000, 3000, 3000, 3000],
        ..LEVEL
    },
    Control {
        name: "pool_to_its_cap",
        about: "a connection pool grows to its maximum size",
        main_class: "com.acme.control.PoolService",
        allowed: &["cache", "warmup"],
        class: "com.acme.control.Connection",
        instances: [25, 60, 60, 60],
        ..LEVEL
    },
    Control {
        name: "churn",
        about: "each phase ends most sessions and begins as many new ones",
        main_class: "com.acme.control.ChurnService",
        allowed: &[],
        class: "com.acme.control.LiveSession",
        instances: [10000, 10000, 10000, 10000],
        ..LEVEL
    },
    Control {
        name: "class_loading",
        about: "the program loads 1,500 classes in its first two phases, and no class later",
        main_class: "com.acme.control.StartupService",
        allowed: &["warmup"],
        class: "com.acme.control.Feature",
        instances: [500, 1500, 1500, 1500],
        ..LEVEL
    },
    Control {
        name: "warming_up",
        about: "reflection, lambdas and interned strings fill tables until the program is warmed up",
        main_class: "com.acme.control.WarmService",
        allowed: &["cache", "warmup"],
        class: "com.acme.control.Word",
        instances: [6000, 12000, 12000, 12000],
        ..LEVEL
    },
    Control {
        name: "table_loaded_once",
        about: "a table is loaded at its first use, and later requests only read it",
        main_class: "com.acme.control.TableService",
        allowed: &["cache", "warmup"],
        class: "com.acme.control.Rate",
        instances: [0, 20000, 20000, 20000],
        ..LEVEL
    },
    Control {
        name: "sawtooth",
        about: "a list collects orders, is written and emptied, and then fills again",
        main_class: "com.acme.control.BatchService",
        allowed: &["cache", "warmup"],
        class: "com.acme.control.WaitingOrder",
        instances: [4000, 18000, 9000, 15000],
        ..LEVEL
    },
    Control {
        name: "thread_pool_to_its_cap",
        about: "each thread of a growing pool keeps one buffer in a thread local, which is intended",
        main_class: "com.acme.control.WorkerPoolService",
        allowed: &["cache", "warmup"],
        class: "com.acme.control.Scratch",
        instances: [4, 10, 10, 10],
        ..LEVEL
    },
    Control {
        name: "expiring_sessions",
        about: "the number of visits rises until the oldest visits expire, and is then constant",
        main_class: "com.acme.control.SessionService",
        allowed: &["cache", "warmup"],
        class: "com.acme.control.Visit",
        instances: [8000, 16000, 16000, 16000],
        ..LEVEL
    },
    Control {
        name: "caffeine_bounded",
        about: "a Caffeine cache of at most 10,000 entries is half full at first, and then full",
        main_class: "com.acme.control.BoundedCacheService",
        class: "com.acme.control.Offer",
        instances: [5000, 10000, 10000, 10000],
        libraries: true,
        ..LEVEL
    },
    Control {
        name: "caffeine_weak_keys",
        about: "a Caffeine cache has weak keys that stay alive, and each phase replaces all values",
        main_class: "com.acme.control.WeakKeyService",
        class: "com.acme.control.ParcelNote",
        instances: [8000, 8000, 8000, 8000],
        libraries: true,
        ..LEVEL
    },
    Control {
        name: "caffeine_expiring",
        about: "entries of a Caffeine cache expire after two phases; the program sets the clock of the cache",
        main_class: "com.acme.control.ExpiringCacheService",
        class: "com.acme.control.IssuedTicket",
        instances: [6000, 12000, 12000, 12000],
        libraries: true,
        ..LEVEL
    },
    Control {
        name: "guava_bounded",
        about: "a Guava cache is full at all dumps, and each phase replaces all entries",
        main_class: "com.acme.control.GuavaCacheService",
        class: "com.acme.control.PlannedRoute",
        instances: [8000, 8000, 8000, 8000],
        libraries: true,
        ..LEVEL
    },
    Control {
        name: "guava_soft_values",
        about: "a Guava cache has soft values, and the GC clears none of them",
        main_class: "com.acme.control.SoftValueService",
        class: "com.acme.control.Picture",
        instances: [300, 600, 900, 1200],
        libraries: true,
        ..LEVEL
    },
    Control {
        name: "full_cache",
        about: "a cache is full at all dumps, and each phase replaces two thirds of its entries",
        main_class: "com.acme.control.FullCacheService",
        class: "com.acme.control.StoredAnswer",
        instances: [12000, 12000, 12000, 12000],
        ..LEVEL
    },
    Control {
        name: "doubled_load",
        about: "the number of requests in flight doubles when the load doubles",
        main_class: "com.acme.control.LoadService",
        class: "com.acme.control.InFlight",
        instances: [4000, 8000, 8000, 8000],
        ..LEVEL
    },
    Control {
        name: "turnover",
        about: "each dump has about 20,000 guests (3 % more or fewer), and no guest is in two dumps",
        main_class: "com.acme.control.TurnoverService",
        class: "com.acme.control.Guest",
        instances: [20000, 20700, 21300, 20400],
        ..LEVEL
    },
    Control {
        name: "two_runs",
        about: "the compared dumps are from different runs of one program",
        main_class: "com.acme.control.EachRunService",
        class: "com.acme.control.KeptAccount",
        instances: [15000, 15000, 15000, 15000],
        dumped: Dumped::Runs,
        ..LEVEL
    },
    Control {
        name: "two_jdks",
        about: "the compared dumps are from one program on different JDKs",
        main_class: "com.acme.control.EachRunService",
        class: "com.acme.control.KeptAccount",
        instances: [15000, 15000, 15000, 15000],
        dumped: Dumped::Jdks,
        ..LEVEL
    },
    Control {
        name: "mapped_files",
        about: "the program maps a growing file into memory, in four parts; the heap does not grow",
        main_class: "com.acme.control.MappedFileService",
        class: "com.acme.control.JournalPart",
        instances: [4, 4, 4, 4],
        ..LEVEL
    },
    Control {
        name: "ring_buffer",
        about: "a ring buffer is full at all dumps, and each phase overwrites its elements",
        main_class: "com.acme.control.RingService",
        class: "com.acme.control.Measured",
        instances: [16000, 16000, 16000, 16000],
        ..LEVEL
    },
    Control {
        name: "undo_bounded",
        about: "an undo history holds the last 5,000 steps; new steps replace the oldest ones",
        main_class: "com.acme.control.UndoService",
        class: "com.acme.control.UndoStep",
        instances: [5000, 5000, 5000, 5000],
        ..LEVEL
    },
    Control {
        name: "read_while_dumped",
        about: "another thread iterates over a linked queue during the dump",
        main_class: "com.acme.control.ReaderService",
        class: "com.acme.control.QueuedJob",
        instances: [12000, 12000, 12000, 12000],
        ..LEVEL
    },
    Control {
        name: "hidden_classes_renewed",
        about: "each phase replaces 300 hidden classes with new ones that have other names",
        main_class: "com.acme.control.GeneratedService",
        class: "com.acme.control.TariffTable",
        instances: [300, 300, 300, 300],
        ..LEVEL
    },
    Control {
        name: "redeployed",
        about: "each phase deploys ten modules again, each with a new class loader",
        main_class: "com.acme.control.RedeployService",
        class: "com.acme.control.DeployLoader",
        instances: [10, 10, 10, 10],
        ..LEVEL
    },
    Control {
        name: "scheduled_level",
        about: "3,000 reminders are scheduled at each dump, and each phase replaces all of them",
        main_class: "com.acme.control.ScheduleService",
        class: "com.acme.control.ScheduledReminder",
        instances: [3000, 3000, 3000, 3000],
        ..LEVEL
    },
    Control {
        name: "futures_in_flight",
        about: "threads wait for 5,000 futures at each dump, and each phase replaces all of them",
        main_class: "com.acme.control.FutureService",
        class: "com.acme.control.AwaitedAnswer",
        instances: [5000, 5000, 5000, 5000],
        ..LEVEL
    },
    Control {
        name: "reservoirs",
        about: "reservoirs of measured times fill in the first phases, and then keep their size",
        main_class: "com.acme.control.ReservoirService",
        class: "com.acme.control.TimedCall",
        instances: [10000, 20000, 20000, 20000],
        ..LEVEL
    },
    Control {
        name: "time_window",
        about: "a skip list holds the last 10,000 bids; new bids replace the oldest ones",
        main_class: "com.acme.control.WindowService",
        class: "com.acme.control.Bid",
        instances: [10000, 10000, 10000, 10000],
        ..LEVEL
    },
    Control {
        name: "uneven_times",
        about: "each phase replaces most orders, and the time between the dumps varies",
        main_class: "com.acme.control.UnevenService",
        class: "com.acme.control.OpenOrder",
        instances: [10000, 10000, 10000, 10000],
        ..LEVEL
    },
    Control {
        name: "idle",
        about: "the program does nothing between the dumps",
        main_class: "com.acme.control.IdleService",
        class: "com.acme.control.IdlePrice",
        instances: [12000, 12000, 12000, 12000],
        ..LEVEL
    },
    Control {
        name: "garbage",
        about: "each phase allocates many objects and keeps none of them",
        main_class: "com.acme.control.GarbageService",
        class: "com.acme.control.KeptContract",
        instances: [6000, 6000, 6000, 6000],
        ..LEVEL
    },
    Control {
        name: "full_queue",
        about: "a bounded queue is half full at first, and then full",
        main_class: "com.acme.control.FullQueueService",
        class: "com.acme.control.Letter",
        instances: [4000, 9000, 9000, 9000],
        ..LEVEL
    },
    Control {
        name: "session_store",
        about: "each phase replaces most of 5,000 sessions, and the size of their attributes varies",
        main_class: "com.acme.control.SessionStoreService",
        class: "com.acme.control.StoredSession",
        instances: [5000, 5000, 5000, 5000],
        ..LEVEL
    },
    Control {
        name: "rehash",
        about: "the number of entries in a map stays almost the same, but its table doubles",
        main_class: "com.acme.control.RehashService",
        class: "com.acme.control.Member",
        instances: [12100, 12200, 12400, 12300],
        ..LEVEL
    },
    Control {
        name: "weak_listeners",
        about: "windows are listeners by weak references; each phase closes all windows and opens as many",
        main_class: "com.acme.control.WeakListenerService",
        class: "com.acme.control.OpenWindow",
        instances: [2000, 2000, 2000, 2000],
        ..LEVEL
    },
    Control {
        name: "peak",
        about: "a report needs much memory for a short time, in the second phase only",
        main_class: "com.acme.control.PeakService",
        class: "com.acme.control.ReportLine",
        instances: [3000, 30000, 3000, 3000],
        ..LEVEL
    },
    Control {
        name: "direct_buffer_pool",
        about: "a pool of direct buffers grows to its maximum size",
        main_class: "com.acme.control.DirectPoolService",
        class: "com.acme.control.PooledBuffer",
        instances: [20, 40, 40, 40],
        ..LEVEL
    },
    Control {
        name: "soft_loaders",
        about: "only soft references hold the class loaders, and the GC clears none of them",
        main_class: "com.acme.control.SoftLoaderService",
        class: "com.acme.control.ScriptLoader",
        instances: [40, 80, 120, 160],
        ..LEVEL
    },
    Control {
        name: "slots",
        about: "an array of eight slots is filled slot by slot",
        main_class: "com.acme.control.SlotService",
        allowed: &["growth", "cache", "warmup"],
        class: "com.acme.control.SlotSession",
        instances: [3, 5, 6, 6],
        ..LEVEL
    },
    Control {
        name: "lent_buffers",
        about: "workers return buffers to a pool",
        main_class: "com.acme.control.LentBufferService",
        allowed: &["growth", "cache", "warmup"],
        class: "com.acme.control.LentBuffer",
        instances: [200, 200, 200, 200],
        ..LEVEL
    },
    Control {
        name: "queued_soft_values",
        about: "a map has soft values and a reference queue, and the GC clears no value",
        main_class: "com.acme.control.QueuedSoftService",
        class: "com.acme.control.SoftPage",
        instances: [1000, 2000, 3000, 4000],
        ..LEVEL
    },
    Control {
        name: "short_end",
        about: "two long phases fill a table, and the two short phases that follow add nothing",
        main_class: "com.acme.control.ShortEndService",
        allowed: &["growth", "cache", "warmup"],
        class: "com.acme.control.FilledRow",
        instances: [10000, 20000, 20000, 20000],
        ..LEVEL
    },
    Control {
        name: "noisy_cache",
        about: "a cache is full at all dumps, and at some dumps has a few entries above its limit",
        main_class: "com.acme.control.NoisyCacheService",
        class: "com.acme.control.CachedOrder",
        instances: [10000, 10003, 10006, 10004],
        ..LEVEL
    },
];

impl Control {
    /// Returns the path of the source file.
    pub fn source_path(&self) -> PathBuf {
        source_path_of(self.main_class)
    }

    /// Compiles the program unless that has been done before, and returns the command that starts it. The caller may
    /// add flags to the command.
    pub fn launch(&self, jdk: &Jdk) -> Result<Launch, JvmError> {
        launch(jdk, self.main_class, self.libraries)
    }

    /// Starts the program and waits for its first phase.
    pub fn start(&self, jdk: &Jdk) -> Result<Target, JvmError> {
        let mut target = self.launch(jdk)?.start()?;
        target.wait_ready(1)?;
        Ok(target)
    }
}
