//! Tests of rankings. The traces are synthetic, so it is known what leaks in them.
#![allow(clippy::unwrap_used)]

use heapdiff_trace::synthetic::{SITES, Scene, SceneSite, write};
use heapdiff_trace::{
    AliveAt, Basis, By, Candidate, Points, Ranking, Steps, Timeline, Trace, TraceError, Trend,
    Verdict, Window, rank,
};

fn ranked(
    scene: &Scene<'_>,
    by: By,
    window: Window,
) -> (Ranking, Timeline, Trace, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.db");
    write(&path, scene).unwrap();
    let trace = Trace::open(&path).unwrap();
    let run = trace.runs().unwrap().remove(0);
    let timeline = Timeline::of(&trace, &run, window).unwrap();
    let ranking = rank(&trace, &timeline, by).unwrap();
    (ranking, timeline, trace, folder)
}

fn of<'a>(ranking: &'a Ranking, class: &str) -> &'a Candidate {
    ranking
        .candidates
        .iter()
        .find(|c| &*c.class == class)
        .unwrap()
}

#[test]
fn the_leak_comes_first_and_is_the_only_one() {
    for by in [By::Site, By::Class] {
        let (ranking, ..) = ranked(&Scene::default(), by, Window::ALL);
        assert_eq!(ranking.points.basis, Basis::Major);
        let verdicts: Vec<_> = ranking
            .candidates
            .iter()
            .map(|c| (&*c.class, c.trending.verdict))
            .collect();
        assert_eq!(verdicts[0], ("byte[]", Verdict::Leak), "{verdicts:?}");
        assert!(
            verdicts[1..].iter().all(|v| v.1 > Verdict::Unclear),
            "{verdicts:?}"
        );
        assert_eq!(
            of(&ranking, "com.acme.Page").trending.verdict,
            Verdict::Plateau
        );
        assert_eq!(
            of(&ranking, "com.acme.Session").trending.verdict,
            Verdict::Level
        );
        // The leak grows by 160 buffers of 2064 bytes per second.
        let slope = ranking.candidates[0].trending.bytes;
        let [low, high] = slope.ci95.unwrap();
        let truth = 160 * 2064 * 3600;
        assert!((low..=high).contains(&truth) && low > 0, "{slope:?}");
        assert!(slope.slope.abs_diff(truth) < 160 * 2064 * 360, "{slope:?}");
    }
}

#[test]
fn the_start_of_growth_is_found() {
    let (ranking, timeline, trace, _folder) = ranked(&Scene::default(), By::Class, Window::ALL);
    let leak = &ranking.candidates[0];
    let sites: Vec<i64> = leak.sites.iter().map(|s| s.id).collect();
    let steps = Steps::of(&trace, &timeline, &sites).unwrap();
    let began = steps
        .growth_start(&timeline, &Points::of(&timeline))
        .unwrap();
    assert!(began.uptime_ms.abs_diff(20_000) <= 2000, "{began:?}");
    assert!(began.within);
    let series = steps.series(&timeline, 60);
    assert_eq!(series.len(), 60);
    assert_eq!(series[59].0.uptime_ms, 120_000);
    assert_eq!(steps.series(&timeline, 1000).len(), 120);
}

#[test]
fn a_window_limits_the_ranking() {
    let before = Window {
        from_ms: 0,
        to_ms: 20_000,
    };
    let (ranking, timeline, ..) = ranked(
        &Scene {
            major: 2,
            ..Scene::default()
        },
        By::Class,
        before,
    );
    assert_eq!(timeline.ticks().len(), 20);
    assert!(of(&ranking, "byte[]").trending.verdict > Verdict::Growth);
    let after = Window {
        from_ms: 60_000,
        to_ms: 120_000,
    };
    let (ranking, timeline, ..) = ranked(&Scene::default(), By::Class, after);
    assert_eq!(timeline.ticks().len(), 61);
    // The window begins at 60 s. The cache of `com.acme.Page` was full before that, so it does not grow in the window.
    assert_eq!(
        of(&ranking, "com.acme.Page").trending.verdict,
        Verdict::Level
    );
    assert_eq!(of(&ranking, "byte[]").trending.verdict, Verdict::Leak);
    let none = Window {
        from_ms: 500_000,
        to_ms: 600_000,
    };
    let (ranking, timeline, ..) = ranked(&Scene::default(), By::Class, none);
    assert_eq!((timeline.ticks().len(), ranking.points.len()), (0, 0));
}

