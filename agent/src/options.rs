//! The agent's options: `key=value,key=value`.

use std::path::PathBuf;
use std::time::Duration;

pub use heapdiff_sites::attach::KEYS;

pub use crate::log::Level;
use heapdiff_sites::{Sampling, Strategy, Verbosity};
use heapdiff_trace::Limits;
use heapdiff_units::{Size, SizeError, Span, SpanError};
use regex::Regex;

/// Maximum interval in bytes. The JVM takes a signed 32-bit number.
const MAX_INTERVAL: u64 = i32::MAX as u64;
/// Maximum number of frames. With more, one batch of the site table would be too large.
pub(crate) const MAX_DEPTH: usize = 1024;
/// Maximum number of samples. 64 million samples take 4 GB of the heap.
const MAX_SAMPLES: u64 = 64 << 20;
const MAX_GARBAGE: u64 = 1 << 20;
const MAX_RATE: u64 = 1 << 40;
const DAY: u64 = 24 * 60 * 60;
const TICK: Duration = Duration::from_secs(1);
const MIN_TICK: Duration = Duration::from_millis(100);
const MAX_TICK: Duration = Duration::from_secs(3600);
const MIN_RETAIN: Duration = Duration::from_secs(60);
const MAX_RETAIN: Duration = Duration::from_secs(3660 * DAY);
const MIN_TRACE: u64 = 1 << 20;
const MAX_TRACE: u64 = 1 << 40;

/// How the agent finds the samples whose objects were collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ReaperChoice {
    /// The default: the agent chooses one of the other two ways, depending on the JDK.
    #[default]
    Auto,
    /// The agent checks every reference in the table.
    Scan,
    /// The JVM puts references into a reference queue.
    Queue,
}

/// The classes in which every allocation is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum CountChoice {
    /// Allocations are not counted.
    #[default]
    Off,
    /// Allocations are counted in application classes.
    On,
    /// Allocations are counted in application classes and in classes of the JDK.
    Jdk,
}

/// Validated options.
#[derive(Clone, Debug)]
pub struct Options {
    /// The sampling strategy with its interval or rate.
    pub sampling: Sampling,
    /// Maximum number of frames per stack.
    pub depth: usize,
    /// The classes that are sampled.
    pub filter: Filter,
    /// Delay before the first sample, in seconds.
    pub delay: u64,
    /// How much detail the frames contain.
    pub verbosity: Verbosity,
    /// True if samples are stored in the heap.
    pub embed: bool,
    /// Maximum number of live samples.
    pub max_samples: usize,
    /// Mean number of bytes between tracked samples under generational ZGC. If it is `None`, the agent tracks as many
    /// samples as its limit per second allows.
    pub follow: Option<u64>,
    /// Number of collected samples to keep in each of two lists. One list has the most recent collected samples, and
    /// the other one has a random selection of all.
    pub garbage: usize,
    /// True if class definitions are recorded.
    pub classes: bool,
    /// How the agent finds the samples whose objects were collected.
    pub reaper: ReaperChoice,
    /// The classes in which every allocation is counted.
    pub count: CountChoice,
    /// True if the use of JDK collections is counted.
    pub usage: bool,
    /// Options of the trace; `None` for no trace.
    pub trace: Option<TraceOptions>,
    /// Options of the guard; `None` for no guard.
    pub guard: Option<GuardOptions>,
    /// The least important messages that are printed.
    pub log: Level,
    /// The option string as given.
    pub given: String,
}

/// Options of the guard, which takes dumps before the JVM dies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuardOptions {
    /// The guard tries to take a dump if at least this percentage of the maximum heap is in use after a major GC.
    pub heap: Option<u64>,
    /// The guard tries to take a dump if at least this percentage of the container's memory limit is in use.
    pub container: Option<u64>,
    /// The folder for dumps.
    pub folder: PathBuf,
    /// Maximum size of all dumps in the folder; `None` for twice the maximum heap.
    pub disk: Option<u64>,
    /// A named pipe for the dumps, instead of files in the folder.
    pub pipe: Option<PathBuf>,
}

