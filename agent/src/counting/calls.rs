//! Decides which calls are counted where they are made, because they allocate.
//!
//! Most of the called methods allocate without an allocation bytecode. The remaining methods are JDK methods that the
//! JIT compiler replaces by intrinsics. The code of an intrinsic contains no counters. So these methods get no counters
//! in their bodies, and the objects that they return are counted in their callers.

use heapdiff_bytecode::{Call, Invoke, Kind, Name, Site, Told};

use super::hooks::{LEVELS, MADE};

/// Codes for the ways in which a call allocates. Each call site that is counted by class has one of these codes.
pub(crate) mod mark {
    /// The call allocates the object that it returns.
    pub(crate) const MADE: u8 = 0;
    /// `clone`: the call allocates, unless the object's class overrides the method. If the class overrides `clone`, the
    /// allocation is counted in the overriding method and not at the call.
    pub(crate) const UNLESS_OVERRIDDEN: u8 = 1;
}

const STRING: &str = "java/lang/String";
/// The JDK class that concatenates strings. Calls that are linked at run time (`invokedynamic`) call this class through
/// hidden classes.
const JOINS: &[u8] = b"java/lang/StringConcatHelper";
const OBJECT_ARRAYS: &[u8] = b"java/util/Arrays";
const UTF16: &[u8] = b"java/lang/StringUTF16";
const FROM_CHARS: (&[u8], &[u8]) = (b"toBytes", b"([CII)[B");
const NEW_BYTES: &[u8] = b"newBytesFor";

fn is_copy(name: Name<'_>) -> bool {
    name.as_bytes().starts_with(b"copyOf")
}

/// True if the allocations of a JDK method are counted where the method is called. Then calls in the body of this
/// method are not counted.
fn is_body(class: &[u8], method: Name<'_>, descriptor: Name<'_>) -> bool {
    let method_bytes = method.as_bytes();
    match class {
        OBJECT_ARRAYS => is_copy(method),
        UTF16 => method_bytes == NEW_BYTES || (method_bytes, descriptor.as_bytes()) == FROM_CHARS,
        b"java/lang/Class" => method_bytes == b"newInstance",
        b"sun/misc/Unsafe" => method_bytes == b"allocateInstance",
        _ => class.starts_with(b"jdk/internal/reflect/"),
    }
}

/// Returns the hook to call after `call`, or `None` if the call is not counted. `by_class` is true if the hooks can
/// read an object's class. If `by_class` is false, calls whose result may be of several classes are not counted.
pub(crate) fn hook_after(call: &Call<'_>, by_class: bool) -> Option<Told> {
    hook_by_method(call).filter(|told| by_class || !matches!(told, Told::Returned { .. }))
}

