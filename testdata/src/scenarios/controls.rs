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
    /// The class with `main`. The source file has the same name.
    pub main_class: &'static str,
    /// The verdicts that suspects may have. A report without any suspect is always accepted.
    pub allowed: &'static [&'static str],
    /// The class whose live instances are counted.
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

/// The values that most controls have in common.
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
        about: "a bounded cache is half full, then full for good",
        main_class: "com.acme.control.LruService",
        allowed: &["cache", "warmup"],
        class: "com.acme.control.Quote",
        instances: [10000, 20000, 20000, 20000],
        ..LEVEL
    },
    Control {
        name: "soft_cache",
        about: "thumbnails behind soft references, which memory is ample for",
        main_class: "com.acme.control.SoftCacheService",
        allowed: &["cache"],
        class: "com.acme.control.Thumbnail",
        instances: [400, 800, 1200, 1600],
        ..LEVEL
    },
    Control {
        name: "weak_cache",
        about: "a weak map whose keys come and go",
        main_class: "com.acme.control.WeakCacheService",
        allowed: &["cache"],
        class: "com.acme.control.Layout",
        instances: [3000, 3000, 3000, 3000],
        ..LEVEL
    },
    Control {
        name: "pool_to_its_cap",
        about: "a pool of connections grows to its cap",
        main_class: "com.acme.control.PoolService",
        allowed: &["cache", "warmup"],
        class: "com.acme.control.Connection",
        instances: [25, 60, 60, 60],
        ..LEVEL
    },
    Control {
        name: "churn",
        about: "as many sessions end as begin",
        main_class: "com.acme.control.ChurnService",
        allowed: &[],
        class: "com.acme.control.LiveSession",
        instances: [10000, 10000, 10000, 10000],
        ..LEVEL
    },
    Control {
        name: "class_loading",
        about: "a start-up that loads 1,500 classes in two phases",
        main_class: "com.acme.control.StartupService",
        allowed: &["warmup"],
        class: "com.acme.control.Feature",
        instances: [500, 1500, 1500, 1500],
        ..LEVEL
    },
    Control {
        name: "warming_up",
        about: "reflection, lambdas, interned strings and a dictionary, until all is known",
        main_class: "com.acme.control.WarmService",
        allowed: &["cache", "warmup"],
        class: "com.acme.control.Word",
        instances: [6000, 12000, 12000, 12000],
        ..LEVEL
    },
    Control {
        name: "table_loaded_once",
        about: "a table is loaded when it is first asked for, and requests go on",
        main_class: "com.acme.control.TableService",
        allowed: &["cache", "warmup"],
        class: "com.acme.control.Rate",
        instances: [0, 20000, 20000, 20000],
        ..LEVEL
    },
    Control {
        name: "sawtooth",
        about: "orders wait for a batch, are written and collect again",
        main_class: "com.acme.control.BatchService",
        allowed: &["cache", "warmup"],
        class: "com.acme.control.WaitingOrder",
        instances: [4000, 18000, 9000, 15000],
        ..LEVEL
    },
    Control {
        name: "thread_pool_to_its_cap",
        about: "threads of a pool keep one buffer each, by intent",
        main_class: "com.acme.control.WorkerPoolService",
        allowed: &["cache", "warmup"],
        class: "com.acme.control.Scratch",
        instances: [4, 10, 10, 10],
        ..LEVEL
    },
    Control {
        name: "expiring_sessions",
        about: "visits add up until the first expire",
        main_class: "com.acme.control.SessionService",
        allowed: &["cache", "warmup"],
        class: "com.acme.control.Visit",
        instances: [8000, 16000, 16000, 16000],
        ..LEVEL
    },
    Control {
        name: "caffeine_bounded",
        about: "a Caffeine cache of at most 10,000 is half full, then full",
        main_class: "com.acme.control.BoundedCacheService",
        class: "com.acme.control.Offer",
        instances: [5000, 10000, 10000, 10000],
        libraries: true,
        ..LEVEL
    },
    Control {
        name: "caffeine_weak_keys",
        about: "a Caffeine cache with weak keys that live, and new values in each phase",
        main_class: "com.acme.control.WeakKeyService",
        class: "com.acme.control.ParcelNote",
        instances: [8000, 8000, 8000, 8000],
        libraries: true,
        ..LEVEL
    },
    Control {
        name: "caffeine_expiring",
        about: "entries of a Caffeine cache expire after two phases, by a clock that is set",
        main_class: "com.acme.control.ExpiringCacheService",
        class: "com.acme.control.IssuedTicket",
        instances: [6000, 12000, 12000, 12000],
        libraries: true,
        ..LEVEL
    },
    Control {
        name: "guava_bounded",
        about: "a Guava cache that is full from the start, with all entries replaced",
        main_class: "com.acme.control.GuavaCacheService",
        class: "com.acme.control.PlannedRoute",
        instances: [8000, 8000, 8000, 8000],
        libraries: true,
        ..LEVEL
    },
    Control {
        name: "guava_soft_values",
        about: "soft values of a Guava cache, which memory is ample for",
        main_class: "com.acme.control.SoftValueService",
        class: "com.acme.control.Picture",
        instances: [300, 600, 900, 1200],
        libraries: true,
        ..LEVEL
    },
    Control {
        name: "full_cache",
        about: "a cache that is full from the start, two thirds of it replaced in each phase",
        main_class: "com.acme.control.FullCacheService",
        class: "com.acme.control.StoredAnswer",
        instances: [12000, 12000, 12000, 12000],
        ..LEVEL
    },
    Control {
        name: "doubled_load",
        about: "requests in flight, twice as many when the load doubles",
        main_class: "com.acme.control.LoadService",
        class: "com.acme.control.InFlight",
        instances: [4000, 8000, 8000, 8000],
        ..LEVEL
    },
    Control {
        name: "turnover",
        about: "20,000 guests, three in a hundred more or fewer, all of them others each time",
        main_class: "com.acme.control.TurnoverService",
        class: "com.acme.control.Guest",
        instances: [20000, 20700, 21300, 20400],
        ..LEVEL
    },
    Control {
        name: "two_runs",
        about: "dumps of different runs of one program",
        main_class: "com.acme.control.EachRunService",
        class: "com.acme.control.KeptAccount",
        instances: [15000, 15000, 15000, 15000],
        dumped: Dumped::Runs,
        ..LEVEL
    },
    Control {
        name: "two_jdks",
        about: "dumps of one program on different JDKs",
        main_class: "com.acme.control.EachRunService",
        class: "com.acme.control.KeptAccount",
        instances: [15000, 15000, 15000, 15000],
        dumped: Dumped::Jdks,
        ..LEVEL
    },
    Control {
        name: "mapped_files",
        about: "four mapped parts of a file, each larger in each phase, and nothing more in the heap",
        main_class: "com.acme.control.MappedFileService",
        class: "com.acme.control.JournalPart",
        instances: [4, 4, 4, 4],
        ..LEVEL
    },
    Control {
        name: "ring_buffer",
        about: "a full ring that is overwritten",
        main_class: "com.acme.control.RingService",
        class: "com.acme.control.Measured",
        instances: [16000, 16000, 16000, 16000],
        ..LEVEL
    },
    Control {
        name: "undo_bounded",
        about: "a full history of 5,000 steps, the oldest of which go",
        main_class: "com.acme.control.UndoService",
        class: "com.acme.control.UndoStep",
        instances: [5000, 5000, 5000, 5000],
        ..LEVEL
    },
    Control {
        name: "read_while_dumped",
        about: "a linked queue that another thread goes through while it is dumped",
        main_class: "com.acme.control.ReaderService",
        class: "com.acme.control.QueuedJob",
        instances: [12000, 12000, 12000, 12000],
        ..LEVEL
    },
    Control {
        name: "hidden_classes_renewed",
        about: "300 hidden classes that are generated anew, with new names",
        main_class: "com.acme.control.GeneratedService",
        class: "com.acme.control.TariffTable",
        instances: [300, 300, 300, 300],
        ..LEVEL
    },
    Control {
        name: "redeployed",
        about: "ten modules, each with a new class loader in each phase",
        main_class: "com.acme.control.RedeployService",
        class: "com.acme.control.DeployLoader",
        instances: [10, 10, 10, 10],
        ..LEVEL
    },
    Control {
        name: "scheduled_level",
        about: "3,000 scheduled reminders, all of them others each time",
        main_class: "com.acme.control.ScheduleService",
        class: "com.acme.control.ScheduledReminder",
        instances: [3000, 3000, 3000, 3000],
        ..LEVEL
    },
    Control {
        name: "futures_in_flight",
        about: "5,000 futures that are awaited, all of them others each time",
        main_class: "com.acme.control.FutureService",
        class: "com.acme.control.AwaitedAnswer",
        instances: [5000, 5000, 5000, 5000],
        ..LEVEL
    },
    Control {
        name: "reservoirs",
        about: "reservoirs of measured times fill, and are level then",
        main_class: "com.acme.control.ReservoirService",
        class: "com.acme.control.TimedCall",
        instances: [10000, 20000, 20000, 20000],
        ..LEVEL
    },
    Control {
        name: "time_window",
        about: "a window of the last 10,000 in a skip list",
        main_class: "com.acme.control.WindowService",
        class: "com.acme.control.Bid",
        instances: [10000, 10000, 10000, 10000],
        ..LEVEL
    },
    Control {
        name: "uneven_times",
        about: "a steady turnover, dumped at uneven times",
        main_class: "com.acme.control.UnevenService",
        class: "com.acme.control.OpenOrder",
        instances: [10000, 10000, 10000, 10000],
        ..LEVEL
    },
    Control {
        name: "idle",
        about: "a program that does nothing between dumps",
        main_class: "com.acme.control.IdleService",
        class: "com.acme.control.IdlePrice",
        instances: [12000, 12000, 12000, 12000],
        ..LEVEL
    },
    Control {
        name: "garbage",
        about: "much garbage, and nothing kept",
        main_class: "com.acme.control.GarbageService",
        class: "com.acme.control.KeptContract",
        instances: [6000, 6000, 6000, 6000],
        ..LEVEL
    },
    Control {
        name: "full_queue",
        about: "a bounded queue that fills and then is full",
        main_class: "com.acme.control.FullQueueService",
        class: "com.acme.control.Letter",
        instances: [4000, 9000, 9000, 9000],
        ..LEVEL
    },
    Control {
        name: "session_store",
        about: "5,000 sessions with attributes of varying size, most of them new in each phase",
        main_class: "com.acme.control.SessionStoreService",
        class: "com.acme.control.StoredSession",
        instances: [5000, 5000, 5000, 5000],
        ..LEVEL
    },
    Control {
        name: "rehash",
        about: "a map that is level while its table becomes twice as long",
        main_class: "com.acme.control.RehashService",
        class: "com.acme.control.Member",
        instances: [12100, 12200, 12400, 12300],
        ..LEVEL
    },
    Control {
        name: "weak_listeners",
        about: "windows that listen weakly are closed, and as many are opened",
        main_class: "com.acme.control.WeakListenerService",
        class: "com.acme.control.OpenWindow",
        instances: [2000, 2000, 2000, 2000],
        ..LEVEL
    },
    Control {
        name: "peak",
        about: "a report that takes much for a while",
        main_class: "com.acme.control.PeakService",
        class: "com.acme.control.ReportLine",
        instances: [3000, 30000, 3000, 3000],
        ..LEVEL
    },
    Control {
        name: "direct_buffer_pool",
        about: "a pool of direct buffers grows to its cap",
        main_class: "com.acme.control.DirectPoolService",
        class: "com.acme.control.PooledBuffer",
        instances: [20, 40, 40, 40],
        ..LEVEL
    },
    Control {
        name: "soft_loaders",
        about: "class loaders that only soft references hold",
        main_class: "com.acme.control.SoftLoaderService",
        class: "com.acme.control.ScriptLoader",
        instances: [40, 80, 120, 160],
        ..LEVEL
    },
    Control {
        name: "slots",
        about: "a fixed array of eight slots fills",
        main_class: "com.acme.control.SlotService",
        allowed: &["growth", "cache", "warmup"],
        class: "com.acme.control.SlotSession",
        instances: [3, 5, 6, 6],
        ..LEVEL
    },
    Control {
        name: "lent_buffers",
        about: "buffers of a pool come back from workers",
        main_class: "com.acme.control.LentBufferService",
        allowed: &["growth", "cache", "warmup"],
        class: "com.acme.control.LentBuffer",
        instances: [200, 200, 200, 200],
        ..LEVEL
    },
    Control {
        name: "queued_soft_values",
        about: "soft values with a queue, which memory is ample for",
        main_class: "com.acme.control.QueuedSoftService",
        class: "com.acme.control.SoftPage",
        instances: [1000, 2000, 3000, 4000],
        ..LEVEL
    },
    Control {
        name: "short_end",
        about: "a table fills in two long phases, and two short ones follow",
        main_class: "com.acme.control.ShortEndService",
        allowed: &["growth", "cache", "warmup"],
        class: "com.acme.control.FilledRow",
        instances: [10000, 20000, 20000, 20000],
        ..LEVEL
    },
    Control {
        name: "noisy_cache",
        about: "a full cache with a few entries more or less",
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
