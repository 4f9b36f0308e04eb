//! Headlines: one sentence that names the holder, the class, the size and the allocation site.

use std::borrow::Cow;
use std::fmt;

use heapdiff_model::diff::{Stack, Suspect, difference};
use heapdiff_units::{grouped, signed_size};

use crate::frame_parts::FrameParts;
use crate::samples::frame_kind::informative_frames;

/// The headline of one suspect, in two parts. `Display` writes both as one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Headline {
    /// `Orders.open holds 2,000 more Orders$Order (+203.1 KiB, 97 % of the growth)`.
    pub held: String,
    /// `allocated in Orders.book (Orders.java:31), called from Orders.take (Orders.java:27)`; `None` if no allocating
    /// application frame is known.
    pub allocated: Option<String>,
}

impl Headline {
    /// Returns the headline of a suspect. `grown_bytes` is the growth of the reachable heap.
    #[must_use]
    pub fn new(suspect: &Suspect, grown_bytes: i64) -> Self {
        let first = main_stack(&suspect.stacks, &suspect.class);
        let first = first.filter(|_| is_covered(suspect));
        let frames = first.map(|stack| application_frames(stack, &suspect.class));
        let frames = frames.unwrap_or_default();
        let place = |frame: &&str| place(frame);
        let allocated = match &frames[..] {
            [] => None,
            [one] => Some(format!("allocated in {}", place(one))),
            [one, caller, ..] => Some(format!(
                "allocated in {}, called from {}",
                place(one),
                place(caller)
            )),
        };
        // The stacks of a recording are only probable. So the headline uses the sentence `joined`, which states the
        // probability.
        let joined = suspect.joined.clone();
        let joined = joined.filter(|_| !suspect.stacks.is_empty());
        Self {
            held: held(suspect, grown_bytes),
            allocated: if suspect.joined.is_some() {
                joined
            } else {
                allocated
            },
        }
    }
}

impl fmt::Display for Headline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.held)?;
        match &self.allocated {
            Some(allocated) => write!(f, ", {allocated}"),
            None => Ok(()),
        }
    }
}

fn held(suspect: &Suspect, grown_bytes: i64) -> String {
    let (class, growth) = (&suspect.class, suspect.growth.retained_bytes);
    let holder = match &*suspect.holder {
        "(several paths)" => "several paths hold".to_owned(),
        "thread" => "threads hold".to_owned(),
        holder => format!("{} holds", source_field_name(holder)),
    };
    let more = difference(&suspect.objects);
    let class = class_name(class);
    let what = match u64::try_from(more) {
        Ok(more) if more > 0 => format!("{} more {class}", grouped(more)),
        _ => format!("larger {class}"),
    };
    let mut figures = signed_size(growth);
    // If other parts of the heap shrank, the suspect can grow by more than the heap did. Its percentage of the heap's
    // growth then has no meaning and is left out.
    if grown_bytes > 0 && (0..=grown_bytes).contains(&growth) {
        figures += &match growth.saturating_mul(100) / grown_bytes {
            0 => ", under 1 % of the growth".to_owned(),
            percent => format!(", {percent} % of the growth"),
        };
    }
    let off_heap = difference(&suspect.off_heap_bytes);
    if off_heap > 0 {
        figures = format!("{} off heap, {figures}", signed_size(off_heap));
    }
    format!("{holder} {what} ({figures})")
}

/// Returns a field's name as programmers know it: without the `$` of a Scala object; for a top-level property of
/// Kotlin, with the name of its file.
fn source_field_name(field: &str) -> Cow<'_, str> {
    let Some((class, name)) = field.rsplit_once('.') else {
        return field.into();
    };
    if let Some(object) = class.strip_suffix('$') {
        return match name {
            "MODULE$" => format!("the Scala object {object}").into(),
            _ => format!("{object}.{name} (Scala object)").into(),
        };
    }
    let simple = class.rsplit('.').next().unwrap_or(class);
    match simple.strip_suffix("Kt") {
        Some(file) if !file.is_empty() => format!("{field} (in {file}.kt)").into(),
        _ => field.into(),
    }
}

/// Returns a class's name as programmers know it. A lambda gets the name of the class that contains it.
fn class_name(class: &str) -> Cow<'_, str> {
    match class.strip_suffix("$$Lambda") {
        Some(around) => format!("lambdas of {around}").into(),
        None => class.into(),
    }
}

/// True if samples cover at least half of the growth. If they cover less, the stack of a sample may not be the one that
/// allocated most.
fn is_covered(suspect: &Suspect) -> bool {
    let coverage = &suspect.coverage;
    coverage.sampled_bytes.saturating_mul(2) >= coverage.growth_bytes
}