/// Options of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceOptions {
    file: String,
    /// Interval between two writes (ticks) of the agent to the trace. Each write contains all changes since the last
    /// one.
    pub tick: Duration,
    /// Limits for the age and size of the data.
    pub limits: Limits,
    /// Name of the service, chosen by the user.
    pub service: Option<String>,
}

impl TraceOptions {
    /// Returns the path of the file. `%p` in the name is replaced by the process id.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.path_in(std::process::id())
    }

    /// Returns the path of the file. `pid` is the id of the process in its own PID namespace.
    #[must_use]
    pub fn path_in(&self, pid: u32) -> PathBuf {
        PathBuf::from(self.file.replace("%p", &pid.to_string()))
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            sampling: Sampling {
                strategy: Strategy::Bytes,
                interval: 512 * 1024,
                rate: 0,
            },
            depth: 64,
            filter: Filter::default(),
            delay: 0,
            verbosity: Verbosity::Line,
            embed: true,
            max_samples: 262_144,
            follow: None,
            garbage: 512,
            classes: true,
            reaper: ReaperChoice::Auto,
            count: CountChoice::Off,
            usage: false,
            trace: None,
            guard: None,
            log: Level::default(),
            given: String::new(),
        }
    }
}

/// The result of matching one class name with the filter's patterns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named {
    /// True if the `include` pattern matches the class, or if there is no `include` pattern.
    pub included: bool,
    /// True if the `exclude` pattern matches the class.
    pub excluded: bool,
}

/// A filter for sampled objects, by their class and by the class whose code allocates them. Names are in the form of
/// Java source.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    include: Option<Regex>,
    exclude: Option<Regex>,
}

impl Filter {
    /// Returns the `include` and `exclude` patterns.
    pub(crate) fn patterns(&self) -> [Option<Regex>; 2] {
        [self.include.clone(), self.exclude.clone()]
    }

    /// True if no pattern is set.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.include.is_none() && self.exclude.is_none()
    }

    /// Matches a class name with the patterns. `class` is `None` if the name is not known.
    #[must_use]
    pub fn match_name(&self, class: Option<&str>) -> Named {
        let finds = |re: &Regex| class.is_some_and(|class| re.is_match(class));
        Named {
            included: self.include.as_ref().is_none_or(finds),
            excluded: self.exclude.as_ref().is_some_and(finds),
        }
    }

    /// Returns true if an object is sampled. `class` is the result for the object's class. `allocating` returns the
    /// result for the class whose code allocates the object. `allocating` is called only if `class` does not decide.
    pub fn passes(&self, class: Named, allocating: impl FnOnce() -> Named) -> bool {
        if class.excluded {
            return false;
        }
        if class.included && self.exclude.is_none() {
            return true;
        }
        let by = allocating();
        !by.excluded && (class.included || by.included)
    }
}

/// An error in the options.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    /// An unknown key.
    #[error("unknown option \"{key}\"; the options are {}", keys())]
    Unknown {
        /// The given key.
        key: String,
    },
    /// A key without a value.
    #[error("option \"{key}\" needs a value, {key}=...: {}", meaning(key))]
    NoValue {
        /// The option's key.
        key: String,
    },
    /// An invalid value.
    #[error(
        "option \"{key}\" cannot be \"{value}\": {why} ({key}: {})",
        meaning(key)
    )]
    Value {
        /// The option's key.
        key: String,
        /// The given value.
        value: String,
        /// The reason why the value is invalid.
        why: String,
    },
    /// A key given twice.
    #[error("option \"{key}\" is given twice")]
    Twice {
        /// The option's key.
        key: String,
    },
    /// The option with this key requires the option `trace`, which is not given.
    #[error("option \"{key}\" needs trace=FILE")]
    NoTrace {
        /// The option's key.
        key: &'static str,
    },
    /// The option with this key requires the option `guard` or `guard-container`. Neither of them is given.
    #[error("option \"{key}\" needs guard=90% or guard-container=90%")]
    NoGuard {
        /// The option's key.
        key: &'static str,
    },
    /// The option with this key has an effect only if samples are stored in the heap. But `embed=off` is given.
    #[error("option \"{key}\" needs embed=on")]
    Nowhere {
        /// The option's key.
        key: &'static str,
    },
    /// A key that has no meaning for the chosen strategy.
    #[error("option \"{key}\" needs strategy={goes_with}")]
    Strategy {
        /// The option's key.
        key: &'static str,
        /// The strategies for which the key has a meaning.
        goes_with: &'static str,
    },
}

