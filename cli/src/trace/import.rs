//! `heapdiff trace import`: flight recordings as a trace.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use heapdiff_jfr::{Event, NameId, Recording, Sample, StackId, State};
use heapdiff_trace::{
    Activity, Amount, Collection, FrameName, Limits, Names, RECORDING, Run, Tick, TraceError,
    Writer, Written,
};
use heapdiff_units::{Span, counted};

use crate::command::recording::MANY_OLD;
use crate::failure::{Exit, Failure, Result, plain};
use crate::interrupt::{self, Unfinished};
use crate::job::Import;
use crate::messages;
use crate::recorded;
use crate::write::failed;

const NS_PER_MS: i64 = 1_000_000;
/// Ticks, unless their length is given; and at most.
const TICKS: i64 = 3600;
const MOST_TICKS: i64 = 1 << 20;

/// Makes the trace and says what it holds.
pub(crate) fn import(import: &Import) -> Result<Exit> {
    interrupt::handle();
    let output = &import.output;
    let shown = output.display();
    if output.exists() && !import.force {
        let message = format!("-o {shown}: exists already");
        return Err(Failure::usage(message).with_hint("--force replaces it"));
    }
    if output.is_dir() {
        return Err(Failure::usage(format!("-o {shown}: is a directory")));
    }
    let mut log = output.as_os_str().to_owned();
    log.push("-wal");
    let log = PathBuf::from(log);
    if fs::metadata(&log).is_ok_and(|log| log.len() > 0) {
        // It would be taken for the new file's.
        let message = format!(
            "-o {shown}: {} has what was not written to it yet",
            log.display()
        );
        return Err(
            Failure::usage(message).with_hint("a JVM writes to it, or did until it was killed")
        );
    }
    let recording = read(import)?;
    if !import.quiet {
        for warning in recorded::warnings(&recording) {
            messages::said(&format!("warning: {warning}"));
        }
    }
    let ticks = Ticks::of(&recording, import.tick)?;
    let slices = Slices::of(&recording, &ticks);
    write(output, import, &recording, &ticks, &slices)?;
    if !import.quiet {
        messages::said(&format!(
            "{} from {}: {} of {}, {}, {}",
            shown,
            counted(import.recordings.len() as u64, "recording"),
            counted(ticks.count.unsigned_abs(), "tick"),
            Span(Duration::from_millis(ticks.length_ms.unsigned_abs())),
            counted(recording.samples.len() as u64, "sample"),
            counted(recording.collections.len() as u64, "collection"),
        ));
    }
    Ok(Exit::Done)
}

/// All recordings together.
fn read(import: &Import) -> Result<Recording> {
    let mut all = Recording::default();
    let mut first = None;
    for path in &import.recordings {
        all.add(path).map_err(|e| recorded::failure(path, &e))?;
        let jvm = all.jvm.as_ref().map(|j| (j.pid, j.start_ms));
        if first.is_some_and(|first| jvm.is_some_and(|jvm| jvm != first)) {
            let message = format!(
                "{}: recorded by another JVM than the one before it",
                path.display()
            );
            return Err(
                Failure::usage(message).with_hint("import each JVM's to a trace of its own")
            );
        }
        first = first.or(jvm);
    }
    if all.samples.is_empty() && all.heap.is_empty() {
        let message = "no event tells of allocations, live objects or the heap";
        return Err(Failure::usage(message)
            .with_hint("record with settings=profile, or with async-profiler's alloc and live"));
    }
    Ok(all)
}

/// The slices of a recording's time.
struct Ticks {
    from_ns: i64,
    length_ms: i64,
    count: i64,
}

impl Ticks {
    fn of(recording: &Recording, length: Option<Span>) -> Result<Self> {
        let span_ms = recording.to_ns.saturating_sub(recording.from_ns) / NS_PER_MS + 1;
        let length_ms = match length {
            Some(length) => i64::try_from(length.0.as_millis()).unwrap_or(i64::MAX),
            // Whole seconds.
            None => (span_ms / (TICKS * 1000) + 1).saturating_mul(1000),
        };
        let count = (span_ms / length_ms).saturating_add(1);
        if count > MOST_TICKS {
            let message =
                format!("--tick would make {count} ticks, and at most {MOST_TICKS} are possible");
            return Err(Failure::usage(message));
        }
        Ok(Self {
            from_ns: recording.from_ns,
            length_ms,
            count,
        })
    }

    /// The tick that a time is in; those before the first are in it, those behind the last in that.
    fn at(&self, time_ns: i64) -> i64 {
        let ms = time_ns.saturating_sub(self.from_ns) / NS_PER_MS;
        (ms / self.length_ms).clamp(0, self.count - 1)
    }
}

