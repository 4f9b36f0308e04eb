//! Healthy programs: they look as if they leak, but do not. They use published libraries.

/// A program without a leak. A report on its dumps must not raise an alarm.
pub(super) struct Healthy {
    pub(super) name: &'static str,
    /// The library, its version, and what the program does.
    pub(super) about: &'static str,
    pub(super) source: &'static str,
}

pub(super) const HEALTHY: &[Healthy] = &[
    Healthy {
        name: "healthy-caffeine-weight",
        about: "Caffeine 3.2.0 caches map tiles up to a maximum weight. The cache is half full at the first dump and full at the second. At the third dump, half of the tiles were replaced.",
        source: "Tiles.java",
    },
    Healthy {
        name: "healthy-guava-weight",
        about: "Guava 33.4.0 caches reports up to a maximum weight. The cache is full at each dump, and holds different reports each time.",
        source: "Reports.java",
    },
    Healthy {
        name: "healthy-ehcache",
        about: "Ehcache 3.10.8 keeps at most 10,000 customers on the heap. The first phase adds 6,000, and the second phase fills the cache.",
        source: "Customers.java",
    },
    Healthy {
        name: "healthy-h2-pages",
        about: "H2 2.2.224 reads a table in a file through a cache of 4 MiB. The cache is full at each dump, with different pages.",
        source: "Ledger.java",
    },
    Healthy {
        name: "healthy-spring-soft",
        about: "A map of Spring 6.2.1 holds templates by soft references. Each phase adds 8,000 templates, and all of them fit into memory.",
        source: "Templates.java",
    },
    Healthy {
        name: "healthy-collections-soft",
        about: "A map of Commons Collections 4.4 has soft values. Each phase adds 6,000 thumbnails, and all of them fit into memory.",
        source: "Thumbnails.java",
    },
    Healthy {
        name: "healthy-freemarker-soft",
        about: "FreeMarker 2.3.34 keeps parsed templates behind soft references. Each phase parses 400 templates, and all of them fit into memory.",
        source: "Letters.java",
    },
    Healthy {
        name: "healthy-soft-loaders",
        about: "Byte Buddy 1.15.11 creates 150 classes in each phase, each class in a separate class loader. Only soft \
                references of a Spring map hold them.",
        source: "Plugins.java",
    },
    Healthy {
        name: "healthy-pool2",
        about: "Commons Pool 2.12.0 pools at most 8 encoders with large buffers. The phases use 3, 5 and 6 encoders.",
        source: "Encoders.java",
    },
    Healthy {
        name: "healthy-hikari",
        about: "HikariCP 6.2.1 pools 8 connections to H2 2.2.224. When the dumps are taken, 2, 6 and 4 connections hold a result.",
        source: "Exports.java",
    },
    Healthy {
        name: "healthy-netty-arenas",
        about: "An allocator of Netty 4.1.117 has 4 arenas on the heap. The phases have 2, 3 and 4 workers, and all buffers are returned.",
        source: "Gateway.java",
    },
    Healthy {
        name: "healthy-netty-direct",
        about: "An allocator of Netty 4.1.117 pools direct buffers. At the three dumps, 50, 700 and 0 buffers are in use.",
        source: "Proxy.java",
    },
    Healthy {
        name: "healthy-disruptor-round",
        about: "A ring of the Disruptor 4.0.0 has 8,192 slots, and each slot keeps its last quote. Each phase publishes 6,000 quotes, so the second phase overwrites slots.",
        source: "Quotes.java",
    },
    Healthy {
        name: "healthy-logback-async",
        about: "Logback 1.5.16 logs through a queue of 20,000 events. At the three dumps, 3,000, 14,000 and 8,000 events wait, different events each time.",
        source: "Audit.java",
    },
    Healthy {
        name: "healthy-micrometer",
        about: "Micrometer 1.14.2 has timers for 30 endpoints. The first phase uses 20 timers, and the second phase uses all.",
        source: "Endpoints.java",
    },
    Healthy {
        name: "healthy-vertx-steady",
        about: "A shared map of Vert.x 4.5.11 keeps the last 200 messages of each of 50 rooms. The second phase \
                fills it.",
        source: "Chat.java",
    },
    Healthy {
        name: "healthy-quartz",
        about: "Quartz 2.3.2 has 3,000 scheduled reminders. Each phase replaces all reminders.",
        source: "Reminders.java",
    },
];