#[test]
fn less_evidence_gives_a_weaker_verdict() {
    // There are only young GCs. So the objects by which the live amount grows may be garbage in the old generation.
    let (ranking, ..) = ranked(
        &Scene {
            major: 0,
            ..Scene::default()
        },
        By::Class,
        Window::ALL,
    );
    assert_eq!(ranking.points.basis, Basis::Collections);
    assert_eq!(of(&ranking, "byte[]").trending.verdict, Verdict::Growth);
    assert!(of(&ranking, "byte[]").trending.bytes.is_sure());
    // Two full GCs confirm the growth.
    let (ranking, ..) = ranked(
        &Scene {
            major: 50,
            ..Scene::default()
        },
        By::Class,
        Window::ALL,
    );
    assert_eq!(ranking.points.basis, Basis::Collections);
    assert_eq!(of(&ranking, "byte[]").trending.verdict, Verdict::Leak);
    let scene = Scene {
        major: 0,
        minor: 0,
        ..Scene::default()
    };
    let (ranking, ..) = ranked(&scene, By::Class, Window::ALL);
    assert_eq!(ranking.points.basis, Basis::Ticks);
    assert_eq!(of(&ranking, "byte[]").trending.verdict, Verdict::Unclear);
    // With only three GCs, the slope has no confidence interval.
    let (ranking, ..) = ranked(
        &Scene {
            ticks: 35,
            minor: 0,
            ..Scene::default()
        },
        By::Class,
        Window::ALL,
    );
    assert!(of(&ranking, "byte[]").trending.bytes.ci95.is_none());
}

/// A steady cache of 1600 pages, plus short-lived pages. With generational ZGC, objects are found dead only at a full
/// GC. A full GC happens every 40 recorded periods.
const STEADY_Z: [SceneSite<'static>; 1] = [SceneSite {
    class: "com.acme.Page",
    size: 4096,
    live: |t| 1600 + t % 40 * 800,
    churn: 0,
    ..SITES[1]
}];

/// Returns a run with generational ZGC and a young GC in each recorded period.
fn generational_z() -> Scene<'static> {
    Scene {
        minor: 1,
        collectors: ["ZGC Minor Cycles", "ZGC Major Cycles"],
        weight: 1,
        ..Scene::default()
    }
}

#[test]
fn with_generational_zgc_live_objects_survived_a_full_gc() {
    let scene = |major, ticks| Scene {
        sites: &STEADY_Z,
        ticks,
        major,
        ..generational_z()
    };
    let (ranking, timeline, ..) = ranked(&scene(40, 235), By::Class, Window::ALL);
    // The last full GC is in the 200th recorded period. In the 35 periods after it, unreachable objects accumulate.
    let at = AliveAt::Major {
        uptime_ms: 199_999,
        tried_ms: None,
    };
    assert_eq!(timeline.alive_at(), at);
    let page = of(&ranking, "com.acme.Page");
    assert!(page.live.amount.objects.abs_diff(1600) <= 800, "{page:?}");
    assert_eq!(ranking.live.amount, page.live.amount);
    assert_eq!(ranking.points.basis, Basis::Major);
    assert!(page.trending.verdict > Verdict::Unclear, "{page:?}");
    assert!(page.trending.survival_permille < Some(300), "{page:?}");
    // There are too few full GCs for a trend. With another collector, live amounts after GCs of any kind would be
    // compared. But young GCs of generational ZGC find no dead objects, so only the live amounts after full GCs are
    // compared.
    let (ranking, ..) = ranked(&scene(40, 119), By::Class, Window::ALL);
    assert_eq!(
        (ranking.points.basis, ranking.points.len()),
        (Basis::Collections, 2)
    );
    assert!(of(&ranking, "com.acme.Page").trending.verdict > Verdict::Unclear);
    // Without a full GC, it is unknown which objects are dead.
    let (ranking, timeline, ..) = ranked(&scene(0, 35), By::Class, Window::ALL);
    assert_eq!(timeline.alive_at(), AliveAt::Unknown);
    let page = of(&ranking, "com.acme.Page").trending;
    assert_eq!(
        (ranking.points.basis, page.survival_permille),
        (Basis::Ticks, None)
    );
    assert_eq!(page.verdict, Verdict::Unclear);
    // The young GCs of other collectors find objects that died young. Only young GCs of generational ZGC do not.
    let other = Scene {
        collectors: Scene::default().collectors,
        ..scene(40, 235)
    };
    let (_, timeline, ..) = ranked(&other, By::Class, Window::ALL);
    assert_eq!(timeline.alive_at(), AliveAt::End);
}

