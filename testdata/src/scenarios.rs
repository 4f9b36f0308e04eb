//! The leak scenarios and what a right report says about each.
//!
//! A scenario is one Java program in `testdata/scenarios`, below the folders of its package, as a JDK
//! of today wants it when it runs a source file. It is run with `leak` or `fixed` and reports three phases by the
//! protocol of [`Target`]. In `leak` mode every phase adds the same to what is kept; in `fixed` mode it
//! does the same work with the leak mended, and nothing grows.

use crate::jvm::{Jdk, JvmError, Launch, Target};
use std::path::{Path, PathBuf};

/// How many times each scenario prints `READY`.
pub const PHASES: u32 = 3;

/// Whether the program leaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Every phase keeps more.
    Leak,
    /// The same work, mended: nothing grows.
    Fixed,
}

impl Mode {
    /// The program's argument.
    pub fn argument(self) -> &'static str {
        match self {
            Mode::Leak => "leak",
            Mode::Fixed => "fixed",
        }
    }
}

/// What each phase adds at least, counted in the first of a scenario's `classes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Growth {
    /// More objects.
    Instances(u64),
    /// Larger objects.
    Bytes(u64),
}

/// A program that leaks in a known way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scenario {
    /// A short name for tests.
    pub name: &'static str,
    /// What leaks, for the reader of a failed test.
    pub leak: &'static str,
    /// The class with `main`; its name gives the source file.
    pub main_class: &'static str,
    /// The fields that a report may name as the holder, the best first.
    pub holders: &'static [&'static str],
    /// The classes that a report may name as what accumulates, the best first. A `*` at the end stands
    /// for the number that the JVM adds to a hidden class.
    pub classes: &'static [&'static str],
    /// The method that allocates what leaks, or that calls what does; nothing else in the program does so
    /// below it.
    pub allocator: &'static str,
    /// Whether the best holder is a static field.
    pub is_static: bool,
    /// What each phase adds.
    pub growth: Growth,
}

/// The plainest leak; the dumps kept beside the tests are of this one.
pub const SESSION_REGISTRY: Scenario = Scenario {
    name: "session_registry",
    leak: "sessions stay in a static concurrent map after logout",
    main_class: "com.acme.shop.ShopServer",
    holders: &["com.acme.shop.SessionRegistry.sessions"],
    classes: &["com.acme.shop.Session"],
    allocator: "com.acme.shop.ShopServer.serve",
    is_static: true,
    growth: Growth::Instances(5_000),
};