fn keys() -> String {
    let names: Vec<&str> = KEYS.iter().map(|(key, _)| *key).collect();
    names.join(", ")
}

fn meaning(key: &str) -> &'static str {
    KEYS.iter()
        .find(|(name, _)| *name == key)
        .map_or("", |(_, meaning)| meaning)
}

/// Returns the key of one option.
fn key(option: &str) -> &str {
    option.split('=').next().unwrap_or(option).trim()
}

impl Options {
    /// Returns the option string of these options combined with `more`. Options in `more` replace those with the same
    /// key.
    pub(crate) fn with(&self, more: &str) -> String {
        let more = split(more);
        let is_replaced = |option: &&String| more.iter().any(|new| key(new) == key(option));
        let given = split(&self.given);
        let kept = given.iter().filter(|option| !is_replaced(option));
        let all = kept.chain(&more).filter(|option| !option.is_empty());
        let escaped: Vec<String> = all.map(|option| option.replace(',', "\\,")).collect();
        escaped.join(",")
    }

    /// Parses the option string, the text after the `=` in `-agentpath:library=`.
    ///
    /// # Errors
    /// Returns an error if a key or a value is invalid. The message names the invalid key or value, and the valid ones.
    pub fn parse(text: &str) -> Result<Self, OptionsError> {
        let mut options = Self {
            given: text.to_owned(),
            ..Self::default()
        };
        let (mut file, mut keeping) = (None, Keeping::default());
        let mut guarding = Guarding::default();
        let (mut interval, mut rate, mut ms) = (None, None, None);
        let mut seen: Vec<String> = Vec::new();
        for part in split(text) {
            let (key, value) = match part.split_once('=') {
                Some((key, value)) => (key.trim(), value),
                None => (part.trim(), ""),
            };
            if key.is_empty() && value.is_empty() {
                continue;
            }
            if meaning(key).is_empty() {
                let key = key.to_owned();
                return Err(OptionsError::Unknown { key });
            }
            if seen.iter().any(|known| known == key) {
                let key = key.to_owned();
                return Err(OptionsError::Twice { key });
            }
            seen.push(key.to_owned());
            if value.is_empty() {
                let key = key.to_owned();
                return Err(OptionsError::NoValue { key });
            }
            let given = Given { key, value };
            match key {
                "interval" => interval = Some(given.size(MAX_INTERVAL)?),
                "depth" => options.depth = given.index(1, MAX_DEPTH as u64)?,
                "include" => options.filter.include = Some(given.regex()?),
                "exclude" => options.filter.exclude = Some(given.regex()?),
                "strategy" => {
                    options.sampling.strategy = given.one_of(&[
                        ("bytes", Strategy::Bytes),
                        ("count", Strategy::Count),
                        ("time", Strategy::Time),
                        ("class", Strategy::Class),
                    ])?;
                }
                "rate" => rate = Some(given.number(1, MAX_RATE)?),
                "ms" => ms = Some(given.number(1, DAY * 1000)?),
                "delay" => options.delay = given.number(0, DAY)?,
                "verbosity" => {
                    options.verbosity = given.one_of(&[
                        ("method", Verbosity::Method),
                        ("class", Verbosity::Class),
                        ("line", Verbosity::Line),
                    ])?;
                }
                "embed" => options.embed = given.one_of(SWITCH)?,
                "max_samples" => options.max_samples = given.index(1, MAX_SAMPLES)?,
                "follow" => options.follow = Some(given.size(MAX_INTERVAL)?),
                "garbage" => options.garbage = given.index(0, MAX_GARBAGE)?,
                "classes" => options.classes = given.one_of(SWITCH)?,
                "trace" => file = Some(value.to_owned()),
                "tick" => keeping.tick = Some(given.duration(MIN_TICK, MAX_TICK)?),
                "retain" => keeping.retain = Some(given.duration(MIN_RETAIN, MAX_RETAIN)?),
                "trace_max" => {
                    let size = given.size(MAX_TRACE)?;
                    if size < MIN_TRACE {
                        return Err(given.value_error("the value must be at least 1m (1 MiB)"));
                    }
                    keeping.max = Some(size);
                }
                "count" => {
                    options.count = given.one_of(&[
                        ("off", CountChoice::Off),
                        ("on", CountChoice::On),
                        ("jdk", CountChoice::Jdk),
                    ])?;
                }
                "usage" => options.usage = given.one_of(SWITCH)?,
                "log" => {
                    options.log = given.one_of(&[
                        ("error", Level::Error),
                        ("warn", Level::Warn),
                        ("info", Level::Info),
                        ("debug", Level::Debug),
                    ])?;
                }
                "service" => keeping.service = Some(value.to_owned()),
                "guard" => guarding.heap = Some(given.percent()?),
                "guard-container" => guarding.container = Some(given.percent()?),
                "guard-to" => guarding.folder = Some(PathBuf::from(value)),
                "guard-pipe" => guarding.pipe = Some(PathBuf::from(value)),
                "guard-disk" => guarding.disk = Some(given.size(MAX_TRACE)?),
                // All other keys in the table were handled above, so this key is `reaper`.
                _ => {
                    options.reaper = given.one_of(&[
                        ("auto", ReaperChoice::Auto),
                        ("scan", ReaperChoice::Scan),
                        ("queue", ReaperChoice::Queue),
                    ])?;
                }
            }
        }
        if !options.embed {
            let nowhere = |key| Err(OptionsError::Nowhere { key });
            if options.count != CountChoice::Off {
                return nowhere("count");
            }
            if options.usage {
                return nowhere("usage");
            }
        }
        options.guard = guarding.checked()?;
        if let Some(guard) = &options.guard {
            // Write a trace by default, because it contains the stacks even if the guard cannot write a dump.
            let default = guard.folder.join("heapdiff-guard-%p.db");
            file = file.or_else(|| Some(default.to_string_lossy().into_owned()));
        }
        options.trace = keeping.of(file)?;
        options.sampling = sampling(options.sampling.strategy, interval, rate, ms)?;
        Ok(options)
    }
}

