//! The origin of a dump: the program and the JVM process. Objects of two JVMs are unrelated, and differences between
//! two programs are not growth.

use std::collections::BTreeSet;

use heapdiff_model::diff::AgentInfo;
use heapdiff_sites::packages::is_jdk;
use hprof::Snapshot;
use hprof::answers::Value;
use hprof::bytes::hash;
use hprof::index::{Decoder, Encoder};

use crate::names;

/// Take the dump with fewer classes. If less than 1/4 of its classes are also in the other dump, the two dumps are of
/// different programs. A program that keeps running keeps its classes, and versions of one program share most of their
/// classes.
const PROGRAM: usize = 4;
/// The class loaders of the JDK's own modules, without the boot loader.
const PLATFORM: [&str; 2] = [
    "jdk.internal.loader.ClassLoaders$PlatformClassLoader",
    "sun.misc.Launcher$ExtClassLoader",
];

/// The properties that identify the JVM and the program of a dump.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origin {
    /// A random number that a JVM chooses when it starts. JDK 9 and later have it.
    salt: Option<i64>,
    /// Process ID and start time from the agent's data.
    agent: Option<(u64, u64)>,
    /// Version of the JVM.
    version: Option<String>,
    /// Hashes of the names of application classes. Generated classes are left out.
    classes: BTreeSet<u64>,
}

/// The difference between the origins of two dumps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Apart {
    /// Two programs. `common` is the number of classes that are in both dumps. `of` is the number of classes in the
    /// dump that has fewer classes.
    Programs { common: usize, of: usize },
    /// The dumps are of two JVMs. The text is the property in which they differ.
    Jvms(String),
}

impl Origin {
    pub(crate) fn from_snapshot(snapshot: &Snapshot, agent: Option<&AgentInfo>) -> Self {
        Self {
            salt: immutable_collection_salt(snapshot),
            agent: agent.map(|a| (a.pid, a.started_ms)),
            version: snapshot.jvm(),
            classes: classes(snapshot),
        }
    }

    /// Writes all properties as bytes.
    pub(crate) fn encode(&self, e: &mut Encoder) {
        e.option(self.salt, |e, salt| e.u64(salt.cast_unsigned()));
        e.option(self.agent, |e, (pid, started_ms)| {
            e.u64(pid);
            e.u64(started_ms);
        });
        e.option(self.version.as_ref(), |e, version| e.text(version));
        e.u64(self.classes.len() as u64);
        self.classes.iter().for_each(|&class| e.u64(class));
    }

    /// Reads what [`Origin::encode`] wrote.
    pub(crate) fn decode(d: &mut Decoder<'_>) -> Option<Self> {
        Some(Self {
            salt: d.option(Decoder::u64)?.map(u64::cast_signed),
            agent: d.option(|d| Some((d.u64()?, d.u64()?)))?,
            version: d.option(Decoder::text)?,
            classes: d.list(Decoder::u64)?.into_iter().collect(),
        })
    }

    /// Returns how this dump's origin differs from that of an earlier dump. Returns `None` if nothing shows a
    /// difference.
    pub(crate) fn difference_from(&self, earlier: &Self) -> Option<Apart> {
        let of = self.classes.len().min(earlier.classes.len());
        let common = self.classes.intersection(&earlier.classes).count();
        if common * PROGRAM < of {
            return Some(Apart::Programs { common, of });
        }
        if let (Some(a), Some(b)) = (&earlier.version, &self.version)
            && a != b
        {
            return Some(Apart::Jvms(format!("versions {a} and {b}")));
        }
        if let (Some(a), Some(b)) = (earlier.agent, self.agent)
            && a.0 != b.0
        {
            return Some(Apart::Jvms(format!("processes {} and {}", a.0, b.0)));
        }
        // Equal process IDs do not identify a JVM: in containers, every JVM can have the process ID 1. Different start
        // times of the agent do not show two JVMs, because one JVM may have loaded the agent twice. So if both dumps
        // have the random number `salt`, the start times are not compared.
        match (earlier.salt, self.salt, earlier.agent, self.agent) {
            (Some(a), Some(b), ..) if a != b => Some(Apart::Jvms(
                "the JDK generates a random number when a JVM starts, and the two numbers differ"
                    .to_owned(),
            )),
            (None, _, Some(a), Some(b)) | (_, None, Some(a), Some(b)) if a != b => Some(
                Apart::Jvms("their agents started at different times".to_owned()),
            ),
            _ => None,
        }
    }

