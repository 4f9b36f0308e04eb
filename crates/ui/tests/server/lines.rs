//! Tests the lines of the page: their selection, order and data.

use heapdiff_trace::synthetic::{SITES, STARTED_MS, Scene, SceneFrame, SceneSite};
use heapdiff_trace::{By, Timeline, Trace, Window, rank};

use super::{Asked, Folder, body, status};

#[test]
fn running_jvms_have_metrics_and_the_page_shows_when_the_heap_is_full() {
    let folder = Folder::new();
    let scene = Scene {
        running: true,
        ..Scene::default()
    };
    let asked = Asked::of(&[
        &folder.trace("t.db", &scene),
        &folder.trace("ended.db", &Scene::default()),
    ]);
    let heap = &asked.json("api/view?runs=0.1")["told"][0]["heap"];
    assert_eq!(
        (&heap["state"], &heap["limit"]),
        (&"ends".into(), &"heap".into())
    );
    let seconds = heap["at_ms"].as_i64().unwrap();
    let answer = asked.get("metrics");
    assert_eq!(status(&answer), 200, "{answer}");
    assert!(answer.contains("application/openmetrics-text"), "{answer}");
    let metrics = body(&answer);
    let line = |name: &str| -> Vec<&str> {
        let lines = metrics
            .lines()
            .filter(|l| l.starts_with(&format!("{name}{{")));
        lines.collect()
    };
    // Only the run that has not ended has metrics.
    let oom = line("heapdiff_trace_oom_seconds");
    let value = format!(" {}.{:03}", seconds / 1000, seconds % 1000);
    assert!(
        matches!(oom[..], [line] if line.ends_with(&value)),
        "{oom:?} {value}"
    );
    assert_eq!(line("heapdiff_trace_heap_used_bytes").len(), 1);
    assert!(line("heapdiff_trace_site_growth_bytes_per_hour")[0].contains("verdict=\"leak\""));
    assert!(metrics.ends_with("# EOF\n"));
}

#[test]
fn the_leak_is_the_first_line_with_its_figures() {
    let folder = Folder::new();
    let scene = Scene::default();
    let asked = Asked::of(&[&folder.trace("t.db", &scene)]);
    let view = asked.json("api/view?by=site&measure=objects");
    let bytes = asked.json("api/view?by=site&measure=bytes");
    let line = &view["lines"][0];
    assert_eq!(line["class"], "byte[]");
    assert_eq!(
        line["place"],
        "com.acme.Interceptor.record(Interceptor.java:31)"
    );
    let x = view["x"].as_array().unwrap();
    assert_eq!(x.len(), 120);
    // Each point is the number of live objects of the site at the end of a recorded period.
    for tick in 1..=120_i64 {
        let i = usize::try_from(tick - 1).unwrap();
        assert_eq!(x[i], STARTED_MS + tick * 1000);
        assert_eq!(line["objects"][i], (SITES[0].live)(tick), "{tick}");
        let size = SITES[0].size;
        assert_eq!(bytes["lines"][0]["bytes"][i], (SITES[0].live)(tick) * size);
    }
    // The server sends only the requested measure: objects or bytes.
    assert!(line.get("bytes").is_none() && bytes["lines"][0].get("objects").is_none());
    let counted: i64 = view["collections"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["count"].as_i64().unwrap())
        .sum();
    assert_eq!(counted, 60, "one at every second tick");
    assert_eq!(view["dumps"][0]["text"], "before.hprof");
    assert_eq!(view["heap"][0]["committed"][7], 268_435_456);
    // The window has more recorded periods than the ten points that are requested. The lines of the chart must still
    // end at the values of the last period.
    let from = STARTED_MS + 30_000;
    let few = asked.json(&format!(
        "api/view?by=site&measure=objects&points=10&from={from}"
    ));
    assert_eq!(few["x"].as_array().unwrap().len(), 10);
    assert_eq!(few["x"][9], STARTED_MS + 120_000);
    assert_eq!(few["lines"][0]["objects"][9], (SITES[0].live)(120));
    assert_eq!(few["lines"][0]["objects"][0], (SITES[0].live)(39));
    // The tree of stacks contains all live objects. Callers come first.
    let at = line["at"][0].as_str().unwrap();
    let stacks = asked.json(&format!("api/stacks?at={at}"));
    let names: Vec<_> = stacks["name"]
        .as_array()
        .unwrap()
        .iter()
        .map(|n| {
            stacks["names"][usize::try_from(n.as_u64().unwrap()).unwrap()]
                .as_str()
                .unwrap()
        })
        .collect();
    assert_eq!(
        names,
        [
            "com.acme.Main.main(Main.java:12)",
            "com.acme.Handler.handle(Handler.java:40)",
            "com.acme.Interceptor.record(Interceptor.java:31)",
            "byte[]",
        ]
    );
    assert_eq!(stacks["after"][3], (SITES[0].live)(120) * SITES[0].size);
    assert_eq!(stacks["first_class"], 3);
}

#[test]
fn all_of_it_is_sent_as_the_line_that_is_drawn() {
    let folder = Folder::new();
    let asked = Asked::of(&[&folder.trace("t.db", &Scene::default())]);
    let all = asked.json("api/overview?points=10&from=1&to=2");
    let keys: Vec<&String> = all.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["first_ms", "heap", "last_ms", "x"]);
    assert_eq!(
        all["last_ms"],
        STARTED_MS + 120_000,
        "a window is no part of it"
    );
    assert_eq!(all["heap"][0]["used"].as_array().unwrap().len(), 10);
    let view = asked.json("api/view?points=10");
    let marks = view["collections"].as_array().unwrap();
    assert!(marks.len() <= 2 * 10 + 2, "{} marks", marks.len());
    let counted = marks.iter().map(|c| c["count"].as_i64().unwrap());
    assert_eq!(counted.sum::<i64>(), 60);
}

