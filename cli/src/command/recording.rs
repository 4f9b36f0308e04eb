//! `heapdiff sites` for a JFR recording: live or allocated bytes by stack or class.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use heapdiff_diff::{Allocated, AllocatedLine};
use heapdiff_jfr::{
    Event, Jvm, LIVE_TABLE_FULL, MANY_OLD, MOST_LIVE, NameId, Recording, Sample, StackId,
};
use heapdiff_model::recording::{
    EventRow, RecordedClass, RecordedStack, RecordedTotals, RecordingInfo, RecordingReport,
};
use heapdiff_report::{RecordingView, Viewed};
use heapdiff_sites::{Estimate, Unseen};

use super::sites::Sites;
use crate::failure::{Failure, Result};
use crate::fits;
use crate::jfr;
use crate::job::Setup;

const ROWS: usize = 10;
/// Default number of classes. It is larger than the default number of stacks, because a class takes only one line.
const CLASSES: usize = 20;
/// Maximum number of threads that are named for one stack.
const THREADS: usize = 8;
const NS_PER_MS: i64 = 1_000_000;

/// The sum of the samples with the same stack and class.
#[derive(Clone, Debug, Default)]
struct Line {
    estimate: Estimate,
    first_ns: i64,
    last_ns: i64,
    threads: BTreeMap<NameId, u64>,
}

impl Line {
    fn add(&mut self, recording: &Recording, sample: &Sample) {
        let at = sample.allocated_ns;
        self.first_ns = match self.estimate.samples {
            0 => at,
            _ => self.first_ns.min(at),
        };
        self.last_ns = self.last_ns.max(at);
        self.estimate.add(&recording.weight(sample), sample.size);
        *self.threads.entry(sample.thread).or_default() += 1;
    }
}

/// The samples to report, and the name of the quantity that they measure.
struct Choice {
    event: Event,
    measure: &'static str,
}

/// Chooses the samples to report. With `allocated`, these are samples of allocations. Otherwise, these are samples of
/// live objects if the recording has them, or else samples of allocations. Samples in the JVM's list of old objects are
/// used only if they have stacks.
fn select_samples(
    recording: &Recording,
    path: &Path,
    allocated: bool,
    warnings: &mut Vec<String>,
) -> Result<Choice> {
    let has_stacks = |event| {
        let mut samples = recording.of(event);
        samples.any(|s| s.stack != StackId::default())
    };
    let choice = |event, measure| Choice { event, measure };
    if !allocated {
        if has_stacks(Event::Old) {
            return Ok(choice(Event::Old, "sampled"));
        }
        if recording.of(Event::Live).next().is_some() {
            return Ok(choice(Event::Live, "live"));
        }
        if recording.of(Event::Old).next().is_some() {
            let text = "the report shows allocations, because the live objects (jdk.OldObjectSample) were recorded without stacks; record with settings=profile";
            warnings.push(text.to_owned());
        }
    }
    let of_allocations = [Event::Allocation, Event::InBuffer, Event::Outside];
    let mut of_allocations = of_allocations.into_iter();
    match of_allocations.find(|&e| recording.of(e).next().is_some()) {
        Some(event) => Ok(choice(event, "allocated")),
        None => {
            let path = path.display();
            let message =
                format!("{path}: the recording contains neither allocations nor live objects");
            Err(Failure::usage(message).with_hint(
                "record them: jcmd PID JFR.start settings=profile, or async-profiler with -e alloc --live",
            ))
        }
    }
}

/// Returns warnings if the data on live objects in a recording is incomplete or lacks sizes. `samples` is the number of
/// all samples of `event`, including samples that do not match the focus.
fn doubts(event: Event, samples: usize, lacks_sizes: bool) -> Vec<String> {
    let mut doubts = Vec::new();
    if event == Event::Live && samples as u64 >= MOST_LIVE {
        doubts.push(LIVE_TABLE_FULL.to_owned());
    }
    if event != Event::Old {
        return doubts;
    }
    if samples as u64 >= MANY_OLD {
        let text = "the JVM's list of old objects (256 entries) may have been full: objects allocated late are under-represented";
        doubts.push(text.to_owned());
    }
    if lacks_sizes {
        let text = "this JVM does not record the sizes of old objects: each object counts as 16 bytes, and each array as the bytes of its elements";
        doubts.push(text.to_owned());
    }
    doubts
}

