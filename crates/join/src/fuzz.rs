//! Fuzz entry point: reads bytes as a recording or a profile, and joins it with dumps.

use heapdiff_diff::{ContentLine, StackSource, Suspect};
use heapdiff_jfr::Recording;

use crate::evidence::{Evidence, NS_PER_MS};
use crate::matching::{self, Dump, Fit};
use crate::rank::Join;

/// Maximum number of classes whose stacks are ranked.
const CLASSES: usize = 8;

/// Reads a recording or a profile from the bytes. Ranks the stacks of suspects whose classes are the first eight
/// classes of the samples.
pub fn join(bytes: &[u8]) {
    let evidence = match Recording::from_bytes(bytes.to_vec()) {
        Ok(recording) => Evidence::of(&recording),
        Err(_) => match crate::profile::read(bytes) {
            Ok(evidence) => evidence,
            Err(_) => return,
        },
    };
    let (from, to) = evidence.span_ns.unwrap_or_default();
    let ms = |ns: i64| u64::try_from(ns / NS_PER_MS).unwrap_or(0);
    let taken = [ms(from), ms(from / 2 + to / 2), ms(to)];
    let dumps = taken.map(|taken_ms| Dump {
        bytes: evidence.heap_dumps.first().map_or(0, |dump| dump.bytes),
        taken_ms,
        ..Dump::default()
    });
    let fit = matching::fit(&evidence, &dumps).unwrap_or(Fit::Unknown);
    let mut classes: Vec<(String, Option<u32>)> = Vec::new();
    for seen in &evidence.seen {
        let class = evidence.stacks.texts.text(seen.class).to_owned();
        if classes.len() < CLASSES && classes.iter().all(|(known, _)| *known != class) {
            classes.push((class, seen.length));
        }
    }
    let content: Vec<ContentLine> = classes
        .iter()
        .map(|(class, length)| ContentLine {
            class: class.clone(),
            lengths: length.map(|length| length..=length),
            objects: 5,
            bytes: 1 << 20,
        })
        .collect();
    let saved = Evidence::from_saved(&evidence.to_saved());
    assert!(saved.is_some(), "saved evidence can be read");
    let evidence = saved.unwrap_or_default();
    let join = Join::new(vec![("input".to_owned(), evidence, fit)], &taken);
    for (class, _) in classes {
        let suspect = Suspect {
            holder: format!("{class}.all"),
            path: vec![
                format!("{class}.all"),
                "java.util.HashMap$Node[*]".to_owned(),
            ],
            class,
            objects: vec![1, 1, 9],
            retained_bytes: vec![1, 2, 3],
            ..Suspect::default()
        };
        let joined = join.stacks(&suspect, &content);
        let sum: u64 = joined
            .stacks
            .iter()
            .filter_map(|s| s.probability_permille)
            .sum();
        assert!(sum <= 1000, "{sum}");
        assert!(!joined.sentence.is_empty());
        assert_eq!(join.stacks(&suspect, &content), joined);
    }
}
