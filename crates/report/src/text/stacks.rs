//! Prints allocation stacks, in comparisons and in `heapdiff sites`.

use heapdiff_units::Size;

use crate::coverage;
use crate::document::{Document, Stack};

/// Adds a stack with its estimate. `number` is the stack's position in the list; `None` for a stack of a suspect.
pub(super) fn stack(
    stack: &heapdiff_diff::Stack,
    number: Option<u64>,
    verbose: bool,
    doc: &mut Document,
) {
    let figures = coverage::probability(stack).unwrap_or_else(|| {
        let bytes = interval(stack.estimated_bytes, stack.ci95);
        format!("{bytes}  {}", coverage::stack(stack))
    });
    doc.stack(Stack {
        number,
        class: stack.class.clone(),
        figures,
        frames: stack.frames.clone(),
        threads: stack.threads.clone(),
        verbose,
    });
}

/// Formats an estimate with its interval: `1.4 MiB ± 0.1 MiB`. If the interval is clearly asymmetric, formats both ends
/// instead: `1.4 MiB (1.2 MiB..1.5 MiB)`. Clearly asymmetric means that its two sides differ by more than one eighth of
/// the longer side.
pub(crate) fn interval(bytes: u64, [low, high]: [u64; 2]) -> String {
    let (below, above) = (bytes.saturating_sub(low), high.saturating_sub(bytes));
    let (less, more) = (below.min(above), below.max(above));
    match more {
        0 => Size(bytes).to_string(),
        _ if more - less <= more / 8 => format!("{} ± {}", Size(bytes), Size(more)),
        _ => format!("{} ({}..{})", Size(bytes), Size(low), Size(high)),
    }
}

/// Formats an estimate with its interval, or an exact figure without one.
pub(super) fn amount(bytes: u64, ci95: Option<[u64; 2]>) -> String {
    interval(bytes, ci95.unwrap_or([bytes; 2]))
}

/// True if `part` is at least one per cent of `all`. Reports do not mention smaller parts.
pub(crate) const fn is_worth_mentioning(part: u64, all: u64) -> bool {
    part > 0 && part >= all / 100
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::WIDTH;
    use crate::style::Style;
    use crate::text::tests::printed;

    #[test]
    fn asymmetric_intervals_show_both_ends() {
        assert_eq!(interval(1024, [1024, 1024]), "1.0 KiB");
        assert_eq!(interval(2048, [1024, 3072]), "2.0 KiB ± 1.0 KiB");
        assert_eq!(interval(2048, [1152, 3072]), "2.0 KiB ± 1.0 KiB");
        assert_eq!(interval(2048, [1536, 3072]), "2.0 KiB (1.5 KiB..3.0 KiB)");
        assert_eq!(interval(2048, [1536, 2048]), "2.0 KiB (1.5 KiB..2.0 KiB)");
    }

    #[test]
    fn one_percent_is_worth_a_note() {
        assert!(
            is_worth_mentioning(1, 100)
                && is_worth_mentioning(1, 0)
                && is_worth_mentioning(50, 100)
        );
        assert!(
            !is_worth_mentioning(0, 0)
                && !is_worth_mentioning(0, 100)
                && !is_worth_mentioning(1, 200)
        );
    }

    #[test]
    fn unknown_stacks_and_omissions_are_reported() {
        let of = |frames: &[&str], threads: &[&str], verbose| {
            let owned = |names: &[&str]| names.iter().map(|&n| n.to_owned()).collect::<Vec<_>>();
            let stack = Stack {
                number: None,
                class: "byte[]".to_owned(),
                figures: "1.0 KiB".to_owned(),
                frames: owned(frames),
                threads: owned(threads),
                verbose,
            };
            printed(Style::plain(), |doc| doc.stack(stack))
        };
        const OWN: &str = "com.acme.Web.get(Web.java:7)";
        const RUNTIME: &str = "java.util.HashMap.put(HashMap.java:611)";
        let parts = [
            "(no stack was recorded)\n",
            "… 1 JDK frame\n",
            "… 2 JDK frames\n",
            "… and 3 more (-v shows all)\n",
            "in threads main and b\n",
            "in threads main and 2 others\n",
        ];
        let many: Vec<String> = (0..15)
            .map(|i| format!("com.acme.F{i}.f(F.java:{i})"))
            .collect();
        let many: Vec<&str> = many.iter().map(|f| &**f).collect();
        for (frames, threads, said) in [
            (&[][..], &["main"][..], &parts[..1]),
            (&[RUNTIME, RUNTIME, OWN], &[], &parts[1..2]),
            (
                &[RUNTIME, RUNTIME, RUNTIME, OWN],
                &["main", "b"],
                &[parts[2], parts[4]],
            ),
            (&many, &["main", "b", "c"], &[parts[3], parts[5]]),
            (&[OWN], &["main"], &[]),
        ] {
            let text = of(frames, threads, false);
            for part in parts {
                assert_eq!(text.contains(part), said.contains(&part), "{part}{text}");
            }
        }
        assert!(!of(&many, &[], true).contains("-v shows all"));
        assert!(!of(&[RUNTIME, RUNTIME, OWN], &[], true).contains("of the runtime"));
    }

    #[test]
    fn lines_fit() {
        let stack = heapdiff_diff::Stack {
            frames: (0..40)
                .map(|i| format!("com.acme.{}.f(F.java:{i})", "x".repeat(200)))
                .collect(),
            class: "y".repeat(300),
            samples: 12_345,
            estimated_bytes: 123_456_789,
            ci95: [100_000_000, 150_000_000],
            estimated_objects: 1_000_000,
            survival_permille: 500,
            threads: vec!["t".repeat(300), "u".into()],
            ..heapdiff_diff::Stack::default()
        };
        for verbose in [false, true] {
            let style = Style::plain().within(WIDTH);
            let text = printed(style, |doc| super::stack(&stack, None, verbose, doc));
            assert!(text.lines().all(|l| l.chars().count() <= WIDTH), "{text}");
            assert_eq!(text.contains("-v shows all"), !verbose);
        }
    }

    #[test]
    fn the_live_share_is_shown_if_it_is_known() {
        let told = |survival_known, survival_permille| {
            let stack = heapdiff_diff::Stack {
                frames: vec!["com.acme.Web.get(Web.java:7)".to_owned()],
                class: "byte[]".to_owned(),
                samples: 2,
                estimated_bytes: 4096,
                ci95: [1024, 8192],
                estimated_objects: 9,
                survival_permille,
                survival_known,
                ..heapdiff_diff::Stack::default()
            };
            printed(Style::plain(), |doc| super::stack(&stack, None, false, doc))
        };
        let (known, unknown) = (told(true, 1000), told(false, 1000));
        assert!(told(true, 9).contains("9 objects, 2 samples, under 1 % alive\n"));
        assert!(told(true, 169).contains("9 objects, 2 samples, 16 % alive\n"));
        assert!(
            known.contains("9 objects, 2 samples, all alive\n"),
            "{known}"
        );
        assert!(!known.contains("alive: unknown"), "{known}");
        assert!(
            unknown.contains("9 objects, 2 samples, alive: unknown\n"),
            "{unknown}"
        );
        assert!(!unknown.contains("all alive"), "{unknown}");
    }
}
