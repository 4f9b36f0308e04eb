//! Hostile input: small dumps of all kinds with random changes. A seed determines the changes. Test harnesses on a
//! stable compiler use the changed dumps. Fuzzers start from the unchanged dumps as their corpus.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::sampled::{AgentHeap, Sampled};
use crate::writer::{
    Elements, FieldType, FileOrder, Framing, Gzip, HeapBuilder, Options, Place, Rng, Root, Value,
    compress,
};

/// A function to test, with its name. The function accepts any bytes, and must neither panic nor hang.
pub type Target = (&'static str, fn(&[u8]));

/// Maximum time for one input, on a busy machine.
const SLOW: Duration = Duration::from_secs(10);

fn dump(options: Options) -> Vec<u8> {
    let mut heap = HeapBuilder::new(options);
    let object = heap.add_class("java.lang.Object", None, &[], &[]);
    let class = heap.add_class(
        "java.lang.Class",
        Some(object),
        &[("name", FieldType::Object)],
        &[],
    );
    let node = heap.add_class(
        "a.Node",
        Some(object),
        &[("next", FieldType::Object), ("size", FieldType::Int)],
        &[("head", Value::NULL), ("other", Value::Ref(class.into()))],
    );
    let mut next = Value::NULL;
    for i in 0..6 {
        next = heap.add_instance(node, &[next, Value::Int(i)]).into();
    }
    heap.set_static(node, "head", next);
    let bytes = heap.add_primitive_array(Elements::Byte((0..30).collect()));
    let array = heap.add_object_array(object, [bytes, bytes]);
    heap.add_root(
        Root::ThreadObject {
            thread: 1,
            trace: 1,
        },
        array,
    );
    heap.add_root(
        Root::JavaFrame {
            thread: 1,
            frame: 0,
        },
        bytes,
    );
    heap.build()
}

/// Returns small dumps of all kinds.
#[must_use]
pub fn corpus() -> Vec<Vec<u8>> {
    let segments = Framing::Segments { bytes: 200 };
    let mut corpus: Vec<Vec<u8>> = [
        Options::default(),
        Options {
            framing: segments,
            classes: Place::End,
            ..Options::default()
        },
        Options {
            framing: Framing::Single,
            ..Options::bits_32()
        },
        Options {
            order: FileOrder::Shuffled(1),
            framing: segments,
            ..Options::default()
        },
        Options {
            base_address: Some(0x1003),
            ..Options::android()
        },
    ]
    .map(dump)
    .into();
    corpus.push(compress(&corpus[1], Gzip::Plain).expect("memory takes all"));
    corpus.push(compress(&corpus[1], Gzip::Blocks { bytes: 100 }).expect("memory takes all"));
    // A dump with strings, threads and references.
    let mut heap = HeapBuilder::new(Options::default());
    let thread = heap.add_thread("main", &[]);
    let text = heap.add_string("text");
    heap.add_local(thread, 0, text);
    corpus.push(heap.build());
    // A dump with the agent's samples.
    let mut heap = HeapBuilder::new(Options::default());
    let boot = heap.boot();
    let held = heap.add_object_array(boot.object, [boot.thread]);
    heap.add_root(Root::JniGlobal { global_ref: 8 }, held);
    let mut agent = AgentHeap::new(&[&["a.A.f", "a.B.g"], &["a.B.g"]]);
    for (uid, site) in [(1, 1), (2, 2), (3, 0)] {
        agent.sample(Sampled::new(held, uid, 24, site));
    }
    agent.add_to(&mut heap);
    corpus.push(heap.build());
    // Two dumps in one file. A target that reads one dump finds invalid bytes after the first dump. A target that
    // compares dumps reads the two dumps.
    corpus.push([&corpus[0][..], &corpus[1]].concat());
    corpus
}

/// Byte values that have a meaning in a dump: tags, types, and minimum and maximum values.
const TELLING: [u8; 20] = [
    0, 1, 2, 4, 5, 8, 10, 11, 0x0c, 0x1c, 0x20, 0x21, 0x22, 0x23, 0x2c, 0x7f, 0x80, 0xc3, 0xfe,
    0xff,
];

/// Returns one of the dumps with random changes.
#[must_use]
pub fn mutate(rng: &mut Rng, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = corpus[rng.below(corpus.len())].clone();
    for _ in 0..=rng.below(6) {
        if bytes.is_empty() {
            return bytes;
        }
        let at = rng.below(bytes.len());
        let end = (at + 1 + rng.below(9)).min(bytes.len());
        match rng.below(8) {
            0 => bytes[at] ^= 1 << rng.below(8),
            1 => bytes[at] = TELLING[rng.below(TELLING.len())],
            2 => bytes[at..end].fill(TELLING[rng.below(TELLING.len())]),
            3 => {
                bytes.drain(at..end);
            }
            4 => {
                // Copies some consecutive bytes from any dump of the corpus, and inserts them here.
                let other = &corpus[rng.below(corpus.len())];
                let from = rng.below(other.len());
                let to = (from + rng.below(120)).min(other.len());
                bytes.splice(at..at, other[from..to].iter().copied());
            }
            5 => {
                let from = rng.below(bytes.len());
                let to = (from + (end - at)).min(bytes.len());
                let at = at.min(bytes.len() - (to - from));
                bytes.copy_within(from..to, at);
            }
            6 => {
                let number = (rng.next_u64() >> rng.below(64)).to_be_bytes();
                bytes[at..end]
                    .iter_mut()
                    .zip(number)
                    .for_each(|(b, n)| *b = n);
            }
            _ => bytes.truncate(at),
        }
    }
    bytes
}

fn number(variable: &str, default: u64) -> u64 {
    let text = std::env::var(variable).ok();
    text.and_then(|s| s.parse().ok()).unwrap_or(default)
}

/// Runs the targets on changed dumps for `FUZZ_SECONDS` seconds (default: `seconds`), with random changes from the seed
/// `FUZZ_SEED`. If `FUZZ_CORPUS` names a folder, the unchanged dumps are written there. Returns the number of inputs.
///
/// # Panics
/// Panics if a target panics or takes too long. The message contains the input and how to generate it again.
pub fn run(targets: &[Target], seconds: u64) -> u64 {
    run_on(&corpus(), "seed", targets, seconds)
}

/// Runs the targets as [`run`] does, with another corpus. The files of the corpus are called `name-0`, `name-1` and so
/// on.
///
/// # Panics
/// Panics as [`run`] does.
pub fn run_on(corpus: &[Vec<u8>], name: &str, targets: &[Target], seconds: u64) -> u64 {
    let (seconds, seed) = (number("FUZZ_SECONDS", seconds), number("FUZZ_SEED", 1));
    let mut rng = Rng::new(seed);
    if let Some(folder) = std::env::var_os("FUZZ_CORPUS") {
        let folder = PathBuf::from(folder);
        std::fs::create_dir_all(&folder).expect("a folder");
        for (i, bytes) in corpus.iter().enumerate() {
            std::fs::write(folder.join(format!("{name}-{i}")), bytes).expect("a written file");
        }
    }
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut runs = 0;
    while Instant::now() < end || runs < corpus.len() as u64 {
        let bytes = match corpus.get(runs as usize) {
            Some(whole) => whole.clone(),
            None => mutate(&mut rng, corpus),
        };
        for (name, target) in targets {
            let start = Instant::now();
            let outcome = catch_unwind(AssertUnwindSafe(|| target(&bytes)));
            let told = || format!("{name}, seed {seed}, run {runs}: {}", bytes.escape_ascii());
            assert!(outcome.is_ok(), "{}", told());
            let took = start.elapsed();
            assert!(took < SLOW, "{took:?} for {}", told());
        }
        runs += 1;
    }
    runs
}
