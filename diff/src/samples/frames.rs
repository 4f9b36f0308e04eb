//! Frames with the names from the source code.
//!
//! Compilers rename lambdas, companions, operators and inlined functions, libraries generate classes at run time, and
//! the JVM adds numbers to hidden classes. This module restores the name in the source. If the name is uncertain, it
//! stays unchanged.

use std::borrow::Cow;

use heapdiff_sites::{Frame as Sampled, Line as SampledLine};
use hprof::answers::{Frame as Dumped, Line as DumpedLine};

use crate::names::is_generated;
use crate::samples::frame_kind::{Shown, folded};

/// Returns the text of a frame that the agent sampled, such as `com.acme.Foo.add(Foo.java:42)`.
pub(crate) fn sampled(frame: &Sampled<'_>) -> String {
    let place = match (frame.file, frame.line) {
        (_, SampledLine::Native) => "Native Method".to_owned(),
        (Some(file), SampledLine::At(line)) => format!("{file}:{line}"),
        (Some(file), SampledLine::Unknown) => file.to_owned(),
        (None, _) => String::new(),
    };
    text(frame.class, frame.method, frame.file, &place)
}

/// Returns the text of a frame from one of the dump's stack traces.
pub(crate) fn dumped(frame: &Dumped) -> String {
    let file = frame.file.as_deref();
    let place = match (file, frame.line) {
        (_, DumpedLine::Native) => "Native Method".to_owned(),
        (Some(file), DumpedLine::Number(line)) => format!("{file}:{line}"),
        (Some(file), _) => file.to_owned(),
        (None, _) => String::new(),
    };
    text(&frame.class, &frame.method, file, &place)
}

/// Returns a frame as reports show it: `com.acme.Foo.add(Foo.java:42)`. `line` is negative for native methods. If the
/// file is unknown, as in recordings, only the line is shown: `com.acme.Foo.add(line 42)`.
#[must_use]
pub fn frame_text(class: &str, method: &str, file: Option<&str>, line: Option<i64>) -> String {
    let place = match (file, line) {
        (_, Some(..=-1)) => "Native Method".to_owned(),
        (Some(file), Some(line @ 1..)) => format!("{file}:{line}"),
        (Some(file), _) => file.to_owned(),
        (None, Some(line @ 1..)) => format!("line {line}"),
        (None, _) => String::new(),
    };
    text(class, method, file, &place)
}

fn text(class: &str, method: &str, file: Option<&str>, place: &str) -> String {
    if class.is_empty() {
        return "(unknown method)".to_owned();
    }
    // This is not a frame but a marker: in a trace, a truncated stack ends with a frame of the class `...`.
    if method.is_empty() {
        return class.to_owned();
    }
    let mut text = readable(class, method, file);
    if !place.is_empty() {
        text.push('(');
        text.push_str(place);
        text.push(')');
    }
    text
}

/// The language of a source file. Compilers of different languages change names in different ways.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Language {
    Java,
    Kotlin,
    Scala,
}

/// Returns the names of a class and a method as they are in the source code.
fn readable(class: &str, method: &str, file: Option<&str>) -> String {
    let language = match file.and_then(|f| f.rsplit_once('.')) {
        Some((_, "kt" | "kts")) => Language::Kotlin,
        Some((_, "scala" | "sc")) => Language::Scala,
        _ => Language::Java,
    };
    let class = class_name(class);
    match language {
        Language::Java => java(&class, method),
        Language::Kotlin => kotlin(&class, method, file.unwrap_or_default()),
        Language::Scala => scala(&class, method),
    }
}

/// Removes the suffixes that the JVM and libraries add to generated classes.
fn class_name(class: &str) -> Cow<'_, str> {
    // Hidden classes have names such as `Foo$$Lambda/0x00007f12` and `Foo$$Lambda$14/0x0000000800c03000`.
    let class = match class.split_once("/0x") {
        Some((name, _)) => name,
        None => class,
    };
    if let Some((host, _)) = class.split_once("$$Lambda") {
        return format!("{host} (lambda)").into();
    }
    // Spring and Hibernate generate subclasses whose names end with a hash or a number.
    const SPUN: [&str; 6] = [
        "$$EnhancerBy",
        "$$FastClassBy",
        "$$SpringCGLIB",
        "$HibernateProxy$",
        "$ByteBuddy$",
        "$MockitoMock$",
    ];
    for mark in SPUN {
        if let Some((original, _)) = class.split_once(mark) {
            return format!("{original} (proxy)").into();
        }
    }
    if let Some(at) = class.rfind("$Proxy")
        && class[at + 6..].bytes().all(|b| b.is_ascii_digit())
        && class[..at].ends_with(['.'])
    {
        return "(proxy)".into();
    }
    class.into()
}