type Site = (NameId, StackId);

/// What happened at the sites, by tick: only where something did.
struct Slices {
    activity: Vec<(i64, Activity)>,
}

impl Slices {
    fn of(recording: &Recording, ticks: &Ticks) -> Self {
        let mut allocated: BTreeMap<(i64, Site), Amount> = BTreeMap::new();
        // Where the JVM writes its buffers as well, samples have all of it.
        let has_samples = recording.of(Event::Allocation).next().is_some();
        for sample in &recording.samples {
            let is_counted = match sample.event {
                Event::Old | Event::Live => false,
                Event::Allocation => true,
                Event::InBuffer | Event::Outside => !has_samples,
            };
            if is_counted {
                let at = (ticks.at(sample.time_ns), (sample.class, sample.stack));
                add(allocated.entry(at).or_default(), recording, sample);
            }
        }
        let live = lives(recording, ticks);
        let mut rows: Vec<(i64, Site)> = allocated.keys().chain(live.keys()).copied().collect();
        rows.sort_unstable();
        rows.dedup();
        // A row is all there is of a site at a tick: what is alive stands in it, changed or not.
        let mut now: BTreeMap<Site, Live> = BTreeMap::new();
        let activity = rows.into_iter().map(|(tick, site)| {
            let now = now.entry(site).or_default();
            if let Some(&live) = live.get(&(tick, site)) {
                *now = live;
            }
            let activity = Activity {
                class: site.0.0,
                stack: site.1.0,
                allocated: allocated.get(&(tick, site)).copied().unwrap_or_default(),
                live: now.amount,
                live_variance: now.variance,
                ..Activity::default()
            };
            (tick, activity)
        });
        Self {
            activity: activity.collect(),
        }
    }
}

fn add(amount: &mut Amount, recording: &Recording, sample: &Sample) {
    let weight = recorded::weight(recording, sample);
    amount.samples += 1;
    amount.objects += weight.objects;
    amount.bytes += weight.bytes;
}

/// What is alive at a site.
#[derive(Clone, Copy, Default, PartialEq)]
struct Live {
    amount: Amount,
    variance: f64,
}

/// What is alive at the ends of ticks, where it changes.
///
/// It is known of the moments at which it was looked for. At a tick's end it is what the next look found, as far as
/// that was allocated by then; behind the last look, what that found.
fn lives(recording: &Recording, ticks: &Ticks) -> BTreeMap<(i64, Site), Live> {
    let old = recording.of(Event::Old).next().is_some();
    let mut looks: BTreeMap<i64, Vec<&Sample>> = BTreeMap::new();
    for sample in recording.samples.iter().filter(|s| s.event.is_of_live()) {
        match (old, sample.event) {
            (true, Event::Old) => looks.entry(sample.time_ns).or_default().push(sample),
            // async-profiler looks once, at the end, and takes some time for it.
            (false, Event::Live) => looks.entry(i64::MAX).or_default().push(sample),
            _ => {}
        }
    }
    let mut changes: BTreeMap<(i64, Site), Live> = BTreeMap::new();
    let mut now: BTreeMap<Site, Live> = BTreeMap::new();
    let mut from = 0;
    let last = looks.len().saturating_sub(1);
    for (number, (time, mut found)) in looks.into_iter().enumerate() {
        let to = match number == last {
            true => ticks.count - 1,
            false => ticks.at(time),
        };
        // Two looks within a tick: the later one counts.
        if to < from {
            continue;
        }
        found.sort_by_key(|s| s.allocated_ns);
        let mut found = found.into_iter().peekable();
        let mut next: BTreeMap<Site, Live> = BTreeMap::new();
        let mut touched: Vec<Site> = Vec::new();
        let mut tick = from;
        while tick <= to {
            touched.clear();
            if tick == from {
                touched.extend(now.keys());
            }
            while let Some(sample) =
                found.next_if(|s| ticks.at(s.allocated_ns) <= tick || tick == to)
            {
                let site = (sample.class, sample.stack);
                let live = next.entry(site).or_default();
                add(&mut live.amount, recording, sample);
                live.variance += recorded::weight(recording, sample).bytes_variance;
                touched.push(site);
            }
            touched.sort_unstable();
            touched.dedup();
            for &site in &touched {
                let live = next.get(&site).copied().unwrap_or_default();
                if tick > from || now.get(&site) != Some(&live) {
                    changes.insert((tick, site), live);
                }
            }
            // The next tick in which anything was allocated that is alive.
            tick = match found.peek() {
                Some(sample) => ticks.at(sample.allocated_ns).clamp(tick + 1, to),
                None => to + 1,
            };
        }
        now = next;
        from = to + 1;
    }
    changes
}

