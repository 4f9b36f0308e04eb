//! Loads, starts and stops the agent, at the start of the JVM or on request.

use std::sync::atomic::Ordering::{Acquire, Relaxed};

use heapdiff_sites::{Counter, attach};

use super::{
    ATTACHED, Agent, COUNTERS, GIVING_UP, LAST_TICK, MOST_ATTACHED, OFF, agent, refs, set_current,
};
use crate::counting;
use crate::ground::Ground;
use crate::java;
use crate::jvmti::calls::{Env, JniError};
use crate::jvmti::sys::error;
use crate::jvmti::{Environment, Monitor, define_labels};
use crate::log::{Level, print_line, set_level, set_panic_hook};
use crate::options::Options;
use crate::wakeup::NAME;

/// Loads the agent before the JVM is initialized. Returns one of [`attach`]'s codes.
pub(crate) fn load(environment: Option<Environment>, options: &str) -> i32 {
    let loaded = loadable(environment, options).and_then(|(environment, options)| {
        // Set the interval as early as possible. When a thread is created, it chooses the distance to its first sample
        // at random, based on the interval. It does not choose again before that sample. So the first sample of a
        // thread that was created earlier would follow the JVM's default interval.
        let monitors = arm_for(&environment, &options, true)?;
        // Two threads cannot run this code at the same time, because the JVM gives the capability to sample to only one
        // environment.
        match set_current(Agent::new(environment.into_permanent(), options, monitors)) {
            Some(_) => Ok(attach::DONE),
            None => Err(attach::ALREADY_LOADED),
        }
    });
    loaded.unwrap_or_else(|code| code)
}

/// Parses the options and requests the capabilities for sampling. If this fails, prints the reason and disposes of the
/// environment.
fn loadable(
    environment: Option<Environment>,
    options: &str,
) -> std::result::Result<(Environment, Options), i32> {
    let Some(environment) = environment else {
        print_line(
            Level::Error,
            "not started: this JVM has no JVMTI 11; JDK 11 or later is needed",
        );
        return Err(attach::FAILED);
    };
    set_panic_hook();
    if agent().is_some() {
        print_line(
            Level::Warn,
            "the agent is already loaded and keeps its options",
        );
        return Err(attach::ALREADY_LOADED);
    }
    let options = checked(options).ok_or(attach::BAD_OPTIONS)?;
    match environment.add_sampling_capabilities() {
        Ok(()) => Ok((environment, options)),
        Err(failed) if failed.0 == error::NOT_AVAILABLE => {
            print_line(
                Level::Error,
                "not started: another agent already samples allocations in this JVM, and only one agent can (JVMTI error 98)",
            );
            Err(attach::OTHER_SAMPLER)
        }
        Err(failed) => {
            print_line(
                Level::Error,
                format_args!(
                    "not started: the JVM refused a capability that the agent needs ({failed})"
                ),
            );
            Err(attach::FAILED)
        }
    }
}

/// Sets the interval, enables events, and creates the monitors. The events are the JVM's end and, if `at_load` is true,
/// the end of its initialization.
fn arm_for(
    environment: &Environment,
    options: &Options,
    at_load: bool,
) -> std::result::Result<[Monitor; 3], i32> {
    environment
        .set_interval(options.sampling.interval)
        .and_then(|()| environment.arm(at_load))
        .and_then(|()| monitors(environment))
        .map_err(|failed| {
            print_line(
                Level::Error,
                format_args!("not started: setup failed ({failed})"),
            );
            attach::FAILED
        })
}

/// Creates the monitors of the agent's threads.
fn monitors(environment: &Environment) -> crate::jvmti::Result<[Monitor; 3]> {
    let monitor = || environment.monitor(NAME);
    Ok([monitor()?, monitor()?, monitor()?])
}

