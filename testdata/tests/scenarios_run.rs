//! Checks that each scenario behaves as the table of scenarios describes. The JVM's own histogram shows the leaked
//! class growing in every phase in `leak` mode, and nothing growing in `fixed` mode. Each scenario runs on one of the
//! installed JDKs: the first scenario on the first JDK, the second one on the next JDK, and so on. `cargo xtask
//! accuracy` runs each scenario on all JDKs.

use testdata::jvm::{Histogram, Jdk, JvmError, Selection};
use testdata::scenarios::{self, Growth, Mode, PHASES, Scenario};

/// Runs a program, and returns the histogram of live objects at the end of each phase. Fails if the program does not
/// end successfully.
fn run(scenario: &Scenario, jdk: &Jdk, mode: Mode) -> Result<Vec<Histogram>, JvmError> {
    let mut target = scenario.start(jdk, mode)?;
    let mut histograms = vec![target.histogram(Selection::Live)?];
    for phase in 2..=PHASES {
        target.advance(phase)?;
        let before = &histograms[histograms.len() - 1];
        let grows = mode == Mode::Leak || (phase as usize) < scenario.dumps;
        let histogram = target.settled_histogram(|after| grows || is_level(before, after))?;
        histograms.push(histogram);
    }
    assert!(target.finish()?, "{} ended badly", scenario.name);
    Ok(histograms)
}

/// True if the heap grew by at most 2 %.
fn is_level(before: &Histogram, after: &Histogram) -> bool {
    after.total_bytes() <= before.total_bytes() + before.total_bytes() / 50
}

fn accepts(expected: &str, class: &str) -> bool {
    match expected.strip_suffix('*') {
        Some(prefix) => class.starts_with(prefix),
        None => class == expected,
    }
}

/// Returns the number of instances or bytes of the leaked class, depending on the scenario's growth.
fn leaked(scenario: &Scenario, histogram: &Histogram) -> u64 {
    // The name of a hidden class ends with a number. The table of scenarios has `*` in place of this number.
    let all = histogram.classes.iter();
    let leaked = all.filter(|of| accepts(scenario.classes[0], &of.class));
    match scenario.growth {
        Growth::Instances(_) => leaked.map(|of| of.instances).sum(),
        Growth::Bytes(_) => leaked.map(|of| of.bytes).sum(),
    }
}

fn check(name: &str) {
    let scenario = scenarios::by_name(name).expect("the scenario is in the table");
    if scenario.libraries && scenarios::libraries().is_none() {
        return;
    }
    let (Growth::Instances(step) | Growth::Bytes(step)) = scenario.growth;
    let jdks = Jdk::all_for_scenarios().into_iter();
    let jdks: Vec<Jdk> = jdks.filter(|jdk| scenario.runs_on(jdk)).collect();
    let place = scenarios::ALL.iter().position(|s| s.name == name);
    let turn = place.unwrap_or(0) % jdks.len().max(1);
    for jdk in jdks.into_iter().skip(turn).take(1) {
        for mode in [Mode::Leak, Mode::Fixed] {
            let histograms = run(scenario, &jdk, mode)
                .unwrap_or_else(|error| panic!("{name} on JDK {}: {error}", jdk.version()));
            for (pair, dumps) in histograms.windows(2).zip(2..) {
                let (before, after) = (leaked(scenario, &pair[0]), leaked(scenario, &pair[1]));
                let told = format!(
                    "{name} {mode:?} on JDK {}: {before}, {after}",
                    jdk.version()
                );
                match mode {
                    // Accept growth that is smaller than expected by at most 1/100 of a step, because other code also
                    // creates and drops strings and similar objects.
                    Mode::Leak => assert!(after + step / 100 >= before + step, "{told}"),
                    Mode::Fixed => {
                        assert!(before.abs_diff(after) <= step / 20, "{told}");
                        assert!(
                            dumps < scenario.dumps || is_level(&pair[0], &pair[1]),
                            "{told}; heap {}, {}",
                            pair[0].total_bytes(),
                            pair[1].total_bytes()
                        );
                    }
                }
            }
        }
    }
}

/// Generates one test for each scenario, so that the tests run in parallel and the name of a failed test shows the
/// scenario.
macro_rules! scenarios {
    ($($name:ident)*) => {
        $(#[test] fn $name() { check(stringify!($name)); })*

        #[test]
        fn every_scenario_has_a_test() {
            let tested = [$(stringify!($name)),*];
            let table: Vec<&str> = scenarios::ALL.iter().map(|scenario| scenario.name).collect();
            assert_eq!(tested[..], table[..]);
        }
    };
}

scenarios! {
    session_registry static_list unbounded_cache slow_consumer listeners thread_local class_loaders
    captured_by_lambda tenant_map key_without_equals finalizer_backlog direct_buffers delete_on_exit
    growing_text tree_index queue_and_table weak_map_value_refers_to_key class_loader_thread_local
    cleaner_backlog timer_tasks cancelled_timeouts parked_virtual_threads buffer_slices sub_lists
    own_trie two_leaks two_indexes list_per_tenant nested_maps executor_queue pending_futures
    kept_exceptions metric_labels mutable_key shutdown_hooks beside_a_filling_cache
    caffeine_unbounded guava_unbounded expiry_without_size limits_that_bound_nothing eldest_never_removed weak_keys_that_live bounded_queue_of_lists lost_connections ring_of_lists unique_texts property_listeners log_handlers hidden_classes proxies event_bus weak_listener_held_by_lambda repeated_tasks chained_futures class_value loaders_of_one_class mapper_session skip_list enum_map bit_set undo_history nested_settings read_while_dumped_leak steady_leak_uneven_times sessions_with_attributes guava_multimap library_list own_table cancelled_contracts threads_that_wait
    classes_in_a_map classes_of_one_family open_chunks chain_beside_a_cache two_lists_of_one_class soft_values_strong_entries
    an_import_then_users slower_after_the_start limits_of_others
}