/// Names by the recording's numbers.
struct Recorded<'a>(&'a Recording);

impl Names for Recorded<'_> {
    fn class(&self, class: u32) -> Option<Arc<str>> {
        let name = self.0.names.text(NameId(class));
        (!name.is_empty()).then(|| Arc::clone(name))
    }

    fn stack(&self, stack: u32) -> (Vec<FrameName>, bool) {
        let names = &self.0.names;
        let stack = names.stack(StackId(stack));
        let frames = stack
            .frames
            .iter()
            .filter_map(|&f| names.frames().get(f as usize));
        let frames = frames.map(|frame| FrameName {
            class: Arc::clone(names.text(frame.class)),
            method: Arc::clone(names.text(frame.method)),
            file: None,
            line: frame.line,
        });
        (frames.collect(), stack.is_cut)
    }
}

/// Writes the trace in a folder beside its place, and gives it its name when it is whole.
fn write(
    output: &Path,
    import: &Import,
    recording: &Recording,
    ticks: &Ticks,
    slices: &Slices,
) -> Result<()> {
    let shown = output.display().to_string();
    let io = |e: &io::Error| failed(&shown, e);
    let parent = output.parent().filter(|p| !p.as_os_str().is_empty());
    let (unfinished, folder) = Unfinished::new(|| {
        let folder = tempfile::Builder::new()
            .prefix(".heapdiff-")
            .tempdir_in(parent.unwrap_or_else(|| Path::new(".")))?;
        Ok((folder.path().to_path_buf(), folder))
    })
    .map_err(|e| io(&e))?;
    let path = folder.path().join("trace.db");
    let trace = |e: TraceError| Failure {
        exit: Exit::Usage,
        message: format!("cannot write {shown}: {e}"),
        hint: None,
    };
    let limits = Limits {
        retain: Duration::from_secs(u32::MAX.into()),
        max_bytes: u64::MAX,
    };
    let run = run(import, recording);
    let mut writer = Writer::create(&path, &run, limits).map_err(trace)?;
    let mut machine = Machine::new(recording, ticks);
    let mut rows = slices.activity.iter().peekable();
    for number in 0..ticks.count {
        let mut tick = machine.tick(number);
        while let Some((_, activity)) = rows.next_if(|(at, _)| *at <= number) {
            tick.samples += activity.allocated.samples;
            tick.sites.push(*activity);
        }
        if number == 0 {
            tick.notes = said(import, recording);
        }
        match writer
            .tick(&Recorded(recording), &(), || tick)
            .map_err(trace)?
        {
            Written::Done => {}
            Written::Busy => return Err(io(&io::Error::other("another process has locked it"))),
        }
    }
    let end = recording.to_ns / NS_PER_MS;
    writer.end(end).map_err(trace)?;
    unfinished
        .finish(|_| {
            if import.force {
                return fs::rename(&path, output);
            }
            // Unlike renaming, this never replaces a file that came meanwhile.
            fs::hard_link(&path, output).or_else(|e| match e.kind() {
                io::ErrorKind::AlreadyExists => Err(e),
                _ if output.exists() => Err(io::ErrorKind::AlreadyExists.into()),
                // The file system has no links.
                _ => fs::rename(&path, output),
            })
        })
        .map_err(|e| io(&e))?;
    folder
        .close()
        .map_err(|e| Failure::usage(format!("{shown}: {}", plain(&e))))
}

fn run(import: &Import, recording: &Recording) -> Run {
    let jvm = recording.jvm.clone().unwrap_or_default();
    let started_ms = recording.from_ns / NS_PER_MS;
    let files = import.recordings.iter();
    let files: Vec<String> = files.map(|p| p.display().to_string()).collect();
    let words = |parts: [&str; 2]| parts.join(" ").trim().to_owned();
    // Never 0, which would say that figures are counts.
    let weights = recording.of(Event::Allocation).map(|s| s.weight);
    let (count, sum) = weights.fold((0_u64, 0_u64), |(n, sum), w| (n + 1, sum.saturating_add(w)));
    let mean = sum / count.max(1);
    Run {
        uid: format!("jfr-{}-{}", jvm.pid, recording.from_ns),
        pid: u32::try_from(jvm.pid).unwrap_or(0),
        host: import.host.clone().unwrap_or_default(),
        service: import.service.clone(),
        started_ms,
        jvm: recorded::jvm(recording).unwrap_or_else(|| "unknown JVM".to_owned()),
        command: jvm.command,
        flags: words([&jvm.arguments, &jvm.flags]),
        options: format!("imported from {}", files.join(", ")),
        interval_bytes: recording.interval.unwrap_or(mean).max(1),
        strategy: RECORDING.to_owned(),
    }
}

