//! A histogram takes no memory for what is in the file: no more than 100 MB, however large the dump.

use std::fs;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use testdata::writer::{Elements, Gzip, HeapBuilder, Options, Root, compress};

/// What `histo` may take of memory of its own. Pages of the mapped file do not count: the system takes
/// them back when it needs them.
const MOST: u64 = 100_000_000;

/// Waits for the end and gives the most anonymous memory that was seen, in bytes.
fn most_anonymous(child: &mut Child) -> u64 {
    let status = format!("/proc/{}/status", child.id());
    let end = Instant::now() + Duration::from_secs(300);
    let mut most = 0;
    while Instant::now() < end {
        // The file has no such line once the process is gone.
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|l| l.strip_prefix("RssAnon:"));
        let kilobytes = line.and_then(|l| l.trim().trim_end_matches(" kB").parse::<u64>().ok());
        most = most.max(kilobytes.unwrap_or(0) * 1024);
        if let Some(status) = child.try_wait().expect("its state") {
            assert!(status.success(), "{status}");
            return most;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let _ = child.kill();
    let _ = child.wait();
    panic!("no end");
}

#[test]
fn a_histogram_takes_a_hundred_megabytes_at_most() {
    let mut heap = HeapBuilder::new(Options::default());
    for i in 0..115_000_u32 {
        let bytes = vec![7; 800 + i as usize % 200];
        let array = heap.add_primitive_array(Elements::Byte(bytes));
        heap.add_root(Root::JniGlobal { global_ref: 5 }, array);
    }
    let bytes = heap.build();
    assert!(bytes.len() as u64 > MOST, "{} bytes", bytes.len());
    let folder = tempfile::tempdir().expect("a folder");
    let blocks = Gzip::Blocks { bytes: 1 << 20 };
    for (name, gzip) in [
        ("plain.hprof", None),
        ("one.hprof.gz", Some(Gzip::Plain)),
        ("blocks.hprof.gz", Some(blocks)),
    ] {
        let file = folder.path().join(name);
        match gzip {
            None => fs::write(&file, &bytes),
            Some(gzip) => fs::write(&file, compress(&bytes, gzip).expect("gzip")),
        }
        .expect("a dump");
        let mut command = crate::support::heapdiff(folder.path(), &["histo", name, "--no-index"]);
        let mut child = command.stdout(Stdio::null()).spawn().expect("a run");
        let most = most_anonymous(&mut child);
        // Of a run that was seen at all.
        assert!(most > 0 && most < MOST, "{name}: {most} bytes");
    }
}