pub(crate) fn run(setup: &Setup, job: &Sites) -> Result<Viewed<RecordingReport, RecordingView>> {
    let path = &*job.dump;
    let focus = job.focus.as_ref();
    let recording = jfr::open(setup, path)?;
    let mut warnings = jfr::warnings(&recording);
    let choice = select_samples(&recording, path, job.allocated, &mut warnings)?;
    // Allocations in new TLABs and allocations outside of TLABs are recorded as two kinds of events. Their samples are
    // added up.
    let is_of = |sample: &&Sample| match choice.event {
        Event::InBuffer | Event::Outside => {
            matches!(sample.event, Event::InBuffer | Event::Outside)
        }
        event => sample.event == event,
    };
    // The JVM writes the list of old objects each time the recording is dumped. Only the last list is used.
    let last_look = recording.search_times().last().copied();
    let is_last =
        |sample: &&Sample| sample.event != Event::Old || Some(sample.time_ns) == last_look;
    let mut by_site: BTreeMap<(StackId, NameId), Line> = BTreeMap::new();
    let mut reported = 0;
    for sample in recording.samples.iter().filter(is_of).filter(is_last) {
        reported += 1;
        let site = by_site.entry((sample.stack, sample.class));
        site.or_default().add(&recording, sample);
    }
    let frames = recording.names.frames().iter();
    let texts: Vec<String> = frames.map(|f| jfr::frame(&recording, f)).collect();
    let class = |id: NameId| match &**recording.names.text(id) {
        "" => "(unknown class)",
        name => name,
    };
    if let Some(re) = focus {
        let frames: Vec<bool> = texts.iter().map(|t| re.is_match(t)).collect();
        by_site.retain(|(stack, name), _| {
            let stack = recording.names.stack(*stack);
            let mut own = stack.frames.iter();
            re.is_match(class(*name)) || own.any(|&f| frames.get(f as usize) == Some(&true))
        });
    }
    let mut sum = Estimate::default();
    for line in by_site.values() {
        sum.merge(&line.estimate);
    }
    // The probability that the JVM keeps an object in its list of old objects is unknown. So no confidence interval can
    // be computed.
    let ci95 = |of: &Estimate| (choice.measure != "sampled").then(|| of.ci95(Unseen::default()));
    warnings.extend(doubts(choice.event, reported, recording.lacks_sizes));
    let totals = RecordedTotals {
        stacks: by_site.len() as u64,
        samples: sum.samples,
        estimated_bytes: sum.bytes(),
        ci95: ci95(&sum),
    };
    let allocated = setup
        .output
        .format
        .shows_stacks()
        .then(|| all(&recording, &by_site, &texts));
    warnings.extend(focus.and_then(|focus| match &allocated {
        Some(allocated) => fits::frames(focus, allocated),
        None => by_site.is_empty().then(|| fits::no_match_warning(focus)),
    }));
    // A sample in the JVM's list of old objects shows which stack allocated an object that stays alive. The size of
    // this one object is not typical of the other objects of the stack. So stacks are sorted by their number of samples
    // and not by sizes.
    let weight = |of: &Estimate| match choice.measure {
        "sampled" => Reverse((of.samples, of.bytes())),
        _ => Reverse((of.bytes(), of.samples)),
    };
    let objects = |of: &Estimate| match choice.event {
        Event::Old | Event::Allocation => None,
        _ => Some(of.objects()),
    };
    let mut order: Vec<_> = if job.by_class() {
        Vec::new()
    } else {
        by_site.iter().collect()
    };
    order.sort_by_key(|((stack, class), line)| (weight(&line.estimate), *stack, *class));
    let mut of_classes: BTreeMap<&str, Estimate> = BTreeMap::new();
    if job.by_class() {
        for ((_, name), line) in &by_site {
            of_classes
                .entry(class(*name))
                .or_default()
                .merge(&line.estimate);
        }
    }
    let class_count = of_classes.len() as u64;
    let mut of_classes: Vec<(&str, Estimate)> = of_classes.into_iter().collect();
    // The sort is stable: classes of equal weight stay in the order of their names.
    of_classes.sort_by_key(|(_, estimate)| weight(estimate));
    let of_classes = of_classes.iter().take(setup.rows(CLASSES));
    let classes = of_classes.map(|(class, estimate)| RecordedClass {
        class: (*class).to_owned(),
        samples: estimate.samples,
        estimated_bytes: estimate.bytes(),
        ci95: ci95(estimate),
        estimated_objects: objects(estimate),
    });
    let ms = |ns: i64| {
        let ns = ns.saturating_sub(recording.from_ns).max(0);
        (ns / NS_PER_MS).unsigned_abs()
    };
    let stacks = order
        .into_iter()
        .take(setup.rows(ROWS))
        .map(|(&(stack, name), line)| RecordedStack {
            frames: jfr::frames(&recording, stack, &texts),
            class: class(name).to_owned(),
            samples: line.estimate.samples,
            estimated_bytes: line.estimate.bytes(),
            ci95: ci95(&line.estimate),
            estimated_objects: objects(&line.estimate),
            first_ms: ms(line.first_ns),
            last_ms: ms(line.last_ns),
            threads: threads(&recording, line),
        })
        .collect();
    let report = RecordingReport {
        schema: RecordingReport::SCHEMA,
        recording: info(path, &recording, warnings),
        event: choice.event.name(),
        measure: choice.measure,
        by: if job.by_class() { "class" } else { "stack" },
        focus: focus.map(ToString::to_string),
        totals,
        stacks,
        classes: classes.collect(),
    };
    Ok(Viewed {
        data: report,
        view: job.view(setup, allocated),
        more: RecordingView { class_count },
    })
}