/// Every scenario.
pub const ALL: &[Scenario] = &[
    SESSION_REGISTRY,
    Scenario {
        name: "static_list",
        leak: "events stay in a static list after they are stored",
        main_class: "com.acme.audit.AuditService",
        holders: &["com.acme.audit.AuditTrail.events"],
        classes: &["com.acme.audit.AuditEvent"],
        allocator: "com.acme.audit.AuditService.work",
        is_static: true,
        growth: Growth::Instances(12_000),
    },
    Scenario {
        name: "unbounded_cache",
        leak: "a hash map serves as a cache that evicts nothing; a local variable holds it",
        main_class: "com.acme.catalog.PriceService",
        holders: &["com.acme.catalog.PriceCache.quotes"],
        classes: &["com.acme.catalog.PriceQuote"],
        allocator: "com.acme.catalog.PriceService.work",
        is_static: false,
        growth: Growth::Instances(9_000),
    },
    Scenario {
        name: "slow_consumer",
        leak: "a hand-made linked queue fills faster than it is drained",
        main_class: "com.acme.mail.MailRelay",
        holders: &[
            "com.acme.mail.Outbox.head",
            "com.acme.mail.Outbox.tail",
            "com.acme.mail.MailRelay.outbox",
        ],
        classes: &["com.acme.mail.Outbox$Mail"],
        allocator: "com.acme.mail.MailRelay.work",
        is_static: false,
        growth: Growth::Instances(12_000),
    },
    Scenario {
        name: "listeners",
        leak: "closed panels stay subscribed",
        main_class: "com.acme.ui.DashboardApp",
        holders: &["com.acme.ui.PriceFeed.listeners"],
        classes: &["com.acme.ui.DashboardPanel"],
        allocator: "com.acme.ui.DashboardApp.work",
        is_static: false,
        growth: Growth::Instances(4_000),
    },
    Scenario {
        name: "thread_local",
        leak: "pooled threads never clear the request's thread local; three of them share the growth",
        main_class: "com.acme.render.RenderServer",
        holders: &["com.acme.render.RequestContext.spans"],
        classes: &["com.acme.render.Span"],
        allocator: "com.acme.render.RenderServer.render",
        is_static: false,
        growth: Growth::Instances(15_000),
    },
    Scenario {
        name: "class_loaders",
        leak: "loaders of former deployments stay registered, with their classes and statics",
        main_class: "com.acme.plugin.PluginHost",
        holders: &["com.acme.plugin.PluginRegistry.loaders"],
        classes: &["com.acme.plugin.PluginLoader", "byte[]"],
        allocator: "com.acme.plugin.PluginHost.work",
        is_static: false,
        growth: Growth::Instances(150),
    },
    Scenario {
        name: "captured_by_lambda",
        leak: "a clean-up task captures the whole import and is never taken back",
        main_class: "com.acme.jobs.ImportServer",
        holders: &["com.acme.jobs.ShutdownTasks.pending"],
        classes: &[
            "com.acme.jobs.ImportJob",
            "com.acme.jobs.ImportJob$$Lambda*",
        ],
        allocator: "com.acme.jobs.ImportServer.work",
        is_static: true,
        growth: Growth::Instances(3_000),
    },
    Scenario {
        name: "tenant_map",
        leak: "a map of maps of lists grows by a little in each of 720 lists",
        main_class: "com.acme.billing.BillingServer",
        holders: &["com.acme.billing.InvoiceStore.byTenant"],
        classes: &["com.acme.billing.Invoice"],
        allocator: "com.acme.billing.BillingServer.work",
        is_static: false,
        growth: Growth::Instances(15_000),
    },
    Scenario {
        name: "key_without_equals",
        leak: "the key class of a map has no equals, so each look-up adds an entry",
        main_class: "com.acme.routing.Router",
        holders: &["com.acme.routing.RouteTable.routes"],
        classes: &["com.acme.routing.RouteKey", "com.acme.routing.Route"],
        allocator: "com.acme.routing.Router.work",
        is_static: false,
        growth: Growth::Instances(12_000),
    },
    Scenario {
        name: "finalizer_backlog",
        leak: "one finalizer waits for ever and all others queue up behind it",
        main_class: "com.acme.image.ThumbnailServer",
        holders: &[
            "java.lang.ref.Finalizer.queue",
            "java.lang.ref.Finalizer.unfinalized",
            "java.lang.ref.ReferenceQueue.head",
        ],
        classes: &["com.acme.image.NativeImage", "java.lang.ref.Finalizer"],
        allocator: "com.acme.image.ThumbnailServer.render",
        is_static: true,
        growth: Growth::Instances(10_000),
    },
    Scenario {
        name: "direct_buffers",
        leak: "direct buffers return to a pool that never hands them out again",
        main_class: "com.acme.io.ProxyServer",
        // The JDK's list of cleaners grows along with the pool.
        holders: &[
            "com.acme.io.BufferPool.idle",
            "jdk.internal.ref.Cleaner.first",
        ],
        classes: &["java.nio.DirectByteBuffer", "jdk.internal.ref.Cleaner"],
        allocator: "com.acme.io.BufferPool.acquire",
        is_static: false,
        growth: Growth::Instances(8_000),
    },
    Scenario {
        name: "delete_on_exit",
        leak: "every temporary file is to be deleted on exit; the JDK holds the names",
        main_class: "com.acme.export.ExportService",
        holders: &["java.io.DeleteOnExitHook.files"],
        classes: &["java.lang.String"],
        allocator: "com.acme.export.ExportService.work",
        is_static: true,
        growth: Growth::Instances(9_000),
    },
    Scenario {
        name: "growing_text",
        leak: "a string builder is appended to and never flushed: one object that grows",
        main_class: "com.acme.report.ReportServer",
        holders: &["com.acme.report.TraceLog.text"],
        classes: &["byte[]"],
        allocator: "com.acme.report.TraceLog.line",
        is_static: false,
        growth: Growth::Bytes(1_000_000),
    },
    Scenario {
        name: "tree_index",
        leak: "expired documents leave the store but not the tree map that indexes them",
        main_class: "com.acme.search.SearchServer",
        holders: &["com.acme.search.TimeIndex.postings"],
        classes: &["com.acme.search.Posting"],
        allocator: "com.acme.search.TimeIndex.add",
        is_static: false,
        growth: Growth::Instances(12_000),
    },
    Scenario {
        name: "queue_and_table",
        leak: "messages stay both in a queue and in a table, neither of which dominates them",
        main_class: "com.acme.broker.MessageBroker",
        holders: &[
            "com.acme.broker.Topic.queue",
            "com.acme.broker.Topic.byId",
            "com.acme.broker.MessageBroker.orders",
        ],
        classes: &["com.acme.broker.Message"],
        allocator: "com.acme.broker.MessageBroker.work",
        is_static: false,
        growth: Growth::Instances(12_000),
    },
    Scenario {
        name: "weak_map_value_refers_to_key",
        leak: "the values of a weak map refer to their keys, so no entry ever goes",
        main_class: "com.acme.meta.SchemaServer",
        holders: &["com.acme.meta.SchemaCache.schemas"],
        classes: &["com.acme.meta.Schema", "com.acme.meta.TableKey"],
        allocator: "com.acme.meta.SchemaServer.work",
        is_static: true,
        growth: Growth::Instances(9_000),
    },
];

