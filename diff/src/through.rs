//! Finds the application frame through which most of the growth was allocated. If there are many stacks, a developer
//! should look at the code of this frame first.

use std::collections::BTreeMap;

use heapdiff_model::diff::{Stack, Through};

use crate::frame_parts::FrameParts;
use crate::samples::frame_kind::informative_frames;

/// If there are at most this number of stacks, the report lists them in full. It then needs no common frame.
const FEW: usize = 3;

/// Sums over the stacks that contain a method.
#[derive(Default)]
struct Passing<'a> {
    bytes: u128,
    /// The sum over the stacks of this product: number of frames between the allocation and the method's frame, times
    /// bytes of the stack. Only informative frames count (see [`informative_frames`]).
    depth: u128,
    stacks: u64,
    /// The frame of the method, with the line. If the stacks have different lines in the method, without the line.
    frame: &'a str,
}

/// Returns the innermost application frame through which at least two thirds of the stacks' bytes were allocated.
/// Returns `None` if there is no such frame, or if there are at most three stacks, which the report lists in full.
#[must_use]
pub fn through(stacks: &[Stack]) -> Option<Through> {
    if stacks.len() <= FEW {
        return None;
    }
    let all: u128 = stacks.iter().map(|s| u128::from(s.estimated_bytes)).sum();
    let mut methods: BTreeMap<&str, Passing<'_>> = BTreeMap::new();
    for stack in stacks {
        let mut seen: Vec<&str> = Vec::new();
        for (depth, frame) in (0_u128..).zip(informative_frames(&stack.frames)) {
            let method = FrameParts::parse(frame).function;
            // If a method is recursive, only its innermost frame counts.
            if seen.contains(&method) {
                continue;
            }
            seen.push(method);
            let passing = methods.entry(method).or_default();
            let bytes = u128::from(stack.estimated_bytes);
            passing.bytes += bytes;
            passing.depth += bytes * depth;
            passing.frame = match passing.stacks {
                0 => frame,
                _ if passing.frame == frame => frame,
                _ => method,
            };
            passing.stacks += 1;
        }
    }
    let most = methods
        .into_values()
        .filter(|m| m.bytes > 0 && 3 * m.bytes >= 2 * all);
    // The products cannot overflow: they are sums over at most 50 stacks of one heap.
    let nearest = most.min_by(|a, b| {
        let depth = |x: &Passing<'_>, y: &Passing<'_>| x.depth.saturating_mul(y.bytes);
        depth(a, b).cmp(&depth(b, a))
    })?;
    let whole = |n: u128| u64::try_from(n).unwrap_or(u64::MAX);
    Some(Through {
        frame: nearest.frame.to_owned(),
        estimated_bytes: whole(nearest.bytes),
        permille: whole(nearest.bytes * 1000 / all.max(1)),
        stacks: nearest.stacks,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(frames: &str, bytes: u64) -> Stack {
        Stack {
            frames: frames.split(' ').map(str::to_owned).collect(),
            class: "a.Entry".to_owned(),
            samples: 1,
            estimated_bytes: bytes,
            ci95: [bytes, bytes],
            estimated_objects: 1,
            survival_permille: 1000,
            survival_known: true,
            ..Stack::default()
        }
    }

    fn named(stacks: &[Stack]) -> Option<(String, u64, u64)> {
        through(stacks).map(|t| (t.frame, t.permille, t.stacks))
    }

    #[test]
    fn many_paths_lead_to_one_frame() {
        let put = "java.util.HashMap.newNode(H.java:1) a.Cache.put(C.java:7)";
        let mut stacks: Vec<Stack> = (0..20)
            .map(|i| {
                stack(
                    &format!("{put} a.Web{i}.get(W.java:{i}) a.Main.main(M.java:1)"),
                    10,
                )
            })
            .collect();
        assert_eq!(
            named(&stacks),
            Some(("a.Cache.put(C.java:7)".to_owned(), 1000, 20))
        );
        stacks.push(stack("a.Other.add(O.java:1) a.Main.main(M.java:2)", 50));
        assert_eq!(
            named(&stacks),
            Some(("a.Cache.put(C.java:7)".to_owned(), 800, 20))
        );
        // Frames with different lines in one method count as one frame.
        stacks.push(stack("a.Cache.put(C.java:9) a.Main.main(M.java:2)", 250));
        assert_eq!(named(&stacks), Some(("a.Cache.put".to_owned(), 900, 21)));
    }

    #[test]
    fn spread_allocations_are_named_by_an_outer_frame_or_not() {
        let apart: Vec<Stack> = ["a.A.a a.B.b a.C.c a.D.d", "a.E.e", "a.F.f", "a.G.g"]
            .iter()
            .zip(1..)
            .map(|(inner, line)| {
                stack(
                    &format!("{inner} a.Job.run(J.java:{line}) a.Main.main(M.java:1)"),
                    10,
                )
            })
            .collect();
        assert_eq!(named(&apart), Some(("a.Job.run".to_owned(), 1000, 4)));
        let none = ["a.A.a", "a.B.b", "a.C.c", "a.D.d"].map(|frame| stack(frame, 10));
        assert_eq!(named(&none), None);
        assert_eq!(named(&apart[..3]), None, "three stacks are shown");
        let runtime = [9, 8, 7, 6].map(|bytes| stack("java.lang.A.a(A.java:1)", bytes));
        assert_eq!(named(&runtime), None);
    }
}