fn threads(recording: &Recording, line: &Line) -> Vec<String> {
    let mut threads: Vec<(u64, &str)> = line
        .threads
        .iter()
        .map(|(&thread, &samples)| (samples, &**recording.names.text(thread)))
        .filter(|(_, name)| !name.is_empty())
        .collect();
    threads.sort_by_key(|&(samples, name)| (Reverse(samples), name));
    threads.truncate(THREADS);
    threads.into_iter().map(|t| t.1.to_owned()).collect()
}

fn info(path: &Path, recording: &Recording, warnings: Vec<String>) -> RecordingInfo {
    let ms = |ns: i64| u64::try_from(ns / NS_PER_MS).unwrap_or(0);
    let mut events: BTreeMap<Event, u64> = BTreeMap::new();
    for sample in &recording.samples {
        *events.entry(sample.event).or_default() += 1;
    }
    let gcs: BTreeSet<i64> = recording.collections.iter().map(|c| c.gc_id).collect();
    RecordingInfo {
        path: path.display().to_string(),
        bytes: std::fs::metadata(path).map_or(0, |m| m.len()),
        jvm: recording.jvm.as_ref().map(Jvm::title),
        pid: recording
            .jvm
            .as_ref()
            .and_then(|j| u64::try_from(j.pid).ok()),
        from_ms: ms(recording.from_ns),
        to_ms: ms(recording.to_ns),
        chunks: recording.chunks,
        collections: gcs.len() as u64,
        interval_bytes: recording.interval,
        events: events
            .into_iter()
            .map(|(event, count)| EventRow {
                name: event.name(),
                count,
            })
            .collect(),
        partial: recording.is_partial(),
        warnings,
    }
}

