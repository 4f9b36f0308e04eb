//! Leaks of libraries that were reported in 2019 or later.

use super::programs::{Program, Versions};

pub(super) const RECENT: &[Program] = &[
    Program {
        name: "hateoas",
        about: "Spring HATEOAS. Each link has its own address. A static map keeps a template for each address.",
        source: "Orders.java",
        versions: Some(Versions {
            leaking: "1.0.1.RELEASE",
            mended: "1.0.2.RELEASE",
            issue: "spring-projects/spring-hateoas#1118",
        }),
        holders: &["org.springframework.hateoas.UriTemplate.CACHE"],
        classes: &["org.springframework.hateoas.UriTemplate"],
        allocator: "Orders.work",
        verdict: "The cache of templates has one for each address that ever was. (Of 1.0.2 a report says `cache`: the map holds \
                  its entries by soft references.)",
    },
    Program {
        name: "hateoas-proxies",
        about: "Spring HATEOAS. A stand-in for a controller is made with an argument that is never the same, and is cached by it.",
        source: "Invoices.java",
        versions: Some(Versions {
            leaking: "1.3.6",
            mended: "1.3.7",
            issue: "spring-projects/spring-hateoas#1701",
        }),
        holders: &["org.springframework.hateoas.server.core.DummyInvocationUtils.CACHE"],
        classes: &["Invoices$Controller$$EnhancerBySpringCGLIB"],
        allocator: "Invoices.work",
        verdict: "A thread's map of stand-ins has one for each invoice: pass the number to the method, not to the stand-in.",
    },
    Program {
        name: "sentry-spans",
        about: "Sentry. A weak map from exceptions to spans has values that refer to their keys.",
        source: "Payments.java",
        versions: Some(Versions {
            leaking: "6.4.0",
            mended: "6.4.1",
            issue: "getsentry/sentry-java#2225",
        }),
        holders: &["io.sentry.Hub.throwableToSpan"],
        classes: &[
            "io.sentry.util.Pair",
            "java.lang.IllegalStateException",
            "io.sentry.Span",
        ],
        allocator: "Payments.work",
        verdict: "The hub's map has an entry for each exception that ever ended a transaction, although its keys are weak.",
    },
    Program {
        name: "sentry-performance",
        about: "Sentry. A collector schedules a task for each transaction, and the task keeps the transaction after its end.",
        source: "Searches.java",
        versions: Some(Versions {
            leaking: "6.12.0",
            mended: "6.13.0",
            issue: "getsentry/sentry-java#2496",
        }),
        holders: &[
            "io.sentry.SentryExecutorService.executorService",
            "io.sentry.TransactionPerformanceCollector.memoryMap",
        ],
        classes: &[
            "io.sentry.TransactionPerformanceCollector$$Lambda",
            "io.sentry.SentryTracer",
        ],
        allocator: "Searches.work",
        verdict: "The queue of Sentry's executor has a task for each search, and each task holds a finished transaction.",
    },
    Program {
        name: "jdbi",
        about: "Jdbi. The parser and the template engine keep each text of a query, and each query has a number in its text.",
        source: "Customers.java",
        versions: Some(Versions {
            leaking: "3.12.0",
            mended: "3.27.0",
            issue: "jdbi/jdbi#1658",
        }),
        holders: &[
            "org.jdbi.v3.core.statement.CachingSqlParser.parsedSqlCache",
            "org.jdbi.v3.core.config.JdbiCaches.caches",
        ],
        classes: &[
            "org.jdbi.v3.core.statement.ParsedSql",
            "org.jdbi.v3.core.statement.DefinedAttributeTemplateEngine$$Lambda",
        ],
        allocator: "Customers.work",
        verdict: "Two caches have an entry for each text: bind the number instead. (3.12.2 bounds the first cache only, and of it \
                  a report still names the second.)",
    },
    Program {
        name: "mutiny",
        about: "Mutiny. What is memoized until it changes keeps the subscriber that first saw each value.",
        source: "Discovery.java",
        versions: Some(Versions {
            leaking: "3.0.0",
            mended: "3.0.1",
            issue: "smallrye/smallrye-mutiny#1988",
        }),
        holders: &["io.smallrye.mutiny.operators.uni.UniMemoizeOp.awaiters"],
        classes: &["io.smallrye.mutiny.helpers.UniCallbackSubscriber"],
        allocator: "Discovery.work",
        verdict: "The queue of those who wait has one more for each change, and all of them have been served.",
    },
    Program {
        name: "mutiny-replay",
        about: "Mutiny. A stream that replays its last value keeps a subscription for each that was served.",
        source: "Settings.java",
        versions: Some(Versions {
            leaking: "2.5.3",
            mended: "2.5.6",
            issue: "smallrye/smallrye-mutiny#1482",
        }),
        holders: &["io.smallrye.mutiny.operators.multi.replay.ReplayOperator.subscriptions"],
        classes: &["io.smallrye.mutiny.operators.multi.replay.ReplayOperator$ReplaySubscription"],
        allocator: "Settings.work",
        verdict: "The list of subscriptions has one more for each message.",
    },
    Program {
        name: "reactor-replay",
        about: "Reactor. A sink that replays for no time at all keeps each value in a linked list.",
        source: "Ticks.java",
        versions: Some(Versions {
            leaking: "3.4.16",
            mended: "3.4.17",
            issue: "reactor/reactor-core#2998",
        }),
        holders: &["reactor.core.publisher.FluxReplay$SizeAndTimeBoundReplayBuffer.head"],
        classes: &[
            "reactor.core.publisher.FluxReplay$SizeAndTimeBoundReplayBuffer$TimedNode",
            "long[]",
        ],
        allocator: "Ticks.work",
        verdict: "The buffer's list begins with the first value that ever was, although none may be replayed.",
    },
    Program {
        name: "jooq-mapper",
        about: "jOOQ. A mapper is cached by the fields of its record, and one field is a call with a number in it.",
        source: "Fines.java",
        versions: Some(Versions {
            leaking: "3.19.8",
            mended: "3.19.9",
            issue: "jOOQ/jOOQ#16315",
        }),
        holders: &["org.jooq.impl.AbstractScope.data"],
        classes: &["org.jooq.impl.DefaultRecordMapper"],
        allocator: "Fines.work",
        verdict: "The configuration's cache has a mapper for each number. (3.19.9 keeps 8,192 of them, and a report calls that \
                  `warmup`.)",
    },
    Program {
        name: "lucene",
        about: "Lucene. Each flush begins a new queue of deletions, and each queue refers to the one before it.",
        source: "Inventory.java",
        versions: Some(Versions {
            leaking: "8.6.1",
            mended: "8.6.2",
            issue: "apache/lucene-solr#1779",
        }),
        holders: &[
            "org.apache.lucene.index.DocumentsWriter.deleteQueue",
            "org.apache.lucene.index.DocumentsWriterDeleteQueue.previousMaxSeqId",
        ],
        classes: &[
            "org.apache.lucene.index.DocumentsWriterDeleteQueue$$Lambda",
            "org.apache.lucene.index.DocumentsWriterDeleteQueue",
        ],
        allocator: "Inventory.work",
        verdict: "A chain of queues begins at the index writer and has one more for each flush: a fault of the version.",
    },
    Program {
        name: "hutool",
        about: "Hutool. A weak cache has values that refer to their keys.",
        source: "Avatars.java",
        versions: Some(Versions {
            leaking: "5.7.16",
            mended: "5.8.20",
            issue: "chinabugotech/hutool#1953",
        }),
        holders: &[
            "cn.hutool.cache.impl.AbstractCache.cacheMap",
            "Avatars.pictures",
        ],
        classes: &["cn.hutool.cache.impl.CacheObj", "Avatars$User"],
        allocator: "Avatars.work",
        verdict: "The cache has an entry for each user that ever was, although its keys are weak.",
    },
    Program {
        name: "rx-disposed",
        about: "RxJava 2. An observer that left a bounded replay refers to the value it saw last, and so to all later ones.",
        source: "Weather.java",
        versions: Some(Versions {
            leaking: "2.2.5",
            mended: "2.2.6",
            issue: "ReactiveX/RxJava#6371",
        }),
        holders: &[
            "io.reactivex.internal.operators.observable.ObservableReplay$InnerDisposable.index",
        ],
        classes: &[
            "io.reactivex.internal.operators.observable.ObservableReplay$Node",
            "long[]",
        ],
        allocator: "Weather.work",
        verdict: "The index of a disposed observer is the head of a list that grows with each reading.",
    },
    Program {
        name: "dubbo-lfu",
        about: "Dubbo. A cache of what is read most often has a queue for each number of reads, and keeps the empty ones.",
        source: "Rates.java",
        versions: Some(Versions {
            leaking: "2.7.15",
            mended: "2.7.18",
            issue: "apache/dubbo#10085",
        }),
        holders: &["org.apache.dubbo.common.utils.LFUCache.freqTable"],
        classes: &["org.apache.dubbo.common.utils.LFUCache$CacheDeque"],
        allocator: "Rates.work",
        verdict: "The cache has one entry, but its table of queues has one more for each read.",
    },
    Program {
        name: "kubernetes",
        about: "The Kubernetes client for Java. A pod is added and deleted; the index keeps an empty set for its namespace.",
        source: "Namespaces.java",
        versions: Some(Versions {
            leaking: "21.0.2",
            mended: "24.0.0",
            issue: "kubernetes-client/java#3510",
        }),
        holders: &["io.kubernetes.client.informer.cache.Cache.indices"],
        classes: &[
            "java.util.HashMap$Node[]",
            "java.util.HashSet",
            "java.util.HashMap",
        ],
        allocator: "Namespaces.work",
        verdict: "The cache has no pods, but its index has a set for each namespace that ever was.",
    },
    Program {
        name: "rewrite",
        about: "OpenRewrite. A static weak map of spaces has values that refer to their keys.",
        source: "Sources.java",
        versions: Some(Versions {
            leaking: "8.1.2",
            mended: "8.1.15",
            issue: "openrewrite/rewrite#3368",
        }),
        holders: &["org.openrewrite.java.tree.Space.flyweights"],
        classes: &["org.openrewrite.java.tree.Space", "java.lang.String"],
        allocator: "Sources.work",
        verdict: "The map has a space for each indent that was ever read, although its keys are weak.",
    },
    Program {
        name: "aviator",
        about: "Aviator. A compiled expression keeps the parts of each text that it makes when it is run.",
        source: "Greetings.java",
        versions: Some(Versions {
            leaking: "5.1.0",
            mended: "5.2.5",
            issue: "killme2008/aviatorscript#401",
        }),
        holders: &[
            "com.googlecode.aviator.BaseExpression.stringSegs",
            "Greetings.greeting",
        ],
        classes: &["java.lang.String", "java.util.concurrent.FutureTask"],
        allocator: "Greetings.work",
        verdict: "The expression's map has an entry for each text that ever was: switch string interpolation off, or use a later version.",
    },
    Program {
        name: "kubernetes-vertx",
        about: "The Vert.x client of fabric8's Kubernetes client. A client is derived for each request with settings of its own.",
        source: "Watchers.java",
        versions: Some(Versions {
            leaking: "6.7.1",
            mended: "6.7.2",
            issue: "fabric8io/kubernetes-client#5235",
        }),
        holders: &["io.fabric8.kubernetes.client.vertx.VertxHttpClient.derivedClients"],
        classes: &["io.fabric8.kubernetes.client.vertx.VertxHttpClient"],
        allocator: "Watchers.work",
        verdict: "The list of derived clients has one more for each request. (Each derived client also starts a timer of Vert.x, which \
                  later suspects name.)",
    },
    Program {
        name: "flatlaf",
        about: "FlatLaf. A cache of images compares sizes by identity, and each painting asks by a size that is made anew.",
        source: "Icons.java",
        versions: Some(Versions {
            leaking: "3.2",
            mended: "3.2.1",
            issue: "JFormDesigner/FlatLaf#726",
        }),
        holders: &[
            "com.formdev.flatlaf.util.MultiResolutionImageSupport$ProducerMultiResolutionImage.cache",
        ],
        classes: &["java.awt.image.BufferedImage", "int[]"],
        allocator: "Icons.work",
        verdict: "The icon's cache has an image for each painting, and all of them have one size.",
    },
];
