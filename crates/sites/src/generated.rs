//! Stable names for classes that the JVM or a library generates at run time.
//!
//! A generated name ends with an address, a hash or a counter. So the same lambda may have different names in two dumps
//! of one JVM, and has different names in dumps of two JVMs. Comparisons match classes by their stable names. All other
//! code uses the names in the dump.

use std::borrow::Cow;

/// Strings in class names after which a library adds a random suffix. The stable name contains neither the suffix nor
/// the last character of the string.
const SUFFIXED: [&str; 9] = [
    "$$Lambda$",
    "$ByteBuddy$",
    "$MockitoMock$",
    "$HibernateProxy$",
    "$HibernateBasicProxy$",
    "$HibernateInstantiator$",
    "$HibernateAccessOptimizer$",
    "$auxiliary$",
    "_$$_javassist_",
];

/// Endings of class names to which the JDK appends a counter.
const NUMBERED: [&str; 4] = [
    "$Proxy",
    "GeneratedMethodAccessor",
    "GeneratedConstructorAccessor",
    "GeneratedSerializationConstructorAccessor",
];

/// Returns the stable name of a class or array class: `Foo$$Lambda` for `Foo$$Lambda/0x00007f12`.
#[must_use]
pub fn stable(name: &str) -> Cow<'_, str> {
    if needs_no_rewrite(name) {
        return Cow::Borrowed(name);
    }
    let element = name.trim_end_matches("[]");
    let dimensions = &name[element.len()..];
    let plain = without_hash(without_address(element));
    let plain = without_suffix(&plain);
    let plain = without_number(&plain);
    if plain == element {
        Cow::Borrowed(name)
    } else {
        Cow::Owned(plain + dimensions)
    }
}

/// Returns true if no rule can apply to a name: the name has no slash, at most one dollar sign, and no digit at the
/// end. This is true for nearly all names.
fn needs_no_rewrite(name: &str) -> bool {
    let brackets = |byte: &u8| matches!(byte, b'[' | b']');
    let last = name.bytes().rev().find(|byte| !brackets(byte));
    let is_numbered = last.is_some_and(|byte| byte.is_ascii_digit());
    let count = |sign: u8| name.bytes().filter(|&byte| byte == sign).count();
    !is_numbered && count(b'/') == 0 && count(b'$') <= 1
}

/// Removes the address of a hidden class: `Foo/0x00007f12`, or `Foo/1234567` on JDK 8.
fn without_address(name: &str) -> &str {
    match name.rsplit_once('/') {
        Some((plain, address)) if !plain.is_empty() && is_hex(address.trim_start_matches("0x")) => {
            plain
        }
        _ => name,
    }
}

/// Removes the hashes and numbers that CGLIB adds to class names: `Foo$$EnhancerBySpringCGLIB$$1a2b3c`,
/// `Foo$$SpringCGLIB$$0`.
fn without_hash(name: &str) -> String {
    let mut plain = String::with_capacity(name.len());
    let mut marked = false;
    for (i, part) in name.split("$$").enumerate() {
        if marked && is_hex(part) {
            continue;
        }
        if i > 0 {
            plain += "$$";
        }
        plain += part;
        let spun = part.contains("CGLIB") || part.contains("EnhancerBy");
        marked = i > 0 && (spun || part.contains("FastClassBy"));
    }
    plain
}

fn without_suffix(name: &str) -> String {
    let mut plain = name.to_owned();
    for mark in SUFFIXED {
        let Some(at) = plain.find(mark) else { continue };
        let from = at + mark.len();
        let random = plain[from..].bytes();
        let length = random.take_while(u8::is_ascii_alphanumeric).count();
        let random = &plain[from..from + length];
        let is_random = match mark {
            // If the suffix of a lambda is not a number, it is part of a name in the source code.
            "$$Lambda$" => is_digits(random),
            // In `Foo$ByteBuddy$auxiliary$...`, the word `auxiliary` is not the random suffix of `$ByteBuddy$`. It
            // belongs to `$auxiliary$`, which comes before a random suffix, too.
            _ => length > 0 && random != "auxiliary",
        };
        if is_random {
            plain.replace_range(from - 1..from + length, "");
        }
    }
    plain
}