/// Returns the estimated bytes and objects of each pair of stack and class, for profiles and flame graphs.
fn all(
    recording: &Recording,
    by_site: &BTreeMap<(StackId, NameId), Line>,
    texts: &[String],
) -> Allocated {
    let mut classes: Vec<NameId> = by_site.keys().map(|k| k.1).collect();
    classes.sort_unstable();
    classes.dedup();
    let lines = by_site.iter().map(|((stack, class), line)| AllocatedLine {
        frames: recording.names.stack(*stack).frames.to_vec(),
        class: u32::try_from(classes.binary_search(class).unwrap_or(0)).unwrap_or(0),
        samples: vec![line.estimate.samples],
        objects: vec![line.estimate.objects()],
        bytes: vec![line.estimate.bytes()],
    });
    Allocated {
        lines: lines.collect(),
        frames: texts.to_vec(),
        classes: classes
            .iter()
            .map(|&c| recording.names.text(c).to_string())
            .collect(),
        merged: 0,
        interval_bytes: recording.interval.unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a recording with a sample for each of these events and stacks.
    fn recording(samples: &[(Event, u32)]) -> Recording {
        let sample = |&(event, stack): &(Event, u32)| Sample {
            event,
            time_ns: 5,
            allocated_ns: 3,
            class: NameId(0),
            stack: StackId(stack),
            thread: NameId(0),
            size: 16,
            weight: 16,
            elements: None,
            chain: heapdiff_jfr::ChainId(0),
        };
        let mut recording = Recording::default();
        recording.samples = samples.iter().map(sample).collect();
        recording
    }

    #[test]
    fn the_event_of_a_report_is_chosen_and_named() {
        let told = |samples: &[(Event, u32)], allocated: bool| {
            let mut warnings = Vec::new();
            let path = Path::new("r.jfr");
            let choice = select_samples(&recording(samples), path, allocated, &mut warnings);
            (choice.map(|c| (c.event, c.measure)), warnings.join("; "))
        };
        let (old, made) = ((Event::Old, 0), (Event::Allocation, 1));
        let (choice, said) = told(&[old, made], false);
        assert_eq!(choice.unwrap(), (Event::Allocation, "allocated"));
        let without = "(jdk.OldObjectSample) were recorded without stacks";
        assert!(said.contains(without), "{said}");
        for (samples, allocated, select_samples) in [
            ([(Event::Old, 1), made], false, (Event::Old, "sampled")),
            ([(Event::Live, 1), made], false, (Event::Live, "live")),
            ([old, made], true, (Event::Allocation, "allocated")),
        ] {
            let (choice, said) = told(&samples, allocated);
            assert_eq!(choice.unwrap(), select_samples);
            assert!(!said.contains("were recorded without stacks"), "{said}");
        }
        let nothing = told(&[], false).0.unwrap_err();
        let message = "r.jfr: the recording contains neither allocations nor live objects";
        let hint = "record them: jcmd PID JFR.start settings=profile, or async-profiler with -e alloc --live";
        assert_eq!(nothing.message, message);
        assert_eq!(nothing.hint.as_deref(), Some(hint));
    }

    #[test]
    fn limits_of_the_list_of_old_objects_are_reported() {
        let full = "the JVM's list of old objects (256 entries) may have been full";
        let sizes = "this JVM does not record the sizes of old objects";
        let begins = |event, samples, lacks_sizes, words: &[&str]| {
            let doubts = doubts(event, samples, lacks_sizes);
            let fits = |(doubt, words): (&String, &&str)| doubt.starts_with(*words);
            assert!(
                doubts.len() == words.len() && doubts.iter().zip(words).all(fits),
                "{doubts:?}"
            );
        };
        begins(Event::Old, 128, true, &[full, sizes]);
        begins(Event::Old, 128, false, &[full]);
        begins(Event::Old, 127, true, &[sizes]);
        begins(Event::Old, 127, false, &[]);
        begins(Event::Live, 1023, true, &[]);
        let full = "the recorder's table of live objects was full (1,024 entries): live bytes are a lower bound";
        begins(Event::Live, 1024, true, &[full]);
    }
}
