//! What a redaction keeps, and why: names, what tells JVM and layout, and figures that sizes and reports rest on.

use crate::answers::jvm;
use crate::answers::threads;
use crate::records::classes::Class;
use crate::records::record::Kind;

/// Makes one table of names anew: from its pieces, with what writes a token over a text, to pieces as long as they were.
/// `None` where it cannot be read.
pub type CleanTable<'r> = &'r (dyn Fn(&[&[u8]], &dyn Fn(&mut [u8])) -> Option<Vec<Vec<u8>>> + Sync);

/// A class whose static fields lead to figures and names that reports need, such as an agent's.
#[derive(Clone, Copy)]
pub struct KeptTables<'r> {
    /// The class, of the boot loader, as in Java source. Its own fields are kept.
    pub class: &'r str,
    /// Static fields that lead to `int[]` or `long[]`, or to arrays of these.
    pub figures: &'r [&'r str],
    /// Static fields that lead to arrays of objects; the class of these, whose fields are kept; its field that leads to an `int[]` or `long[]`.
    pub held: &'r [[&'r str; 3]],
    /// Static fields that lead to arrays of `byte[]`, each the pieces of one table with names.
    pub names: &'r [&'r str],
    /// How such a table is left with names alone.
    pub clean: CleanTable<'r>,
    /// Texts that are no secret wherever they are.
    pub texts: &'r [&'r str],
}

impl std::fmt::Debug for KeptTables<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeptTables")
            .field("class", &self.class)
            .finish_non_exhaustive()
    }
}

/// How a dump is redacted.
#[derive(Clone, Debug, Default)]
pub struct Rules<'r> {
    /// Whether numbers in fields go, too.
    pub numbers: bool,
    /// Tables that are kept.
    pub tables: Vec<KeptTables<'r>>,
}

impl KeptTables<'_> {
    /// Whether the fields of this class are kept.
    fn has(&self, class: &str) -> bool {
        self.class == class || self.held.iter().any(|held| held[1] == class)
    }
}

impl Rules<'_> {
    /// Whether a text is one that everybody knows.
    pub(super) fn is_known_text(&self, bytes: &[u8], wide: bool) -> bool {
        let is = |text: &str| is_text(bytes, wide, text);
        let longest = if wide {
            2 * LONGEST_KNOWN
        } else {
            LONGEST_KNOWN
        };
        bytes.len() <= longest
            && !bytes.is_empty()
            && (is_compiler(bytes)
                || jvm::PROPERTIES.into_iter().any(is)
                || threads::HIDDEN.into_iter().any(is)
                || THREADS.into_iter().any(is)
                || self.tables.iter().flat_map(|t| t.texts).any(|t| is(t)))
    }

    /// Whether a number in a field or a static field of a class stays.
    pub(super) fn keeps_number(&self, class: &Class, field: &str, kind: Kind) -> bool {
        let is_boot = class.loader.is_null();
        let is_of_jvm = || {
            JVM_CLASSES.contains(&&*class.name) || self.tables.iter().any(|t| t.has(&class.name))
        };
        !is_hash(class, field, kind)
            && (!self.numbers
                || kind == Kind::Boolean
                || is_measure(field)
                || (is_boot && is_of_jvm()))
    }
}

/// Whether a field of the JDK's holds the hash of a text or a key.
pub(super) fn is_hash(class: &Class, field: &str, kind: Kind) -> bool {
    class.loader.is_null() && kind == Kind::Int && field == "hash"
}

/// Whether the content of an array of bytes, or where `wide` of `char`s, is this text.
pub(super) fn is_text(bytes: &[u8], wide: bool, text: &str) -> bool {
    match wide {
        false => bytes == text.as_bytes(),
        true => {
            let units = bytes.chunks_exact(2);
            let units = units.map(|u| u16::from_be_bytes([u[0], u[1]]));
            units.eq(text.encode_utf16())
        }
    }
}

/// No known text is longer.
const LONGEST_KNOWN: usize = 40;
/// Whether it is the name of a thread that compiles.
fn is_compiler(text: &[u8]) -> bool {
    let number = [b"C1 CompilerThread", b"C2 CompilerThread"];
    let mut number = number
        .into_iter()
        .filter_map(|begin| text.strip_prefix(begin));
    number.any(|n| n.len() <= 3 && n.iter().all(u8::is_ascii_digit))
}

/// Threads that every JVM has.
const THREADS: [&str; 6] = [
    "main",
    "Finalizer",
    "Reference Handler",
    "Signal Dispatcher",
    "Attach Listener",
    "Common-Cleaner",
];
/// Classes whose static numbers are of the JVM: a number that it drew, and the order of bytes.
const JVM_CLASSES: [&str; 2] = ["java.util.ImmutableCollections", "java.lang.StringUTF16"];

/// Whether a field's name has a word for how much something is, or where: sizes, bounds and places in arrays.
fn is_measure(field: &str) -> bool {
    const WORDS: [&str; 22] = [
        "size", "len", "length", "count", "capacity", "cap", "limit", "max", "min", "maximum",
        "bound", "off", "offset", "start", "begin", "from", "position", "index", "head", "tail",
        "coder", "elements",
    ];
    words(field).any(|word| WORDS.iter().any(|w| word.eq_ignore_ascii_case(w)))
}

/// The words of a name: `maxPoolSize`, `MAX_POOL_SIZE`.
fn words(name: &str) -> impl Iterator<Item = &str> {
    let bytes = name.as_bytes();
    let is_end = |at: usize| {
        at == bytes.len()
            || !bytes[at].is_ascii_alphabetic()
            || (bytes[at].is_ascii_uppercase() && bytes[at - 1].is_ascii_lowercase())
    };
    let mut start = 0;
    std::iter::from_fn(move || {
        while start < bytes.len() && !bytes[start].is_ascii_alphabetic() {
            start += 1;
        }
        let from = start;
        let end = (from + 1..=bytes.len()).find(|&at| is_end(at))?;
        start = end;
        name.get(from..end)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_are_told_by_whole_words() {
        for name in [
            "size",
            "maxPoolSize",
            "MAX_POOL_SIZE",
            "elementCount",
            "_len",
            "readerIndex",
            "coder",
        ] {
            assert!(is_measure(name), "{name}");
        }
        for name in [
            "account",
            "accountNumber",
            "pin",
            "sizzle",
            "offer",
            "",
            "_",
            "1",
            "größe",
        ] {
            assert!(!is_measure(name), "{name}");
        }
    }

    #[test]
    fn known_texts_are_known_whole() {
        let rules = Rules::default();
        assert!(rules.is_known_text(b"java.vm.version", false));
        assert!(rules.is_known_text(b"\0m\0a\0i\0n", true));
        assert!(!rules.is_known_text(b"java.vm.version=1", false));
        assert!(!rules.is_known_text(b"main", true) && !rules.is_known_text(b"", false));
    }
}