/// What a reader of the trace has to know.
fn said(import: &Import, recording: &Recording) -> Vec<String> {
    let mut notes = Vec::new();
    let old = recording.of(Event::Old).count() as u64;
    if old > 0 {
        let looks = recording.looks().len() as u64;
        let looks = counted(looks, "look");
        notes.push(format!(
            "alive: the objects that the JVM followed, {looks} at them"
        ));
        if old >= MANY_OLD {
            notes.push("its list may have been full: of what came late little is in it".to_owned());
        }
        if recording.lacks_sizes {
            notes.push("sizes of old objects are not recorded: bytes are the least".to_owned());
        }
    } else if recording.of(Event::Live).next().is_some() {
        notes.push("alive: what async-profiler found at the end, of 1,024 samples".to_owned());
    } else {
        notes.push("no live objects are recorded".to_owned());
    }
    if recording.repeated > 0 {
        let chunks = counted(recording.repeated, "chunk");
        notes.push(format!("{chunks} were in two recordings and count once"));
    }
    if recording.is_partial() {
        let all = recording.damage.len() as u64 + recording.more_damage;
        let places = counted(all, "place");
        let of = counted(import.recordings.len() as u64, "recording");
        notes.push(format!("{places} of {of} cannot be read and are left out"));
    }
    notes
}

/// What is known of heap, classes and collections, tick by tick.
struct Machine<'a> {
    recording: &'a Recording,
    ticks: &'a Ticks,
    heap: usize,
    states: usize,
    collections: usize,
    /// Heap used before and after each collection.
    around: BTreeMap<i64, [u64; 2]>,
    figures: Tick,
}

impl<'a> Machine<'a> {
    fn new(recording: &'a Recording, ticks: &'a Ticks) -> Self {
        let mut around: BTreeMap<i64, [u64; 2]> = BTreeMap::new();
        for summary in &recording.heap {
            around.entry(summary.gc_id).or_default()[usize::from(summary.is_after)] =
                summary.heap_used;
        }
        Self {
            recording,
            ticks,
            heap: 0,
            states: 0,
            collections: 0,
            around,
            figures: Tick::default(),
        }
    }

    /// The tick without its sites. Called for each in turn.
    fn tick(&mut self, number: i64) -> Tick {
        let Self {
            recording, ticks, ..
        } = *self;
        let is_in = |time_ns: i64| ticks.at(time_ns) <= number;
        while let Some(heap) = recording.heap.get(self.heap).filter(|h| is_in(h.time_ns)) {
            self.heap += 1;
            self.figures.heap_used = heap.heap_used;
            self.figures.heap_committed = heap.heap_committed;
        }
        while let Some((_, state)) = recording.states.get(self.states).filter(|s| is_in(s.0)) {
            self.states += 1;
            match *state {
                State::Metaspace { used, committed } => {
                    self.figures.metaspace_used = used;
                    self.figures.metaspace_committed = committed;
                }
                State::Classes { loaded } => self.figures.loaded_classes = loaded,
            }
        }
        let from_ms = ticks.from_ns / NS_PER_MS;
        let mut collections = Vec::new();
        let rest = recording.collections.get(self.collections..).unwrap_or(&[]);
        for collection in rest.iter().take_while(|c| is_in(c.time_ns)) {
            self.collections += 1;
            let [before_bytes, after_bytes] = self
                .around
                .get(&collection.gc_id)
                .copied()
                .unwrap_or_default();
            let name = recording.names.text(collection.name);
            let time_ms = collection.time_ns / NS_PER_MS;
            collections.push(Collection {
                time_ms,
                uptime_ms: time_ms.saturating_sub(from_ms).max(0),
                collector: name.to_string(),
                major: is_major(name),
                cause: recording.names.text(collection.cause).to_string(),
                pause_us: (collection.sum_of_pauses_ns.max(0) / 1000).unsigned_abs(),
                before_bytes,
                after_bytes,
            });
        }
        let uptime_ms = (number + 1).saturating_mul(ticks.length_ms);
        Tick {
            time_ms: from_ms.saturating_add(uptime_ms),
            uptime_ms,
            span_ms: ticks.length_ms,
            collections,
            ..self.figures.clone()
        }
    }
}

