//! Finds the reasons why dumps cannot be compared. If there is one, the differences between the dumps are not growth.

use std::fmt;

use heapdiff_model::diff::SnapshotInfo;
use hprof::graph::MissingRoots;

use crate::origin::Apart;
use crate::sentence::Warning;
use crate::summary::Summary;

/// A reason why differences between dumps might not be growth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Doubt<'a> {
    /// The dump was truncated or damaged, or lacks GC roots.
    Incomplete(&'a SnapshotInfo),
    /// Both files contain the same dump, or one file was given twice.
    Same(&'a str, &'a str),
    /// The second dump was taken before the first.
    Order(&'a str, &'a str),
    /// The dumps are of different programs or of different JVMs.
    Apart(&'a str, &'a str, Apart),
}

/// Returns all reasons why the dumps cannot be compared. `summaries` has the dumps in the order in which they are
/// compared.
pub(crate) fn doubts(summaries: &[Summary]) -> Vec<Doubt<'_>> {
    let incomplete = summaries.iter().filter(|s| s.info.partial);
    let mut doubts: Vec<Doubt<'_>> = incomplete.map(|s| Doubt::Incomplete(&s.info)).collect();
    for (i, later) in summaries.iter().enumerate() {
        let name = &*later.info.path;
        let mut before = summaries[..i].iter();
        if let Some(same) = before.find(|earlier| is_same(earlier, later)) {
            doubts.push(Doubt::Same(&same.info.path, name));
            continue;
        }
        let Some(earlier) = i.checked_sub(1).and_then(|i| summaries.get(i)) else {
            continue;
        };
        let before = &*earlier.info.path;
        if let Some(apart) = later.origin.difference_from(&earlier.origin) {
            doubts.push(Doubt::Apart(before, name, apart));
        } else if later.info.taken_ms < earlier.info.taken_ms {
            doubts.push(Doubt::Order(before, name));
        }
    }
    doubts
}

impl Summary {
    /// True if it is certain that the dumps are of several JVMs or several programs. In that case, the times of the
    /// dumps do not show which dumps to compare.
    #[must_use]
    pub fn are_from_several_jvms(summaries: &[Self]) -> bool {
        doubts(summaries)
            .iter()
            .any(|d| matches!(d, Doubt::Apart(..)))
    }

    /// True if both dumps seem to be of the same JVM. One of these values must be known and equal in both dumps: the
    /// JVM's random number, the agent's data, or the JVM's version. Also, nothing may show that the dumps are of
    /// different JVMs.
    #[must_use]
    pub fn is_of_jvm_of(&self, earlier: &Self) -> bool {
        self.origin.is_of_jvm_of(&earlier.origin)
    }
}

/// Returns the reason why the figures of one dump may be wrong. Returns an empty list if there is no such reason.
pub(crate) fn incomplete(info: &SnapshotInfo) -> Vec<String> {
    let why = info.partial.then(|| Doubt::Incomplete(info).to_string());
    why.into_iter().collect()
}

/// True if two files contain the same dump, compressed or not: both were taken in the same millisecond and have the
/// same figures.
fn is_same(a: &Summary, b: &Summary) -> bool {
    let figures = |s: &Summary| {
        let info = &s.info;
        (info.taken_ms, info.objects, info.reachable_bytes)
    };
    figures(a) == figures(b) && a.classes == b.classes
}

impl Doubt<'_> {
    fn warning(&self) -> Warning {
        let both = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        match self {
            Self::Incomplete(info) => {
                let path = info.path.clone();
                let parked = MissingRoots::ParkedThreads.root_kind();
                match info.assumed_roots.as_ref().map(|roots| &*roots.kind) {
                    None => Warning::Damaged { path },
                    Some(kind) if kind == parked.name() => Warning::NoParkedFrames { path },
                    Some(_) => Warning::NoRoots { path },
                }
            }
            Self::Same(a, b) if a == b => Warning::NamedTwice {
                path: (*a).to_owned(),
            },
            Self::Same(a, b) => {
                let (first, second) = both(a, b);
                Warning::SameDump { first, second }
            }
            Self::Order(a, b) => {
                let (first, second) = both(a, b);
                Warning::Order { first, second }
            }
            Self::Apart(a, b, apart) => {
                let (first, second) = both(a, b);
                match apart {
                    Apart::Programs { common, of } => Warning::TwoPrograms {
                        first,
                        second,
                        common: *common,
                        of: *of,
                    },
                    Apart::Jvms(why) => Warning::TwoJvms {
                        first,
                        second,
                        why: why.clone(),
                    },
                }
            }
        }
    }
}