fn class_and_method(class: &str, method: &str) -> String {
    match method {
        "" => class.to_owned(),
        _ => format!("{class}.{method}"),
    }
}

/// Returns a Java name as it is in the source code. The method `lambda$add$3` is a lambda in `add`.
fn java(class: &str, method: &str) -> String {
    let inner = method
        .strip_prefix("lambda$")
        .and_then(|rest| rest.rsplit_once('$'))
        .filter(|(name, number)| !name.is_empty() && is_number(number));
    match inner {
        // The lambda is in a constructor or in a class initializer.
        Some(("new", _)) => format!("{class}.<init> (lambda)"),
        Some(("static", _)) => format!("{class}.<clinit> (lambda)"),
        Some((name, _)) => format!("{class}.{name} (lambda)"),
        None => class_and_method(class, method),
    }
}

/// Returns a Kotlin name as it is in the source code, without the changes of the compiler.
fn kotlin(class: &str, method: &str, file: &str) -> String {
    // The compiler puts a function that is outside of any class into a class for its file.
    let facade = file.rsplit_once('.').map(|(stem, _)| {
        let mut chars = stem.chars();
        let first = chars.next().map(|c| c.to_ascii_uppercase());
        first.into_iter().chain(chars).collect::<String>() + "Kt"
    });
    let (package, simple) = class.rsplit_once('.').unwrap_or(("", class));
    let mut parts: Vec<&str> = simple.split('$').collect();
    let of_file = facade.as_deref() == parts.first().copied();
    // `Foo$bar$1` and `Foo$bar$1$2` are the classes of lambdas or anonymous objects in the method `bar`.
    let mut inner = false;
    while parts.len() > 1 && parts.last().is_some_and(|p| is_number(p)) {
        parts.pop();
        inner = true;
    }
    let (called, kind) = match method {
        "invoke" | "invokeSuspend" | "emit" | "create" if inner => ("", " (lambda)"),
        _ if inner => (method, " (object)"),
        _ => (method, ""),
    };
    let called = called.strip_suffix("$default").unwrap_or(called);
    let called = called.strip_prefix("access$").unwrap_or(called);
    // A lambda's method is called `main$lambda$0`, or `main$lambda-0` before Kotlin 2.
    let (called, kind) = match called.split_once("$lambda") {
        Some((name, _)) => (name, " (lambda)"),
        None => (called, kind),
    };
    // The compiler appends a hash to the name of a function that has parameters of value classes.
    let called = match called.rsplit_once('-') {
        Some((name, hash)) if !name.is_empty() && hash.len() <= 8 => name,
        _ => called,
    };
    if of_file {
        parts.remove(0);
    }
    let scope = [package]
        .into_iter()
        .chain(parts)
        .chain([called])
        .filter(|part| !part.is_empty());
    scope.collect::<Vec<_>>().join(".") + kind
}

/// Returns a Scala name as it is in the source code, without the changes of the compiler.
fn scala(class: &str, method: &str) -> String {
    // Up to Scala 2.11, the compiler makes a class for each lambda: `Foo$$anonfun$bar$1.apply`.
    if let Some((host, rest)) = class.split_once("$$anonfun$") {
        let name = rest.split('$').next().unwrap_or_default();
        let host = scala_class(host);
        return format!("{host}.{} (lambda)", operators(name));
    }
    let class = scala_class(class);
    // Since Scala 2.12, a lambda is a method such as `$anonfun$bar$1`. It has the suffix `$adapted` if values are boxed
    // for it.
    if let Some(rest) = method.strip_prefix("$anonfun$") {
        let name = rest.strip_suffix("$adapted").unwrap_or(rest);
        let name = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let name = name.trim_end_matches('$');
        return format!("{class}.{} (lambda)", operators(name));
    }
    // The compiler adds a suffix to two kinds of methods: methods that are specialized for primitive types, and methods
    // that are declared inside another method.
    let method = method.split_once("$mc").map_or(method, |(name, _)| name);
    let method = match method.rsplit_once('$') {
        Some((name, number)) if !name.is_empty() && is_number(number) => name,
        _ => method,
    };
    class_and_method(&class, &operators(method))
}

/// Returns the name of a Scala class. `Foo$` is the object `Foo`, and `Foo$$anon$1` an unnamed object in `Foo`.
fn scala_class(class: &str) -> String {
    if let Some((host, _)) = class.split_once("$$anon$") {
        return scala_class(host) + " (object)";
    }
    let class = class.trim_end_matches('$');
    operators(&class.replace(".package$", "."))
        .replace("$package", "")
        .replace('$', ".")
}