/// Whether a collector looks at the whole heap; G1's marking does. By the recorder's names.
fn is_major(collector: &str) -> bool {
    let minor = ["G1New", "DefNew", "ParNew", "ParallelScavenge", "ZGC Minor"];
    !minor.contains(&collector)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    /// An object of the site with this number, alive at a look, allocated at a time, both in seconds.
    fn old(site: u32, look: f64, allocated: f64) -> Sample {
        let ns = |seconds: f64| (seconds * 1e9) as i64;
        Sample {
            event: Event::Old,
            time_ns: ns(look),
            allocated_ns: ns(allocated),
            class: NameId(site),
            stack: StackId(0),
            thread: NameId(0),
            size: 100,
            weight: 0,
        }
    }

    fn recording(samples: Vec<Sample>, seconds: i64) -> Recording {
        let mut recording = Recording::default();
        recording.samples = samples;
        recording.to_ns = seconds * SECOND - 1;
        recording
    }

    #[test]
    fn ticks_cover_the_time_and_are_not_too_many() {
        let of = |seconds, length: Option<u64>| {
            let length = length.map(|ms| Span(Duration::from_millis(ms)));
            Ticks::of(&recording(Vec::new(), seconds), length).map(|t| (t.length_ms, t.count))
        };
        assert_eq!(of(10, None).unwrap(), (1000, 11));
        assert_eq!(of(10, Some(250)).unwrap(), (250, 41));
        let (length, count) = of(100_000, None).unwrap();
        assert!(length % 1000 == 0 && count <= TICKS, "{length} {count}");
        assert!(length * count >= 100_000_000);
        assert!(of(100_000, Some(1)).is_err());
        let ticks = Ticks::of(&recording(Vec::new(), 10), None).unwrap();
        assert_eq!((ticks.at(-5), ticks.at(i64::MAX)), (0, 10));
    }

    #[test]
    fn what_is_alive_is_what_the_next_look_found() {
        // The first site's object stays, the second's is gone at the second look, the third's came between.
        let samples = vec![
            old(1, 2.5, 0.5),
            old(2, 2.5, 1.5),
            old(1, 4.5, 0.5),
            old(3, 4.5, 3.5),
        ];
        let recording = recording(samples, 6);
        let ticks = Ticks::of(&recording, None).unwrap();
        let slices = Slices::of(&recording, &ticks);
        let rows: Vec<_> = slices
            .activity
            .iter()
            .map(|(tick, a)| (*tick, a.class, a.live.samples, a.live.bytes as u64))
            .collect();
        assert_eq!(
            rows,
            [(0, 1, 1, 100), (1, 2, 1, 100), (3, 2, 0, 0), (3, 3, 1, 100)]
        );
    }

    #[test]
    fn a_row_of_what_was_allocated_has_what_is_alive() {
        let mut samples = vec![old(1, 4.5, 0.5)];
        for second in [0, 2] {
            samples.push(Sample {
                event: Event::Allocation,
                weight: 1000,
                ..old(1, f64::from(second) + 0.7, f64::from(second) + 0.7)
            });
        }
        let recording = recording(samples, 5);
        let ticks = Ticks::of(&recording, None).unwrap();
        let rows = Slices::of(&recording, &ticks).activity;
        let rows: Vec<_> = rows
            .iter()
            .map(|(tick, a)| (*tick, a.allocated.bytes as u64, a.live.samples))
            .collect();
        assert_eq!(rows, [(0, 1000, 1), (2, 1000, 1)]);
    }

    #[test]
    fn two_looks_within_a_tick_are_one() {
        let samples = vec![
            old(1, 1.2, 0.5),
            old(1, 1.4, 0.5),
            old(2, 1.4, 1.3),
            old(1, 2.8, 0.5),
        ];
        let recording = recording(samples, 3);
        let ticks = Ticks::of(&recording, Some(Span(Duration::from_secs(2)))).unwrap();
        let live = lives(&recording, &ticks);
        // All within the first two ticks: what the last look found stands at the end.
        let end = live.iter().rev().find(|((_, site), _)| site.0 == NameId(1));
        assert_eq!(end.map(|(_, live)| live.amount.samples), Some(1));
        let second = live.iter().rev().find(|((_, site), _)| site.0 == NameId(2));
        assert!(second.is_none_or(|(_, live)| live.amount.samples == 0));
    }

    #[test]
    fn collectors_of_the_whole_heap() {
        for (name, major) in [
            ("G1New", false),
            ("DefNew", false),
            ("ParallelScavenge", false),
            ("ZGC Minor", false),
            ("SerialOld", true),
            ("G1Full", true),
            ("G1Old", true),
            ("ZGC Major", true),
            ("Shenandoah", true),
        ] {
            assert_eq!(is_major(name), major, "{name}");
        }
    }
}
