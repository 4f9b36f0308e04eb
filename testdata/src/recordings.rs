//! Flight recordings for tests: recordings of a real JVM, and recordings composed byte by byte for cases that no JVM
//! produces. This module shares no code with the reader that it tests.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::jvm::{Jdk, JvmError, Launch};
use crate::trim::trimmed;

/// Records a run of `java/jfr/Recorded.java`. In each of `steps` equal steps, the program keeps 3000-byte arrays and
/// then runs a GC. Returns the number of arrays that the program kept. The recording takes about two seconds plus 100
/// ms for each step.
///
/// # Errors
/// Returns an error if the JVM fails.
pub fn record(jdk: &Jdk, file: &Path, steps: u32) -> Result<u64, JvmError> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("java/jfr");
    let classes = jdk.compile(&folder.join("Recorded.java"))?;
    let home = file.parent().unwrap_or_else(|| Path::new("."));
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    // The recording contains the JVM's arguments, so they must not reveal anything about this machine.
    let option = format!("-XX:StartFlightRecording=filename={name},settings=recorded.jfc");
    let settings = home.join("recorded.jfc");
    fs::copy(folder.join("recorded.jfc"), &settings)
        .map_err(|error| JvmError::file(&settings, error))?;
    let mut target = Launch::class(jdk, &classes, "Recorded")
        .clean_in(home)
        .flags([
            "-XX:+UseSerialGC",
            "-Xmx64m",
            "-XX:TLABSize=128k",
            "-XX:-ResizeTLAB",
        ])
        .flag(option)
        .arg(steps.to_string())
        .timeout(Duration::from_secs(60))
        .start()?;
    let kept = target.wait_line("KEPT ")?;
    target.finish()?;
    Ok(kept.trim_start_matches("KEPT ").parse().unwrap_or(0))
}

/// Writes `recorded.jfr.gz` to this folder, with the newest JDK that is found. Replaces an existing file.
///
/// # Errors
/// Returns an error if the JVM fails or the file cannot be written.
pub fn make_recording(out_dir: &Path) -> Result<PathBuf, JvmError> {
    let jdk = Jdk::all_for_scenarios().pop();
    let jdk = jdk.ok_or_else(|| JvmError::NoJdk("17 or later".to_owned()))?;
    let home = std::env::temp_dir().join(format!("recorded-{}", std::process::id()));
    fs::create_dir_all(&home).map_err(|error| JvmError::file(&home, error))?;
    let file = home.join("recorded.jfr");
    let packed = record(&jdk, &file, 12).and_then(|_| {
        let bytes = fs::read(&file).map_err(|error| JvmError::file(&file, error))?;
        let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
        let done = gzip.write_all(&bytes).and_then(|()| gzip.finish());
        let path = out_dir.join("recorded.jfr.gz");
        let written = done.and_then(|packed| fs::write(&path, packed));
        written.map_err(|error| JvmError::file(&path, error))?;
        Ok(path)
    });
    let _ = fs::remove_dir_all(&home);
    packed
}

/// The files that [`make_joined`] writes.
pub const JOINED: [&str; 4] = [
    "joined-before.hprof.gz",
    "joined-after.hprof.gz",
    "joined.jfr.gz",
    "joined-async.jfr.gz",
];

