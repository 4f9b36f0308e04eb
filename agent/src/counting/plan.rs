//! The request for an allocation count, and the classes in which allocations are counted.

use std::time::Duration;

use heapdiff_sites::attach;
use heapdiff_sites::types::of_class;
use regex::Regex;
use rustc_hash::FxHashSet;

use super::hooks;
use crate::options::split;

/// Maximum time of a count, in seconds.
const LONGEST: u64 = 24 * 60 * 60;

/// A request about counting.
#[derive(Debug)]
pub(crate) enum Asked<'a> {
    /// Start a count with these options.
    Begin(&'a str),
    /// End the count and publish the result. The token identifies the file with the result.
    End(&'a str),
    /// Return the number of classes that a count with these options would change.
    Classes(&'a str),
}

impl<'a> Asked<'a> {
    /// Returns the request in the agent's options, or `None` if the options are not about counting.
    pub(crate) fn parse(options: &'a str) -> Option<Self> {
        let begin = options.strip_prefix(attach::COUNT).map(Self::Begin);
        let end = || options.strip_prefix(attach::COUNT_END).map(Self::End);
        let classes = || options.strip_prefix(attach::COUNT_CLASSES);
        begin.or_else(end).or_else(|| classes().map(Self::Classes))
    }
}

/// The classes in which allocations are counted, and the time for which they are counted.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) time: Duration,
    /// True if allocations in classes of the JDK are counted, too.
    pub(crate) jdk: bool,
    include: Option<Regex>,
    exclude: Option<Regex>,
    /// If set, allocations are counted only in these classes. Names are in the form of Java source.
    pub(crate) only: Option<FxHashSet<String>>,
    /// True if allocations are counted only in classes whose methods are in sampled stacks. `only` then contains these
    /// classes.
    pub(crate) sampled: bool,
    /// Token of the file that shows the progress of the count.
    pub(crate) token: Option<String>,
}

/// Packages of the JDK. Their classes count as JDK classes, whichever loader defines them.
const JDK: [&str; 4] = ["java/", "jdk/", "sun/", "com/sun/"];
/// Classes in which nothing is counted, for one of three reasons: hooks use these classes, the JVM calls them where no
/// hook may run, or JFR rewrites them itself.
const NEVER: [&str; 8] = [
    "java/lang/invoke/",
    "jdk/internal/vm/",
    "jdk/internal/event/",
    "jdk/jfr/",
    "jdk/internal/misc/Unsafe",
    "java/lang/VirtualThread",
    // Classes that reflection generates. Their allocations are counted at the reflective call.
    "jdk/internal/reflect/Generated",
    hooks::THIS,
];

impl Plan {
    pub(crate) fn parse(options: &str) -> Result<Self, String> {
        let [seconds, jdk, include, exclude, sampled, token] = attach::COUNT_KEYS;
        let mut plan = Self::for_standing_count(false, [None, None]);
        for part in split(options).iter().filter(|part| !part.is_empty()) {
            let wrong = |why: &str| format!("\"{part}\": {why}");
            let (key, value) = part
                .split_once('=')
                .ok_or_else(|| wrong("the value is missing"))?;
            let regex = || Regex::new(value).map_err(|_| wrong("this is not a regular expression"));
            if key == seconds {
                let known: u64 = value.parse().map_err(|_| wrong("this is not a number"))?;
                plan.time = Duration::from_secs(known.min(LONGEST));
            } else if key == jdk {
                plan.jdk = value == "on";
            } else if key == include {
                plan.include = Some(regex()?);
            } else if key == exclude {
                plan.exclude = Some(regex()?);
            } else if key == sampled {
                plan.sampled = value == "on";
            } else if key == token {
                plan.token = Some(value.to_owned());
            } else {
                return Err(wrong("this option is unknown"));
            }
        }
        Ok(plan)
    }

    /// Returns the plan (classes and time) of a standing count, which runs as long as the agent samples.
    pub(crate) fn for_standing_count(jdk: bool, [include, exclude]: [Option<Regex>; 2]) -> Self {
        Self {
            time: Duration::ZERO,
            jdk,
            include,
            exclude,
            only: None,
            sampled: false,
            token: None,
        }
    }

    /// True if no filter for classes is set.
    pub(crate) fn is_open(&self) -> bool {
        self.include.is_none() && self.exclude.is_none() && self.only.is_none()
    }

    /// True if the filters accept the class with this name. `name` is in the form of Java source.
    pub(crate) fn passes(&self, name: &str) -> bool {
        self.include.as_ref().is_none_or(|re| re.is_match(name))
            && !self.exclude.as_ref().is_some_and(|re| re.is_match(name))
            && self.only.as_ref().is_none_or(|only| only.contains(name))
    }

    /// True if allocations in a class are counted. `name` is in the JVM's form; `is_boot` is true if the boot loader
    /// defines the class.
    pub(crate) fn counts_class(&self, name: &str, is_boot: bool) -> bool {
        let begins = |packages: &[&str]| packages.iter().any(|p| name.starts_with(p));
        if begins(&NEVER) || !self.jdk && (is_boot || begins(&JDK)) {
            return false;
        }
        self.is_open() || self.passes(&of_class(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_selected_by_loader_and_name() {
        let wants = |options: &str, name: &str| {
            let boot = name.starts_with("java/");
            Plan::parse(options).unwrap().counts_class(name, boot)
        };
        assert!(wants("", "com/acme/Foo") && !wants("", "java/util/HashMap"));
        assert!(!wants("", "com/sun/Foo") && wants("jdk=on", "com/sun/Foo"));
        assert!(wants("jdk=on", "java/util/HashMap"));
        for never in ["java/lang/invoke/A", "java/lang/HeapdiffCounts"] {
            assert!(!wants("jdk=on", never), "{never}");
        }
        let both = "include=^com\\.(acme|pet)\\.,exclude=Foo{1\\,2}$";
        assert!(wants(both, "com/acme/Bar") && !wants(both, "com/acme/Foo"));
        assert!(!wants(both, "org/Bar"));
    }

    #[test]
    fn invalid_options_are_refused() {
        for wrong in ["seconds=x", "include=(", "other=1", "jdk"] {
            assert!(Plan::parse(wrong).is_err(), "{wrong}");
        }
        let plan = Plan::parse("seconds=99999999999,jdk=on").unwrap();
        assert_eq!(plan.time, Duration::from_secs(LONGEST));
    }
}