/// Like [`STEADY_Z`], with one exception: a full GC does not find dead objects that were allocated in the ten recorded
/// periods before this GC, because these objects are still young.
const STEADY_Z_YOUNG: [SceneSite<'static>; 1] = [SceneSite {
    live: |t| 1600 + if t < 40 { t } else { t % 40 + 10 } * 800,
    ..STEADY_Z[0]
}];

#[test]
fn with_generational_zgc_young_objects_are_unknown() {
    let scene = Scene {
        sites: &STEADY_Z_YOUNG,
        ticks: 275,
        major: 40,
        newest: |t| (t % 40 == 0).then_some((t - 10) * 1000),
        ..generational_z()
    };
    let (ranking, timeline, trace, _folder) = ranked(&scene, By::Class, Window::ALL);
    let at = AliveAt::Major {
        uptime_ms: 239_999,
        tried_ms: Some(230_000),
    };
    assert_eq!(timeline.alive_at(), at);
    let page = of(&ranking, "com.acme.Page");
    assert!(page.live.amount.objects.abs_diff(1600) <= 800, "{page:?}");
    assert!(page.trending.verdict > Verdict::Unclear, "{page:?}");
    // In this window, no sample was found dead. So the result is based on the newest sample that was found dead before
    // the window.
    let window = Window {
        from_ms: 205_000,
        to_ms: u64::MAX,
    };
    let run = trace.runs().unwrap().remove(0);
    let timeline = Timeline::of(&trace, &run, window).unwrap();
    assert_eq!(timeline.alive_at(), at);
    // If the agent did not record which objects the GCs examined, the live amount is an upper bound.
    let untold = Scene {
        newest: |_| None,
        ticks: 155,
        minor: 0,
        ..scene
    };
    let (ranking, timeline, ..) = ranked(&untold, By::Class, Window::ALL);
    let at = AliveAt::Major {
        uptime_ms: 119_999,
        tried_ms: None,
    };
    assert_eq!(timeline.alive_at(), at);
    assert!(of(&ranking, "com.acme.Page").live.amount.objects > 9000);
}

#[test]
fn old_objects_were_examined_by_a_full_gc() {
    // No object dies. After 17 young GCs, all objects that existed before them are old, so the next full GC examines
    // them.
    const LEAK: [SceneSite<'static>; 1] = [SceneSite {
        live: |t| t * 100,
        ..STEADY_Z[0]
    }];
    let scene = Scene {
        sites: &LEAK,
        ticks: 235,
        major: 20,
        // Only one object dies. It was allocated 500 ms after the start.
        newest: |t| (t == 20).then_some(500),
        ..generational_z()
    };
    let (ranking, timeline, ..) = ranked(&scene, By::Class, Window::ALL);
    let at = AliveAt::Major {
        uptime_ms: 219_999,
        tried_ms: Some(202_999),
    };
    assert_eq!(timeline.alive_at(), at);
    let page = of(&ranking, "com.acme.Page");
    assert_eq!(page.trending.verdict, Verdict::Leak);
    assert!(page.live.amount.objects.abs_diff(20_300) <= 1, "{page:?}");
}

