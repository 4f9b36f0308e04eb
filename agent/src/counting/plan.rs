//! What is asked for, and which classes are counted.

use std::time::Duration;

use heapdiff_sites::attach;
use heapdiff_sites::types::of_class;
use regex::Regex;
use rustc_hash::FxHashSet;

use super::hooks;
use crate::options::split;

/// The longest count, in seconds.
const LONGEST: u64 = 24 * 60 * 60;

/// What the asker wants.
#[derive(Debug)]
pub(crate) enum Asked<'a> {
    /// To count, by these options.
    Begin(&'a str),
    /// To end it, and see what was counted by this token.
    End(&'a str),
    /// How many classes a count with these options changes.
    Classes(&'a str),
}

impl<'a> Asked<'a> {
    /// What options ask for, if that concerns counting.
    pub(crate) fn of(options: &'a str) -> Option<Self> {
        let begin = options.strip_prefix(attach::COUNT).map(Self::Begin);
        let end = || options.strip_prefix(attach::COUNT_END).map(Self::End);
        let classes = || options.strip_prefix(attach::COUNT_CLASSES);
        begin.or_else(end).or_else(|| classes().map(Self::Classes))
    }
}

/// Which classes are counted, and how long.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) time: Duration,
    /// Classes of the JDK's, too.
    pub(crate) jdk: bool,
    include: Option<Regex>,
    exclude: Option<Regex>,
    /// Only these classes, by their names as in Java source.
    pub(crate) only: Option<FxHashSet<String>>,
    /// Only classes in sampled stacks, which `only` is to have.
    pub(crate) sampled: bool,
    /// The token of the file that shows how far the count has come.
    pub(crate) token: Option<String>,
}

/// Packages of the JDK's, whichever loader defines their classes.
const JDK: [&str; 4] = ["java/", "jdk/", "sun/", "com/sun/"];
/// Never counted: what hooks use, what the JVM calls where no hook may run, and what the JVM's recorder changes itself.
const NEVER: [&str; 8] = [
    "java/lang/invoke/",
    "jdk/internal/vm/",
    "jdk/internal/event/",
    "jdk/jfr/",
    "jdk/internal/misc/Unsafe",
    "java/lang/VirtualThread",
    // What reflection spins is counted where that is called.
    "jdk/internal/reflect/Generated",
    hooks::THIS,
];

impl Plan {
    pub(crate) fn parse(options: &str) -> Result<Self, String> {
        let [seconds, jdk, include, exclude, sampled, token] = attach::COUNT_KEYS;
        let mut plan = Self::standing(false, [None, None]);
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

    /// What counts as long as the agent does.
    pub(crate) fn standing(jdk: bool, [include, exclude]: [Option<Regex>; 2]) -> Self {
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

    /// Whether its filters let every class pass.
    pub(crate) fn is_open(&self) -> bool {
        self.include.is_none() && self.exclude.is_none() && self.only.is_none()
    }

    /// Whether its filters let a class pass, by its name as in Java source.
    pub(crate) fn passes(&self, name: &str) -> bool {
        self.include.as_ref().is_none_or(|re| re.is_match(name))
            && !self.exclude.as_ref().is_some_and(|re| re.is_match(name))
            && self.only.as_ref().is_none_or(|only| only.contains(name))
    }

    /// Whether a class is counted, by its name within the JVM and whether the boot loader defines it.
    pub(crate) fn wants(&self, name: &str, is_boot: bool) -> bool {
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
    fn classes_are_counted_by_where_they_are_from_and_what_they_are_called() {
        let wants = |options: &str, name: &str| {
            let boot = name.starts_with("java/");
            Plan::parse(options).unwrap().wants(name, boot)
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
    fn options_that_cannot_be_are_refused() {
        for wrong in ["seconds=x", "include=(", "other=1", "jdk"] {
            assert!(Plan::parse(wrong).is_err(), "{wrong}");
        }
        let plan = Plan::parse("seconds=99999999999,jdk=on").unwrap();
        assert_eq!(plan.time, Duration::from_secs(LONGEST));
    }
}
