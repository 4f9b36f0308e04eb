//! The JVM's own class histogram, with class names as in Java source.

/// An entry of a class histogram: a class, the number of its objects, and their bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassCount {
    /// The name as in Java source: `byte[]`, `java.lang.String[]`, `com.acme.Foo$Bar`.
    pub class: String,
    /// Number of objects.
    pub instances: u64,
    /// Sum of the objects' shallow sizes in bytes.
    pub bytes: u64,
}

/// The output of `GC.class_histogram`, largest class first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Histogram {
    /// One entry for each class. If two loaders define classes of the same name, the name occurs twice.
    pub classes: Vec<ClassCount>,
}

impl Histogram {
    /// Reads the text that `jcmd PID GC.class_histogram` prints, and skips lines that are not entries.
    pub fn parse(text: &str) -> Histogram {
        Histogram {
            classes: text.lines().filter_map(entry).collect(),
        }
    }

    /// Returns the number of objects of all classes with this name.
    pub fn instances(&self, class: &str) -> u64 {
        self.named(class).map(|entry| entry.instances).sum()
    }

    /// Returns the shallow bytes of all classes with this name.
    pub fn bytes(&self, class: &str) -> u64 {
        self.named(class).map(|entry| entry.bytes).sum()
    }

    /// Returns the number of objects of all classes.
    pub fn total_instances(&self) -> u64 {
        self.classes.iter().map(|entry| entry.instances).sum()
    }

    /// Returns the shallow bytes of all classes.
    pub fn total_bytes(&self) -> u64 {
        self.classes.iter().map(|entry| entry.bytes).sum()
    }

    fn named<'a>(&'a self, class: &'a str) -> impl Iterator<Item = &'a ClassCount> {
        self.classes
            .iter()
            .filter(move |entry| entry.class == class)
    }
}

/// Parses `   1:    4588    216500  [B (java.base@17.0.15)`.
fn entry(line: &str) -> Option<ClassCount> {
    let mut words = line.split_whitespace();
    words.next()?.strip_suffix(':')?.parse::<u32>().ok()?;
    let instances = words.next()?.parse().ok()?;
    let bytes = words.next()?.parse().ok()?;
    Some(ClassCount {
        class: source_name(words.next()?),
        instances,
        bytes,
    })
}

/// Returns the name of an array class as in Java source: `[[Ljava.lang.String;` -> `java.lang.String[][]`. Returns
/// other names unchanged.
fn source_name(name: &str) -> String {
    let element = name.trim_start_matches('[');
    let dimensions = name.len() - element.len();
    if dimensions == 0 {
        return name.to_owned();
    }
    let element = match element {
        "Z" => "boolean",
        "B" => "byte",
        "C" => "char",
        "S" => "short",
        "I" => "int",
        "J" => "long",
        "F" => "float",
        "D" => "double",
        object => object
            .strip_prefix('L')
            .and_then(|class| class.strip_suffix(';'))
            .unwrap_or(object),
    };
    element.to_owned() + &"[]".repeat(dimensions)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
4711:
 num     #instances         #bytes  class name (module)
-------------------------------------------------------
   1:         45887        2165000  [B (java.base@17.0.15)
   2:             3             96  [[Ljava.lang.String; (java.base@17.0.15)
   3:             2             48  com.acme.Foo$Bar
   4:             1             16  com.acme.Job$$Lambda$14/0x0000000800c03000
   5:             1             24  com.acme.Foo$Bar
Total         45894        2165184
";

    #[test]
    fn reads_entries_and_nothing_else() {
        let histogram = Histogram::parse(TEXT);
        assert_eq!(histogram.classes.len(), 5);
        assert_eq!(histogram.instances("byte[]"), 45_887);
        assert_eq!(histogram.bytes("java.lang.String[][]"), 96);
        assert_eq!(
            histogram.instances("com.acme.Job$$Lambda$14/0x0000000800c03000"),
            1
        );
        assert_eq!(
            (histogram.total_instances(), histogram.total_bytes()),
            (45_894, 2_165_184)
        );
    }

    #[test]
    fn equal_names_of_two_loaders_are_added() {
        let histogram = Histogram::parse(TEXT);
        assert_eq!(histogram.instances("com.acme.Foo$Bar"), 3);
        assert_eq!(histogram.bytes("com.acme.Foo$Bar"), 72);
    }

    #[test]
    fn every_primitive_has_its_source_name() {
        let names: Vec<_> = "ZBCSIJFD"
            .chars()
            .map(|code| source_name(&format!("[{code}")))
            .collect();
        assert_eq!(
            names.join(" "),
            "boolean[] byte[] char[] short[] int[] long[] float[] double[]"
        );
    }
}