/// Short-lived allocations of requests. Their number is multiplied by the load.
const REQUESTS: SceneSite<'static> = SceneSite {
    class: "com.acme.Request",
    size: 512,
    live: |_| 16,
    churn: 160,
    ..SITES[4]
};

fn verdict_of(sites: &[SceneSite<'_>], load: fn(i64) -> i64) -> heapdiff_trace::Trending {
    let scene = Scene {
        sites,
        ticks: 300,
        minor: 0,
        major: 2,
        load,
        ..Scene::default()
    };
    let (ranking, ..) = ranked(&scene, By::Class, Window::ALL);
    of(&ranking, sites[0].class).trending
}

#[test]
fn an_idle_night_does_not_end_growth() {
    let sites = [
        SceneSite {
            class: "com.acme.Leaked",
            live: |t| t.min(100) * 160,
            churn: 0,
            ..SITES[0]
        },
        REQUESTS,
    ];
    let idle = verdict_of(&sites, |t| if t <= 100 { 50 } else { 0 });
    assert_eq!(
        (idle.trend, idle.verdict),
        (Trend::Plateau, Verdict::Growth)
    );
    let by_work = idle.per_work.unwrap();
    assert!(
        !by_work.trend.has_stopped_growing() && by_work.bytes.is_sure(),
        "{by_work:?}"
    );
    // If the live amount stays level while the load is as high as before, growth has ended.
    let busy = verdict_of(&sites, |_| 50);
    assert_eq!((busy.verdict, busy.per_work), (Verdict::Plateau, None));
    // Growth also counts as ended if the program has less load than before, as long as it has some load.
    let less = verdict_of(&sites, |t| if t <= 100 { 50 } else { 20 });
    assert_eq!(less.verdict, Verdict::Plateau, "{less:?}");
}

#[test]
fn objects_that_follow_the_load_are_not_growth() {
    let sites = [
        SceneSite {
            class: "com.acme.Session",
            live: |t| if t <= 252 { 160 } else { 3200 },
            churn: 0,
            ..SITES[0]
        },
        REQUESTS,
    ];
    let morning = verdict_of(&sites, |t| if t <= 250 { 1 } else { 10 });
    assert!(morning.verdict > Verdict::Unclear, "{morning:?}");
    // If the program's load is constant, the time in which nothing grew is too short to show that growth has ended.
    let even = verdict_of(&sites, |_| 50);
    assert_eq!((even.trend, even.verdict), (Trend::Late, Verdict::Growth));
    // A short burst of work without growth does not show that growth over time has ended.
    let clock = [
        SceneSite {
            class: "com.acme.Timer",
            live: |t| t * 160,
            ..sites[0]
        },
        REQUESTS,
    ];
    let clock = verdict_of(&clock, |t| if t <= 250 { 1 } else { 10 });
    assert!(clock.verdict <= Verdict::Growth, "{clock:?}");
}

#[test]
fn few_samples_are_not_enough_evidence() {
    // Only one in 4096 objects is sampled, so very few samples show the growth. This is not enough for a certain
    // result.
    let scene = Scene {
        sites: &[
            SceneSite {
                live: |t| 40_960 + t / 60 * 4096,
                ..SITES[0]
            },
            SITES[2],
        ],
        weight: 4096,
        ..Scene::default()
    };
    let (ranking, ..) = ranked(&scene, By::Class, Window::ALL);
    let few = of(&ranking, "byte[]").trending;
    assert!(
        !few.bytes.is_sure() && few.verdict != Verdict::Leak,
        "{few:?}"
    );
}

/// A small object that grows steadily with time, and a large one that grows in jumps.
const SLOW_AND_LARGE: [SceneSite<'static>; 2] = [
    SceneSite {
        class: "com.acme.Slow",
        size: 2048,
        live: |t| 1000 + t * 16,
        churn: 0,
        ..SITES[0]
    },
    SceneSite {
        class: "com.acme.Large",
        size: 200_000,
        live: |t| 16 + t / 4 * 16,
        churn: 0,
        ..SITES[3]
    },
];

#[test]
fn in_a_short_trace_growth_comes_first() {
    let scene = |ticks| Scene {
        sites: &SLOW_AND_LARGE,
        ticks,
        minor: 1,
        major: 0,
        weight: 1,
        ..Scene::default()
    };
    let first = |ticks| {
        let (ranking, ..) = ranked(&scene(ticks), By::Site, Window::ALL);
        let first = &ranking.candidates[0];
        (first.class.to_string(), first.trending)
    };
    // Before the large object first grows, only the small one grows.
    assert_eq!(first(3).0, "com.acme.Slow");
    // `Slow` (the small object) certainly grows. For `Large`, growth is not certain. Still `Large` comes first, because
    // it has grown by more bytes.
    let (ranking, ..) = ranked(&scene(9), By::Site, Window::ALL);
    let [large, slow] = ["com.acme.Large", "com.acme.Slow"].map(|c| of(&ranking, c).trending);
    assert_eq!(
        (large.verdict, slow.verdict),
        (Verdict::Growth, Verdict::Growth)
    );
    assert!(!large.bytes.is_sure() && slow.bytes.is_sure(), "{large:?}");
    assert_eq!(first(9).0, "com.acme.Large");
    // With at least ten points, candidates with the same verdict are ranked by their certain growth.
    let (class, trending) = first(200);
    assert!(
        class == "com.acme.Large" && trending.bytes.is_sure(),
        "{trending:?}"
    );
}

#[test]
fn a_window_is_read_as_a_part_of_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.db");
    let long = Scene::default();
    // Two runs in one file share their sites, but the live objects of one run do not affect the other run.
    write(&path, &long).unwrap();
    write(&path, &Scene { ticks: 30, ..long }).unwrap();
    let trace = Trace::open(&path).unwrap();
    for (run, last) in trace.runs().unwrap().iter().zip([120, 30]) {
        for site in trace.sites().unwrap() {
            let whole = Timeline::of(&trace, run, Window::ALL).unwrap();
            let whole = Steps::of(&trace, &whole, &[site.id]).unwrap();
            assert_eq!(whole.live_before_window().amount.objects, 0);
            for from in [1, 10, 29] {
                let window = Window {
                    from_ms: from * 1000 + 1,
                    to_ms: u64::MAX,
                };
                let timeline = Timeline::of(&trace, run, window).unwrap();
                let part = Steps::of(&trace, &timeline, &[site.id]).unwrap();
                let at = |tick: u64| {
                    let made = SITES.iter().find(|s| s.class == &*site.class).unwrap();
                    u64::try_from((made.live)(i64::try_from(tick).unwrap())).unwrap()
                };
                assert_eq!(
                    part.live_before_window().amount.objects,
                    at(from),
                    "{}",
                    site.class
                );
                assert_eq!(part.last().amount.objects, at(last));
                let all = part.changes(&timeline).count();
                assert!(all as u64 <= last - from);
            }
        }
    }
}

#[test]
fn a_ranking_that_takes_too_long_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.db");
    write(&path, &Scene::default()).unwrap();
    let trace = Trace::open(&path).unwrap();
    let run = trace.runs().unwrap().remove(0);
    let timeline = Timeline::of(&trace, &run, Window::ALL).unwrap();
    trace.set_deadline(Some(std::time::Instant::now()));
    let late = rank(&trace, &timeline, By::Site);
    assert!(matches!(late, Err(TraceError::Late { .. })), "{late:?}");
    trace.set_deadline(None);
    rank(&trace, &timeline, By::Site).unwrap();
}
