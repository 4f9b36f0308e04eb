//! The leak scenarios and the controls, with the expected report on each.
//!
//! A scenario is a Java program in one file below `testdata/scenarios`. The file is in the folders of its package,
//! because a recent JDK requires this to run a source file. The program runs with the argument `leak` or `fixed`. It
//! has three phases, and ends each phase with a line `READY` ([`Target`]). In `leak` mode, every phase adds the same
//! amount to the objects that the program keeps. In `fixed` mode it does the same work without the leak, and nothing
//! grows. A [`Control`] is a program that grows, or seems to grow, but does not leak.

mod controls;
mod leaks;
mod libraries;
mod lookalikes;

pub use controls::{CONTROL_PHASES, CONTROLS, Control, Dumped};
pub use leaks::SESSION_REGISTRY;
pub use libraries::{fetch_libraries, libraries};

use crate::jvm::{Jdk, JvmError, Launch, Target};
use std::path::{Path, PathBuf};

/// All scenarios. Every test run compares the dumps of the first scenarios, [`CORE`].
pub const ALL: &[Scenario] = &all();

const fn all() -> [Scenario; leaks::LEAKS.len() + lookalikes::LEAKS.len()] {
    let mut all = [PLAIN; leaks::LEAKS.len() + lookalikes::LEAKS.len()];
    let mut at = 0;
    while at < all.len() {
        all[at] = if at < leaks::LEAKS.len() {
            leaks::LEAKS[at]
        } else {
            lookalikes::LEAKS[at - leaks::LEAKS.len()]
        };
        at += 1;
    }
    all
}

/// Number of `READY` lines that each scenario prints.
pub const PHASES: u32 = 3;

/// The scenarios whose dumps every test run compares. `cargo xtask accuracy` compares the dumps of all scenarios.
pub const CORE: &[Scenario] = ALL.split_at(17).0;

/// The mode of a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Leaks: every phase keeps more objects.
    Leak,
    /// The program does the same work without the leak, so nothing grows.
    Fixed,
}

impl Mode {
    /// Returns the argument that selects this mode: `leak` or `fixed`.
    pub fn argument(self) -> &'static str {
        match self {
            Mode::Leak => "leak",
            Mode::Fixed => "fixed",
        }
    }
}

/// Minimum growth of the first class in the scenario's `classes` in each phase, in objects or in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Growth {
    /// Number of additional objects.
    Instances(u64),
    /// Number of additional bytes.
    Bytes(u64),
}

/// A program that leaks in a known way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scenario {
    /// A short name for tests.
    pub name: &'static str,
    /// A description of the leak. A failed test shows it.
    pub leak: &'static str,
    /// The class with the method `main`. The source file has the name of this class.
    pub main_class: &'static str,
    /// The fields that a report may name as the holder, the best first.
    pub holders: &'static [&'static str],
    /// The classes that a report may name as accumulating, the best first. A `*` at the end stands for the number that
    /// the JVM appends to the name of a hidden class.
    pub classes: &'static [&'static str],
    /// The method that allocates the leaking objects or calls the allocating code. Every allocation whose stack
    /// contains this method is part of the leak.
    pub allocator: &'static str,
    /// The known leak pattern that a report names, if the leak matches one.
    pub detector: Option<&'static str>,
    /// A second, independent leak.
    pub second: Option<Expected>,
    /// Number of dumps that a report needs to recognise the leak: usually 2. It is 3 if, between the first and the
    /// second dump, something harmless grows more than the leak.
    pub dumps: usize,
    /// True if the program uses published libraries. [`fetch_libraries`] fetches them.
    pub libraries: bool,
    /// The first major version of the JDK that can run the program.
    pub since: u32,
    /// The minimum growth in each phase.
    pub growth: Growth,
}

/// The expected report on one leak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected {
    /// See [`Scenario::holders`].
    pub holders: &'static [&'static str],
    /// See [`Scenario::classes`].
    pub classes: &'static [&'static str],
    /// See [`Scenario::allocator`].
    pub allocator: &'static str,
    /// See [`Scenario::detector`].
    pub detector: Option<&'static str>,
}

