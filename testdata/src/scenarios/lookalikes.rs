//! More leaks. Some look harmless at first, because the objects seem to be bounded, weakly held or short-lived. Others
//! leak into further data structures.

use super::{Growth, PLAIN, Scenario};

/// The scenarios of this module.
pub(super) const LEAKS: &[Scenario] = &[
    Scenario {
        name: "caffeine_unbounded",
        leak: "a Caffeine cache has no limit",
        main_class: "com.acme.geo.GeoServer",
        holders: &[
            "com.acme.geo.PlaceCache.places",
            "com.github.benmanes.caffeine.cache.UnboundedLocalCache.data",
        ],
        classes: &["com.acme.geo.Place"],
        allocator: "com.acme.geo.GeoServer.work",
        libraries: true,
        growth: Growth::Instances(8000),
        ..PLAIN
    },
    Scenario {
        name: "guava_unbounded",
        leak: "a Guava cache has no limit",
        main_class: "com.acme.fares.FareServer",
        holders: &[
            "com.acme.fares.FareServer.fares",
            "com.google.common.cache.LocalCache.segments",
        ],
        classes: &["com.acme.fares.Fare"],
        allocator: "com.acme.fares.FareServer.work",
        libraries: true,
        growth: Growth::Instances(8000),
        ..PLAIN
    },
    Scenario {
        name: "expiry_without_size",
        leak: "the entries of a cache expire only after an hour, and their number has no limit",
        main_class: "com.acme.tokens.TokenServer",
        holders: &[
            "com.acme.tokens.TokenStore.tokens",
            "com.github.benmanes.caffeine.cache.BoundedLocalCache.data",
        ],
        classes: &["com.acme.tokens.Token"],
        allocator: "com.acme.tokens.TokenServer.work",
        libraries: true,
        growth: Growth::Instances(7000),
        ..PLAIN
    },
    Scenario {
        name: "limits_that_bound_nothing",
        leak: "a table has fields named max, limit and capacity, but no code reads them",
        main_class: "com.acme.rates.RateServer",
        holders: &["com.acme.rates.RateTable.rates"],
        classes: &["com.acme.rates.ExchangeRate"],
        allocator: "com.acme.rates.RateServer.work",
        growth: Growth::Instances(9000),
        ..PLAIN
    },
    Scenario {
        name: "eldest_never_removed",
        leak: "the removeEldestEntry method of a linked map always returns false",
        main_class: "com.acme.lookup.LookupServer",
        holders: &["com.acme.lookup.LookupServer.cache"],
        classes: &["com.acme.lookup.Answer"],
        allocator: "com.acme.lookup.LookupServer.work",
        growth: Growth::Instances(9000),
        ..PLAIN
    },
    Scenario {
        name: "weak_keys_that_live",
        leak: "the keys of a weak map stay alive, and its values grow",
        main_class: "com.acme.notes.NoteServer",
        holders: &["com.acme.notes.NoteBook.notes"],
        classes: &["com.acme.notes.Note"],
        allocator: "com.acme.notes.NoteServer.work",
        growth: Growth::Instances(12000),
        ..PLAIN
    },
    Scenario {
        name: "bounded_queue_of_lists",
        leak: "a queue is full with 60 batches, and each batch grows",
        main_class: "com.acme.intake.IntakeServer",
        holders: &[
            "com.acme.intake.Batch.forms",
            "com.acme.intake.Intake.batches",
        ],
        classes: &["com.acme.intake.Form"],
        allocator: "com.acme.intake.IntakeServer.work",
        growth: Growth::Instances(12000),
        ..PLAIN
    },
    Scenario {
        name: "lost_connections",
        leak: "a pool keeps a list of all connections, and the connections are never returned",
        main_class: "com.acme.orders.OrderServer",
        holders: &["com.acme.orders.DatabasePool.taken"],
        classes: &["com.acme.orders.DatabaseConnection"],
        allocator: "com.acme.orders.OrderServer.work",
        growth: Growth::Instances(300),
        ..PLAIN
    },
    Scenario {
        name: "ring_of_lists",
        leak: "a ring always has 50 elements, and each element grows",
        main_class: "com.acme.console.ConsoleServer",
        holders: &[
            "com.acme.console.Console.lines",
            "com.acme.console.ConsoleRing.consoles",
        ],
        classes: &["com.acme.console.ConsoleLine"],
        allocator: "com.acme.console.ConsoleServer.work",
        growth: Growth::Instances(12000),
        ..PLAIN
    },
    Scenario {
        name: "unique_texts",
        leak: "a table interns strings and removes none",
        main_class: "com.acme.words.WordServer",
        holders: &["com.acme.words.UniqueTexts.known"],
        classes: &[
            "java.lang.String",
            "java.util.concurrent.ConcurrentHashMap$Node",
        ],
        allocator: "com.acme.words.WordServer.work",
        growth: Growth::Instances(11900),
        ..PLAIN
    },
    Scenario {
        name: "property_listeners",
        leak: "closed views are not removed from a list of listeners",
        main_class: "com.acme.sheet.SheetServer",
        holders: &[
            "com.acme.sheet.Sheet.changes",
            "java.beans.PropertyChangeSupport.map",
            "java.beans.ChangeListenerMap.map",
            "java.beans.PropertyChangeSupport$PropertyChangeListenerMap.map",
        ],
        classes: &["com.acme.sheet.SheetView"],
        allocator: "com.acme.sheet.SheetServer.work",
        detector: Some("listener"),
        growth: Growth::Instances(3000),
        ..PLAIN
    },
    Scenario {
        name: "log_handlers",
        leak: "each request adds a handler to a logger and does not remove it",
        main_class: "com.acme.trace.TraceServer",
        holders: &[
            "com.acme.trace.TraceServer.LOG",
            "java.util.logging.Logger.handlers",
            "java.util.logging.Logger$ConfigurationData.handlers",
            "java.util.logging.Logger.config",
        ],
        classes: &["com.acme.trace.RequestHandler"],
        allocator: "com.acme.trace.TraceServer.work",
        growth: Growth::Instances(2000),
        ..PLAIN
    },
    Scenario {
        name: "hidden_classes",
        leak: "each rule is compiled to a hidden class, and a list keeps all these classes",
        main_class: "com.acme.rules.RuleServer",
        holders: &["com.acme.rules.RuleBook.rules"],
        classes: &["com.acme.rules.Discount*", "long[]", "java.lang.Class"],
        allocator: "com.acme.rules.RuleServer.work",
        growth: Growth::Instances(400),
        ..PLAIN
    },
    Scenario {
        name: "proxies",
        leak: "each call creates a proxy, and a journal keeps all proxies",
        main_class: "com.acme.remote.RemoteServer",
        holders: &["com.acme.remote.CallJournal.stubs"],
        classes: &[
            "com.acme.remote.RetryHandler",
            "com.acme.remote.$Proxy*",
            "jdk.proxy*",
        ],
        allocator: "com.acme.remote.RemoteServer.work",
        growth: Growth::Instances(6000),
        ..PLAIN
    },
    Scenario {
        name: "event_bus",
        leak: "closed pages are not unsubscribed from an event bus, which holds them through lambdas",
        main_class: "com.acme.bus.ShopFloor",
        holders: &["com.acme.bus.EventBus.subscribers"],
        classes: &["com.acme.bus.Page", "com.acme.bus.ShopFloor$$Lambda*"],
        allocator: "com.acme.bus.ShopFloor.work",
        detector: Some("listener"),
        growth: Growth::Instances(1500),
        ..PLAIN
    },
    Scenario {
        name: "weak_listener_held_by_lambda",
        leak: "a weak reference and a lambda refer to each listener, so the lambda keeps it alive",
        main_class: "com.acme.editor.EditorServer",
        holders: &["com.acme.editor.CloseTasks.onExit"],
        classes: &[
            "com.acme.editor.Pane",
            "com.acme.editor.EditorServer$$Lambda*",
        ],
        allocator: "com.acme.editor.EditorServer.work",
        growth: Growth::Instances(5000),
        ..PLAIN
    },
    Scenario {
        name: "repeated_tasks",
        leak: "a periodic task for each device is not cancelled after the device disconnects",
        main_class: "com.acme.probes.ProbeServer",
        holders: &[
            "com.acme.probes.Probes.timer",
            "java.util.concurrent.ScheduledThreadPoolExecutor$DelayedWorkQueue.queue",
            "java.util.concurrent.ThreadPoolExecutor.workQueue",
        ],
        classes: &[
            "com.acme.probes.Probe",
            "java.util.concurrent.ScheduledThreadPoolExecutor$ScheduledFutureTask",
        ],
        allocator: "com.acme.probes.ProbeServer.work",
        detector: Some("timer"),
        growth: Growth::Instances(5000),
        ..PLAIN
    },
    Scenario {
        name: "chained_futures",
        leak: "each step waits for the previous step, and the first waits for a future that never completes",
        main_class: "com.acme.saga.SagaServer",
        holders: &[
            "com.acme.saga.Saga.first",
            "com.acme.saga.Saga.last",
            "java.util.concurrent.CompletableFuture.stack",
        ],
        classes: &[
            "com.acme.saga.Step",
            "java.util.concurrent.CompletableFuture",
            "java.util.concurrent.CompletableFuture$UniApply",
            "com.acme.saga.SagaServer$$Lambda*",
        ],
        allocator: "com.acme.saga.SagaServer.work",
        growth: Growth::Instances(6000),
        ..PLAIN
    },
    Scenario {
        name: "class_value",
        leak: "a ClassValue stores a list for each class, and every call adds an element to a list",
        main_class: "com.acme.usage.UsageServer",
        holders: &["com.acme.usage.CallCounts.calls"],
        classes: &["com.acme.usage.Call"],
        allocator: "com.acme.usage.UsageServer.work",
        growth: Growth::Instances(12000),
        ..PLAIN
    },
    Scenario {
        name: "loaders_of_one_class",
        leak: "each phase creates 250 class loaders for the same class, and the loaded classes hold them",
        main_class: "com.acme.scripts.ScriptServer",
        holders: &["com.acme.scripts.ScriptCache.compiled"],
        classes: &[
            "com.acme.scripts.TotalScript",
            "com.acme.scripts.ScriptLoader",
            "long[]",
            "java.lang.Class",
        ],
        allocator: "com.acme.scripts.ScriptServer.work",
        detector: Some("class-loader"),
        growth: Growth::Instances(250),
        ..PLAIN
    },
    Scenario {
        name: "mapper_session",
        leak: "an object-relational session is never closed: it keeps each entity and its loaded state",
        main_class: "com.acme.orm.BatchImport",
        holders: &[
            "com.acme.orm.MapperSession.loaded",
            "com.acme.orm.MapperSession.entities",
            "com.acme.orm.BatchImport.session",
        ],
        classes: &["com.acme.orm.Customer", "java.lang.Object[]"],
        allocator: "com.acme.orm.MapperSession.load",
        growth: Growth::Instances(6000),
        ..PLAIN
    },
    Scenario {
        name: "skip_list",
        leak: "old positions are not removed from a skip list",
        main_class: "com.acme.fleet.FleetServer",
        holders: &["com.acme.fleet.Track.byTime"],
        classes: &["com.acme.fleet.Position"],
        allocator: "com.acme.fleet.FleetServer.work",
        growth: Growth::Instances(9000),
        ..PLAIN
    },
    Scenario {
        name: "enum_map",
        leak: "alerts stay in an enum map that has a list for each level",
        main_class: "com.acme.alerts.AlertServer",
        holders: &["com.acme.alerts.AlertBoard.byLevel"],
        classes: &["com.acme.alerts.Alert"],
        allocator: "com.acme.alerts.AlertServer.work",
        growth: Growth::Instances(10000),
        ..PLAIN
    },
    Scenario {
        name: "bit_set",
        leak: "a bit set grows and is never cleared",
        main_class: "com.acme.dedup.DedupServer",
        holders: &["com.acme.dedup.SeenNumbers.bits", "java.util.BitSet.words"],
        classes: &["long[]"],
        allocator: "com.acme.dedup.DedupServer.work",
        growth: Growth::Bytes(1000000),
        ..PLAIN
    },
    Scenario {
        name: "undo_history",
        leak: "an undo history keeps every stroke and has no limit",
        main_class: "com.acme.draw.DrawServer",
        holders: &["com.acme.draw.UndoHistory.edits"],
        classes: &["com.acme.draw.Edit"],
        allocator: "com.acme.draw.DrawServer.work",
        growth: Growth::Instances(6000),
        ..PLAIN
    },
    Scenario {
        name: "nested_settings",
        leak: "each reload creates settings that refer to the previous settings, so a chain grows",
        main_class: "com.acme.settings.SettingsServer",
        holders: &[
            "com.acme.settings.SettingsStore.current",
            "com.acme.settings.Settings.fallback",
        ],
        classes: &["com.acme.settings.Settings"],
        allocator: "com.acme.settings.SettingsServer.work",
        growth: Growth::Instances(500),
        ..PLAIN
    },
    Scenario {
        name: "read_while_dumped_leak",
        leak: "a linked journal grows, and another thread reads it during the dump",
        main_class: "com.acme.ledger.LedgerServer",
        holders: &[
            "com.acme.ledger.Journal.first",
            "com.acme.ledger.Journal.last",
            "com.acme.ledger.LedgerServer.journal",
        ],
        classes: &["com.acme.ledger.JournalEntry"],
        allocator: "com.acme.ledger.LedgerServer.work",
        growth: Growth::Instances(10000),
        ..PLAIN
    },
    Scenario {
        name: "steady_leak_uneven_times",
        leak: "a list grows at a constant rate, and the third dump is taken soon after the second",
        main_class: "com.acme.meter.MeterServer",
        holders: &["com.acme.meter.MeterStore.readings"],
        classes: &["com.acme.meter.MeterReading"],
        allocator: "com.acme.meter.MeterServer.work",
        growth: Growth::Instances(1500),
        ..PLAIN
    },
    Scenario {
        name: "sessions_with_attributes",
        leak: "sessions stay in a map with all their attributes and notes, which is a single leak",
        main_class: "com.acme.portal.PortalServer",
        holders: &["com.acme.portal.SessionManager.sessions"],
        classes: &["com.acme.portal.PortalSession"],
        allocator: "com.acme.portal.PortalServer.work",
        growth: Growth::Instances(3000),
        ..PLAIN
    },
    Scenario {
        name: "guava_multimap",
        leak: "articles stay in a Guava multimap",
        main_class: "com.acme.tags.TagServer",
        holders: &["com.acme.tags.TagIndex.byTag"],
        classes: &["com.acme.tags.Article"],
        allocator: "com.acme.tags.TagServer.work",
        libraries: true,
        growth: Growth::Instances(8000),
        ..PLAIN
    },
    Scenario {
        name: "library_list",
        leak: "trades stay in a list class of a collections library",
        main_class: "com.acme.trades.TradeServer",
        holders: &["com.acme.trades.TradeBook.trades"],
        classes: &["com.acme.trades.Trade"],
        allocator: "com.acme.trades.TradeServer.work",
        libraries: true,
        growth: Growth::Instances(9000),
        ..PLAIN
    },
    Scenario {
        name: "own_table",
        leak: "one of three instances of the application's own hash table never removes entries",
        main_class: "com.acme.seats.SeatServer",
        holders: &["com.acme.seats.Theatre.bookings"],
        classes: &["com.acme.seats.SeatBooking"],
        allocator: "com.acme.seats.SeatServer.work",
        growth: Growth::Instances(8000),
        ..PLAIN
    },
    Scenario {
        name: "cancelled_contracts",
        leak: "cancelled contracts stay in a priority queue until their deadline",
        main_class: "com.acme.deadlines.DeadlineServer",
        holders: &["com.acme.deadlines.Deadlines.waiting"],
        classes: &["com.acme.deadlines.Contract"],
        allocator: "com.acme.deadlines.DeadlineServer.work",
        growth: Growth::Instances(8000),
        ..PLAIN
    },
    Scenario {
        name: "threads_that_wait",
        leak: "each upload starts a thread that waits for a signal which never comes",
        main_class: "com.acme.workers.WorkerServer",
        // Each thread is a GC root, so a report may also name the threads themselves as the holder.
        holders: &["com.acme.workers.Uploads.running", "thread"],
        classes: &["com.acme.workers.Upload"],
        allocator: "com.acme.workers.WorkerServer.work",
        growth: Growth::Instances(60),
        ..PLAIN
    },
    Scenario {
        name: "classes_in_a_map",
        leak: "a map keeps hidden classes, and each class has a table in a static field",
        main_class: "com.acme.formula.FormulaServer",
        holders: &["com.acme.formula.FormulaCache.compiled"],
        classes: &[
            "double[]",
            "java.lang.Class",
            "class com.acme.formula.Formula",
        ],
        allocator: "com.acme.formula.FormulaServer.work",
        growth: Growth::Instances(300),
        ..PLAIN
    },
    Scenario {
        name: "classes_of_one_family",
        leak: "each query defines a strong hidden class, which stays as long as its class loader",
        main_class: "com.acme.plans.PlanServer",
        holders: &[
            "jdk.internal.loader.ClassLoaders$AppClassLoader",
            "jdk.internal.loader.ClassLoaders.APP_LOADER",
        ],
        classes: &["double[]", "java.lang.Class", "class com.acme.plans.Plan"],
        allocator: "com.acme.plans.PlanServer.work",
        growth: Growth::Instances(300),
        ..PLAIN
    },
    Scenario {
        name: "open_chunks",
        leak: "direct buffers stay in a list in an instance field",
        main_class: "com.acme.chunks.ChunkServer",
        holders: &["com.acme.chunks.ChunkServer.open"],
        classes: &["java.nio.DirectByteBuffer"],
        allocator: "com.acme.chunks.ChunkServer.work",
        detector: Some("direct-buffer"),
        growth: Growth::Instances(100),
        ..PLAIN
    },
    Scenario {
        name: "chain_beside_a_cache",
        leak: "a chain grows at its end, and a bounded cache refers to its last elements",
        main_class: "com.acme.journal.JournalServer",
        holders: &["com.acme.journal.Journal.first"],
        classes: &["com.acme.journal.Entry"],
        allocator: "com.acme.journal.JournalServer.work",
        growth: Growth::Instances(10000),
        ..PLAIN
    },
    Scenario {
        name: "two_lists_of_one_class",
        leak: "a queue has two lists, and elements of the second list are never removed",
        main_class: "com.acme.batches.BatchServer",
        holders: &["com.acme.batches.TicketQueue.closed"],
        classes: &["com.acme.batches.Ticket"],
        allocator: "com.acme.batches.BatchServer.work",
        growth: Growth::Instances(8000),
        ..PLAIN
    },
    Scenario {
        name: "soft_values_strong_entries",
        leak: "the GC clears the soft values of a map, but the keys and entries stay",
        main_class: "com.acme.vault.VaultServer",
        holders: &["com.acme.vault.Vault.documents"],
        classes: &["java.lang.ref.SoftReference", "byte[]"],
        allocator: "com.acme.vault.VaultServer.work",
        growth: Growth::Instances(12000),
        ..PLAIN
    },
    Scenario {
        name: "an_import_then_users",
        leak: "a table grows much in one phase and less in the others, and no entry is removed",
        main_class: "com.acme.dictionary.DictionaryServer",
        holders: &["com.acme.dictionary.Dictionary.terms"],
        classes: &["com.acme.dictionary.Term"],
        allocator: "com.acme.dictionary.DictionaryServer.work",
        growth: Growth::Instances(200),
        ..PLAIN
    },
    Scenario {
        name: "slower_after_the_start",
        leak: "a table grows fast at the start, and later continues to grow more slowly",
        main_class: "com.acme.names.NameServer",
        holders: &["com.acme.names.NameTable.names"],
        classes: &["com.acme.names.Name"],
        allocator: "com.acme.names.NameServer.work",
        growth: Growth::Instances(6000),
        ..PLAIN
    },
    Scenario {
        name: "limits_of_others",
        leak: "a map has no limit, but classes near it have fields with limits",
        main_class: "com.acme.shards.ShardServer",
        holders: &["com.acme.shards.ShardTable.shards"],
        classes: &["com.acme.shards.Shard"],
        allocator: "com.acme.shards.ShardServer.work",
        growth: Growth::Instances(8000),
        ..PLAIN
    },
];
