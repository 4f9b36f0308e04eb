//! Judges the report on a single dump: the last dump of a leak, in a run without the agent. Compares the report with
//! Eclipse MAT's report on the same dump.

use std::fmt::{self, Write as _};
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use testdata::jvm::Jdk;
use testdata::scenarios::{Expected, Scenario};

use super::ONE_DUMP;
use super::judge::{SHOWN, Share};
use super::report::OneDump;
use super::subject::{Subject, Tools};
use crate::mat::{self, Suspects, Told};

/// Number of suspects at the top of a report that a user is expected to read.
const READ: usize = 3;

/// The results for the leaks of one program on one JDK.
#[derive(Debug)]
pub(super) struct Judged {
    name: &'static str,
    jdk: u32,
    /// The results for each leak. The list is empty if this JDK lacks a feature that the program needs.
    leaks: Result<Vec<Leak>>,
}

/// The results of heapdiff and MAT for one leak.
#[derive(Debug)]
struct Leak {
    expected: Expected,
    /// Position of the holder in the list of suspects, counted from 1.
    place: Option<usize>,
    /// The first suspects in heapdiff's report, as text.
    said: String,
    /// MAT's answer and its first suspects, if the options select MAT.
    mat: Option<(Told, String)>,
}

/// Runs a leaking program and judges its last dump.
pub(super) fn judge(jdk: &Jdk, subject: &Subject, tools: &Tools<'_>, mat: Option<&Path>) -> Judged {
    Judged {
        name: subject.name(),
        jdk: jdk.major(),
        leaks: match subject {
            Subject::Leak(scenario) if scenario.runs_on(jdk) => run(jdk, scenario, tools, mat),
            _ => Ok(Vec::new()),
        },
    }
}

fn run(jdk: &Jdk, scenario: &Scenario, tools: &Tools<'_>, mat: Option<&Path>) -> Result<Vec<Leak>> {
    let (dump, one, folder) = tools.run_last_dump_only(jdk, scenario)?;
    let ask = |program: &Path| mat::suspects(program, &dump, &folder.join("mat"));
    let suspects = mat.map(ask).transpose()?;
    tools.clear(&folder)?;
    let leaks = scenario.expected();
    Ok(leaks
        .map(|of| Leak::from_report(of, &one, suspects.as_ref()))
        .collect())
}

impl Leak {
    fn from_report(expected: Expected, one: &OneDump, mat: Option<&Suspects>) -> Self {
        let is_right = |holder: &str| expected.accepts_holder(holder);
        let said: Vec<String> = one
            .suspects
            .iter()
            .take(SHOWN)
            .map(ToString::to_string)
            .collect();
        let told = |suspects: &Suspects| {
            suspects.compare_with_answers(expected.holders, &|class| expected.accepts_class(class))
        };
        Self {
            expected,
            place: one
                .suspects
                .iter()
                .position(|s| is_right(&s.holder))
                .map(|at| at + 1),
            said: said.join("; "),
            mat: mat.map(|suspects| (told(suspects), suspects.to_string())),
        }
    }

    fn is_answer_right(&self) -> bool {
        self.place.is_some_and(|place| place <= READ)
    }

    /// If exactly one of heapdiff and MAT is right, returns both answers. Otherwise returns `None`.
    fn difference(&self) -> Option<String> {
        let (told, said) = self.mat.as_ref()?;
        (told.names_field() != self.is_answer_right()).then(|| {
            format!(
                "expected `{}`\n  - heapdiff: {}\n  - MAT (the keywords of its report): {said}",
                self.expected.holders.join("` or `"),
                self.said
            )
        })
    }
}

impl fmt::Display for Judged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JDK {} {}:", self.jdk, self.name)?;
        match &self.leaks {
            Err(error) => return write!(f, " the program could not be run: {error:#}"),
            Ok(leaks) if leaks.is_empty() => {
                return write!(f, " not run, because it needs another JDK");
            }
            Ok(leaks) => {
                for leak in leaks {
                    write!(f, " {}", place(leak.place))?;
                    if let Some((told, _)) = &leak.mat {
                        write!(
                            f,
                            ", MAT: {} by field and {} by class",
                            place(told.field),
                            place(told.class)
                        )?;
                    }
                    if !leak.is_answer_right() {
                        write!(f, "\n    {}", leak.said)?;
                    }
                }
            }
        }
        Ok(())
    }
}

fn place(of: Option<usize>) -> String {
    of.map_or("-".to_owned(), |place| place.to_string())
}

/// Returns three shares of right answers: heapdiff's answers, MAT's answers that show the right field, and MAT's
/// answers that show the right field or class.
fn shares(judged: &[Judged]) -> [Share; 3] {
    let mut shares = [Share::default(); 3];
    for leak in judged
        .iter()
        .filter_map(|j| j.leaks.as_ref().ok())
        .flatten()
    {
        shares[0].count(leak.is_answer_right());
        if let Some((told, _)) = &leak.mat {
            shares[1].count(told.names_field());
            shares[2].count(told.names_class());
        }
    }
    shares
}