/// The values of fields that most scenarios have in common.
const PLAIN: Scenario = Scenario {
    name: "",
    leak: "",
    main_class: "",
    holders: &[],
    classes: &[],
    allocator: "",
    detector: None,
    second: None,
    dumps: 2,
    libraries: false,
    since: 17,
    growth: Growth::Instances(0),
};

/// Returns the scenario with this name.
pub fn by_name(name: &str) -> Option<&'static Scenario> {
    ALL.iter().find(|scenario| scenario.name == name)
}

impl Scenario {
    /// Returns the source file, relative to `testdata/scenarios`.
    pub fn source(&self) -> PathBuf {
        source_of(self.main_class)
    }

    /// Returns the path of the source file.
    pub fn source_path(&self) -> PathBuf {
        source_path_of(self.main_class)
    }

    /// True if this JDK is recent enough for the program.
    pub fn runs_on(&self, jdk: &Jdk) -> bool {
        jdk.major() >= self.since
    }

    /// Compiles the program unless that has been done before, and returns the command that starts it. The caller may
    /// add flags to the command.
    pub fn launch(&self, jdk: &Jdk, mode: Mode) -> Result<Launch, JvmError> {
        launch(jdk, self.main_class, self.libraries).map(|launch| launch.arg(mode.argument()))
    }

    /// Starts the program and waits for its first phase.
    pub fn start(&self, jdk: &Jdk, mode: Mode) -> Result<Target, JvmError> {
        let mut target = self.launch(jdk, mode)?.start()?;
        target.wait_ready(1)?;
        Ok(target)
    }

    /// Returns every leak of the program, largest first.
    pub fn expected(&self) -> impl Iterator<Item = Expected> {
        std::iter::once(self.first()).chain(self.second)
    }

    fn first(&self) -> Expected {
        Expected {
            holders: self.holders,
            classes: self.classes,
            allocator: self.allocator,
            detector: self.detector,
        }
    }

    /// True if a report may name this holder.
    pub fn accepts_holder(&self, holder: &str) -> bool {
        self.first().accepts_holder(holder)
    }

    /// True if a stack contains the method that allocates the leaking objects. Frames are written as in Java stack
    /// traces.
    pub fn accepts_stack(&self, frames: &[String]) -> bool {
        self.first()
            .accepts_stack(frames.iter().map(String::as_str))
    }

    /// True if a report may name this class as accumulating.
    pub fn accepts_class(&self, class: &str) -> bool {
        self.first().accepts_class(class)
    }
}

impl Expected {
    /// True if a report may name this holder.
    pub fn accepts_holder(&self, holder: &str) -> bool {
        self.holders.contains(&holder)
    }

    /// True if a stack contains the method that allocates the leaking objects. Frames are written as in Java stack
    /// traces.
    pub fn accepts_stack<'a>(&self, mut frames: impl Iterator<Item = &'a str>) -> bool {
        frames.any(|frame| {
            let rest = frame.strip_prefix(self.allocator);
            rest.is_some_and(|rest| rest.starts_with(['(', ' ']))
        })
    }

    /// True if a report may name this class as accumulating.
    pub fn accepts_class(&self, class: &str) -> bool {
        self.classes
            .iter()
            .any(|expected| match expected.strip_suffix('*') {
                Some(prefix) => class.starts_with(prefix),
                None => class == *expected,
            })
    }
}

fn source_of(main_class: &str) -> PathBuf {
    let mut path: PathBuf = main_class.split('.').collect();
    path.set_extension("java");
    path
}

fn source_path_of(main_class: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("scenarios")
        .join(source_of(main_class))
}

