//! Next steps for the reader of a report on a suspect: the likely fix, and commands that show more details.

use heapdiff_model::diff::{Suspect, Verdict};
pub use hprof::bytes::STDIN;

use crate::names;

/// Returns the likely fix for a suspect in one sentence. The fix depends on the known leak pattern. If the suspect
/// shows no known pattern, the fix depends on the holder. Returns `None` if neither the pattern nor the holder suggests
/// a fix.
pub(crate) fn likely_fix(suspect: &Suspect) -> Option<String> {
    let holder = &*suspect.holder;
    let detector = suspect.detector.as_deref();
    let fix = match detector.filter(|_| suspect.verdict.is_leak_or_growth()) {
        Some("class-loader") => {
            "at undeployment, stop the threads of the old deployment and remove its listeners, thread locals and drivers".to_owned()
        }
        Some("cleaner" | "direct-buffer") => {
            "close or release each object when it is no longer used, for example with try-with-resources, or reuse it".to_owned()
        }
        Some("delete-on-exit") => {
            "delete each file when it is no longer used, and do not call File.deleteOnExit".to_owned()
        }
        Some("finalizer") => {
            "close each object explicitly instead of in finalize, and find out what keeps the finalizer thread busy".to_owned()
        }
        Some("hash-key") => {
            "implement equals and hashCode of the keys' class on fields that do not change".to_owned()
        }
        Some("listener") => format!("remove each listener from {holder} when the object that added it is no longer used"),
        Some("queue") => format!("limit the size of {holder}, or add workers that take elements out"),
        Some("slice") => "copy the part that you need, instead of keeping a view of the whole array or list".to_owned(),
        Some("thread-local") => {
            let thread_local = suspect.thread_local.as_deref().unwrap_or("the ThreadLocal");
            format!("call remove() of {thread_local} in a finally block at the end of each task")
        }
        Some("timer") => {
            "cancel each task when its result is no longer needed; setRemoveOnCancelPolicy(true) removes it at once".to_owned()
        }
        Some("virtual-thread") => "let the threads end: add a timeout to each operation that they wait for".to_owned(),
        Some("weak-map") => "let the values of the map refer to their keys only through weak references".to_owned(),
        _ => return fix_by_holder(suspect),
    };
    Some(fix)
}

/// Returns the likely fix for a suspect without a known leak pattern.
fn fix_by_holder(suspect: &Suspect) -> Option<String> {
    let holder = &*suspect.holder;
    let is_in = |class: &str| suspect.path.iter().any(|step| step.starts_with(class));
    if is_in("java.io.ObjectOutputStream") {
        return Some(
            "call reset() on the ObjectOutputStream from time to time: the stream keeps every object that it wrote".to_owned(),
        );
    }
    if suspect.class == "java.lang.Thread" || holder == "thread" {
        return Some(
            "call shutdown() on the executor that started the threads, or let the operations end that they wait for"
                .to_owned(),
        );
    }
    if suspect.root.starts_with("JNI global") && suspect.path.is_empty() {
        return Some("call DeleteGlobalRef in the native code that made the references".to_owned());
    }
    let is_field = suspect.path.iter().any(|step| step == holder);
    if !is_field {
        return None;
    }
    match suspect.verdict {
        Verdict::Leak | Verdict::Growth if is_collection(suspect) => Some(format!(
            "remove elements from {holder} when they are no longer used, or limit its size"
        )),
        Verdict::Cache => Some(
            "none, if the heap has room for the full cache; otherwise lower the limit of the cache"
                .to_owned(),
        ),
        Verdict::Leak | Verdict::Growth | Verdict::Warmup => None,
    }
}

/// True if the holder refers to a collection or an array, and elements were added to it.
fn is_collection(suspect: &Suspect) -> bool {
    let below = suspect
        .path
        .iter()
        .skip_while(|step| **step != suspect.holder);
    let mut below = below.skip(1);
    suspect.growth.objects > 0
        && below.any(|step| step.ends_with("[*]") || names::is_collection_part(step))
}

/// Returns the commands that show details of a suspect in the last dump.
pub(crate) fn commands(suspect: &Suspect, dump: &str) -> Vec<String> {
    let of = |command: &str, selector: &str| {
        format!("heapdiff {command} {} {}", quoted(dump), quoted(selector))
    };
    let mut next = Vec::new();
    // Standard input cannot be read again.
    if dump == STDIN {
        return next;
    }
    if suspect.path.contains(&suspect.holder) {
        next.push(of("show", &suspect.holder));
    }
    // Objects of a JDK class and arrays of primitives occur everywhere, so the command shows the paths to the object in
    // the holder (a field).
    let is_own = names::is_application_class_name(&suspect.class);
    let objects = if !is_own && !next.is_empty() {
        &suspect.holder
    } else {
        &suspect.class
    };
    if !objects.is_empty() {
        next.push(of("paths", objects));
    }
    next
}

/// Puts a word in quotes for a shell, if necessary.
#[must_use]
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "._/-:+,@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suspect::tests::suspect;

    #[test]
    fn fixes_depend_on_the_pattern_or_the_holder() {
        let of = |holder: &str, class: &str, path: &[&str], detector: Option<&'static str>| {
            let mut one = suspect(holder, class, &[], (5, 100));
            one.path = path.iter().map(|&step| step.to_owned()).collect();
            one.detector = detector.map(Into::into);
            likely_fix(&one)
        };
        let has = |fix: Option<String>, part: &str| assert!(fix.unwrap().contains(part), "{part}");
        let list = [
            "a.B.all",
            "java.util.ArrayList.elementData",
            "java.lang.Object[*]",
        ];
        has(
            of("a.B.all", "a.C", &list, None),
            "remove elements from a.B.all",
        );
        has(
            of("a.B.all", "a.C", &list, Some("listener")),
            "remove each listener from a.B.all",
        );
        has(
            of("a.B.current", "a.C", &[], Some("thread-local")),
            "call remove() of the ThreadLocal",
        );
        has(
            of("a.B.pool", "java.lang.Thread", &["a.B.pool"], None),
            "shutdown()",
        );
        let stream = ["a.B.out", "java.io.ObjectOutputStream.handles"];
        has(of("a.B.out", "a.C", &stream, None), "reset()");
        let mut full = suspect("a.B.all", "a.C", &[], (5, 100));
        full.path = list.map(str::to_owned).into();
        full.detector = Some("thread-local".into());
        full.thread_local = Some("a.Ctx.CURRENT".to_owned());
        has(likely_fix(&full), "call remove() of a.Ctx.CURRENT in");
        full.detector = Some("listener".into());
        full.verdict = Verdict::Cache;
        has(likely_fix(&full), "none, if the heap has room");
        // The holder refers to an array of primitives. It does not refer to a collection, so no fix is suggested.
        assert_eq!(of("a.B.text", "byte[]", &["a.B.text"], None), None);
        assert_eq!(of("(several paths)", "a.C", &[], None), None);
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(quoted("com.acme.Cart.lines"), "com.acme.Cart.lines");
        assert_eq!(quoted("Orders$Order"), "'Orders$Order'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
