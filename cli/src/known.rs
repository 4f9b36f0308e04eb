//! `--ignore FILE`: growth that is known, so that gates trip for what is new.

use std::fs;
use std::path::{Path, PathBuf};

use heapdiff_diff::Suspect;
use heapdiff_report::Frame;
use regex::Regex;

use crate::failure::{Failure, Result, plain};

/// Rules, one a line.
#[derive(Debug)]
pub(crate) struct Known {
    path: PathBuf,
    rules: Vec<Rule>,
}

/// What a rule looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The field that holds.
    Holder,
    /// The class that accumulates.
    Class,
    /// Methods that allocated more than half of the sampled growth.
    Frame,
}

#[derive(Debug)]
struct Rule {
    line: usize,
    text: String,
    kind: Kind,
    pattern: Regex,
}

impl Known {
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path)
            .map_err(|e| Failure::usage(format!("--ignore {}: {}", path.display(), plain(&e))))?;
        Self::parse(path, &text)
    }

    fn parse(path: &Path, text: &str) -> Result<Self> {
        let mut rules = Vec::new();
        for (line, text) in (1..).zip(text.lines()) {
            let text = without_comment(text);
            if text.is_empty() {
                continue;
            }
            let rule = rule(line, text).map_err(|why| {
                Failure::usage(format!("--ignore {}:{line}: {why}", path.display())).with_hint(
                    "rules are: holder PATTERN, class PATTERN, frame PATTERN; `*` is any text",
                )
            })?;
            rules.push(rule);
        }
        Ok(Self {
            path: path.to_owned(),
            rules,
        })
    }

    /// Parts suspects that are known, with the rule that says so, from those that are not; and says
    /// which rules fit none.
    pub(crate) fn part(
        &self,
        suspects: Vec<Suspect>,
    ) -> (Vec<Suspect>, Vec<(Suspect, String)>, Vec<String>) {
        let (mut new, mut known) = (Vec::new(), Vec::new());
        let mut used = vec![false; self.rules.len()];
        for suspect in suspects {
            let mut first = None;
            for (rule, used) in self.rules.iter().zip(&mut used) {
                if rule.fits(&suspect) {
                    *used = true;
                    first = first.or(Some(rule));
                }
            }
            match first {
                Some(rule) => {
                    let said = format!("{}:{}: {}", self.path.display(), rule.line, rule.text);
                    known.push((suspect, said));
                }
                None => new.push(suspect),
            }
        }
        let unused = self.rules.iter().zip(used).filter(|(_, used)| !used);
        let unused = unused.map(|(rule, _)| {
            let path = self.path.display();
            format!("{path}:{}: no suspect fits `{}`", rule.line, rule.text)
        });
        let unused = unused.collect();
        for (suspect, rank) in new.iter_mut().zip(1..) {
            suspect.rank = rank;
        }
        (new, known, unused)
    }
}

/// A `#` begins a comment at the start of a line and after a space.
fn without_comment(line: &str) -> &str {
    let comment = line.char_indices().find(|&(at, c)| {
        c == '#'
            && line[..at]
                .chars()
                .next_back()
                .is_none_or(char::is_whitespace)
    });
    comment.map_or(line, |(at, _)| &line[..at]).trim()
}

fn rule(line: usize, text: &str) -> std::result::Result<Rule, String> {
    let (kind, pattern) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let kind = match kind {
        "holder" => Kind::Holder,
        "class" => Kind::Class,
        "frame" => Kind::Frame,
        other => return Err(format!("`{other}` begins no rule")),
    };
    let pattern = pattern.trim();
    if pattern.is_empty() {
        return Err(format!("`{text}` has no pattern"));
    }
    let regex = pattern.strip_prefix('/').and_then(|p| p.strip_suffix('/'));
    let pattern = match regex {
        Some(regex) => crate::args::pattern(regex).map_err(|e| format!("{pattern}: {e}"))?,
        None => glob(pattern).map_err(|e| e.to_string())?,
    };
    Ok(Rule {
        line,
        text: text.to_owned(),
        kind,
        pattern,
    })
}

/// Matches a whole name; `*` is any text, `?` any character.
fn glob(glob: &str) -> std::result::Result<Regex, regex::Error> {
    let mut pattern = String::from("^(?s:");
    for c in glob.chars() {
        match c {
            '*' => pattern += ".*",
            '?' => pattern.push('.'),
            c => pattern += &regex::escape(c.encode_utf8(&mut [0; 4])),
        }
    }
    Regex::new(&(pattern + ")$"))
}

impl Rule {
    fn fits(&self, suspect: &Suspect) -> bool {
        match self.kind {
            Kind::Holder => self.pattern.is_match(&suspect.holder),
            Kind::Class => self.pattern.is_match(&suspect.class),
            Kind::Frame => {
                let passes = |frame: &String| self.pattern.is_match(Frame::parse(frame).function);
                let (mut all, mut through) = (0_u128, 0_u128);
                for stack in &suspect.stacks {
                    let bytes = u128::from(stack.estimated_bytes);
                    all += bytes;
                    if stack.frames.iter().any(passes) {
                        through += bytes;
                    }
                }
                2 * through > all
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use heapdiff_diff::Verdict;
    use heapdiff_report::synthetic::{stack, suspect};

    use super::*;

    fn known(text: &str) -> Known {
        Known::parse(Path::new("known.txt"), text).unwrap()
    }

    #[test]
    fn rules_fit_whole_names() {
        let suspects = || {
            let holders = ["a.Cache.map", "a.Cache.mapped", "b.List.all"];
            holders
                .map(|h| suspect(1, h, Verdict::Growth, 800))
                .to_vec()
        };
        let rules =
            known("# known\nholder a.Cache.map  # the cache\n\nclass b.*\nholder /^b[.]/\n");
        let (new, known, unused) = rules.part(suspects());
        assert_eq!(new.len(), 1);
        assert_eq!((new[0].rank, &*new[0].holder), (1, "a.Cache.mapped"));
        let said: Vec<&str> = known.iter().map(|k| &*k.1).collect();
        assert_eq!(
            said,
            [
                "known.txt:2: holder a.Cache.map",
                "known.txt:5: holder /^b[.]/"
            ]
        );
        assert_eq!(unused, ["known.txt:4: no suspect fits `class b.*`"]);
    }

    #[test]
    fn frames_are_those_of_most_of_the_growth() {
        let mut one = suspect(1, "a.Cache.map", Verdict::Growth, 800);
        one.stacks = vec![stack("a.Main.main(M.java:1) a.Warm.up(W.java:3)", 60, 0)];
        let fits = |s: &Suspect| known("frame a.Warm.*").rules[0].fits(s);
        assert!(fits(&one));
        one.stacks.push(stack("a.Main.main(M.java:1)", 60, 0));
        assert!(!fits(&one), "half is not most");
        one.stacks.clear();
        assert!(!fits(&one));
    }

    #[test]
    fn what_is_no_rule_is_named() {
        for (text, why) in [
            ("holders a", "known.txt:1: `holders` begins no rule"),
            ("\nclass", "known.txt:2: `class` has no pattern"),
            ("class /(/", "known.txt:1: /(/: unclosed group"),
        ] {
            let failure = Known::parse(Path::new("known.txt"), text).unwrap_err();
            assert!(failure.message.contains(why), "{}", failure.message);
        }
        assert!(glob("a.$[]*?").unwrap().is_match("a.$[]xyz"));
    }
}