fn launch(jdk: &Jdk, main_class: &str, with_libraries: bool) -> Result<Launch, JvmError> {
    let source = source_path_of(main_class);
    let class_path = match libraries().filter(|_| with_libraries) {
        None => jdk.compile(&source)?.into_os_string(),
        Some(jars) => {
            let classes = jdk.compile_with(&source, &jars)?;
            let mut path = classes.into_os_string();
            path.push(if cfg!(windows) { ";" } else { ":" });
            path.push(jars.join("*"));
            path
        }
    };
    Ok(Launch::class(jdk, class_path, main_class).flag("-Xmx128m"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_sources_exist() {
        let names: BTreeSet<_> = ALL.iter().map(|scenario| scenario.name).collect();
        assert_eq!(names.len(), ALL.len());
        assert_eq!(
            CORE.last().map(|last| last.name),
            Some("weak_map_value_refers_to_key")
        );
        for scenario in ALL {
            assert!(
                scenario.source_path().is_file(),
                "{}",
                scenario.source_path().display()
            );
            for leak in scenario.expected() {
                assert!(!leak.holders.is_empty() && !leak.classes.is_empty());
            }
            assert_eq!(by_name(scenario.name), Some(scenario));
        }
    }

    #[test]
    fn controls_have_names_of_their_own_and_sources() {
        let leaks = ALL.iter().map(|scenario| scenario.name);
        let names: BTreeSet<_> = leaks.chain(CONTROLS.iter().map(|c| c.name)).collect();
        assert_eq!(names.len(), ALL.len() + CONTROLS.len());
        for control in CONTROLS {
            assert!(control.source_path().is_file(), "{}", control.name);
            assert!(!control.allowed.contains(&"leak"));
        }
    }

    #[test]
    fn a_holder_in_an_application_class_is_declared_in_the_source() {
        for scenario in ALL {
            let source = std::fs::read_to_string(scenario.source_path()).unwrap_or_default();
            let expected: Vec<_> = scenario.expected().collect();
            let holders = expected.iter().flat_map(|leak| leak.holders);
            for holder in holders.filter(|holder| holder.starts_with("com.acme.")) {
                let (class, field) = holder.rsplit_once('.').unwrap_or_default();
                let class = class.rsplit('.').next().unwrap_or_default();
                assert!(source.contains(&format!("class {class}")), "{holder}");
                let declared = |end: &str| source.contains(&format!(" {field}{end}"));
                assert!(declared(";") || declared(" ="), "{holder}");
            }
        }
    }

    #[test]
    fn an_allocator_is_a_method_in_the_source() {
        for scenario in ALL {
            let source = std::fs::read_to_string(scenario.source_path()).unwrap_or_default();
            for leak in scenario.expected() {
                let (class, method) = leak.allocator.rsplit_once('.').unwrap_or_default();
                let class = class.rsplit('.').next().unwrap_or_default();
                assert!(source.contains(&format!("class {class} ")), "{class}");
                assert!(source.contains(&format!(" {method}(")), "{method}");
            }
        }
    }

    #[test]
    fn stacks_are_matched_by_method() {
        let through = |frame: &str| SESSION_REGISTRY.accepts_stack(&[frame.to_owned()]);
        assert!(through(
            "com.acme.shop.ShopServer.serve(ShopServer.java:30)"
        ));
        assert!(through(
            "com.acme.shop.ShopServer.serve (lambda)(ShopServer.java:30)"
        ));
        assert!(!through(
            "com.acme.shop.ShopServer.serves(ShopServer.java:30)"
        ));
        assert!(!through(
            "com.acme.shop.ShopServer.main(ShopServer.java:43)"
        ));
    }

    #[test]
    fn a_star_matches_suffixes_added_by_the_jvm() {
        let scenario = by_name("captured_by_lambda").expect("it is in the table");
        assert!(scenario.accepts_class("com.acme.jobs.ImportJob"));
        assert!(scenario.accepts_class("com.acme.jobs.ImportJob$$Lambda$14/0x0000000800c03000"));
        assert!(!scenario.accepts_class("com.acme.jobs.ImportJobs"));
        assert!(scenario.accepts_holder("com.acme.jobs.ShutdownTasks.pending"));
    }
}
