//! The content that a redaction keeps: names, strings that identify the JVM and its layout, and numbers from which
//! reports compute sizes and other results.

use regex::Regex;

use crate::answers::jvm;
use crate::answers::threads;
use crate::records::classes::Class;
use crate::records::record::Kind;
use crate::redaction::fields::{is_hash, is_length};

/// A function that removes everything but names from a table of names. Its arguments are the contents of the `byte[]`
/// arrays that form the table, and a function that overwrites a string with a token. Returns new contents of the same
/// lengths, or `None` if the table cannot be read.
pub type CleanTable<'r> = &'r (dyn Fn(&[&[u8]], &dyn Fn(&mut [u8])) -> Option<Vec<Vec<u8>>> + Sync);

/// Describes the tables that a redaction keeps because reports need them. Static fields of one class refer to these
/// tables of numbers and names. Heapdiff's agent has such a class.
#[derive(Clone, Copy)]
pub struct KeptTables<'r> {
    /// The name of a boot loader class, as in Java source. Its own fields are kept.
    pub class: &'r str,
    /// Static fields that refer to an `int[]` or `long[]`, or to arrays of such arrays.
    pub figures: &'r [&'r str],
    /// Each entry has three names: a static field that leads to an array of objects; the class of these objects, whose
    /// fields are kept; a field of this class that leads to an `int[]` or `long[]`.
    pub held: &'r [[&'r str; 3]],
    /// Static fields that lead to arrays of `byte[]`. The `byte[]` of each array form one table with names.
    pub names: &'r [&'r str],
    /// The function that removes all content except names from one of the tables in `names`.
    pub clean: CleanTable<'r>,
    /// Strings that are not secret. They are kept wherever they occur in the dump.
    pub texts: &'r [&'r str],
}

impl std::fmt::Debug for KeptTables<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeptTables")
            .field("class", &self.class)
            .finish_non_exhaustive()
    }
}

/// How a redaction treats the number in a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Number {
    Kept,
    /// The number is kept because the user requested it.
    Requested,
    /// The number is replaced by zero, because it can be a hash of content.
    Hash,
    /// The number is replaced by a token.
    Token,
}

/// The rules of a redaction.
#[derive(Clone, Debug, Default)]
pub struct Rules<'r> {
    /// True if the numbers in fields are redacted, too.
    pub numbers: bool,
    /// Patterns for `Class.field`. The numbers in these fields are kept even if numbers are redacted.
    pub keep_numbers: Vec<Regex>,
    /// Tables to keep.
    pub tables: Vec<KeptTables<'r>>,
}

impl KeptTables<'_> {
    /// True if a redaction keeps the numbers in the fields of this class.
    fn has(&self, class: &str) -> bool {
        self.class == class || self.held.iter().any(|held| held[1] == class)
    }
}

impl Rules<'_> {
    /// True if a string is well known, such as the name of a JDK thread. A redaction keeps well-known strings.
    pub(super) fn is_well_known_string(&self, bytes: &[u8], wide: bool) -> bool {
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

    /// Returns what a redaction does with the number in this field or static field.
    pub(super) fn number(&self, class: &Class, field: &str, kind: Kind) -> Number {
        let is_of_jvm = || {
            JVM_CLASSES.contains(&&*class.name) || self.tables.iter().any(|t| t.has(&class.name))
        };
        if is_hash(class, field, kind) {
            Number::Hash
        } else if !self.numbers
            || kind == Kind::Boolean
            || is_length(class, field)
            || (class.loader.is_null() && is_of_jvm())
        {
            Number::Kept
        } else if self.is_requested(class, field) {
            Number::Requested
        } else {
            Number::Token
        }
    }

    fn is_requested(&self, class: &Class, field: &str) -> bool {
        if self.keep_numbers.is_empty() {
            return false;
        }
        let name = format!("{}.{field}", class.name);
        self.keep_numbers.iter().any(|keep| keep.is_match(&name))
    }
}

/// True if an array has this text. The array is a `char[]` if `wide`, otherwise a `byte[]`.
pub(super) fn is_text(bytes: &[u8], wide: bool, text: &str) -> bool {
    if wide {
        let units = bytes.chunks_exact(2);
        let units = units.map(|u| u16::from_be_bytes([u[0], u[1]]));
        units.eq(text.encode_utf16())
    } else {
        bytes == text.as_bytes()
    }
}