/// Returns the table as Markdown.
pub(super) fn table(jdks: &[Jdk], judged: &[Judged]) -> Result<String> {
    let versions: Vec<&str> = jdks.iter().map(Jdk::version).collect();
    let mut text = format!(
        "# One dump\n\nJDK {}, no agent.\n\n| | |\n|---|---|\n",
        versions.join(" and ")
    );
    let [own, field, class] = shares(judged);
    writeln!(
        text,
        "| heapdiff: the holder is among its first three suspects | {own} |"
    )?;
    if field.all > 0 {
        writeln!(
            text,
            "| MAT: the path of one of its first three suspects contains the holder | {field} |"
        )?;
        writeln!(
            text,
            "| MAT: one of these paths contains the holder, or one of these suspects has the class of the holder or of its content | {class} |"
        )?;
    }
    text.push_str(
        "\n| scenario | JDK | rank in heapdiff | rank in MAT, by field | rank in MAT, by class |\n|---|---|---|---|---|\n",
    );
    let mut differences = String::new();
    for Judged { name, jdk, leaks } in judged {
        for (number, leak) in (1..).zip(leaks.as_ref().ok().into_iter().flatten()) {
            let shown = match number {
                1 => (*name).to_owned(),
                _ => format!("{name} ({number})"),
            };
            let [field, class] = leak
                .mat
                .as_ref()
                .map_or([String::new(), String::new()], |(told, _)| {
                    [place(told.field), place(told.class)]
                });
            writeln!(
                text,
                "| {shown} | {jdk} | {} | {field} | {class} |",
                place(leak.place)
            )?;
            if let Some(both) = leak.difference() {
                writeln!(differences, "- {shown}, JDK {jdk}: {both}")?;
            }
        }
        if let Err(error) = leaks {
            writeln!(
                differences,
                "- {name}, JDK {jdk}: the program could not be run: {error:#}"
            )?;
        }
    }
    if !differences.is_empty() {
        write!(text, "\n## Where heapdiff and MAT differ\n\n{differences}")?;
    }
    Ok(text)
}

/// Fails if heapdiff's percentage of right answers (holder among the first three suspects) is below the goal.
pub(super) fn goal(judged: &[Judged]) -> Result<()> {
    let failed = judged.iter().filter(|j| j.leaks.is_err()).count();
    ensure!(failed == 0, "{failed} programs could not be run");
    let [own, ..] = shares(judged);
    let percent = own.percent().context("no program was run")?;
    if percent < ONE_DUMP {
        bail!(
            "one dump: the holder is among the first three suspects in {own}, but the goal is {ONE_DUMP} %"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accuracy::report::Holder;
    use testdata::scenarios::SESSION_REGISTRY;

    fn leak(holders: &[&str], mat: Option<Told>) -> Leak {
        let of = |holder: &&str| Holder {
            holder: (*holder).to_owned(),
            class: "a.B".to_owned(),
            retained_bytes: 7,
        };
        let one = OneDump {
            suspects: holders.iter().map(of).collect(),
        };
        let expected = SESSION_REGISTRY.expected().next().expect("its leak");
        let mut leak = Leak::from_report(expected, &one, None);
        leak.mat = mat.map(|told| (told, "1. a.B".to_owned()));
        leak
    }

    fn judged(leaks: Result<Vec<Leak>>) -> Judged {
        Judged {
            name: "session_registry",
            jdk: 17,
            leaks,
        }
    }

    const RIGHT: &str = "com.acme.shop.SessionRegistry.sessions";

    #[test]
    fn both_answers_are_shown_if_one_is_right() {
        let by_field = |place| Told {
            field: Some(place),
            class: Some(1),
        };
        assert_eq!(leak(&[RIGHT], Some(by_field(3))).difference(), None);
        assert_eq!(leak(&["A.a"], Some(by_field(4))).difference(), None);
        assert_eq!(leak(&[RIGHT], None).difference(), None);
        let ours = leak(&["A.a", RIGHT], Some(by_field(4)));
        assert_eq!(ours.place, Some(2));
        let both = ours
            .difference()
            .expect("only the first three suspects of MAT are read");
        assert!(both.contains("heapdiff: A.a holds a.B 7; com.acme") && both.ends_with("1. a.B"));
        let judged = [
            judged(Ok(vec![ours])),
            judged(Err(anyhow::anyhow!("no JVM"))),
        ];
        let table = table(&[], &judged).expect("a table");
        assert!(
            table.contains("| session_registry | 17 | 2 | 4 | 1 |"),
            "{table}"
        );
        assert!(table.contains(
            "MAT: the path of one of its first three suspects contains the holder | 0 of 1"
        ));
        assert!(table.contains("could not be run: no JVM") && goal(&judged).is_err());
    }

    #[test]
    fn without_mat_the_table_does_not_mention_it() {
        let judged = [judged(Ok(vec![leak(&[RIGHT], None)]))];
        let table = table(&[], &judged).expect("a table");
        assert!(
            !table.contains("| MAT: ") && !table.contains("differ"),
            "{table}"
        );
        assert!(goal(&judged).is_ok());
        let missed = [self::judged(Ok(vec![leak(&["A.a"], None)]))];
        assert!(goal(&missed).is_err() && goal(&[]).is_err());
    }
}
