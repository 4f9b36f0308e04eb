//! Runs each control, and checks its number of instances in every phase against the table of controls. The JVM's own
//! histogram gives the number. Each control runs on one of the installed JDKs: the first control on the first JDK, the
//! second one on the next JDK, and so on. `cargo xtask accuracy` runs each control on all JDKs.

use testdata::jvm::{Histogram, Jdk, JvmError, Selection};
use testdata::scenarios::{CONTROL_PHASES, CONTROLS, Control, libraries};

/// Runs a program, and returns the histogram of live objects at the end of each phase. Fails if the program does not
/// end successfully.
fn run(control: &Control, jdk: &Jdk) -> Result<Vec<Histogram>, JvmError> {
    let mut target = control.start(jdk)?;
    let mut histograms = vec![target.histogram(Selection::Live)?];
    for phase in 2..=CONTROL_PHASES {
        target.advance(phase)?;
        let is_last = phase == CONTROL_PHASES;
        let is_settled = |last: &Histogram| !is_last || is_level(control, &histograms[1], last);
        let histogram = target.settled_histogram(is_settled)?;
        histograms.push(histogram);
    }
    assert!(target.finish()?, "{} ended badly", control.name);
    Ok(histograms)
}

/// True if the control is meant to grow from the second phase to the last, or if its whole heap grew by at most 2 %. So
/// a control whose counted instances do not grow must not accumulate other objects.
fn is_level(control: &Control, half: &Histogram, last: &Histogram) -> bool {
    control.instances[3] > control.instances[1]
        || last.total_bytes() <= half.total_bytes() + half.total_bytes() / 50
}

fn check(name: &str) {
    let control = CONTROLS.iter().find(|control| control.name == name);
    let control = control.expect("the control is in the table");
    if control.libraries && libraries().is_none() {
        return;
    }
    let jdks = Jdk::all_for_scenarios();
    let place = CONTROLS.iter().position(|control| control.name == name);
    let turn = place.unwrap_or(0) % jdks.len().max(1);
    for jdk in jdks.into_iter().skip(turn).take(1) {
        let told = format!("{name} on JDK {}", jdk.version());
        let histograms = run(control, &jdk).unwrap_or_else(|error| panic!("{told}: {error}"));
        for (histogram, expected) in histograms.iter().zip(control.instances) {
            let found = histogram.instances(control.class);
            let is_right = found.abs_diff(expected) <= expected / 20;
            assert!(is_right, "{told}: {found}, not {expected}");
        }
        let (half, last) = (&histograms[1], &histograms[3]);
        assert!(
            is_level(control, half, last),
            "{told}: heap {}, {}",
            half.total_bytes(),
            last.total_bytes()
        );
    }
}

/// Generates one test for each control, so that the tests run in parallel and the name of a failed test shows the
/// control.
macro_rules! controls {
    ($($name:ident)*) => {
        $(#[test] fn $name() { check(stringify!($name)); })*

        #[test]
        fn every_control_has_a_test() {
            let tested = [$(stringify!($name)),*];
            let table: Vec<&str> = CONTROLS.iter().map(|control| control.name).collect();
            assert_eq!(tested[..], table[..]);
        }
    };
}

controls! {
    lru_filling soft_cache weak_cache pool_to_its_cap churn class_loading warming_up table_loaded_once
    sawtooth thread_pool_to_its_cap expiring_sessions
    caffeine_bounded caffeine_weak_keys caffeine_expiring guava_bounded guava_soft_values full_cache doubled_load turnover two_runs two_jdks mapped_files ring_buffer undo_bounded read_while_dumped hidden_classes_renewed redeployed scheduled_level futures_in_flight reservoirs time_window uneven_times idle garbage full_queue session_store rehash weak_listeners peak direct_buffer_pool
    soft_loaders slots lent_buffers queued_soft_values short_end noisy_cache
}