/// Writes two dumps of `java/agent/Orders.java`, Flight Recorder's recording of this run, and async-profiler's
/// recording of the same run. The dumps contain only the objects of the leak and the system properties, but have the
/// size of the original dumps. `profiler` is the path of async-profiler's library.
///
/// # Errors
/// Returns an error if the JVM fails or a file cannot be written.
pub fn make_joined(out_dir: &Path, profiler: &Path) -> Result<Vec<PathBuf>, JvmError> {
    let jdks = Jdk::all_for_scenarios();
    let jdk = jdks.first();
    let jdk = jdk.ok_or_else(|| JvmError::NoJdk("17 or later".to_owned()))?;
    let home = std::env::temp_dir().join(format!("joined-{}", std::process::id()));
    let failed = |error| JvmError::file(&home, error);
    fs::create_dir_all(&home).map_err(failed)?;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("java");
    let classes = jdk.compile(&folder.join("agent/Orders.java"))?;
    for (from, to) in [
        (classes.join("Orders.class"), "Orders.class"),
        (classes.join("Orders$Order.class"), "Orders$Order.class"),
        (folder.join("jfr/joined.jfc"), "joined.jfc"),
        (profiler.to_owned(), "libasyncProfiler.so"),
    ] {
        fs::copy(&from, home.join(to)).map_err(|error| JvmError::file(&from, error))?;
    }
    let mut target = Launch::class(jdk, ".", "Orders")
        .clean_in(&home)
        .flags([
            "-XX:+UseSerialGC",
            "-Xmx32m",
            "-XX:TLABSize=16k",
            "-XX:-ResizeTLAB",
        ])
        .flag("-XX:StartFlightRecording:settings=joined.jfc")
        .agent(
            Path::new("./libasyncProfiler.so"),
            "start,event=alloc,alloc=24k,live,jfr,file=async.jfr",
        )
        .start()?;
    let mut made = Vec::new();
    let mut save = |name: &str, bytes: &[u8]| {
        let path = out_dir.join(name);
        let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
        let packed = gzip.write_all(bytes).and_then(|()| gzip.finish());
        let written = packed.and_then(|packed| fs::write(&path, packed));
        written.map_err(|error| JvmError::file(&path, error))?;
        made.push(path);
        Ok(())
    };
    for (phase, name) in (1..).zip(&JOINED[..2]) {
        match phase {
            1 => target.wait_ready(phase)?,
            _ => target.advance(phase)?,
        }
        let dump = home.join(name.trim_end_matches(".gz"));
        target.dump(&dump, crate::jvm::DumpOptions::default())?;
        let bytes = fs::read(&dump).map_err(failed)?;
        save(
            name,
            &trimmed(&bytes, &[("Orders", "open"), ("java/lang/System", "props")]),
        )?;
    }
    target.jcmd(["JFR.dump", "filename=flight.jfr"])?;
    drop(target.finish());
    for (name, file) in [(JOINED[2], "flight.jfr"), (JOINED[3], "async.jfr")] {
        save(name, &fs::read(home.join(file)).map_err(failed)?)?;
    }
    let _ = fs::remove_dir_all(&home);
    Ok(made)
}

/// Returns the number of events of each type, counted by the JDK's own tool. Types without events are left out.
///
/// # Errors
/// Returns an error if the tool fails.
pub fn counts(jdk: &Jdk, file: &Path) -> Result<BTreeMap<String, u64>, JvmError> {
    let text = jdk.recorder(["summary".as_ref(), file.as_os_str()])?;
    let row = |line: &str| {
        let mut words = line.split_whitespace();
        let (name, count) = (words.next()?, words.next()?.parse().ok()?);
        (count > 0).then(|| (name.to_owned(), count))
    };
    Ok(text.lines().filter_map(row).collect())
}

/// Encodes an integer as in a flight recording: each byte holds seven bits of the value, and a ninth byte holds eight.
#[must_use]
pub fn varint(value: i64) -> Vec<u8> {
    let mut rest = value.cast_unsigned();
    let mut bytes = Vec::new();
    while bytes.len() < 8 && rest >= 0x80 {
        bytes.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
    bytes
}

/// Encodes a string in UTF-8.
#[must_use]
pub fn text(text: &str) -> Vec<u8> {
    let length = i64::try_from(text.len()).expect("short");
    [&[3], &varint(length)[..], text.as_bytes()].concat()
}

/// A field of a type.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Name of the field.
    pub name: &'static str,
    /// Name of the field's type.
    pub of: &'static str,
    /// True if events contain the key of a constant instead of the value.
    pub pooled: bool,
    /// True if the field is an array.
    pub array: bool,
}