/// Maximum length of a known string.
const LONGEST_KNOWN: usize = 40;
/// True if a string is the name of a compiler thread.
fn is_compiler(text: &[u8]) -> bool {
    let number = [b"C1 CompilerThread", b"C2 CompilerThread"];
    let mut number = number
        .into_iter()
        .filter_map(|begin| text.strip_prefix(begin));
    number.any(|n| n.len() <= 3 && n.iter().all(u8::is_ascii_digit))
}

/// Names of threads that every JVM has.
const THREADS: [&str; 6] = [
    "main",
    "Finalizer",
    "Reference Handler",
    "Signal Dispatcher",
    "Attach Listener",
    "Common-Cleaner",
];
/// Classes of the JDK whose static fields have numbers that belong to the JVM and not to the program: a random number,
/// and the byte order.
const JVM_CLASSES: [&str; 2] = ["java.util.ImmutableCollections", "java.lang.StringUTF16"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ObjectId;

    fn class(name: &str, loader: u64) -> Class {
        Class {
            name: name.into(),
            loader: ObjectId(loader),
            ..Class::default()
        }
    }

    fn numbers(keep: &[&str]) -> Rules<'static> {
        Rules {
            numbers: true,
            keep_numbers: keep.iter().map(|k| Regex::new(k).unwrap()).collect(),
            ..Rules::default()
        }
    }

    #[test]
    fn only_lengths_of_jdk_collections_are_kept() {
        let rules = numbers(&[]);
        let list = class("java.util.ArrayList", 0);
        assert_eq!(rules.number(&list, "size", Kind::Int), Number::Kept);
        assert_eq!(rules.number(&list, "modCount", Kind::Int), Number::Token);
        let fields = [
            "fromAccount",
            "maxCardNumber",
            "head",
            "startBalance",
            "index",
            "cap",
            "count",
            "size",
            "capacity",
        ];
        // A class that is not from the boot loader is not a JDK class, even if it has the name of one.
        for class in [
            class("com.acme.Account", 7),
            class("com.acme.Account", 0),
            class("java.util.ArrayList", 7),
            class("java.util.RegularEnumSet", 0),
        ] {
            for field in fields.into_iter().chain(["elements"]) {
                let number = rules.number(&class, field, Kind::Int);
                assert_eq!(number, Number::Token, "{}.{field}", class.name);
            }
        }
    }

    #[test]
    fn requested_fields_are_kept_and_hashes_never() {
        let rules = numbers(&["^com\\.acme\\.Pool\\.max", "^com\\.acme\\.Key\\."]);
        let pool = class("com.acme.Pool", 7);
        assert_eq!(rules.number(&pool, "maxIdle", Kind::Int), Number::Requested);
        assert_eq!(rules.number(&pool, "idle", Kind::Int), Number::Token);
        let key = class("com.acme.Key", 7);
        assert_eq!(rules.number(&key, "pathHash", Kind::Int), Number::Hash);
        assert_eq!(rules.number(&key, "version", Kind::Int), Number::Requested);
    }

    #[test]
    fn hashes_of_content_are_recognized() {
        let rules = Rules::default();
        for (name, field, kind) in [
            ("java.lang.String", "hash", Kind::Int),
            ("java.net.URL", "hashCode", Kind::Int),
            ("java.util.jar.Attributes$Name", "hashCode", Kind::Int),
            ("java.util.Locale", "hashCodeValue", Kind::Int),
            ("sun.util.locale.BaseLocale", "hash", Kind::Int),
            (
                "java.lang.invoke.MethodType$ConcurrentWeakInternSet$WeakEntry",
                "hashcode",
                Kind::Int,
            ),
            ("java.util.zip.CRC32", "crc", Kind::Int),
            ("java.util.zip.Adler32", "adler", Kind::Int),
            ("java.util.zip.ZipEntry", "crc", Kind::Long),
            ("com.acme.Key", "cachedHashCode", Kind::Long),
        ] {
            let number = rules.number(&class(name, 0), field, kind);
            assert_eq!(number, Number::Hash, "{name}.{field}");
        }
        let list = class("java.util.ArrayList", 0);
        assert_eq!(rules.number(&list, "size", Kind::Int), Number::Kept);
        let flag = rules.number(&class("com.acme.Key", 7), "hashed", Kind::Boolean);
        assert_eq!(flag, Number::Kept);
    }

    #[test]
    fn known_strings_are_matched_as_a_whole() {
        let rules = Rules::default();
        assert!(rules.is_well_known_string(b"java.vm.version", false));
        assert!(rules.is_well_known_string(b"\0m\0a\0i\0n", true));
        assert!(!rules.is_well_known_string(b"java.vm.version=1", false));
        assert!(
            !rules.is_well_known_string(b"main", true) && !rules.is_well_known_string(b"", false)
        );
    }
}
