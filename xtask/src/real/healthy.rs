//! Programs that use published libraries, look like leaks and are not.

/// A program that must not raise an alarm.
pub(super) struct Healthy {
    pub(super) name: &'static str,
    /// The library, its version, and what the program does.
    pub(super) about: &'static str,
    pub(super) source: &'static str,
}

pub(super) const HEALTHY: &[Healthy] = &[
    Healthy {
        name: "healthy-caffeine-weight",
        about: "Caffeine 3.2.0 keeps map tiles up to a weight. The cache is half full at the first dump and full \
                at the second. At the third, half of the tiles are others.",
        source: "Tiles.java",
    },
    Healthy {
        name: "healthy-guava-weight",
        about: "Guava 33.4.0 keeps reports up to a weight. The cache is full at each dump, and the reports are \
                others each time.",
        source: "Reports.java",
    },
    Healthy {
        name: "healthy-ehcache",
        about: "Ehcache 3.10.8 keeps at most 10,000 customers on the heap. The first phase puts 6,000 there, and \
                the second fills it.",
        source: "Customers.java",
    },
    Healthy {
        name: "healthy-h2-pages",
        about: "H2 2.2.224 reads a table in a file through a cache of 4 MiB. The cache is full at each dump, of \
                other pages.",
        source: "Ledger.java",
    },
    Healthy {
        name: "healthy-spring-soft",
        about: "A map of Spring 6.2.1 holds templates by soft references. Each phase adds 8,000, for which there \
                is memory.",
        source: "Templates.java",
    },
    Healthy {
        name: "healthy-collections-soft",
        about: "A map of Commons Collections 4.4 has soft values. Each phase adds 6,000 thumbnails, for which \
                there is memory.",
        source: "Thumbnails.java",
    },
    Healthy {
        name: "healthy-freemarker-soft",
        about: "FreeMarker 2.3.34 keeps parsed templates behind soft references. Each phase parses 400, for \
                which there is memory.",
        source: "Letters.java",
    },
    Healthy {
        name: "healthy-soft-loaders",
        about: "Byte Buddy 1.15.11 makes 150 classes in each phase, each in its own class loader. Only soft \
                references of a Spring map hold them.",
        source: "Plugins.java",
    },
    Healthy {
        name: "healthy-pool2",
        about: "Commons Pool 2.12.0 pools at most 8 encoders with large buffers. The phases need 3, 5 and 6 of \
                them.",
        source: "Encoders.java",
    },
    Healthy {
        name: "healthy-hikari",
        about: "HikariCP 6.2.1 pools 8 connections to H2 2.2.224. At the dumps 2, 6 and 4 of them hold a result.",
        source: "Exports.java",
    },
    Healthy {
        name: "healthy-netty-arenas",
        about: "An allocator of Netty 4.1.117 has 4 arenas on the heap. The phases have 2, 3 and 4 workers, and \
                all buffers go back.",
        source: "Gateway.java",
    },
    Healthy {
        name: "healthy-netty-direct",
        about: "An allocator of Netty 4.1.117 pools direct buffers. At the dumps 50, 700 and none of them are in \
                use.",
        source: "Proxy.java",
    },
    Healthy {
        name: "healthy-disruptor-round",
        about: "A ring of the Disruptor 4.0.0 has 8,192 slots, which keep the last quote. Each phase publishes \
                6,000, and the second goes round.",
        source: "Quotes.java",
    },
    Healthy {
        name: "healthy-logback-async",
        about: "Logback 1.5.16 logs through a queue of 20,000 events. At the dumps 3,000, 14,000 and 8,000 wait, \
                and always others.",
        source: "Audit.java",
    },
    Healthy {
        name: "healthy-micrometer",
        about: "Micrometer 1.14.2 has timers for 30 endpoints. The first phase uses 20 of them, and the second \
                all.",
        source: "Endpoints.java",
    },
    Healthy {
        name: "healthy-vertx-steady",
        about: "A shared map of Vert.x 4.5.11 has the last 200 messages of each of 50 rooms. The second phase \
                fills it.",
        source: "Chat.java",
    },
    Healthy {
        name: "healthy-quartz",
        about: "Quartz 2.3.2 has 3,000 reminders ahead. Each phase replaces all of them.",
        source: "Reminders.java",
    },
];
