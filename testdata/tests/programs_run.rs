//! Checks that the programs for layouts and benchmarks run on each JDK.

use std::fs;
use std::path::Path;
use testdata::jvm::{DumpOptions, Jdk, JvmError, Launch, Selection};
use testdata::programs;

/// Checks that `LayoutZoo` changes nothing while it waits: the histograms before and after a dump are equal.
#[test]
fn the_layout_zoo_changes_nothing_while_it_waits() -> Result<(), JvmError> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    for jdk in Jdk::all_for_scenarios() {
        let classes = jdk.compile(&programs::layout_zoo())?;
        let launch = Launch::class(&jdk, classes, "LayoutZoo").flag("-Xmx128m");
        let mut target = launch.start()?;
        target.wait_ready(1)?;
        // The first diagnostic command makes the JVM load the classes that execute commands, so it runs before the
        // comparison.
        target.histogram(Selection::All)?;
        let before = target.histogram(Selection::All)?;
        let options = DumpOptions {
            selection: Selection::All,
            gzip: None,
        };
        let dump = folder.join(format!("zoo-{}.hprof", jdk.major()));
        target.dump(&dump, options)?;
        assert_eq!(before, target.histogram(Selection::All)?);
        assert_eq!(before.instances("LayoutZoo$LeafOfLeaf"), 1);
        assert_eq!(before.instances("zoo.Child215"), 9);
        fs::remove_file(&dump).expect("the dump was just made");
        target.advance(2)?;
        target.advance(3)?;
        assert!(target.finish()?);
    }
    Ok(())
}

#[test]
fn a_small_big_heap_grows_by_a_tenth() -> Result<(), JvmError> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    for jdk in Jdk::all_for_scenarios() {
        let classes = jdk.compile(&programs::big_heap())?;
        let [first, second] =
            ["one", "two"].map(|name| folder.join(format!("{name}-{}.hprof", jdk.major())));
        let launch = Launch::class(&jdk, classes, "BigHeap").flag("-Xmx256m");
        assert!(
            launch
                .arg("0.01")
                .arg(&first)
                .arg(&second)
                .start()?
                .finish()?
        );
        let [before, after] = [first, second].map(|dump| {
            let length = fs::metadata(&dump).expect("the program made it").len();
            fs::remove_file(&dump).expect("it was there");
            length
        });
        assert!((18_000_000..30_000_000).contains(&before), "{before}");
        assert!(
            after > before + before / 20 && after < before + before / 5,
            "{before}, {after}"
        );
    }
    Ok(())
}