    /// True if both dumps seem to be of the same JVM: `salt`, `agent` or `version` is known and equal in both dumps,
    /// and [`Self::difference_from`] finds no difference. An equal version is enough, because recordings have only the
    /// version.
    pub(crate) fn is_of_jvm_of(&self, earlier: &Self) -> bool {
        let are_equal = (self.salt.is_some() && self.salt == earlier.salt)
            || (self.agent.is_some() && self.agent == earlier.agent)
            || (self.version.is_some() && self.version == earlier.version);
        are_equal && self.difference_from(earlier).is_none()
    }
}

/// Returns the random number that the JDK's immutable collections choose when a JVM starts.
fn immutable_collection_salt(snapshot: &Snapshot) -> Option<i64> {
    let class = "java.util.ImmutableCollections";
    let class = *snapshot.classes().by_name(class).first()?;
    let value = |name| snapshot.static_value(class, name);
    match value("SALT32L").or_else(|| value("SALT"))? {
        Value::Long(salt) => Some(salt),
        Value::Int(salt) => Some(salt.into()),
        _ => None,
    }
    .filter(|&salt| salt != 0)
}

fn classes(snapshot: &Snapshot) -> BTreeSet<u64> {
    let classes = snapshot.classes();
    let of_program = classes.iter().take(classes.dumped()).filter(|(_, class)| {
        let loader = || snapshot.find(class.loader).map(|l| snapshot.name(l));
        !class.loader.is_null()
            && class.element.is_none()
            && !names::is_generated(&class.name)
            && !is_jdk(&class.name)
            && loader().is_none_or(|l| !PLATFORM.contains(&&*l))
    });
    let names = of_program.map(|(_, class)| class.name.as_bytes());
    names.map(hash).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(classes: &[&str]) -> Origin {
        Origin {
            classes: classes.iter().map(|c| hash(c.as_bytes())).collect(),
            ..Origin::default()
        }
    }

    #[test]
    fn programs_are_recognized_by_their_classes() {
        let shop = origin(&["a.Shop", "a.Cart", "a.Order", "a.Item"]);
        let starting = origin(&["a.Shop"]);
        let other = origin(&["b.Main", "b.X", "b.Y", "b.Z", "a.Item"]);
        assert_eq!(
            shop.difference_from(&starting),
            None,
            "classes are loaded later"
        );
        assert_eq!(starting.difference_from(&shop), None);
        assert_eq!(shop.difference_from(&shop), None);
        assert_eq!(shop.difference_from(&other), None, "a fourth in common");
        let far = origin(&["b.Main", "b.X", "b.Y", "b.Z"]);
        let apart = Some(Apart::Programs { common: 0, of: 4 });
        assert_eq!(shop.difference_from(&far), apart);
        assert_eq!(shop.difference_from(&origin(&[])), None, "nothing is known");
    }

    #[test]
    fn runs_are_recognized_by_their_salt_and_agent() {
        let run = |salt, agent, version: &str| Origin {
            salt,
            agent,
            version: Some(version.to_owned()),
            ..origin(&["a.Shop"])
        };
        let said = |a: &Origin, b: &Origin| match b.difference_from(a) {
            Some(Apart::Jvms(why)) => why,
            other => format!("{other:?}"),
        };
        let first = run(Some(7), Some((1, 50)), "17");
        assert_eq!(said(&first, &run(Some(7), Some((1, 60)), "17")), "None");
        assert_eq!(said(&first, &run(None, None, "17")), "None");
        let others = [
            (
                run(Some(8), None, "17"),
                "a random number when a JVM starts, and the two numbers differ",
            ),
            (run(Some(7), Some((2, 50)), "17"), "processes 1 and 2"),
            (
                run(None, Some((1, 60)), "17"),
                "their agents started at different times",
            ),
            (run(Some(7), Some((1, 50)), "25"), "versions 17 and 25"),
        ];
        for (other, why) in others {
            assert!(said(&first, &other).contains(why), "{other:?}");
            assert!(!other.is_of_jvm_of(&first), "{other:?}");
        }
        assert!(run(Some(7), None, "17").is_of_jvm_of(&first));
        assert!(run(None, None, "17").is_of_jvm_of(&first));
        let unknown = origin(&["a.Shop"]);
        assert!(!unknown.is_of_jvm_of(&first), "nothing is known");
    }
}