/// The scenario of this name.
pub fn by_name(name: &str) -> Option<&'static Scenario> {
    ALL.iter().find(|scenario| scenario.name == name)
}

impl Scenario {
    /// The source file, relative to `testdata/scenarios`.
    pub fn source(&self) -> PathBuf {
        let mut path: PathBuf = self.main_class.split('.').collect();
        path.set_extension("java");
        path
    }

    /// The source file.
    pub fn source_path(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("scenarios")
            .join(self.source())
    }

    /// Compiles the program, unless that has been done before, and says how to start it; flags may be added.
    pub fn launch(&self, jdk: &Jdk, mode: Mode) -> Result<Launch, JvmError> {
        let classes = jdk.compile(&self.source_path())?;
        let launch = Launch::class(jdk, classes, self.main_class);
        Ok(launch.flag("-Xmx128m").arg(mode.argument()))
    }

    /// Starts the program and waits for its first phase.
    pub fn start(&self, jdk: &Jdk, mode: Mode) -> Result<Target, JvmError> {
        let mut target = self.launch(jdk, mode)?.start()?;
        target.wait_ready(1)?;
        Ok(target)
    }

    /// Whether a report that names this holder is right.
    pub fn accepts_holder(&self, holder: &str) -> bool {
        self.holders.contains(&holder)
    }

    /// Whether a stack goes through the method that allocates what leaks; frames are as in Java stack traces.
    pub fn accepts_stack(&self, frames: &[String]) -> bool {
        frames.iter().any(|frame| {
            let rest = frame.strip_prefix(self.allocator);
            rest.is_some_and(|rest| rest.starts_with(['(', ' ']))
        })
    }

    /// Whether a report that names this as the class that accumulates is right.
    pub fn accepts_class(&self, class: &str) -> bool {
        self.classes
            .iter()
            .any(|expected| match expected.strip_suffix('*') {
                Some(prefix) => class.starts_with(prefix),
                None => class == *expected,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_sources_exist() {
        let names: BTreeSet<_> = ALL.iter().map(|scenario| scenario.name).collect();
        assert_eq!(names.len(), ALL.len());
        for scenario in ALL {
            assert!(
                scenario.source_path().is_file(),
                "{}",
                scenario.source_path().display()
            );
            assert!(!scenario.holders.is_empty() && !scenario.classes.is_empty());
            assert_eq!(by_name(scenario.name), Some(scenario));
        }
    }

    #[test]
    fn a_holder_in_an_application_class_is_declared_in_the_source() {
        for scenario in ALL {
            let source = std::fs::read_to_string(scenario.source_path()).unwrap_or_default();
            for holder in scenario
                .holders
                .iter()
                .filter(|holder| holder.starts_with("com.acme."))
            {
                let (class, field) = holder.rsplit_once('.').unwrap_or_default();
                let class = class.rsplit('.').next().unwrap_or_default();
                assert!(source.contains(&format!("class {class}")), "{holder}");
                let declared = |end: &str| source.contains(&format!(" {field}{end}"));
                assert!(declared(";") || declared(" ="), "{holder}");
            }
        }
    }

    #[test]
    fn an_allocator_is_a_method_in_the_source() {
        for scenario in ALL {
            let source = std::fs::read_to_string(scenario.source_path()).unwrap_or_default();
            let (class, method) = scenario.allocator.rsplit_once('.').unwrap_or_default();
            let class = class.rsplit('.').next().unwrap_or_default();
            assert!(source.contains(&format!("class {class} ")), "{class}");
            assert!(source.contains(&format!(" {method}(")), "{method}");
        }
    }

    #[test]
    fn stacks_go_through_a_method() {
        let through = |frame: &str| SESSION_REGISTRY.accepts_stack(&[frame.to_owned()]);
        assert!(through(
            "com.acme.shop.ShopServer.serve(ShopServer.java:30)"
        ));
        assert!(through(
            "com.acme.shop.ShopServer.serve (lambda)(ShopServer.java:30)"
        ));
        assert!(!through(
            "com.acme.shop.ShopServer.serves(ShopServer.java:30)"
        ));
        assert!(!through(
            "com.acme.shop.ShopServer.main(ShopServer.java:43)"
        ));
    }

    #[test]
    fn the_star_stands_for_what_the_jvm_adds() {
        let scenario = by_name("captured_by_lambda").expect("it is in the table");
        assert!(scenario.accepts_class("com.acme.jobs.ImportJob"));
        assert!(scenario.accepts_class("com.acme.jobs.ImportJob$$Lambda$14/0x0000000800c03000"));
        assert!(!scenario.accepts_class("com.acme.jobs.ImportJobs"));
        assert!(scenario.accepts_holder("com.acme.jobs.ShutdownTasks.pending"));
    }
}
