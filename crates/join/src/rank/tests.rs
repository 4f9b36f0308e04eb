use heapdiff_model::diff::Growth;

use super::*;

const SECOND: i64 = 1_000_000_000;

/// A sample: its class, its frames (the leaf first), its second, and for live objects the length or -1.
type Given<'a> = (&'a str, &'a [&'a str], i64, Option<i64>);

fn evidence(samples: &[Given<'_>]) -> Evidence {
    let mut evidence = Evidence {
        span_ns: Some((0, 100 * SECOND)),
        ..Evidence::default()
    };
    for &(class, frames, second, survived) in samples {
        let stacks = &mut evidence.stacks;
        let frame = |name: &&str| {
            let (class, method) = name.rsplit_once('.').unwrap();
            stacks.frame(class, method, 7)
        };
        let frames = frames.iter().map(frame).collect();
        let stack = stacks.stack(frames);
        evidence.seen.push(Seen {
            at_ns: Some(second * SECOND),
            survived: survived.is_some(),
            class: evidence.stacks.texts.id(class),
            length: survived.and_then(|length| u32::try_from(length).ok()),
            size: None,
            weight: 1000,
            count: 1,
            stack,
            chain: None,
        });
    }
    evidence
}

fn suspect() -> Suspect {
    Suspect {
        holder: "a.Registry.all".to_owned(),
        class: "a.Entry".to_owned(),
        path: vec![
            "a.Registry.all".to_owned(),
            "java.util.HashMap.table".to_owned(),
        ],
        objects: vec![100, 200],
        retained_bytes: vec![10_000, 20_000],
        growth: Growth {
            objects: 100,
            shallow_bytes: 2400,
            retained_bytes: 10_000,
        },
        ..Suspect::default()
    }
}

fn content() -> Vec<ContentLine> {
    let line = |class: &str, length, bytes| ContentLine {
        class: class.to_owned(),
        length,
        objects: 200,
        bytes,
    };
    vec![
        line("a.Entry", None, 4800),
        line("byte[]", Some(40), 12_000),
    ]
}

fn joined(samples: &[Given<'_>]) -> Joined {
    let recordings = vec![("rec.jfr".to_owned(), evidence(samples), Fit::DumpEvent)];
    Join::new(recordings, &[10_000, 50_000]).stacks(&suspect(), &content())
}

#[test]
fn survivors_with_the_length_of_the_content_name_the_stack() {
    let mut samples: Vec<Given<'_>> = Vec::new();
    for second in 20..26 {
        samples.push((
            "byte[]",
            &["a.Entry.<init>", "a.Shop.serve"],
            second,
            Some(40),
        ));
        // A page cache: more survivors, but with another length.
        for _ in 0..3 {
            samples.push(("byte[]", &["a.Pages.load"], second, Some(4000)));
        }
    }
    let joined = joined(&samples);
    let first = &joined.stacks[0];
    assert_eq!(first.frames[1], "a.Shop.serve(line 7)");
    assert_eq!(first.source.as_deref(), Some("recording"));
    assert!(first.probability_permille > Some(600), "{first:?}");
    assert_eq!(joined.stacks.len(), 1);
    let start = joined
        .sentence
        .starts_with("probably allocated in a.Shop.serve (line 7), probability 0.")
        || joined
            .sentence
            .starts_with("allocated in a.Shop.serve (line 7), probability 0.");
    assert!(start, "{}", joined.sentence);
    assert!(
        joined.sentence.ends_with(": 6 of 6 surviving samples"),
        "{}",
        joined.sentence
    );
}

#[test]
fn samples_outside_of_the_growth_do_not_count() {
    let samples: [Given<'_>; 3] = [
        ("a.Entry", &["a.Shop.start"], 5, Some(-1)),
        ("a.Entry", &["a.Shop.start"], 60, Some(-1)),
        ("a.Other", &["a.Shop.serve"], 30, Some(-1)),
    ];
    let joined = joined(&samples);
    assert_eq!(
        joined.sentence,
        "allocating code unknown: no matching sample"
    );
    assert!(joined.stacks.is_empty());
}

#[test]
fn few_samples_of_a_shared_class_are_too_few() {
    let samples: [Given<'_>; 2] = [
        ("byte[]", &["a.Shop.one"], 30, None),
        ("byte[]", &["a.Shop.two"], 30, None),
    ];
    let joined = joined(&samples);
    assert_eq!(
        joined.sentence,
        "allocating code unknown: 2 matching samples are too few"
    );
    assert!(joined.stacks.is_empty());
}

#[test]
fn a_stack_through_the_holders_class_is_preferred() {
    let samples: [Given<'_>; 4] = [
        ("a.Entry", &["a.Shop.one", "a.Registry.add"], 30, Some(-1)),
        ("a.Entry", &["a.Shop.one", "a.Registry.add"], 31, Some(-1)),
        ("a.Entry", &["a.Shop.two"], 30, Some(-1)),
        ("a.Entry", &["a.Shop.two"], 31, Some(-1)),
    ];
    let stacks = joined(&samples).stacks;
    assert_eq!(stacks[0].frames[0], "a.Shop.one(line 7)");
    assert!(stacks[0].probability_permille > stacks[1].probability_permille);
    assert_eq!(
        stacks[0].evidence.as_deref(),
        Some("2 of 4 surviving samples")
    );
}

#[test]
fn events_in_two_recordings_count_once() {
    let samples: [Given<'_>; 2] = [
        ("a.Entry", &["a.Shop.one"], 30, Some(-1)),
        ("a.Entry", &["a.Shop.one"], 31, None),
    ];
    let recording = |path: &str| (path.to_owned(), evidence(&samples), Fit::DumpEvent);
    let of = |recordings| Join::new(recordings, &[10_000, 50_000]).stacks(&suspect(), &content());
    let one = of(vec![recording("a.jfr")]);
    let two = of(vec![recording("a.jfr"), recording("b.jfr")]);
    assert_eq!(one, two);
    assert_eq!(one.stacks.len(), 1);
}

#[test]
fn evidence_without_times_is_at_most_probable() {
    let samples: Vec<Given<'_>> = vec![("a.Entry", &["a.Registry.add"], 30, None); 40];
    let mut evidence = evidence(&samples);
    evidence.span_ns = None;
    for (number, seen) in (0..).zip(&mut evidence.seen) {
        seen.at_ns = None;
        seen.weight = number + 1;
    }
    let join = Join::new(
        vec![("x.collapsed".to_owned(), evidence, Fit::Unknown)],
        &[10_000, 50_000],
    );
    let stacks = join.stacks(&suspect(), &content()).stacks;
    assert_eq!(stacks[0].probability_permille, Some(750));
    assert_eq!(join.recordings[0].matched, "none");
}