impl fmt::Display for Doubt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.warning().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use hprof::{Options, Silent, Snapshot};

    use super::*;
    use heapdiff_model::diff::{AgentInfo, AssumedRoots};

    fn doubt_texts(summaries: &[Summary]) -> Vec<String> {
        doubts(summaries).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn each_doubt_about_a_comparison_is_reported() {
        let open = |name: &str| {
            let path = std::path::Path::new("../testdata").join(name);
            let snapshot = Snapshot::open(&path, &Options::default(), &Silent).unwrap();
            Summary::new(&snapshot, name.to_owned()).unwrap()
        };
        let before = open("sampled-before.hprof.gz");
        let after = open("sampled-after.hprof.gz");
        let pair = |change: &dyn Fn(&mut Summary)| {
            let mut after = after.clone();
            change(&mut after);
            doubt_texts(&[before.clone(), after])
        };
        assert_eq!(pair(&|_| {}), [""; 0], "one JVM, in order, whole");
        let [damaged] = &pair(&|s| s.info.partial = true)[..] else {
            panic!("one doubt")
        };
        assert!(
            damaged.starts_with("sampled-after.hprof.gz is damaged"),
            "{damaged}"
        );
        let rootless = |missing: MissingRoots| {
            pair(&|s| {
                s.info.partial = true;
                s.info.assumed_roots = Some(AssumedRoots {
                    kind: missing.root_kind().name().into(),
                    objects: 3,
                    retained_bytes: 100,
                });
            })
        };
        let [parked] = &rootless(MissingRoots::ParkedThreads)[..] else {
            panic!("one doubt")
        };
        let no_frames = "sampled-after.hprof.gz has no frames of parked virtual threads (JDK 19 to 21), so reachable objects";
        let unsure = "may count as unreachable, and unreachable objects as reachable";
        assert!(
            parked.starts_with(no_frames) && parked.ends_with(unsure),
            "{parked}"
        );
        let [core] = &rootless(MissingRoots::Frames)[..] else {
            panic!("one doubt")
        };
        let no_roots =
            "sampled-after.hprof.gz has no Java frames, no JNI globals and no system classes";
        assert!(
            core.starts_with(no_roots) && core.ends_with(unsure),
            "{core}"
        );
        let early = pair(&|s| s.info.taken_ms = 1);
        assert_eq!(
            early,
            ["sampled-after.hprof.gz was taken before sampled-before.hprof.gz"]
        );
        // The agents have different process IDs, so the dumps are of two JVMs.
        let agent = AgentInfo {
            pid: 4711,
            ..after.info.agent.clone().unwrap()
        };
        let mut other = after.clone();
        let snapshot = Snapshot::open(
            "../testdata/sampled-after.hprof.gz".as_ref(),
            &Options::default(),
            &Silent,
        );
        other.origin = crate::origin::Origin::from_snapshot(&snapshot.unwrap(), Some(&agent));
        let [two] = &doubt_texts(&[before.clone(), other])[..] else {
            panic!("one doubt")
        };
        assert!(two.contains("come from two JVMs (processes "), "{two}");
        // This is the same dump under another name. Its file size differs because it is compressed.
        let mut copy = before.clone();
        copy.info.path = "copy.hprof".to_owned();
        copy.info.bytes += 1;
        let same = doubt_texts(&[before.clone(), copy, after.clone()]);
        assert_eq!(
            same,
            ["sampled-before.hprof.gz and copy.hprof are the same dump"]
        );
        let twice = doubt_texts(&[before.clone(), before.clone()]);
        let twice_said =
            "sampled-before.hprof.gz is given twice: a dump does not differ from itself";
        assert_eq!(twice, [twice_said]);
        let mut idle = before.clone();
        idle.info.taken_ms += 1000;
        assert_eq!(
            doubt_texts(&[before.clone(), idle]),
            [""; 0],
            "nothing happened in between"
        );
        let shop = open("before.hprof.gz");
        let [programs] = &doubt_texts(&[shop, before])[..] else {
            panic!("one doubt")
        };
        assert!(
            programs.contains("come from different programs (they share 0 of 2 class names)"),
            "{programs}"
        );
    }
}