/// Parses and checks the options. If they are invalid, prints the reason.
fn checked(options: &str) -> Option<Options> {
    match Options::parse(options) {
        Ok(options) if !options.embed && options.trace.is_none() => print_line(
            Level::Error,
            "not started: with embed=off, the agent stores samples in a trace only; add trace=FILE",
        ),
        Ok(options) => {
            set_level(options.log);
            return Some(options);
        }
        Err(error) => print_line(Level::Error, format_args!("not started: {error}")),
    }
    None
}

/// Handles a request in a running JVM, such as the request to load and start the agent. Returns one of [`attach`]'s
/// codes.
///
/// Objects in the Java heap are created before anything else changes. So in a full heap the request fails without side
/// effects, and the user can try again.
pub(crate) fn load_and_start(env: &Env<'_>, environment: Environment, options: &str) -> i32 {
    if options == attach::DETACH {
        return detach(env);
    }
    if options == attach::STATUS {
        return state();
    }
    let is_on = agent().is_some() && !OFF.load(Relaxed);
    let added = options.strip_prefix(attach::ADD);
    let changed = options.strip_prefix(attach::CHANGE);
    let is_change = added.is_some() || changed.is_some();
    let options = added.or(changed).unwrap_or(options);
    if let Some(before) = agent()
        && (is_change || !is_on)
    {
        return match added.filter(|_| is_on) {
            Some(more) => restart_with(env, &environment, before, &before.options.with(more)),
            None => restart_with(env, &environment, before, options),
        };
    }
    let started = loadable(Some(environment), options).and_then(|(environment, options)| {
        let ground = ground(env, &options, "not started")?;
        let monitors = arm_for(&environment, &options, false)?;
        let agent = set_current(Agent::new(environment.into_permanent(), options, monitors));
        Ok(start(
            env,
            agent.ok_or(attach::ALREADY_LOADED)?,
            ground,
            false,
        ))
    });
    started.unwrap_or_else(|code| code)
}

/// Creates the agent's objects in the Java heap. If this fails, prints a message that begins with `so` and contains the
/// reason.
fn ground<'local>(
    env: &Env<'local>,
    options: &Options,
    so: &str,
) -> std::result::Result<Ground<'local>, i32> {
    let made = refs(env, options).and_then(|refs| Ground::make(env, options, refs));
    made.map_err(|why| {
        print_line(Level::Error, format_args!("{so}: {why}"));
        match why {
            JniError::HeapFull => attach::HEAP_FULL,
            _ => attach::FAILED,
        }
    })
}

/// Returns the status code for the agent's current activities.
fn state() -> i32 {
    let samples = agent().filter(|_| !OFF.load(Relaxed));
    let traces = samples.is_some_and(|agent| agent.trace.is_some());
    let bits = [
        (samples.is_some(), attach::SAMPLES),
        (counting::has_hooks(), attach::COUNTS),
        (traces, attach::TRACES),
    ];
    let bits = bits.iter().filter(|(is_on, _)| *is_on);
    attach::STATE + bits.map(|(_, bit)| bit).sum::<i32>()
}

/// Stops sampling. Readers of later dumps find no data of the agent.
fn detach(env: &Env<'_>) -> i32 {
    match agent() {
        None => attach::DETACHED_BEFORE,
        Some(_) if OFF.load(Relaxed) => attach::DETACHED_BEFORE,
        Some(agent) => {
            agent.detach(env);
            let [recorded, dropped] =
                [Counter::Recorded, Counter::DroppedFull].map(|c| COUNTERS.get(c));
            print_line(
                Level::Debug,
                format_args!(
                    "stopped: {recorded} samples recorded, {dropped} dropped because no slot was free"
                ),
            );
            attach::DETACHED
        }
    }
}

