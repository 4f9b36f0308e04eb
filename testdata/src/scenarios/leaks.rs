//! The table of leaks.

use super::{Expected, Growth, PLAIN, Scenario};

/// The simplest leak. The dumps that are stored in the repository come from this program.
pub const SESSION_REGISTRY: Scenario = Scenario {
    name: "session_registry",
    leak: "sessions stay in a static concurrent map after logout",
    main_class: "com.acme.shop.ShopServer",
    holders: &["com.acme.shop.SessionRegistry.sessions"],
    classes: &["com.acme.shop.Session"],
    allocator: "com.acme.shop.ShopServer.serve",
    growth: Growth::Instances(5_000),
    ..PLAIN
};

/// The scenarios at the start of [`super::ALL`], the list of all scenarios. The first of them are [`super::CORE`].
pub(super) const LEAKS: &[Scenario] = &[
    SESSION_REGISTRY,
    Scenario {
        name: "static_list",
        leak: "events stay in a static list after they are stored",
        main_class: "com.acme.audit.AuditService",
        holders: &["com.acme.audit.AuditTrail.events"],
        classes: &["com.acme.audit.AuditEvent"],
        allocator: "com.acme.audit.AuditService.work",
        growth: Growth::Instances(12_000),
        ..PLAIN
    },
    Scenario {
        name: "unbounded_cache",
        leak: "a local variable holds a hash map that serves as a cache and evicts nothing",
        main_class: "com.acme.catalog.PriceService",
        holders: &["com.acme.catalog.PriceCache.quotes"],
        classes: &["com.acme.catalog.PriceQuote"],
        allocator: "com.acme.catalog.PriceService.work",
        growth: Growth::Instances(9_000),
        ..PLAIN
    },
    Scenario {
        name: "slow_consumer",
        leak: "a linked queue of the application's own class receives more elements than are taken out",
        main_class: "com.acme.mail.MailRelay",
        holders: &[
            "com.acme.mail.Outbox.head",
            "com.acme.mail.Outbox.tail",
            "com.acme.mail.MailRelay.outbox",
        ],
        classes: &["com.acme.mail.Outbox$Mail"],
        allocator: "com.acme.mail.MailRelay.work",
        detector: Some("queue"),
        growth: Growth::Instances(12_000),
        ..PLAIN
    },
    Scenario {
        name: "listeners",
        leak: "closed panels are not removed from a list of listeners",
        main_class: "com.acme.ui.DashboardApp",
        holders: &["com.acme.ui.PriceFeed.listeners"],
        classes: &["com.acme.ui.DashboardPanel"],
        allocator: "com.acme.ui.DashboardApp.work",
        detector: Some("listener"),
        growth: Growth::Instances(4_000),
        ..PLAIN
    },
    Scenario {
        name: "thread_local",
        leak: "three pooled threads never clear the thread local of a request, so its value grows in each",
        main_class: "com.acme.render.RenderServer",
        holders: &["com.acme.render.RequestContext.spans"],
        classes: &["com.acme.render.Span"],
        allocator: "com.acme.render.RenderServer.render",
        detector: Some("thread-local"),
        growth: Growth::Instances(15_000),
        ..PLAIN
    },
    Scenario {
        name: "class_loaders",
        leak: "the class loaders of former deployments stay registered",
        main_class: "com.acme.plugin.PluginHost",
        holders: &["com.acme.plugin.PluginRegistry.loaders"],
        classes: &["com.acme.plugin.PluginLoader", "byte[]"],
        allocator: "com.acme.plugin.PluginHost.work",
        detector: Some("class-loader"),
        growth: Growth::Instances(150),
        ..PLAIN
    },
    Scenario {
        name: "captured_by_lambda",
        leak: "the lambda of a clean-up task captures a whole import, and the task is never deregistered",
        main_class: "com.acme.jobs.ImportServer",
        holders: &["com.acme.jobs.ShutdownTasks.pending"],
        classes: &[
            "com.acme.jobs.ImportJob",
            "com.acme.jobs.ImportJob$$Lambda*",
        ],
        allocator: "com.acme.jobs.ImportServer.work",
        growth: Growth::Instances(3_000),
        ..PLAIN
    },
    Scenario {
        name: "tenant_map",
        leak: "a map of maps contains 720 lists, and each list grows a little",
        main_class: "com.acme.billing.BillingServer",
        holders: &["com.acme.billing.InvoiceStore.byTenant"],
        classes: &["com.acme.billing.Invoice"],
        allocator: "com.acme.billing.BillingServer.work",
        growth: Growth::Instances(15_000),
        ..PLAIN
    },
    Scenario {
        name: "key_without_equals",
        leak: "the key class of a map has no equals, so each look-up adds an entry",
        main_class: "com.acme.routing.Router",
        holders: &["com.acme.routing.RouteTable.routes"],
        classes: &["com.acme.routing.RouteKey", "com.acme.routing.Route"],
        allocator: "com.acme.routing.Router.work",
        detector: Some("hash-key"),
        growth: Growth::Instances(12_000),
        ..PLAIN
    },
    Scenario {
        name: "finalizer_backlog",
        leak: "one finalizer waits for ever, and all later finalizers wait in the queue behind it",
        main_class: "com.acme.image.ThumbnailServer",
        holders: &[
            "java.lang.ref.Finalizer.queue",
            "java.lang.ref.Finalizer.unfinalized",
            "java.lang.ref.ReferenceQueue.head",
        ],
        classes: &["com.acme.image.NativeImage", "java.lang.ref.Finalizer"],
        allocator: "com.acme.image.ThumbnailServer.render",
        detector: Some("finalizer"),
        growth: Growth::Instances(10_000),
        ..PLAIN
    },
    Scenario {
        name: "direct_buffers",
        leak: "direct buffers return to a pool, but the pool never reuses them",
        main_class: "com.acme.io.ProxyServer",
        // The JDK's list of cleaners grows together with the pool, so a report may also name the list's field as the
        // holder.
        holders: &[
            "com.acme.io.BufferPool.idle",
            "jdk.internal.ref.Cleaner.first",
        ],
        classes: &["java.nio.DirectByteBuffer", "jdk.internal.ref.Cleaner"],
        allocator: "com.acme.io.BufferPool.acquire",
        detector: Some("direct-buffer"),
        growth: Growth::Instances(8_000),
        ..PLAIN
    },
    Scenario {
        name: "delete_on_exit",
        leak: "every temporary file is registered with File.deleteOnExit, and the JDK keeps the names",
        main_class: "com.acme.export.ExportService",
        holders: &["java.io.DeleteOnExitHook.files"],
        classes: &["java.lang.String"],
        allocator: "com.acme.export.ExportService.work",
        detector: Some("delete-on-exit"),
        growth: Growth::Instances(9_000),
        ..PLAIN
    },
    Scenario {
        name: "growing_text",
        leak: "a string builder grows with each line and is never emptied",
        main_class: "com.acme.report.ReportServer",
        holders: &["com.acme.report.TraceLog.text"],
        classes: &["byte[]"],
        allocator: "com.acme.report.TraceLog.line",
        growth: Growth::Bytes(1_000_000),
        ..PLAIN
    },
    Scenario {
        name: "tree_index",
        leak: "expired documents are removed from the store, but not from the tree map that indexes them",
        main_class: "com.acme.search.SearchServer",
        holders: &["com.acme.search.TimeIndex.postings"],
        classes: &["com.acme.search.Posting"],
        allocator: "com.acme.search.TimeIndex.add",
        growth: Growth::Instances(12_000),
        ..PLAIN
    },
    Scenario {
        name: "queue_and_table",
        leak: "messages stay in a queue and in a table, so neither of the two dominates the messages",
        main_class: "com.acme.broker.MessageBroker",
        holders: &[
            "com.acme.broker.Topic.queue",
            "com.acme.broker.Topic.byId",
            "com.acme.broker.MessageBroker.orders",
        ],
        classes: &["com.acme.broker.Message"],
        allocator: "com.acme.broker.MessageBroker.work",
        growth: Growth::Instances(12_000),
        ..PLAIN
    },
    Scenario {
        name: "weak_map_value_refers_to_key",
        leak: "the values of a weak map refer to their keys, so no entry is ever removed",
        main_class: "com.acme.meta.SchemaServer",
        holders: &["com.acme.meta.SchemaCache.schemas"],
        classes: &["com.acme.meta.Schema", "com.acme.meta.TableKey"],
        allocator: "com.acme.meta.SchemaServer.work",
        detector: Some("weak-map"),
        growth: Growth::Instances(9_000),
        ..PLAIN
    },
    Scenario {
        name: "class_loader_thread_local",
        leak: "a pooled thread holds former deployments in a thread local, and so their class loaders",
        main_class: "com.acme.deploy.AppServer",
        holders: &[
            "java.lang.ThreadLocal$ThreadLocalMap.table",
            "java.lang.Thread.threadLocals",
            "com.acme.deploy.AppServer.workers",
            // The static field that holds the `ThreadLocal`.
            "com.acme.deploy.OrderModule.CURRENT",
        ],
        classes: &[
            "com.acme.deploy.ModuleLoader",
            "com.acme.deploy.OrderModule",
            "java.lang.ThreadLocal$ThreadLocalMap$Entry",
        ],
        allocator: "com.acme.deploy.AppServer.deploy",
        detector: Some("class-loader"),
        growth: Growth::Instances(120),
        ..PLAIN
    },
    Scenario {
        name: "cleaner_backlog",
        leak: "one cleaning action waits for ever, and all later actions wait behind it",
        main_class: "com.acme.codec.CodecServer",
        holders: &[
            "com.acme.codec.Codec.CLEANER",
            "jdk.internal.ref.CleanerImpl.phantomCleanableList",
            "jdk.internal.ref.CleanerImpl.activeList",
            "jdk.internal.ref.CleanerImpl.queue",
            "java.lang.ref.ReferenceQueue.head",
        ],
        classes: &[
            "com.acme.codec.Release",
            "jdk.internal.ref.CleanerImpl$PhantomCleanableRef",
        ],
        allocator: "com.acme.codec.CodecServer.transcode",
        detector: Some("cleaner"),
        growth: Growth::Instances(10000),
        ..PLAIN
    },
    Scenario {
        name: "timer_tasks",
        leak: "cancelled timer tasks stay in the queue until they are due",
        main_class: "com.acme.reminders.ReminderServer",
        holders: &[
            "com.acme.reminders.Reminders.timer",
            "java.util.TaskQueue.queue",
            "java.util.Timer.queue",
        ],
        classes: &["com.acme.reminders.Reminder"],
        allocator: "com.acme.reminders.ReminderServer.work",
        detector: Some("timer"),
        growth: Growth::Instances(10000),
        ..PLAIN
    },
    Scenario {
        name: "cancelled_timeouts",
        leak: "a scheduled executor keeps cancelled tasks until they are due",
        main_class: "com.acme.gateway.Gateway",
        holders: &[
            "com.acme.gateway.Timeouts.scheduler",
            "java.util.concurrent.ScheduledThreadPoolExecutor$DelayedWorkQueue.queue",
            "java.util.concurrent.ThreadPoolExecutor.workQueue",
        ],
        classes: &["java.util.concurrent.ScheduledThreadPoolExecutor$ScheduledFutureTask"],
        allocator: "com.acme.gateway.Timeouts.start",
        detector: Some("timer"),
        growth: Growth::Instances(12000),
        ..PLAIN
    },
    Scenario {
        name: "parked_virtual_threads",
        leak: "virtual threads wait for the permits of a semaphore, which are never released",
        main_class: "com.acme.booking.BookingServer",
        holders: &[
            "com.acme.booking.Backend.permits",
            "java.util.concurrent.locks.AbstractQueuedSynchronizer.head",
            "java.util.concurrent.locks.AbstractQueuedSynchronizer.tail",
            "jdk.internal.vm.ThreadContainers$RootContainer$TrackingRootContainer.THREADS",
            "jdk.internal.vm.ThreadContainers$RootContainer$TrackingRootContainer.VTHREADS",
        ],
        classes: &[
            "java.lang.VirtualThread",
            "com.acme.booking.Booking",
            "java.util.concurrent.locks.AbstractQueuedSynchronizer$SharedNode",
        ],
        allocator: "com.acme.booking.BookingServer.book",
        detector: Some("virtual-thread"),
        since: 21,
        growth: Growth::Instances(2300),
        ..PLAIN
    },
    Scenario {
        name: "buffer_slices",
        leak: "a trace keeps a slice of each message, and each slice holds the whole buffer of its message",
        main_class: "com.acme.net.MessageServer",
        holders: &["com.acme.net.HeaderTrace.headers"],
        classes: &["java.nio.HeapByteBuffer", "byte[]"],
        allocator: "com.acme.net.MessageServer.receive",
        detector: Some("slice"),
        growth: Growth::Instances(500),
        ..PLAIN
    },
    Scenario {
        name: "sub_lists",
        leak: "each preview is a view of the first rows of a long list, and holds the whole list",
        main_class: "com.acme.preview.ReportServer",
        holders: &["com.acme.preview.PreviewCache.previews"],
        classes: &["java.util.ArrayList$SubList", "com.acme.preview.Row"],
        allocator: "com.acme.preview.ReportServer.report",
        detector: Some("slice"),
        growth: Growth::Instances(120),
        ..PLAIN
    },
    Scenario {
        name: "own_trie",
        leak: "a trie of the application's own node class stores search terms and removes none",
        main_class: "com.acme.suggest.SuggestServer",
        holders: &[
            "com.acme.suggest.TermIndex.root",
            "com.acme.suggest.TermNode.children",
        ],
        classes: &["com.acme.suggest.TermNode"],
        allocator: "com.acme.suggest.TermIndex.learn",
        growth: Growth::Instances(8000),
        ..PLAIN
    },
    Scenario {
        name: "two_leaks",
        leak: "two independent leaks: searches stay in a static list, and tickets stay in a map",
        main_class: "com.acme.travel.TravelServer",
        holders: &["com.acme.travel.SearchHistory.searches"],
        classes: &["com.acme.travel.Search"],
        allocator: "com.acme.travel.TravelServer.search",
        second: Some(Expected {
            holders: &["com.acme.travel.TicketDesk.open"],
            classes: &["com.acme.travel.Ticket"],
            allocator: "com.acme.travel.TravelServer.sell",
            detector: None,
        }),
        growth: Growth::Instances(8000),
        ..PLAIN
    },
    Scenario {
        name: "two_indexes",
        leak: "customers stay in two static indexes, so neither of the two dominates the customers",
        main_class: "com.acme.crm.CrmServer",
        holders: &[
            "com.acme.crm.CustomersByNumber.index",
            "com.acme.crm.CustomersByMail.index",
        ],
        classes: &["com.acme.crm.Customer"],
        allocator: "com.acme.crm.CrmServer.register",
        growth: Growth::Instances(8000),
        ..PLAIN
    },
    Scenario {
        name: "list_per_tenant",
        leak: "each of 1,500 rooms has its own list, and each list grows a little",
        main_class: "com.acme.chat.ChatServer",
        holders: &["com.acme.chat.Room.history"],
        classes: &["com.acme.chat.Message"],
        allocator: "com.acme.chat.ChatServer.talk",
        growth: Growth::Instances(15000),
        ..PLAIN
    },
    Scenario {
        name: "nested_maps",
        leak: "readings stay in nested maps: by region, then by device, then by time",
        main_class: "com.acme.telemetry.TelemetryServer",
        holders: &["com.acme.telemetry.TelemetryStore.byRegion"],
        classes: &["com.acme.telemetry.Reading"],
        allocator: "com.acme.telemetry.TelemetryServer.collect",
        growth: Growth::Instances(12000),
        ..PLAIN
    },
    Scenario {
        name: "executor_queue",
        leak: "a task of an executor hangs, and the tasks behind it wait in an unbounded queue",
        main_class: "com.acme.invoice.InvoiceMailer",
        holders: &[
            "com.acme.invoice.InvoiceMailer.sender",
            "java.util.concurrent.ThreadPoolExecutor.workQueue",
            "java.util.concurrent.LinkedBlockingQueue.head",
            "java.util.concurrent.LinkedBlockingQueue.last",
        ],
        classes: &["com.acme.invoice.MailTask"],
        allocator: "com.acme.invoice.InvoiceMailer.work",
        detector: Some("queue"),
        growth: Growth::Instances(11990),
        ..PLAIN
    },
    Scenario {
        name: "pending_futures",
        leak: "a future never completes, and holds a callback for each request that waits for it",
        main_class: "com.acme.features.FeatureServer",
        holders: &[
            "com.acme.features.ConfigClient.next",
            "java.util.concurrent.CompletableFuture.stack",
        ],
        classes: &[
            "com.acme.features.Request",
            "java.util.concurrent.CompletableFuture$UniAccept",
            "com.acme.features.FeatureServer$$Lambda*",
        ],
        allocator: "com.acme.features.FeatureServer.serve",
        growth: Growth::Instances(10000),
        ..PLAIN
    },
    Scenario {
        name: "kept_exceptions",
        leak: "a list of failures keeps every exception with its stack trace",
        main_class: "com.acme.payments.PaymentServer",
        holders: &["com.acme.payments.FailureLog.failures"],
        classes: &["com.acme.payments.PaymentFailed"],
        allocator: "com.acme.payments.PaymentServer.pay",
        growth: Growth::Instances(3000),
        ..PLAIN
    },
    Scenario {
        name: "metric_labels",
        leak: "there is a counter for each request path, and each path contains a different order number",
        main_class: "com.acme.metrics.ApiServer",
        holders: &["com.acme.metrics.Metrics.counters"],
        classes: &[
            "java.util.concurrent.atomic.LongAdder",
            "java.lang.String",
            "java.util.concurrent.ConcurrentHashMap$Node",
        ],
        allocator: "com.acme.metrics.ApiServer.serve",
        growth: Growth::Instances(10000),
        ..PLAIN
    },
    Scenario {
        name: "mutable_key",
        leak: "elements of a hash set change after they are added, so they are not found and not removed",
        main_class: "com.acme.carts.CartServer",
        holders: &["com.acme.carts.OpenCarts.carts"],
        classes: &["com.acme.carts.Cart"],
        allocator: "com.acme.carts.CartServer.shop",
        growth: Growth::Instances(10000),
        ..PLAIN
    },
    Scenario {
        name: "shutdown_hooks",
        leak: "each import registers a shutdown hook, and no hook is ever deregistered",
        main_class: "com.acme.feeds.FeedImporter",
        holders: &["java.lang.ApplicationShutdownHooks.hooks"],
        classes: &["com.acme.feeds.CleanUp"],
        allocator: "com.acme.feeds.FeedImporter.load",
        growth: Growth::Instances(1500),
        ..PLAIN
    },
    Scenario {
        name: "beside_a_filling_cache",
        leak: "loans stay after the book is returned, while a cache fills that is larger at first",
        main_class: "com.acme.library.LibraryServer",
        holders: &["com.acme.library.LoanDesk.loans"],
        classes: &["com.acme.library.Loan"],
        allocator: "com.acme.library.LibraryServer.lend",
        dumps: 3,
        growth: Growth::Instances(6000),
        ..PLAIN
    },
];