const SWITCH: &[(&str, bool)] = &[("on", true), ("off", false)];

fn sampling(
    strategy: Strategy,
    interval: Option<u64>,
    rate: Option<u64>,
    ms: Option<u64>,
) -> Result<Sampling, OptionsError> {
    let default = Options::default().sampling.interval;
    let misplaced = |key, goes_with| Err(OptionsError::Strategy { key, goes_with });
    if rate.is_some() && !matches!(strategy, Strategy::Count | Strategy::Class) {
        return misplaced("rate", "count and strategy=class");
    }
    if ms.is_some() && strategy != Strategy::Time {
        return misplaced("ms", "time");
    }
    if interval.is_some() && matches!(strategy, Strategy::Count | Strategy::Class) {
        return misplaced("interval", "bytes and strategy=time");
    }
    let (interval, rate) = match strategy {
        Strategy::Bytes => (interval.unwrap_or(default), 0),
        Strategy::Time => (interval.unwrap_or(4096), ms.unwrap_or(10)),
        Strategy::Count | Strategy::Class => (0, rate.unwrap_or(1000)),
    };
    Ok(Sampling {
        strategy,
        interval,
        rate,
    })
}

/// Values of the options that require `trace`.
#[derive(Default)]
struct Keeping {
    tick: Option<Duration>,
    retain: Option<Duration>,
    max: Option<u64>,
    service: Option<String>,
}