/// Stops the current agent `before` and starts a new agent with other options. The JVM gives the capability to sample
/// to only one JVMTI environment. So the new agent samples with the first agent's environment, and the new
/// `environment` only creates monitors.
fn restart_with(env: &Env<'_>, environment: &Environment, before: &Agent, options: &str) -> i32 {
    let Some(options) = checked(options) else {
        return attach::BAD_OPTIONS;
    };
    if GIVING_UP.is_requested() {
        print_line(
            Level::Error,
            "not started: the agent stopped in this JVM after internal errors; restart the JVM to use it again",
        );
        return attach::FAILED;
    }
    let was_off = OFF.load(Relaxed);
    let so = if was_off {
        "not started"
    } else {
        "options not changed"
    };
    let refused = |so| {
        print_line(
            Level::Error,
            format_args!("{so}: the agent cannot start again in this JVM"),
        );
        attach::FAILED
    };
    if ATTACHED.load(Acquire) >= MOST_ATTACHED {
        return refused(so);
    }
    let ground = match ground(env, &options, so) {
        Ok(ground) => ground,
        Err(code) => return code,
    };
    // Monitors are never freed, so create them only when they are needed.
    let Ok(monitors) = monitors(environment) else {
        return refused(so);
    };
    before.detach(env);
    // A running thread of the old agent would overwrite state that the new agent uses, too: the JVM's sampling interval
    // and the agent's data in the Java heap.
    if !before.has_ended() {
        print_line(
            Level::Error,
            "the agent stopped sampling, but its thread still runs; run the command again",
        );
        return attach::FAILED;
    }
    COUNTERS.reset();
    let jvmti = before.jvmti;
    if let Err(failed) = jvmti.set_interval(options.sampling.interval) {
        print_line(
            Level::Error,
            format_args!("not started: setup failed ({failed})"),
        );
        return attach::FAILED;
    }
    let Some(agent) = set_current(Agent::new(jvmti, options, monitors)) else {
        return refused("not started");
    };
    OFF.store(false, Relaxed);
    match start(env, agent, ground, false) {
        attach::DONE if !was_off => attach::CHANGED,
        other => other,
    }
}

/// Called when the JVM is initialized.
pub(crate) fn start_with_jvm(env: &Env<'_>) {
    let Some(agent) = agent() else {
        return;
    };
    // Do not start if the options were changed, or the agent was stopped, before the JVM was initialized.
    if agent.place > 0 || OFF.load(Relaxed) {
        return;
    }
    match ground(env, &agent.options, "not started") {
        Ok(ground) => _ = start(env, agent, ground, true),
        Err(_) => agent.detach(env),
    }
}

/// Starts sampling in an initialized JVM. If the options set a delay, starts the delay. Returns one of [`attach`]'s
/// codes.
fn start(env: &Env<'_>, agent: &'static Agent, ground: Ground<'_>, at_startup: bool) -> i32 {
    match agent.start(env, ground, at_startup) {
        Ok(()) => {
            if let Err(why) = define_labels(env, java::LABELS) {
                print_line(
                    Level::Warn,
                    format_args!(
                        "samples have no labels: the class heapdiff.Labels cannot be defined ({why})"
                    ),
                );
            }
            let given = &agent.options.given;
            print_line(
                Level::Debug,
                format_args!("started with options \"{given}\""),
            );
            attach::DONE
        }
        Err(why) => {
            agent.detach(env);
            print_line(Level::Error, format_args!("not started: {why}"));
            attach::FAILED
        }
    }
}

/// Called when the JVM is about to end.
pub(crate) fn stop(env: &Env<'_>) {
    OFF.store(true, Relaxed);
    if let Some(agent) = agent() {
        if let Some(guard) = &agent.guard {
            guard.before_end();
        }
        agent.jvmti.disable();
        agent.wakeup.stop();
        let running = agent.running.borrow();
        if let Some(running) = &running {
            agent.work(running).flush(env);
        }
        if let Some(trace) = &agent.trace
            && running.is_some()
        {
            trace.wakeup.stop();
            let done = || trace.done.load(Acquire);
            trace.wakeup.wait_until(done, LAST_TICK);
        }
    }
}