/// Returns the stack that allocated the most bytes of the class that accumulates. If no stack allocated this class,
/// returns the stack that allocated the most bytes of any class.
fn main_stack<'a>(stacks: &'a [Stack], class: &str) -> Option<&'a Stack> {
    let of_class = stacks.iter().find(|stack| stack.class == class);
    of_class.or(stacks.first())
}

/// Returns at most two application frames of a stack: the innermost one, and the next one that is not the code of a
/// lambda. If the innermost frames are in a constructor or factory method of the class that accumulates, leaves these
/// frames out.
fn application_frames<'a>(stack: &'a Stack, class: &str) -> Vec<&'a str> {
    let own: Vec<&str> = informative_frames(&stack.frames).collect();
    let makes =
        |frame: &&&str| is_creation_frame(frame, class) || is_creation_frame(frame, &stack.class);
    let innermost = own.iter().take_while(makes).count();
    // If all frames are of constructors or factory methods, use these.
    let own = match &own[innermost..] {
        [] => &own[..],
        callers => callers,
    };
    let mut frames: Vec<&str> = own.iter().take(1).copied().collect();
    frames.extend(
        own.iter()
            .skip(1)
            .find(|frame| !frame.contains(" (lambda)")),
    );
    frames
}

/// True if a frame is in a constructor, factory method or builder of a class.
fn is_creation_frame(frame: &str, class: &str) -> bool {
    const FACTORIES: [&str; 8] = [
        "of",
        "from",
        "create",
        "make",
        "new",
        "valueOf",
        "copyOf",
        "getInstance",
    ];
    let function = FrameParts::parse(frame).function;
    let Some(method) = function.strip_prefix(class) else {
        return false;
    };
    if let Some(builder) = method.strip_prefix('$') {
        return builder.starts_with("Builder.");
    }
    method.strip_prefix('.').is_some_and(|method| {
        let factory = FACTORIES.iter().find_map(|f| method.strip_prefix(f));
        let is_factory = factory.is_some_and(|rest| !rest.starts_with(|c: char| c.is_lowercase()));
        matches!(method, "<init>" | "<clinit>") || is_factory
    })
}

/// Formats a frame for a headline, as in `Orders.book (Orders.java:31)`.
fn place(frame: &str) -> String {
    let parts = FrameParts::parse(frame);
    match frame.strip_prefix(parts.function) {
        Some(place) if !place.is_empty() => format!("{} {place}", parts.function),
        _ => frame.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_in_headlines_are_application_frames() {
        let frames = |all: &[&str]| Stack {
            frames: all.iter().map(|&f| f.to_owned()).collect(),
            class: "long[]".to_owned(),
            samples: 1,
            estimated_bytes: 1,
            ci95: [1, 1],
            estimated_objects: 1,
            survival_permille: 1000,
            survival_known: true,
            ..Stack::default()
        };
        let stack = frames(&[
            "Orders$Order.<init>(Orders.java:22)",
            "Orders.book(Orders.java:31)",
            "Orders.take (lambda)(Orders.java:27)",
            "java.util.stream.IntPipeline$Head.forEach(IntPipeline.java:617)",
            "Orders.take(Orders.java:27)",
        ]);
        assert_eq!(
            application_frames(&stack, "Orders$Order"),
            ["Orders.book(Orders.java:31)", "Orders.take(Orders.java:27)"]
        );
        assert_eq!(
            place("Orders.book(Orders.java:31)"),
            "Orders.book (Orders.java:31)"
        );
        assert_eq!(
            application_frames(&frames(&["java.lang.Thread.run"]), "a.B"),
            [""; 0]
        );
        // If the stack has only the frame of a constructor, the headline names the constructor.
        let alone = frames(&["a.B.<init>(B.java:1)"]);
        assert_eq!(application_frames(&alone, "a.B"), ["a.B.<init>(B.java:1)"]);
    }

    #[test]
    fn fields_and_classes_have_familiar_names() {
        for (field, name) in [
            ("a.Shop.carts", "a.Shop.carts"),
            ("a.Shop$.carts", "a.Shop.carts (Scala object)"),
            ("a.Shop$.MODULE$", "the Scala object a.Shop"),
            ("a.ShopKt.carts", "a.ShopKt.carts (in Shop.kt)"),
            ("#'shop.core/carts", "#'shop.core/carts"),
            ("thread", "thread"),
        ] {
            assert_eq!(source_field_name(field), name);
        }
        assert_eq!(class_name("a.Shop$$Lambda"), "lambdas of a.Shop");
        assert_eq!(class_name("a.Shop$Cart"), "a.Shop$Cart");
    }
}