/// Returns the description of a field whose value is stored in the event itself and not as a constant.
#[must_use]
pub const fn plain(name: &'static str, of: &'static str) -> Field {
    Field {
        name,
        of,
        pooled: false,
        array: false,
    }
}

/// Returns the description of a field that contains the key of a constant.
#[must_use]
pub const fn pooled(name: &'static str, of: &'static str) -> Field {
    Field {
        pooled: true,
        ..plain(name, of)
    }
}

/// The constants of a type, with their keys.
type Pool = (&'static str, Vec<(i64, Vec<u8>)>);

/// Builds one chunk of a flight recording.
#[derive(Clone, Debug, Default)]
pub struct Chunk {
    types: Vec<(&'static str, Vec<Field>)>,
    pools: Vec<Pool>,
    events: Vec<u8>,
    start_ns: i64,
}

/// Number of the first type in the metadata. The numbers 0 and 1 are reserved for metadata events and checkpoint
/// events.
const FIRST_TYPE: usize = 20;

impl Chunk {
    /// Creates a chunk that begins at this time. The chunk's clock counts nanoseconds and begins at 1,000.
    #[must_use]
    pub fn new(start_ns: i64) -> Self {
        let mut chunk = Self {
            start_ns,
            ..Self::default()
        };
        for name in [
            "boolean",
            "byte",
            "char",
            "short",
            "int",
            "long",
            "float",
            "double",
            "java.lang.String",
        ] {
            chunk.describe(name, &[]);
        }
        chunk
    }

    /// Adds a type.
    pub fn describe(&mut self, name: &'static str, fields: &[Field]) {
        self.types.push((name, fields.to_vec()));
    }

    fn number(&self, name: &str) -> i64 {
        let at = self.types.iter().position(|t| t.0 == name);
        let at = at.unwrap_or_else(|| panic!("{name} is described"));
        i64::try_from(FIRST_TYPE + at).expect("few types")
    }

    /// Adds a constant of a type.
    pub fn constant(&mut self, of: &'static str, key: i64, bytes: &[&[u8]]) {
        let constant = (key, bytes.concat());
        match self.pools.iter_mut().find(|p| p.0 == of) {
            Some(pool) => pool.1.push(constant),
            None => self.pools.push((of, vec![constant])),
        }
    }

    /// Adds an event of a type. `bytes` are the encoded values of its fields.
    pub fn event(&mut self, of: &str, bytes: &[&[u8]]) {
        let event = sized(self.number(of), &bytes.concat());
        self.events.extend(event);
    }

    fn metadata(&self) -> Vec<u8> {
        let mut strings: Vec<String> = Vec::new();
        let mut body = Vec::new();
        let mut word = |word: &str| {
            let at = strings.iter().position(|s| s == word).unwrap_or_else(|| {
                strings.push(word.to_owned());
                strings.len() - 1
            });
            varint(i64::try_from(at).expect("few strings"))
        };
        let count = |n: usize| varint(i64::try_from(n).expect("few"));
        // The elements are nested: root > metadata > class > field. An annotation without content precedes the fields
        // of a class.
        body.extend([word("root"), count(0), count(1)].concat());
        body.extend([word("metadata"), count(0), count(self.types.len())].concat());
        for (name, fields) in &self.types {
            let id = self.number(name).to_string();
            let attributes = [word("id"), word(&id), word("name"), word(name)].concat();
            let head = [word("class"), count(2), attributes, count(fields.len() + 1)];
            body.extend(head.concat());
            body.extend([word("annotation"), count(0), count(0)].concat());
            for field in fields {
                let of = self.number(field.of).to_string();
                let mut attributes = vec![("name", field.name), ("class", &of)];
                if field.pooled {
                    attributes.push(("constantPool", "true"));
                }
                if field.array {
                    attributes.push(("dimension", "1"));
                }
                body.extend([word("field"), count(attributes.len())].concat());
                for (key, value) in attributes {
                    body.extend([word(key), word(value)].concat());
                }
                body.extend(count(0));
            }
        }
        let head = [varint(1000), varint(0), varint(1), count(strings.len())].concat();
        let strings: Vec<u8> = strings.iter().flat_map(|s| text(s)).collect();
        sized(0, &[head, strings, body].concat())
    }

    fn checkpoint(&self) -> Vec<u8> {
        let mut body = [varint(1000), varint(0), varint(0), vec![0]].concat();
        let count = |n: usize| varint(i64::try_from(n).expect("few"));
        body.extend(count(self.pools.len()));
        for (of, constants) in &self.pools {
            body.extend([varint(self.number(of)), count(constants.len())].concat());
            for (key, bytes) in constants {
                body.extend(varint(*key));
                body.extend(bytes);
            }
        }
        sized(1, &body)
    }

    /// Returns the bytes of the chunk.
    #[must_use]
    pub fn finish(&self) -> Vec<u8> {
        let (checkpoint, metadata) = (self.checkpoint(), self.metadata());
        let at = 68 + self.events.len();
        let size = at + checkpoint.len() + metadata.len();
        let mut bytes = b"FLR\0\x00\x02\x00\x01".to_vec();
        for number in [size, at, at + checkpoint.len()] {
            bytes.extend(u64::try_from(number).expect("small").to_be_bytes());
        }
        for number in [self.start_ns, 10_000_000_000, 1000, 1_000_000_000] {
            bytes.extend(number.to_be_bytes());
        }
        bytes.extend([0, 0, 0, 1]);
        [bytes, self.events.clone(), checkpoint, metadata].concat()
    }
}

/// Returns an event that begins with its size. The size counts its own bytes, too.
fn sized(kind: i64, body: &[u8]) -> Vec<u8> {
    let kind = varint(kind);
    // Sizes are encoded in four bytes, as the JVM writes them.
    let size = u32::try_from(4 + kind.len() + body.len()).expect("small");
    let byte = |shift: u32| (size >> shift & 0x7f) as u8;
    let size = [byte(0) | 0x80, byte(7) | 0x80, byte(14) | 0x80, byte(21)];
    [&size, &kind[..], body].concat()
}

/// Start of the first chunk that [`live_objects`] returns, in milliseconds since 1970.
pub const STARTED_MS: i64 = 1_760_000_000_000;

/// Returns a chunk as async-profiler writes it with the options `alloc=1024,live`. It covers ten seconds with an
/// allocation of a `com.acme.Page` (48 bytes) every 50 ms and of a `byte[]` of 4,096 bytes every 100 ms. At the end all
/// arrays and three pages are alive.
///
/// `number` is the position of the chunk in the recording. Each chunk covers the ten seconds after the previous chunk.
#[must_use]
pub fn live_objects(number: i64) -> Chunk {
    let mut chunk = Chunk::new((STARTED_MS + number * 10_000) * 1_000_000);
    describe(&mut chunk);
    let key = varint;
    for (at, symbol) in (1..).zip([
        "[B",
        "com/acme/Page",
        "com/acme/Cache",
        "load",
        "com/acme/Main",
        "main",
        "fill",
    ]) {
        chunk.constant("jdk.types.Symbol", at, &[&text(symbol)]);
    }
    for (at, name) in [(1, 1), (2, 2), (3, 3), (4, 5)] {
        chunk.constant("java.lang.Class", at, &[&key(name)]);
    }
    for (at, class, name) in [(1, 3, 4), (2, 4, 6), (3, 3, 7)] {
        chunk.constant("jdk.types.Method", at, &[&key(class), &key(name)]);
    }
    for (at, name) in [(0, "Interpreted"), (1, "JIT compiled"), (2, "Native")] {
        chunk.constant("jdk.types.FrameType", at, &[&text(name)]);
    }
    let frame = |method: i64, line: i64| [key(method), key(line), key(7), key(1)].concat();
    for (at, leaf) in [(1, frame(1, 22)), (2, frame(3, 31))] {
        let frames = [leaf, frame(2, 12)].concat();
        let trace = [&[0], &key(2)[..], &frames].concat();
        chunk.constant("jdk.types.StackTrace", at, &[&trace]);
    }
    let thread = [text("os-main"), key(7), text("main"), key(1)].concat();
    chunk.constant("java.lang.Thread", 7, &[&thread]);
    let at = |ms: i64| key(1000 + ms * 1_000_000);
    let setting = [at(0), key(0), key(7), key(0)].concat();
    let id = chunk.number("jdk.ObjectAllocationInNewTLAB");
    let setting = [setting, key(id), text("alloc"), text("1024")].concat();
    chunk.event("jdk.ActiveSetting", &[&setting]);
    let (page, array) = ((2_i64, 1_i64, 48_i64), (1, 2, 4096));
    for ms in (0..10_000).step_by(50) {
        let mut allocated = vec![page];
        if ms % 100 == 0 {
            allocated.push(array);
        }
        for (class, stack, size) in allocated {
            let head = [at(ms), key(7), key(stack), key(class), key(size)].concat();
            let event = [head, key(size.max(1024))].concat();
            chunk.event("jdk.ObjectAllocationInNewTLAB", &[&event]);
        }
    }
    for ms in (0..10_000).step_by(50) {
        for ((class, stack, size), alive) in [(page, ms < 150), (array, ms % 100 == 0)] {
            if alive {
                let head = [at(9_999), key(7), key(stack), key(class), key(size)].concat();
                chunk.event("profiler.LiveObject", &[&head, &at(ms)]);
            }
        }
    }
    chunk
}

fn describe(chunk: &mut Chunk) {
    let symbol = "jdk.types.Symbol";
    chunk.describe(symbol, &[plain("string", "java.lang.String")]);
    chunk.describe("java.lang.Class", &[pooled("name", symbol)]);
    let method = [pooled("type", "java.lang.Class"), pooled("name", symbol)];
    chunk.describe("jdk.types.Method", &method);
    let kind = [plain("description", "java.lang.String")];
    chunk.describe("jdk.types.FrameType", &kind);
    let frame = [
        pooled("method", "jdk.types.Method"),
        plain("lineNumber", "int"),
        plain("bytecodeIndex", "int"),
        pooled("type", "jdk.types.FrameType"),
    ];
    chunk.describe("jdk.types.StackFrame", &frame);
    let frames = Field {
        array: true,
        ..plain("frames", "jdk.types.StackFrame")
    };
    chunk.describe(
        "jdk.types.StackTrace",
        &[plain("truncated", "boolean"), frames],
    );
    let thread = [
        plain("osName", "java.lang.String"),
        plain("osThreadId", "long"),
        plain("javaName", "java.lang.String"),
        plain("javaThreadId", "long"),
    ];
    chunk.describe("java.lang.Thread", &thread);
    let common = [
        plain("startTime", "long"),
        pooled("eventThread", "java.lang.Thread"),
        pooled("stackTrace", "jdk.types.StackTrace"),
        pooled("objectClass", "java.lang.Class"),
        plain("allocationSize", "long"),
    ];
    let with = |field| [&common[..], &[field]].concat();
    let fields = with(plain("tlabSize", "long"));
    chunk.describe("jdk.ObjectAllocationInNewTLAB", &fields);
    let fields = with(plain("allocationTime", "long"));
    chunk.describe("profiler.LiveObject", &fields);
    let setting = [
        plain("startTime", "long"),
        plain("duration", "long"),
        pooled("eventThread", "java.lang.Thread"),
        pooled("stackTrace", "jdk.types.StackTrace"),
        plain("id", "long"),
        plain("name", "java.lang.String"),
        plain("value", "java.lang.String"),
    ];
    chunk.describe("jdk.ActiveSetting", &setting);
}