/// One class leaks through two callers of one method.
#[test]
fn stacks_of_one_frame_are_one_line() {
    const PUT: SceneFrame<'static> = ("com.acme.Cache", "put", "Cache.java", 7);
    const NODE: SceneFrame<'static> = ("java.util.HashMap", "newNode", "HashMap.java", 1);
    let caller = |class| [NODE, PUT, (class, "run", "Run.java", 1)];
    let (one, two) = (caller("com.acme.One"), caller("com.acme.Two"));
    let site = |frames| SceneSite {
        class: "com.acme.Entry",
        frames,
        size: 64,
        live: |t| t * 160,
        churn: 0,
    };
    let sites = [site(&one), site(&two)];
    let scene = Scene {
        sites: &sites,
        ..Scene::default()
    };
    let folder = Folder::new();
    let asked = Asked::of(&[&folder.trace("t.db", &scene)]);
    let view = asked.json("api/view?measure=objects");
    let lines = view["lines"].as_array().unwrap();
    assert_eq!(lines.len(), 1);
    let place = "com.acme.Cache.put(Cache.java:7)";
    assert_eq!(lines[0]["place"], place);
    assert_eq!(lines[0]["objects"][119], 2 * 120 * 160);
    assert_eq!(
        asked.json("api/view?by=site")["lines"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    let [a, b] = [40_i64, 90].map(|tick| STARTED_MS + tick * 1000);
    let between = asked.json(&format!("api/between?from={a}&to={b}"));
    assert_eq!(between["rows"].as_array().unwrap().len(), 1);
    assert_eq!(between["rows"][0]["after_objects"], 2 * 90 * 160);
    // A request by class and frame must return both stacks with this class and frame, and no other stack.
    let named = |place: &str| {
        let query: String = form_urlencoded::byte_serialize(place.as_bytes()).collect();
        asked.json(&format!("api/stacks?class=com.acme.Entry&place={query}"))
    };
    assert_eq!(named(place)["depth"].as_array().unwrap().len(), 8);
    assert_eq!(
        named("com.acme.Other.put(Cache.java:7)")["depth"],
        serde_json::json!([])
    );
    let alone = asked.get("api/stacks?place=x");
    assert_eq!(status(&alone), 400);
}

#[test]
fn lines_have_the_order_of_trace_top() {
    let folder = Folder::new();
    for (name, scene) in [
        ("whole.db", Scene::default()),
        (
            "young.db",
            Scene {
                major: 0,
                ..Scene::default()
            },
        ),
        (
            "short.db",
            Scene {
                ticks: 6,
                ..Scene::default()
            },
        ),
        (
            "quiet.db",
            Scene {
                major: 0,
                minor: 0,
                ..Scene::default()
            },
        ),
    ] {
        let path = folder.trace(name, &scene);
        let asked = Asked::of(&[&path]);
        let trace = Trace::open(&path).unwrap();
        let run = trace.runs().unwrap().remove(0);
        // Request the whole trace, and then a part of it.
        let parts = [
            ("", Window::ALL),
            (
                &*format!("&from={}&to={}", STARTED_MS + 30_000, STARTED_MS + 80_000),
                Window {
                    from_ms: 30_001,
                    to_ms: 80_000,
                },
            ),
        ];
        for (part, window) in parts {
            // In this trace, each stack allocates in a different method. So each frame has exactly one stack, and
            // grouping by frame gives the same lines as grouping by stack.
            for (name, by) in [
                ("class", By::Class),
                ("site", By::Site),
                ("frame", By::Site),
            ] {
                let view = asked.json(&format!("api/view?by={name}{part}"));
                let timeline = Timeline::of(&trace, &run, window).unwrap();
                let ranking = rank(&trace, &timeline, by).unwrap();
                let lines = view["lines"].as_array().unwrap();
                assert_eq!(lines.len(), ranking.candidates.len());
                for (line, candidate) in lines.iter().zip(&ranking.candidates) {
                    assert_eq!(line["class"], *candidate.class, "{}{part}", path.display());
                    let t = &candidate.trending;
                    assert_eq!(line["verdict"], t.verdict.name());
                    assert_eq!(line["trend"], t.trend.name());
                    assert_eq!(line["grown_bytes"], t.grown_bytes);
                    assert_eq!(line["grown_objects"], t.grown_objects);
                }
                assert_eq!(view["told"][0]["basis"], ranking.points.basis.name());
            }
        }
    }
    // If a line of the page is merged from several JVMs, it shows the worst of their verdicts.
    let calm = folder.trace(
        "calm.db",
        &Scene {
            sites: &SITES[1..],
            ..Scene::default()
        },
    );
    let asked = Asked::of(&[&calm, &folder.0.path().join("whole.db")]);
    assert_eq!(
        asked.json("api/view?runs=0.1")["lines"][0]["verdict"],
        "plateau"
    );
    let view = asked.json("api/view");
    assert_eq!(view["lines"][0]["class"], "byte[]");
    assert_eq!(view["lines"][0]["verdict"], "leak");
    assert_eq!(view["told"].as_array().unwrap().len(), 2);
}