/// Restores operators. `$plus$plus$eq` is `++=`.
fn operators(name: &str) -> String {
    const SIGNS: [(&str, &str); 18] = [
        ("$plus", "+"),
        ("$minus", "-"),
        ("$times", "*"),
        ("$div", "/"),
        ("$eq", "="),
        ("$less", "<"),
        ("$greater", ">"),
        ("$bang", "!"),
        ("$colon", ":"),
        ("$amp", "&"),
        ("$bar", "|"),
        ("$percent", "%"),
        ("$up", "^"),
        ("$tilde", "~"),
        ("$qmark", "?"),
        ("$at", "@"),
        ("$hash", "#"),
        ("$bslash", "\\"),
    ];
    let mut name = name.to_owned();
    if name.contains('$') {
        for (coded, sign) in SIGNS {
            name = name.replace(coded, sign);
        }
    }
    name
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// Returns a key for a stack: two stacks with the same key look alike in a report. The key leaves out folded JDK
/// frames, and numbers in the names of generated classes.
pub(super) fn visible_key(frames: &[String]) -> Vec<String> {
    let shown = folded(frames).into_iter();
    shown
        .map(|shown| match shown {
            Shown::Frame(frame) if is_generated(frame) => without_numbers(frame),
            Shown::Frame(frame) => frame.to_owned(),
            Shown::Folded(_) => String::new(),
        })
        .collect()
}

/// Removes the digits from the class and method of a frame. After `$$`, also removes hexadecimal letters, because
/// generators put hashes there.
fn without_numbers(frame: &str) -> String {
    let (mut kept, mut is_hash) = (String::new(), false);
    for c in frame.chars() {
        is_hash = match c {
            '$' => kept.ends_with('$'),
            _ => is_hash && c.is_ascii_hexdigit(),
        };
        let is_number = c.is_ascii_digit() || (is_hash && c != '$');
        if !is_number {
            kept.push(c);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_with_equal_visible_frames_have_one_key() {
        let key = |frames: &[&str]| {
            let frames: Vec<String> = frames.iter().map(|&f| f.to_owned()).collect();
            visible_key(&frames)
        };
        let own = "a.B.c(B.java:3)";
        let hidden = |line| format!("java.util.HashMap.resize(HashMap.java:{line})");
        let put = "java.util.HashMap.put(HashMap.java:9)";
        assert_eq!(
            key(&[&hidden(1), put, own]),
            key(&[&hidden(2), &hidden(3), put, own])
        );
        assert_ne!(
            key(&[put, own]),
            key(&["java.util.HashMap.get(HashMap.java:9)", own])
        );
        let made = |number: &str| format!("a.B$$EnhancerBySpringCGLIB$${number}.c(<generated>)");
        assert_eq!(key(&[&made("1f2e3d"), own]), key(&[&made("77"), own]));
        assert_ne!(
            key(&[&made("1"), own]),
            key(&["a.C$$EnhancerBySpringCGLIB$$1.c(<generated>)", own])
        );
        assert_ne!(key(&[own]), key(&["a.B.c(B.java:4)"]));
    }

    fn name(class: &str, method: &str, file: &str) -> String {
        readable(class, method, Some(file).filter(|f| !f.is_empty()))
    }

    #[test]
    fn a_truncated_stack_ends_with_an_ellipsis() {
        assert_eq!(frame_text("...", "", None, None), "...");
        let text = frame_text("a.B", "c", Some("B.java"), Some(3));
        assert_eq!(text, "a.B.c(B.java:3)");
        assert_eq!(frame_text("a.B", "c", None, Some(3)), "a.B.c(line 3)");
        assert_eq!(
            frame_text("a.B", "c", None, Some(-1)),
            "a.B.c(Native Method)"
        );
    }

    #[test]
    fn java_lambdas_and_generated_classes() {
        for (class, method, expected) in [
            ("com.acme.Foo", "add", "com.acme.Foo.add"),
            ("com.acme.Foo", "lambda$add$3", "com.acme.Foo.add (lambda)"),
            (
                "com.acme.Foo",
                "lambda$new$0",
                "com.acme.Foo.<init> (lambda)",
            ),
            (
                "com.acme.Foo",
                "lambda$static$0",
                "com.acme.Foo.<clinit> (lambda)",
            ),
            ("com.acme.Foo", "lambda$x", "com.acme.Foo.lambda$x"),
            ("com.acme.Foo$$Lambda", "run", "com.acme.Foo (lambda).run"),
            (
                "com.acme.Foo$$Lambda$14/0x0000000800c03000",
                "run",
                "com.acme.Foo (lambda).run",
            ),
            ("com.acme.Hidden/0x00007f1234", "go", "com.acme.Hidden.go"),
            ("jdk.proxy2.$Proxy12", "close", "(proxy).close"),
            ("com.sun.proxy.$Proxy3", "close", "(proxy).close"),
            ("com.acme.Foo$Proxy1", "close", "com.acme.Foo$Proxy1.close"),
            (
                "com.acme.Foo$$EnhancerBySpringCGLIB$$ab12",
                "add",
                "com.acme.Foo (proxy).add",
            ),
            (
                "com.acme.Foo$$SpringCGLIB$$0",
                "add",
                "com.acme.Foo (proxy).add",
            ),
            // The agent has already removed the numbers from names of generated classes.
            (
                "com.acme.Foo$$SpringCGLIB",
                "add",
                "com.acme.Foo (proxy).add",
            ),
            (
                "com.acme.Foo$HibernateProxy$x1",
                "add",
                "com.acme.Foo (proxy).add",
            ),
            ("com.acme.Foo", "", "com.acme.Foo"),
        ] {
            assert_eq!(name(class, method, ""), expected);
            assert_eq!(name(class, method, "Foo.java"), expected);
        }
    }

    #[test]
    fn kotlin_names_are_shown_as_in_the_source() {
        for (class, method, file, expected) in [
            ("com.acme.MainKt", "main", "Main.kt", "com.acme.main"),
            (
                "com.acme.MainKt",
                "load$default",
                "main.kt",
                "com.acme.load",
            ),
            (
                "com.acme.MainKt$main$1",
                "invoke",
                "Main.kt",
                "com.acme.main (lambda)",
            ),
            (
                "com.acme.Foo$bar$1",
                "invokeSuspend",
                "Foo.kt",
                "com.acme.Foo.bar (lambda)",
            ),
            (
                "com.acme.Foo$bar$1$2",
                "run",
                "Foo.kt",
                "com.acme.Foo.bar.run (object)",
            ),
            (
                "com.acme.Foo$bar$each$1",
                "accept",
                "Foo.kt",
                "com.acme.Foo.bar.each.accept (object)",
            ),
            (
                "com.acme.Foo$Companion",
                "of",
                "Foo.kt",
                "com.acme.Foo.Companion.of",
            ),
            (
                "com.acme.Foo",
                "access$cache",
                "Foo.kt",
                "com.acme.Foo.cache",
            ),
            (
                "com.acme.Foo",
                "bar$lambda$0",
                "Foo.kt",
                "com.acme.Foo.bar (lambda)",
            ),
            (
                "com.acme.Foo",
                "bar$lambda-1",
                "Foo.kt",
                "com.acme.Foo.bar (lambda)",
            ),
            (
                "com.acme.Foo",
                "wait-VtjQ1oo",
                "Foo.kt",
                "com.acme.Foo.wait",
            ),
            ("MainKt", "main", "Main.kt", "main"),
        ] {
            assert_eq!(name(class, method, file), expected);
        }
    }

    #[test]
    fn scala_names_are_shown_as_in_the_source() {
        for (class, method, expected) in [
            ("com.acme.Foo$", "apply", "com.acme.Foo.apply"),
            ("com.acme.Foo", "$plus$plus$eq", "com.acme.Foo.++="),
            (
                "com.acme.Foo",
                "$anonfun$bar$1",
                "com.acme.Foo.bar (lambda)",
            ),
            (
                "com.acme.Foo$",
                "$anonfun$bar$2$adapted",
                "com.acme.Foo.bar (lambda)",
            ),
            (
                "com.acme.Foo$$anonfun$bar$1",
                "apply",
                "com.acme.Foo.bar (lambda)",
            ),
            ("com.acme.Foo", "apply$mcVI$sp", "com.acme.Foo.apply"),
            ("com.acme.Foo", "helper$1", "com.acme.Foo.helper"),
            ("com.acme.Foo$Bar", "get", "com.acme.Foo.Bar.get"),
            ("com.acme.Foo$$anon$1", "get", "com.acme.Foo (object).get"),
            ("com.acme.main$package$", "run", "com.acme.main.run"),
        ] {
            assert_eq!(name(class, method, "Foo.scala"), expected);
        }
    }

    #[test]
    fn positions_are_written_as_in_java_stack_traces() {
        let frame = |file, line| Sampled {
            class: "com.acme.Foo",
            method: "add",
            file,
            line,
        };
        let file = Some("Foo.java");
        for (frame, expected) in [
            (
                frame(file, SampledLine::At(42)),
                "com.acme.Foo.add(Foo.java:42)",
            ),
            (
                frame(file, SampledLine::Unknown),
                "com.acme.Foo.add(Foo.java)",
            ),
            (frame(None, SampledLine::Unknown), "com.acme.Foo.add"),
            (
                frame(None, SampledLine::Native),
                "com.acme.Foo.add(Native Method)",
            ),
        ] {
            assert_eq!(sampled(&frame), expected);
        }
        let dumped = dumped(&Dumped {
            class: "com.acme.Foo".into(),
            method: "lambda$add$0".into(),
            file: Some("Foo.java".into()),
            line: DumpedLine::Number(7),
        });
        assert_eq!(dumped, "com.acme.Foo.add (lambda)(Foo.java:7)");
    }
}
