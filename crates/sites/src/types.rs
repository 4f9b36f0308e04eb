//! Converts the JVM's names of types to names as in Java source. The agent and the readers of recordings use the same
//! functions, so their names are the same.

pub use crate::generated::stable;

/// Converts a type signature to the name as in Java source (`com.acme.Foo$Bar`, `byte[]`). Suffixes that the JVM adds
/// to names of classes generated at run time are removed, so a thousand lambdas of one method share one name.
#[must_use]
pub fn name_from_signature(signature: &str) -> String {
    with_dimensions(signature, |class| {
        let name = class.split('.').next().unwrap_or(class);
        let name = without_number(name);
        stable(&name.replace('/', ".")).into_owned()
    })
}

/// Converts an internal class name, such as `com/acme/Foo` or `[Ljava/lang/String;`, to the name as in Java source. The
/// internal name of a hidden class ends with its address, which is removed.
#[must_use]
pub fn of_class(name: &str) -> String {
    let class = |name: &str| {
        let mut ends = ["+0x", "/0x", ".0x"].into_iter();
        let end = ends.find_map(|end| name.rfind(end));
        let name = without_number(&name[..end.unwrap_or(name.len())]).replace('/', ".");
        stable(&name).into_owned()
    };
    if name.starts_with('[') {
        with_dimensions(name, class)
    } else {
        class(name)
    }
}

fn with_dimensions(signature: &str, class: impl FnOnce(&str) -> String) -> String {
    let element = signature.trim_start_matches('[');
    let dimensions = signature.len() - element.len();
    let name = match element {
        "Z" => "boolean".to_owned(),
        "B" => "byte".to_owned(),
        "C" => "char".to_owned(),
        "S" => "short".to_owned(),
        "I" => "int".to_owned(),
        "J" => "long".to_owned(),
        "F" => "float".to_owned(),
        "D" => "double".to_owned(),
        _ => {
            let inner = element.strip_prefix('L').unwrap_or(element);
            class(inner.strip_suffix(';').unwrap_or(inner))
        }
    };
    // An array has at most 255 dimensions.
    name + &"[]".repeat(dimensions.min(255))
}

/// Removes the number after the internal name of a class generated for a lambda or method handle, before JDK 15. Such a
/// name has a `$` before the number. The `$` distinguishes it from an application class named `a/1`, which a class file
/// may contain.
#[must_use]
pub fn without_number(name: &str) -> &str {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match name.rsplit_once('/') {
        Some((before, number)) if before.contains('$') && is_number(number) => before,
        _ => name,
    }
}

/// Returns true for the signature of a hidden class, which has a dot and a suffix after the name.
#[must_use]
pub fn is_hidden(signature: &str) -> bool {
    signature.contains('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures() {
        for (signature, name) in [
            ("I", "int"),
            ("[[J", "long[][]"),
            ("Z", "boolean"),
            ("[B", "byte[]"),
            ("[C", "char[]"),
            ("[S", "short[]"),
            ("[F", "float[]"),
            ("[D", "double[]"),
            ("Lcom/acme/Foo$Bar;", "com.acme.Foo$Bar"),
            ("[Ljava/lang/String;", "java.lang.String[]"),
            ("LFoo;", "Foo"),
            (
                "Lcom/acme/Foo$$Lambda$14.0x0000000800c03000;",
                "com.acme.Foo$$Lambda",
            ),
            (
                "Lcom/acme/Foo$$Lambda.0x00007f1234001000;",
                "com.acme.Foo$$Lambda",
            ),
            ("Lcom/acme/Foo$$Lambda$14;", "com.acme.Foo$$Lambda"),
            (
                "Lcom/acme/Foo$$Lambda$14/2143798862;",
                "com.acme.Foo$$Lambda",
            ),
            ("Lcom/acme/1;", "com.acme.1"),
            ("Lcom/acme/Foo$$Lambda$x;", "com.acme.Foo$$Lambda$x"),
            (
                "[Ljava/lang/invoke/LambdaForm$MH.0x0000000800c03000;",
                "java.lang.invoke.LambdaForm$MH[]",
            ),
            (
                "Ljdk/internal/reflect/GeneratedMethodAccessor12;",
                "jdk.internal.reflect.GeneratedMethodAccessor",
            ),
            ("Ljdk/proxy2/$Proxy12;", "jdk.proxy.$Proxy"),
            ("", ""),
        ] {
            assert_eq!(name_from_signature(signature), name);
        }
        for (class, name) in [
            ("com/acme/Foo$Bar", "com.acme.Foo$Bar"),
            ("[B", "byte[]"),
            ("[[J", "long[][]"),
            ("[Ljava/lang/String;", "java.lang.String[]"),
            ("java.lang.String", "java.lang.String"),
            ("a/B$$Lambda+0x00007f12", "a.B$$Lambda"),
            ("a/B$$Lambda$14/0x0000000800c03000", "a.B$$Lambda"),
            ("[Ljava.lang.String;", "java.lang.String[]"),
            ("a/B$$Lambda$14/2143798862", "a.B$$Lambda"),
            ("[La/B$$Lambda$14+0x0000000800c03000;", "a.B$$Lambda[]"),
            ("[", "[]"),
            ("", ""),
        ] {
            assert_eq!(of_class(class), name);
        }
        assert!(is_hidden("LFoo.0x1;") && !is_hidden("Lcom/Foo;"));
    }
}
