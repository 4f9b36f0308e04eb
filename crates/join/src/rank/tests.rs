use heapdiff_model::diff::Growth;

use super::*;

const SECOND: i64 = 1_000_000_000;

/// A sample: class, frames (innermost first), and second of the allocation. For a live object, the last value is the
/// array length, or -1 for an object that is no array. For an allocation, it is `None`.
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
            chain: 0,
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
    let line = |class: &str, length: Option<u32>, bytes| ContentLine {
        class: class.to_owned(),
        lengths: length.map(|length| length..=length),
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
        // A page cache has more surviving samples than the suspect's site, but its arrays have another length.
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
    assert_eq!(stacks[0].probability_permille, Some(749));
    assert_eq!(join.recordings[0].matched, "none");
}

#[test]
fn equal_samples_of_one_recording_are_different_objects() {
    let samples: [Given<'_>; 3] = [("a.Entry", &["a.Shop.one"], 30, Some(-1)); 3];
    let recording = |path: &str| (path.to_owned(), evidence(&samples), Fit::DumpEvent);
    for recordings in [
        vec![recording("a.jfr")],
        vec![recording("a.jfr"), recording("b.jfr")],
    ] {
        let joined = Join::new(recordings, &[10_000, 50_000]).stacks(&suspect(), &content());
        assert_eq!(joined.stacks[0].samples, 3);
    }
}

#[test]
fn equal_samples_with_chains_in_two_recordings_count_once() {
    let recording = |more: &[Given<'_>]| {
        let mut samples: Vec<Given<'_>> = vec![("a.Entry", &["a.Shop.one"], 30, Some(-1))];
        samples.extend(more);
        let mut evidence = evidence(&samples);
        let field = evidence.stacks.texts.id("a.Registry.all");
        evidence.seen[0].chain = evidence.stacks.chain(vec![field]);
        ("a.jfr".to_owned(), evidence, Fit::DumpEvent)
    };
    // The same class names have different ids in the two recordings.
    let other: [Given<'_>; 1] = [("a.Other", &["a.Shop.two"], 30, Some(-1))];
    let recordings = vec![recording(&other), recording(&[])];
    let joined = Join::new(recordings, &[10_000, 50_000]);
    let joined = joined.stacks(&suspect(), &content());
    assert_eq!(joined.stacks[0].samples, 1);
}

#[test]
fn arrays_of_varied_lengths_do_not_exclude_their_allocator() {
    let mut content = content();
    content[1].lengths = Some(32..=63);
    let samples: Vec<Given<'_>> = (20..30)
        .map(|second| -> Given<'_> {
            (
                "byte[]",
                &["a.Entry.<init>", "a.Shop.serve"],
                second,
                Some(second + 13),
            )
        })
        .collect();
    let recordings = vec![("rec.jfr".to_owned(), evidence(&samples), Fit::DumpEvent)];
    let joined = Join::new(recordings, &[10_000, 50_000]).stacks(&suspect(), &content);
    assert_eq!(
        joined.stacks[0].evidence.as_deref(),
        Some("10 of 10 surviving samples")
    );
}

#[test]
fn sites_are_sorted_by_their_probability() {
    // One site has many samples of allocations. Another site has few samples, but of live objects.
    let mut samples: Vec<Given<'_>> = vec![("a.Entry", &["a.Shop.often"], 30, None); 60];
    samples.push(("a.Entry", &["a.Shop.once"], 30, Some(-1)));
    for count in 1..60 {
        let stacks = joined(&samples[count..]).stacks;
        let permille: Vec<_> = stacks.iter().map(|s| s.probability_permille).collect();
        assert!(permille.is_sorted_by(|a, b| a >= b), "{permille:?}");
    }
}

#[test]
fn a_profile_without_sample_counts_states_a_share() {
    let samples: [Given<'_>; 2] = [
        ("a.Entry", &["a.Registry.add"], 30, None),
        ("a.Entry", &["a.Other.add"], 30, None),
    ];
    let mut evidence = evidence(&samples);
    evidence.span_ns = None;
    for seen in &mut evidence.seen {
        (seen.at_ns, seen.count) = (None, 0);
    }
    evidence.seen[0].weight = 3000;
    let recordings = vec![("x.collapsed".to_owned(), evidence, Fit::Unknown)];
    let joined = Join::new(recordings, &[10_000, 50_000]).stacks(&suspect(), &content());
    assert_eq!(joined.stacks[0].samples, 0);
    assert_eq!(
        joined.stacks[0].evidence.as_deref(),
        Some("75 % of the allocations of matching classes")
    );
}

#[test]
fn only_the_newest_recording_has_to_end_after_the_last_dump() {
    let recording = |to: i64| {
        let mut evidence = evidence(&[("a.Entry", &["a.Shop.one"], 30, None)]);
        evidence.span_ns = Some((0, to * SECOND));
        (format!("{to}.jfr"), evidence, Fit::DumpEvent)
    };
    let notes = |recordings| Join::new(recordings, &[10_000, 50_000]).warnings();
    assert_eq!(notes(vec![recording(49)]), [format!("49.jfr: {EARLY}")]);
    assert!(notes(vec![recording(49), recording(51)]).is_empty());
    let version = Fit::Time {
        version: true,
        command: false,
    };
    let mut unnamed = recording(51);
    unnamed.2 = version;
    assert_eq!(
        notes(vec![unnamed]),
        ["51.jfr: matched by time and JVM version; the command is unknown"]
    );
}
