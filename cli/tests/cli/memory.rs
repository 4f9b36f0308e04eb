//! Checks that a histogram needs at most 100 MB of memory, however large the dump is.

use std::fs;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use testdata::writer::{Elements, Gzip, HeapBuilder, Options, Root, compress};

/// Maximum anonymous memory of `histo`. Pages of the mapped file do not count, because the system takes them back when
/// it needs them.
const MOST: u64 = 100_000_000;

/// Waits until the process ends. Returns the maximum of its anonymous memory, measured from time to time, in bytes.
fn most_anonymous(child: &mut Child) -> u64 {
    let status = format!("/proc/{}/status", child.id());
    let end = Instant::now() + Duration::from_secs(300);
    let mut most = 0;
    while Instant::now() < end {
        // The status file of a process that has ended does not contain this line.
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
        // The memory was measured at least once during the run.
        assert!(most > 0 && most < MOST, "{name}: {most} bytes");
    }
}