impl Keeping {
    fn of(self, file: Option<String>) -> Result<Option<TraceOptions>, OptionsError> {
        let default = Limits::default();
        let Some(file) = file else {
            let given = [
                ("tick", self.tick.is_some()),
                ("retain", self.retain.is_some()),
                ("trace_max", self.max.is_some()),
                ("service", self.service.is_some()),
            ];
            return match given.into_iter().find(|(_, given)| *given) {
                Some((key, _)) => Err(OptionsError::NoTrace { key }),
                None => Ok(None),
            };
        };
        Ok(Some(TraceOptions {
            file,
            tick: self.tick.unwrap_or(TICK),
            limits: Limits {
                retain: self.retain.unwrap_or(default.retain),
                max_bytes: self.max.unwrap_or(default.max_bytes),
            },
            service: self.service,
        }))
    }
}

/// Values of the guard's options, before they are checked.
#[derive(Default)]
struct Guarding {
    heap: Option<u64>,
    container: Option<u64>,
    folder: Option<PathBuf>,
    disk: Option<u64>,
    pipe: Option<PathBuf>,
}

impl Guarding {
    fn checked(self) -> Result<Option<GuardOptions>, OptionsError> {
        if self.heap.is_none() && self.container.is_none() {
            let given = [
                ("guard-to", self.folder.is_some()),
                ("guard-disk", self.disk.is_some()),
                ("guard-pipe", self.pipe.is_some()),
            ];
            return match given.into_iter().find(|(_, given)| *given) {
                Some((key, _)) => Err(OptionsError::NoGuard { key }),
                None => Ok(None),
            };
        }
        Ok(Some(GuardOptions {
            heap: self.heap,
            container: self.container,
            folder: self.folder.unwrap_or_else(|| PathBuf::from(".")),
            disk: self.disk,
            pipe: self.pipe,
        }))
    }
}

/// Splits at commas. A backslash before a comma makes the comma part of the value.
pub(crate) fn split(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if chars.peek() == Some(&',') => {
                chars.next();
                if let Some(part) = parts.last_mut() {
                    part.push(',');
                }
            }
            ',' => parts.push(String::new()),
            _ => {
                if let Some(part) = parts.last_mut() {
                    part.push(c);
                }
            }
        }
    }
    parts
}

struct Given<'a> {
    key: &'a str,
    value: &'a str,
}

