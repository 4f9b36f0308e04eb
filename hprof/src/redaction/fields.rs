//! Numeric fields that a redaction recognizes by their names: lengths in JDK collections, and hashes of content.

use crate::records::classes::Class;
use crate::records::record::Kind;

/// Fields of boot loader classes that contain a length, a bound or an index of an array, never content. Reports need
/// them to read collections, strings and buffers.
///
/// Each class and field exists in a JDK from 8 to 28, except `String.count` and `String.offset` of JDK 6.
const LENGTHS: [(&str, &[&str]); 36] = [
    ("java.lang.AbstractStringBuilder", &["coder", "count"]),
    ("java.lang.String", &["coder", "count", "offset"]),
    (
        "java.lang.ThreadLocal$ThreadLocalMap",
        &["size", "threshold"],
    ),
    ("java.nio.Buffer", &["capacity", "limit", "position"]),
    ("java.nio.ByteBuffer", &["offset"]),
    ("java.nio.CharBuffer", &["offset"]),
    ("java.nio.DoubleBuffer", &["offset"]),
    ("java.nio.FloatBuffer", &["offset"]),
    ("java.nio.IntBuffer", &["offset"]),
    ("java.nio.LongBuffer", &["offset"]),
    ("java.nio.ShortBuffer", &["offset"]),
    ("java.util.ArrayDeque", &["head", "tail"]),
    ("java.util.ArrayList", &["size"]),
    (
        "java.util.ArrayList$SubList",
        &["offset", "parentOffset", "size"],
    ),
    ("java.util.BitSet", &["wordsInUse"]),
    ("java.util.EnumMap", &["size"]),
    ("java.util.HashMap", &["loadFactor", "size", "threshold"]),
    ("java.util.Hashtable", &["count", "loadFactor", "threshold"]),
    ("java.util.IdentityHashMap", &["size"]),
    ("java.util.ImmutableCollections$MapN", &["size"]),
    ("java.util.ImmutableCollections$SetN", &["size"]),
    (
        "java.util.ImmutableCollections$SubList",
        &["offset", "size"],
    ),
    ("java.util.LinkedList", &["size"]),
    ("java.util.PriorityQueue", &["size"]),
    ("java.util.TaskQueue", &["size"]),
    ("java.util.TreeMap", &["size"]),
    ("java.util.Vector", &["capacityIncrement", "elementCount"]),
    (
        "java.util.WeakHashMap",
        &["loadFactor", "size", "threshold"],
    ),
    (
        "java.util.concurrent.ArrayBlockingQueue",
        &["count", "putIndex", "takeIndex"],
    ),
    (
        "java.util.concurrent.ConcurrentHashMap",
        &["baseCount", "sizeCtl", "transferIndex"],
    ),
    (
        "java.util.concurrent.ConcurrentHashMap$CounterCell",
        &["value"],
    ),
    (
        "java.util.concurrent.LinkedBlockingDeque",
        &["capacity", "count"],
    ),
    ("java.util.concurrent.LinkedBlockingQueue", &["capacity"]),
    ("java.util.concurrent.PriorityBlockingQueue", &["size"]),
    (
        "java.util.concurrent.ScheduledThreadPoolExecutor$DelayedWorkQueue",
        &["size"],
    ),
    // The field `size` contains the length of the stack chunk itself, so the size of the object depends on it.
    ("jdk.internal.vm.StackChunk", &["size"]),
];

/// Fields of JDK classes that contain a hash of content and have none of [`HASH_WORDS`] in their names. They were found
/// by a search through JDK 8 to 28 for all fields that the JDK's code sets from a hash.
const HASHES: [(&str, &str); 8] = [
    ("com.sun.beans.finder.Signature", "code"),
    ("com.sun.jndi.ldap.NotifierArgs", "sum"),
    (
        "com.sun.org.apache.xerces.internal.jaxp.validation.SoftReferenceGrammarPool$Entry",
        "bucket",
    ),
    ("com.sun.tools.javac.comp.TreeHasher", "result"),
    ("java.util.zip.Adler32", "adler"),
    ("jdk.internal.event.TLSHandshakeEvent", "certificateId"),
    ("jdk.internal.event.X509CertificateEvent", "certificateId"),
    ("jdk.internal.event.X509ValidationEvent", "certificateId"),
];

/// A field with one of these words in its name counts as a hash, in every class. More than 140 fields of the JDK that
/// contain a hash have such a name, for example `String.hash`, `URL.hashCode`, `Locale.hashCodeValue`, `ZipEntry.crc`.
const HASH_WORDS: [&[u8]; 3] = [b"hash", b"crc", b"checksum"];

/// True if a field refers to an `Integer` in which an object caches its hash code. Nine classes of JMX types cache
/// their hash codes in this way.
pub(super) fn is_boxed_hash(class: &Class, field: &str) -> bool {
    field == "myHashCode" && class.name.starts_with("javax.management.openmbean.")
}

/// True if a field of a JDK class contains a length. The value of such a field is not content.
pub(super) fn is_length(class: &Class, field: &str) -> bool {
    let of = |(name, fields): &(&str, &[&str])| *name == &*class.name && fields.contains(&field);
    class.loader.is_null() && LENGTHS.iter().any(of)
}

/// True if a field can contain a hash of content. A redaction replaces the value of such a field by zero.
pub(super) fn is_hash(class: &Class, field: &str, kind: Kind) -> bool {
    let has = |word: &&[u8]| {
        let mut parts = field.as_bytes().windows(word.len());
        parts.any(|part| part.eq_ignore_ascii_case(word))
    };
    matches!(kind, Kind::Int | Kind::Long | Kind::Short)
        && (HASH_WORDS.iter().any(has) || HASHES.contains(&(&*class.name, field)))
}
