//! Each control on each JDK keeps in every phase what the table says, by the JVM's own histogram.

use testdata::jvm::{Histogram, Jdk, JvmError, Selection};
use testdata::scenarios::{CONTROL_PHASES, CONTROLS, Control};

/// The live histogram at every phase, and whether the program then ends well.
fn run(control: &Control, jdk: &Jdk) -> Result<Vec<Histogram>, JvmError> {
    let mut target = control.start(jdk)?;
    let mut histograms = vec![target.histogram(Selection::Live)?];
    for phase in 2..=CONTROL_PHASES {
        target.advance(phase)?;
        histograms.push(target.histogram(Selection::Live)?);
    }
    assert!(target.finish()?, "{} ended badly", control.name);
    Ok(histograms)
}

#[test]
fn each_control_keeps_what_it_says() {
    for jdk in Jdk::all_for_scenarios() {
        for control in CONTROLS {
            let told = format!("{} on JDK {}", control.name, jdk.version());
            let histograms = run(control, &jdk).unwrap_or_else(|error| panic!("{told}: {error}"));
            let found: Vec<u64> = histograms
                .iter()
                .map(|h| h.instances(control.class))
                .collect();
            assert_eq!(found.len(), control.instances.len(), "{told}");
            for (found, expected) in found.iter().zip(control.instances) {
                assert!(
                    found.abs_diff(expected) <= expected / 20,
                    "{told}: {found}, {expected}"
                );
            }
            // What the class stands for is most of what changes in the heap.
            let totals: Vec<u64> = histograms.iter().map(Histogram::total_bytes).collect();
            let (half, last) = (totals[1], totals[3]);
            let grows = control.instances[3] > control.instances[1];
            assert!(grows || last <= half + half / 50, "{told}: heap {totals:?}");
        }
    }
}