fn without_number(name: &str) -> String {
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let is_numbered = NUMBERED.iter().any(|end| plain.ends_with(end));
    if !is_numbered || plain.len() == name.len() {
        return name.to_owned();
    }
    // The package of a proxy class has a number for its class loader: `jdk.proxy2.$Proxy12`.
    match plain.strip_suffix(".$Proxy") {
        Some(package) if is_numbered_package(package) => {
            let package = package.trim_end_matches(|c: char| c.is_ascii_digit());
            format!("{package}.$Proxy")
        }
        _ => plain.to_owned(),
    }
}

/// Returns true for a package of proxy classes. The JDK gives such packages a number for each class loader.
fn is_numbered_package(package: &str) -> bool {
    let name = package.strip_prefix("class ").unwrap_or(package);
    name.strip_prefix("jdk.proxy").is_some_and(is_digits)
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn is_hex(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_differ_between_runs_are_removed() {
        for (name, expected) in [
            ("a.Foo$$Lambda/0x00007f1234001000", "a.Foo$$Lambda"),
            ("a.Foo$$Lambda$14/0x0000000800c03000", "a.Foo$$Lambda"),
            ("a.Foo$$Lambda$14/1234567", "a.Foo$$Lambda"),
            ("a.Foo$$Lambda$14", "a.Foo$$Lambda"),
            ("a.Foo$$Lambda/0x00007f1234001000[]", "a.Foo$$Lambda[]"),
            ("class a.Foo$$Lambda/0x7f12", "class a.Foo$$Lambda"),
            ("a.Template/0x00007f1234001000", "a.Template"),
            (
                "java.lang.invoke.LambdaForm$MH/0x0000000800c03000",
                "java.lang.invoke.LambdaForm$MH",
            ),
            ("$Proxy12", "$Proxy"),
            ("com.sun.proxy.$Proxy12", "com.sun.proxy.$Proxy"),
            ("jdk.proxy2.$Proxy34", "jdk.proxy.$Proxy"),
            ("class jdk.proxy2.$Proxy34", "class jdk.proxy.$Proxy"),
            (
                "jdk.internal.reflect.GeneratedMethodAccessor7",
                "jdk.internal.reflect.GeneratedMethodAccessor",
            ),
            (
                "sun.reflect.GeneratedSerializationConstructorAccessor12",
                "sun.reflect.GeneratedSerializationConstructorAccessor",
            ),
            (
                "a.Foo$$EnhancerBySpringCGLIB$$1a2b3c",
                "a.Foo$$EnhancerBySpringCGLIB",
            ),
            (
                "a.Foo$$EnhancerBySpringCGLIB$$1a2b3c$$FastClassBySpringCGLIB$$4d5e",
                "a.Foo$$EnhancerBySpringCGLIB$$FastClassBySpringCGLIB",
            ),
            ("a.Foo$$FastClassByCGLIB$$77", "a.Foo$$FastClassByCGLIB"),
            ("a.Foo$$EnhancerByGuice$$9f", "a.Foo$$EnhancerByGuice"),
            ("a.Foo$$SpringCGLIB$$0", "a.Foo$$SpringCGLIB"),
            ("a.Foo$ByteBuddy$a1B2c3D4", "a.Foo$ByteBuddy"),
            ("a.Foo$MockitoMock$123456", "a.Foo$MockitoMock"),
            (
                "a.Foo$MockitoMock$123456$auxiliary$a1B2c3D4",
                "a.Foo$MockitoMock$auxiliary",
            ),
            ("a.Foo$HibernateProxy$a1B2c3D4", "a.Foo$HibernateProxy"),
            ("a.Foo_$$_javassist_12", "a.Foo_$$_javassist"),
        ] {
            assert_eq!(stable(name), expected, "{name}");
            // If a name is stable already, its stable name is the same name.
            assert_eq!(stable(expected), expected);
        }
    }

    #[test]
    fn names_written_by_people_are_unchanged() {
        for name in [
            "com.acme.Foo$Bar",
            "com.acme.Foo$1",
            "com.acme.Proxy7",
            "com.acme.Foo$Proxy$12",
            "com.acme.Foo$$Lambda$x",
            "com.acme.Version$$12",
            "java.lang.String[]",
            "byte[]",
            "scala.Function1$mcII$sp",
            "com.acme.Main$$anonfun$1",
            "a/",
            "/12",
            "",
            "[]",
        ] {
            assert!(
                matches!(stable(name), Cow::Borrowed(n) if n == name),
                "{name}"
            );
        }
    }
}