impl Given<'_> {
    fn value_error(&self, why: impl Into<String>) -> OptionsError {
        OptionsError::Value {
            key: self.key.to_owned(),
            value: self.value.to_owned(),
            why: why.into(),
        }
    }

    fn number(&self, least: u64, most: u64) -> Result<u64, OptionsError> {
        match self.value.parse::<u64>() {
            Ok(value) if (least..=most).contains(&value) => Ok(value),
            Ok(_) => Err(self.value_error(format!("the value must be from {least} to {most}"))),
            Err(_) => Err(self.value_error("the value is not a whole number")),
        }
    }

    fn index(&self, least: u64, most: u64) -> Result<usize, OptionsError> {
        let value = self.number(least, most)?;
        usize::try_from(value)
            .map_err(|_| self.value_error("the value is too large for this machine"))
    }

    fn percent(&self) -> Result<u64, OptionsError> {
        let number = self.value.strip_suffix('%').unwrap_or(self.value);
        match number.parse::<u64>() {
            Ok(percent) if (1..=99).contains(&percent) => Ok(percent),
            _ => Err(self.value_error("the value must be from 1% to 99%")),
        }
    }

    fn size(&self, most: u64) -> Result<u64, OptionsError> {
        match self.value.parse() {
            Ok(Size(bytes)) if bytes <= most => Ok(bytes),
            Ok(_) | Err(SizeError::TooLarge(_)) => {
                Err(self.value_error(format!("the value is more than {most} bytes")))
            }
            Err(SizeError::NotASize(_)) => {
                Err(self.value_error("the value is not a size such as 65536, 512k, 1m or 1MB"))
            }
        }
    }

    /// Parses a duration. A number without a unit is in seconds.
    fn duration(&self, least: Duration, most: Duration) -> Result<Duration, OptionsError> {
        match self.value.parse() {
            Ok(Span(duration)) if (least..=most).contains(&duration) => Ok(duration),
            Ok(_) | Err(SpanError::TooLong(_)) => {
                let (least, most) = (Span(least), Span(most));
                Err(self.value_error(format!("the value must be from {least} to {most}")))
            }
            Err(SpanError::NotASpan(_)) => {
                Err(self
                    .value_error("the value is not a duration such as 500ms, 1s, 10m, 24h or 7d"))
            }
        }
    }

    fn regex(&self) -> Result<Regex, OptionsError> {
        Regex::new(self.value).map_err(|error| {
            // The message of a regex error has several lines, which show the pattern. The last line contains the
            // reason.
            let text = error.to_string();
            let last = text.lines().last().unwrap_or_default();
            self.value_error(last.trim().trim_start_matches("error: "))
        })
    }

    fn one_of<T: Copy>(&self, choices: &[(&str, T)]) -> Result<T, OptionsError> {
        let found = choices.iter().find(|(name, _)| *name == self.value);
        found.map(|(_, value)| *value).ok_or_else(|| {
            let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
            self.value_error(format!("the value must be one of {}", names.join(", ")))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        Options::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn defaults() {
        for text in ["", ",", " "] {
            let options = Options::parse(text).unwrap();
            assert_eq!(options.sampling.interval, 512 * 1024);
            assert_eq!((options.depth, options.max_samples), (64, 262_144));
            assert!(options.embed && options.classes && options.filter.is_open());
        }
    }

    #[test]
    fn later_options_replace_earlier_ones_with_the_same_key() {
        let with = |given: &str, more| Options::parse(given).unwrap().with(more);
        assert_eq!(with("", "trace=/t.db"), "trace=/t.db");
        assert_eq!(with("interval=64k,depth=8", ""), "interval=64k,depth=8");
        let both = with("include=a{1\\,2}, interval=64k", "trace=/t.db,interval=8k");
        assert_eq!(both, "include=a{1\\,2},trace=/t.db,interval=8k");
    }

    #[test]
    fn every_key() {
        let options = Options::parse(
            "interval=64k,depth=12,include=^com\\.acme\\.,exclude=Foo{1\\,2}$,strategy=bytes,delay=3,\
             verbosity=method,follow=1m,embed=off,max_samples=1000,garbage=0,classes=off,reaper=queue",
        )
        .unwrap();
        assert_eq!((options.sampling.interval, options.depth), (65_536, 12));
        let passes = |class, by| {
            let filter = &options.filter;
            filter.passes(filter.match_name(Some(class)), || {
                filter.match_name(Some(by))
            })
        };
        assert!(passes("com.acme.Bar", "org.X") && !passes("com.acme.Foo", "org.X"));
        assert!(!passes("org.acme.Bar", "org.X"));
        // In the next two lines, the filter decides by the class whose code allocates.
        assert!(passes("byte[]", "com.acme.Bar") && !passes("byte[]", "com.acme.Foo"));
        assert!(!passes("com.acme.Bar", "com.acme.Foo"));
        // The filter tests the object's class first. If this test decides, the filter does not look up the class whose
        // code allocates.
        let open = Filter::default();
        assert!(open.passes(open.match_name(None), || unreachable!()));
        let one = Options::parse("include=^com").unwrap().filter;
        assert!(one.passes(one.match_name(Some("com.A")), || unreachable!()));
        assert!(!one.passes(one.match_name(None), || one.match_name(None)));
        assert_eq!((options.delay, options.garbage), (3, 0));
        assert_eq!(options.follow, Some(1 << 20));
        assert_eq!(options.verbosity, Verbosity::Method);
        assert!(!options.embed && !options.classes);
        assert_eq!(options.reaper, ReaperChoice::Queue);
        let sampling = |text: &str| Options::parse(text).unwrap().sampling;
        assert_eq!(sampling("rate=7,strategy=count").rate, 7);
        assert_eq!(sampling("strategy=class").rate, 1000);
        assert_eq!(sampling("strategy=time,ms=20,interval=0").rate, 20);
        assert_eq!(sampling("interval=0").interval, 0);
        // Units are the same as on the command line: `1MB` is 1000 * 1000 bytes; `1M` and `1MiB` are 1024 * 1024 bytes.
        for (text, bytes) in [
            ("1MB", 1_000_000),
            ("1mb", 1_000_000),
            ("1MiB", 1 << 20),
            ("1m", 1 << 20),
            ("1M", 1 << 20),
            ("64kB", 64_000),
            ("64k", 65_536),
            ("1.5k", 1536),
            ("4096b", 4096),
        ] {
            let given = format!("interval={text}");
            let read = sampling(&given).interval;
            assert_eq!(read, bytes, "{text}");
        }
        let trace = |text| Options::parse(text).unwrap().trace.unwrap();
        let kept = trace("trace=t.db,trace_max=2GB,retain=1h30m,tick=5");
        assert_eq!(kept.limits.max_bytes, 2_000_000_000);
        assert_eq!(kept.limits.retain, Duration::from_secs(5400));
        assert_eq!(kept.tick, Duration::from_secs(5));
    }

    #[test]
    fn a_guard_has_a_trace_in_its_folder() {
        let options = Options::parse("guard=85%,guard-to=/dumps,guard-disk=2g").unwrap();
        let guard = options.guard.unwrap();
        assert_eq!((guard.heap, guard.container), (Some(85), None));
        assert_eq!(guard.disk, Some(2 << 30));
        let trace = options.trace.unwrap().path_in(7);
        assert_eq!(trace, PathBuf::from("/dumps/heapdiff-guard-7.db"));
        assert_eq!(guard.pipe, None);
        let own = Options::parse("guard-container=90,trace=/t.db,guard-pipe=/p").unwrap();
        assert_eq!(own.guard.as_ref().unwrap().pipe, Some("/p".into()));
        assert_eq!(own.guard.unwrap().folder, PathBuf::from("."));
        assert_eq!(own.trace.unwrap().path_in(7), PathBuf::from("/t.db"));
        for value in ["0%", "100%", "x", "-5%", "90 %"] {
            assert!(error(&format!("guard={value}")).contains("from 1% to 99%"));
        }
        for key in ["guard-to", "guard-disk", "guard-pipe"] {
            let why = format!("\"{key}\" needs guard=90%");
            assert!(error(&format!("{key}=1")).contains(&why));
        }
    }

    #[test]
    fn errors_name_the_key_and_the_valid_values() {
        let text = error("intervall=5");
        assert!(text.contains("\"intervall\"") && text.contains("interval, depth, include"));
        assert!(error("tick=1s").contains("\"tick\" needs trace=FILE"));
        assert!(error("trace=x.db,tick=1y").contains("not a duration such as 500ms"));
        assert!(error("trace=x.db,tick=1ms").contains("must be from 100ms to 1h"));
        assert!(error("trace=x.db,trace_max=1k").contains("must be at least 1m"));
        assert!(error("interval").contains("needs a value, interval=..."));
        assert!(error("interval=5x").contains("not a size such as"));
        assert!(error("interval=3g").contains("more than 2147483647 bytes"));
        assert!(error("interval=99999999P").contains("more than 2147483647 bytes"));
        assert!(error("trace=x.db,retain=99999d").contains("must be from 1m to 3660d"));
        assert!(error("depth=0").contains("must be from 1 to 1024"));
        assert!(error("depth=-1").contains("the value is not a whole number"));
        assert!(error("strategy=random").contains("must be one of bytes, count, time, class"));
        assert!(error("include=(").contains("unclosed group"));
        assert!(error("include=(").lines().count() == 1);
        assert!(error("depth=5,depth=6").contains("given twice"));
        assert!(error("rate=5").contains("needs strategy=count"));
        assert!(error("ms=5,strategy=count").contains("needs strategy=time"));
        assert!(error("interval=5,strategy=class").contains("needs strategy=bytes"));
        assert!(error("count=all").contains("must be one of off, on, jdk"));
        assert!(error("count=on,embed=off,trace=x.db").contains("\"count\" needs embed=on"));
        let count = |text| Options::parse(text).unwrap().count;
        assert_eq!(count(""), CountChoice::Off);
        assert_eq!(count("count=off,embed=off,trace=x.db"), CountChoice::Off);
        assert_eq!(count("count=on"), CountChoice::On);
        assert_eq!(count("count=jdk"), CountChoice::Jdk);
        assert!(
            error("max_samples=99999999999999999999").contains("the value is not a whole number")
        );
    }
}
