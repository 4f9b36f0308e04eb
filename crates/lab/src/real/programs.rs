//! Programs that use published libraries, each with the expected report.

/// A program that uses a published library, and the report that is expected for it.
pub(super) struct Program {
    pub(super) name: &'static str,
    /// Name and version of the library, and how the program uses it.
    pub(super) about: &'static str,
    pub(super) source: &'static str,
    /// If the library itself leaked: its last version with the leak, and its first version without the leak.
    pub(super) versions: Option<Versions>,
    /// The holders that are accepted in a report. If several fields hold the accumulated objects, and none of them is a
    /// better answer than the others, each is accepted.
    pub(super) holders: &'static [&'static str],
    /// The accepted classes that accumulate.
    pub(super) classes: &'static [&'static str],
    /// A method of the program that must be in the stack that allocated most of the growth.
    pub(super) allocator: &'static str,
    /// The conclusion that a user of the program draws from the report.
    pub(super) verdict: &'static str,
}

/// Versions of a library before and after the fix of a leak.
#[derive(Debug, Clone, Copy)]
pub(super) struct Versions {
    pub(super) leaking: &'static str,
    pub(super) mended: &'static str,
    /// The issue that describes the leak.
    pub(super) issue: &'static str,
}

pub(super) const PROGRAMS: &[Program] = &[
    Program {
        name: "tomcat",
        about: "Apache Tomcat 10.1 embedded. Its sessions never expire, and its clients send no cookie: each request creates a session that holds a basket.",
        source: "Shop.java",
        versions: None,
        holders: &["org.apache.catalina.session.ManagerBase.sessions"],
        classes: &["org.apache.catalina.session.StandardSession"],
        allocator: "Shop$BasketServlet.doGet",
        verdict: "The session manager of one web application holds one more session for each request. The stack shows the servlet that creates the sessions: give the sessions a timeout, and create none for clients that do not return.",
    },
    Program {
        name: "artemis",
        about: "Apache ActiveMQ Artemis 2.38 embedded, without persistence. Messages are sent to a queue that \
                nobody reads.",
        source: "Orders.java",
        versions: None,
        holders: &["org.apache.activemq.artemis.core.server.impl.QueueImpl.messageReferences"],
        classes: &["org.apache.activemq.artemis.core.server.impl.MessageReferenceImpl"],
        allocator: "org.apache.activemq.artemis",
        verdict: "The report names the queue and the number of waiting messages: find the queue without a consumer, and give its address a maximum size or let messages expire.",
    },
    Program {
        name: "h2",
        about: "H2 2.2, a database in memory. Rows are added to a table and never deleted.",
        source: "Journal.java",
        versions: None,
        holders: &["org.h2.mvstore.RootReference.root"],
        classes: &["org.h2.mvstore.Page$PageReference"],
        allocator: "Journal.work",
        verdict: "One map of the database's store grows page by page, and the stack shows the insert statement of the application: delete old rows, or do not keep the database in memory.",
    },
    Program {
        name: "micrometer",
        about: "Micrometer 1.14, a registry of metrics. Requests are counted by their whole path, which contains a user id: the number of tag values has no limit.",
        source: "Gateway.java",
        versions: None,
        holders: &[
            "io.micrometer.core.instrument.MeterRegistry.meterMap",
            "io.micrometer.core.instrument.MeterRegistry.preFilterIdToMeterMap",
        ],
        classes: &["io.micrometer.core.instrument.Meter$Id"],
        allocator: "Gateway.work",
        verdict: "The two maps of the registry have a meter for each path, and the stack shows where the paths are created: count by path pattern instead.",
    },
    Program {
        name: "h2-tables",
        about: "H2, a database in memory. Tables are created, filled and dropped; the store keeps their maps.",
        source: "Staging.java",
        versions: Some(Versions {
            leaking: "2.1.210",
            mended: "2.1.212",
            issue: "h2database/h2database#3473",
        }),
        holders: &["org.h2.mvstore.MVStore.maps"],
        classes: &[
            "org.h2.mvstore.tx.TransactionStore$TxMapBuilder$TMVMap",
            "org.h2.mvstore.MVMap",
        ],
        allocator: "Staging.work",
        verdict: "The store's map of maps grows by two entries for each created table, although all tables are dropped: a bug in this version.",
    },
    Program {
        name: "reactor",
        about: "Reactor. A sink keeps its subscribers after they are disposed.",
        source: "Shutdowns.java",
        versions: Some(Versions {
            leaking: "3.4.16",
            mended: "3.4.17",
            issue: "reactor/reactor-core#3001",
        }),
        holders: &[
            "reactor.core.publisher.SinkOneMulticast.subscribers",
            "reactor.core.publisher.SinkEmptyMulticast.subscribers",
            "Shutdowns.shutdown",
        ],
        classes: &[
            "reactor.core.publisher.SinkOneMulticast$NextInner",
            "reactor.core.publisher.LambdaMonoSubscriber",
        ],
        allocator: "Shutdowns.work",
        verdict: "The sink's array of subscribers grows by one with each request, although the program disposes the subscribers.",
    },
    Program {
        name: "rxjava",
        about: "RxJava 2. A sequence that repeats on a signal of a subject stays subscribed after it is disposed.",
        source: "Polling.java",
        versions: Some(Versions {
            leaking: "2.0.0",
            mended: "2.0.1",
            issue: "ReactiveX/RxJava#4782",
        }),
        holders: &[
            "io.reactivex.subjects.PublishSubject.subscribers",
            "Polling.again",
        ],
        classes: &["io.reactivex.subjects.PublishSubject$PublishDisposable"],
        allocator: "Polling.work",
        verdict: "The subject's array of observers grows by one with each poll, although the program disposes the observers.",
    },
    Program {
        name: "log4j",
        about: "Log4j. Loggers of many names come and go; the registry keeps the names and empty weak references.",
        source: "Tenants.java",
        versions: Some(Versions {
            leaking: "2.24.3",
            mended: "2.25.1",
            issue: "apache/logging-log4j2#3430",
        }),
        holders: &[
            "org.apache.logging.log4j.core.util.internal.InternalLoggerRegistry.loggerRefByNameByMessageFactory",
        ],
        classes: &[
            "java.lang.ref.WeakReference",
            "java.lang.String",
            "java.util.HashMap$Node",
        ],
        allocator: "Tenants.work",
        verdict: "The registry of loggers has an entry for each name ever used: use fewer names, or a later version.",
    },
    Program {
        name: "fastjson",
        about: "Fastjson. The cache compares generic types by identity, and the program creates a new type object for each answer.",
        source: "Answers.java",
        versions: Some(Versions {
            leaking: "1.2.36",
            mended: "1.2.83",
            issue: "alibaba/fastjson#1418",
        }),
        holders: &[
            "com.alibaba.fastjson.parser.ParserConfig.deserializers",
            "com.alibaba.fastjson.util.IdentityHashMap.buckets",
        ],
        classes: &[
            "com.alibaba.fastjson.parser.deserializer.JavaBeanDeserializer",
            "com.alibaba.fastjson.util.IdentityHashMap$Entry",
        ],
        allocator: "Answers.work",
        verdict: "The parser's cache of deserializers grows by one with each answer: create the type object once.",
    },
    Program {
        name: "caffeine",
        about: "Caffeine with weak values. The GC frees the values, but their entries stay.",
        source: "Pictures.java",
        versions: Some(Versions {
            leaking: "2.3.1",
            mended: "2.3.2",
            issue: "ben-manes/caffeine#111",
        }),
        holders: &[
            "com.github.benmanes.caffeine.cache.BoundedLocalCache.data",
            "Pictures.pictures",
        ],
        classes: &[
            "com.github.benmanes.caffeine.cache.StrongKeyWeakValueCache",
            "com.github.benmanes.caffeine.cache.NodeFactory$SW",
            "java.lang.Long",
            "com.github.benmanes.caffeine.cache.References$WeakValueReference",
        ],
        allocator: "Pictures.work",
        verdict: "The cache has an entry without a value for each key ever used.",
    },
    Program {
        name: "micrometer-composite",
        about: "Micrometer's composite registry. A removed meter stays in the child registries, because it has other tags there.",
        source: "Sessions.java",
        versions: Some(Versions {
            leaking: "1.6.0",
            mended: "1.6.3",
            issue: "micrometer-metrics/micrometer#2354",
        }),
        holders: &["io.micrometer.core.instrument.MeterRegistry.meterMap"],
        classes: &[
            "io.micrometer.core.instrument.Meter$Id",
            "io.micrometer.core.instrument.cumulative.CumulativeCounter",
        ],
        allocator: "Sessions.work",
        verdict: "The map of meters of the child registry grows; the program removes each meter from the composite registry.",
    },
    Program {
        name: "spring-retry",
        about: "Spring Retry. The interceptor keeps each object that it ever intercepted.",
        source: "Imports.java",
        versions: Some(Versions {
            leaking: "1.2.4.RELEASE",
            mended: "1.3.4",
            issue: "spring-attic/spring-retry#141",
        }),
        holders: &[
            "org.springframework.retry.annotation.AnnotationAwareRetryOperationsInterceptor.delegates",
        ],
        classes: &[
            "Imports$FileImport",
            "org.springframework.retry.interceptor.RetryOperationsInterceptor",
        ],
        allocator: "Imports.work",
        verdict: "The interceptor's map has an entry for each short-lived object.",
    },
    Program {
        name: "vertx",
        about: "Vert.x. The checker of blocked threads has a weak map whose values refer to its keys.",
        source: "Deployments.java",
        versions: Some(Versions {
            leaking: "4.3.7",
            mended: "4.3.8",
            issue: "eclipse-vertx/vert.x#4598",
        }),
        holders: &[
            "io.vertx.core.impl.btc.BlockedThreadChecker.threads",
            "io.vertx.core.impl.BlockedThreadChecker.threads",
        ],
        classes: &["io.vertx.core.impl.VertxThread"],
        allocator: "Deployments.work",
        verdict: "A weak map keeps each thread ever started, because its values refer to its keys.",
    },
    Program {
        name: "guice",
        about: "Guice. The parent injector keeps the keys of all bindings of child injectors, because it must not bind the same keys.",
        source: "Requests.java",
        versions: Some(Versions {
            leaking: "3.0",
            mended: "4.0",
            issue: "google/guice#756",
        }),
        holders: &["com.google.inject.internal.WeakKeySet.backingSet"],
        classes: &[
            "java.lang.String",
            "java.util.LinkedHashMap$Entry",
            "java.util.LinkedHashSet",
        ],
        allocator: "Requests.request",
        verdict: "The parent's set of keys has an entry for each child injector ever created.",
    },
    Program {
        name: "hazelcast",
        about: "Hazelcast. The statistics of a map stay when the map is destroyed.",
        source: "Batches.java",
        versions: Some(Versions {
            leaking: "3.5.4",
            mended: "3.6.2",
            issue: "hazelcast/hazelcast#6803",
        }),
        holders: &["com.hazelcast.map.impl.LocalMapStatsProvider.statsMap"],
        classes: &["com.hazelcast.monitor.impl.LocalMapStatsImpl"],
        allocator: "Batches.work",
        verdict: "The statistics provider has an entry for each map ever created. (For version 3.6.2, an earlier report named `MapServiceContextImpl.mapContainers`: if a map is destroyed during a put, the put creates the map again. So the program now waits for the end of each put.)",
    },
    Program {
        name: "rx-replay",
        about: "RxJava 1. A subject with a bounded replay keeps all values that its subscribers received.",
        source: "Prices.java",
        versions: Some(Versions {
            leaking: "1.0.0-rc.10",
            mended: "1.0.0",
            issue: "ReactiveX/RxJava#1865",
        }),
        holders: &["rx.subjects.SubjectSubscriptionManager$SubjectObserver.index"],
        classes: &["rx.subjects.ReplaySubject$NodeList$Node", "long[]"],
        allocator: "Prices.work",
        verdict: "A subscriber's index refers to the first node that it received, and so to all later nodes. `ReplaySubject` itself keeps only one node.",
    },
];