fn hook_by_method(call: &Call<'_>) -> Option<Told> {
    let (owner, name) = (call.owner.as_bytes(), call.name.as_bytes());
    let returned = |hook, mark| Some(Told::Returned { hook, mark });
    let made = || returned(MADE, mark::MADE);
    if is_body(call.class.as_bytes(), call.method, call.method_descriptor) {
        return None;
    }
    match (owner, name, call.descriptor.as_bytes()) {
        // If the static type is, for example, `int[]` or `String[]`, the array has exactly this class at run time. An
        // array with the static type `Object[]` may have a subclass, such as `Integer[]`.
        ([b'[', _] | b"[Ljava/lang/String;", b"clone", b"()Ljava/lang/Object;") => {
            Some(Told::Array)
        }
        ([b'[', ..], b"clone", b"()Ljava/lang/Object;") => made(),
        (b"java/lang/Object", b"clone", b"()Ljava/lang/Object;") => match call.how {
            Invoke::Special => made(),
            _ => returned(MADE, mark::UNLESS_OVERRIDDEN),
        },
        (b"java/lang/Class" | b"java/lang/reflect/Constructor", b"newInstance", _) => made(),
        (b"java/lang/reflect/Array", b"newInstance", descriptor) => {
            if descriptor.ends_with(b"[I)Ljava/lang/Object;") {
                returned(LEVELS, mark::MADE)
            } else {
                made()
            }
        }
        (
            b"jdk/internal/misc/Unsafe" | b"sun/misc/Unsafe",
            b"allocateInstance" | b"allocateUninitializedArray",
            _,
        ) => made(),
        (OBJECT_ARRAYS, b"copyOf" | b"copyOfRange", descriptor) => {
            if descriptor.ends_with(b"[Ljava/lang/Object;") {
                made()
            } else {
                Some(Told::Array)
            }
        }
        (UTF16, NEW_BYTES, _) => Some(Told::Array),
        (UTF16, name, descriptor) if (name, descriptor) == FROM_CHARS => Some(Told::Array),
        (b"java/lang/invoke/StringConcatFactory", _, descriptor) => {
            creates_concatenation(call.how, descriptor).then_some(Told::Object(STRING))
        }
        (JOINS, b"simpleConcat" | b"doConcat", _) if call.class.as_bytes() == STRING.as_bytes() => {
            Some(Told::Object(STRING))
        }
        // A lambda that captures no variables is created only once, when its call site is linked.
        (b"java/lang/invoke/LambdaMetafactory", _, descriptor) => {
            let holds = !descriptor.starts_with(b"()");
            let linked_by =
                |name: Name<'_>| matches!(name.as_bytes(), b"metafactory" | b"altMetafactory");
            match call.how {
                Invoke::Dynamic(name, _) if holds && linked_by(name) => made(),
                _ => None,
            }
        }
        _ => None,
    }
}

/// True if a string concatenation with these operands creates a new string. Returns false for a single primitive
/// operand without other text, because such a concatenation might not create a string itself. For example, `"" + true`
/// returns a constant. The string of a number is created and counted in a method of the number's class, such as
/// `Integer.toString`.
fn creates_concatenation(how: Invoke<'_>, descriptor: &[u8]) -> bool {
    let parameters = descriptor.split(|&c| c == b')').next().unwrap_or_default();
    let Invoke::Dynamic(_, recipe) = how else {
        return false;
    };
    let is_alone = match recipe {
        Some(recipe) => recipe.as_bytes() == [1],
        None => parameters.len() == 2,
    };
    match parameters {
        [b'(', b'L' | b'[', ..] => true,
        [b'(', _, ..] => !is_alone,
        _ => false,
    }
}

/// True if a site is in a method whose allocations are counted where the method is called.
pub(crate) fn is_counted_by_callers(class: Name<'_>, site: &Site<'_>) -> bool {
    let class = class.as_bytes();
    match site.kind {
        Kind::Array => {
            matches!(class, OBJECT_ARRAYS | UTF16) && is_body(class, site.method, site.descriptor)
        }
        Kind::Object => class.starts_with(JOINS) && site.class.to_bytes() == STRING.as_bytes(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn string_concatenations_are_recognized() {
        let joined =
            |descriptor: &[u8]| creates_concatenation(Invoke::Dynamic(name(), None), descriptor);
        assert!(joined(b"(Ljava/lang/String;)Ljava/lang/String;") && joined(b"(II)La;"));
        assert!(!joined(b"()Ljava/lang/String;") && !joined(b"(I)Ljava/lang/String;"));
        assert!(!creates_concatenation(Invoke::Static, b"(II)La;"));
    }

    #[test]
    fn copy_methods_are_counted_at_their_callers() {
        let is_body = |class: &[u8], method, descriptor| {
            is_body(class, Name::new(method), Name::new(descriptor))
        };
        assert!(is_body(b"java/util/Arrays", b"copyOfRange", b"([III)[I"));
        assert!(!is_body(b"java/util/Arrays", b"asList", b"()V"));
        assert!(is_body(b"java/lang/StringUTF16", b"toBytes", b"([CII)[B"));
        assert!(!is_body(b"java/lang/StringUTF16", b"toBytes", b"(C)[B"));
        assert!(!is_body(b"a/Arrays", b"copyOf", b"([II)[I"));
    }

    fn name() -> Name<'static> {
        Name::new(b"makeConcat")
    }
}
