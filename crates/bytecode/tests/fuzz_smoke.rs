//! Runs the fuzz target for class files on a stable compiler, as `hprof/tests/fuzz_smoke.rs` does for dumps.

#![allow(clippy::print_stdout)]

use std::fs;

use testdata::jvm::Jdk;
use testdata::programs;

#[test]
fn no_class_file_does_harm() {
    let jdk = Jdk::all_for_scenarios();
    let jdk = jdk.first().expect("a JDK from 17 on");
    let classes = ["Hits.java", "Allocations.java", "Classes.java"];
    let mut corpus = Vec::new();
    for program in classes.map(programs::bytecode) {
        let mut folders = vec![jdk.compile(&program).expect("compiled classes")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                match fs::read(&path) {
                    Ok(bytes) => corpus.push(bytes),
                    Err(_) => folders.push(path),
                }
            }
        }
    }
    assert!(corpus.len() >= 5);
    let targets = [("class", heapdiff_bytecode::fuzz as fn(&[u8]))];
    let runs = testdata::hostile::run_on(&corpus, "class", &targets, 5);
    println!("{runs} inputs");
}
