//! Rules that set known growth aside, so that limits on growth apply only to new growth.
//!
//! Each line has one rule, `KIND PATTERN`; `#` begins a comment.
//!
//! | kind | compared with |
//! |---|---|
//! | `holder` | the field that holds the content |
//! | `class` | the class that accumulates |
//! | `frame` | the methods that allocated |
//!
//! A pattern matches a whole name, with `*` for any string and `?` for any character. Between slashes, it is a regular
//! expression that matches anywhere.

use heapdiff_model::diff::Suspect;
use regex::Regex;
use thiserror::Error;

use crate::frame_parts::FrameParts;

/// Rules, in the order of their lines.
#[derive(Clone, Debug, Default)]
pub struct IgnoreRules {
    rules: Vec<IgnoreRule>,
}

/// The rule on one line.
#[derive(Clone, Debug)]
pub struct IgnoreRule {
    /// Line number, from 1.
    pub line: usize,
    /// The line without its comment.
    pub text: String,
    kind: RuleSubject,
    pattern: Regex,
}

/// The property of a suspect that a rule is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RuleSubject {
    /// The field that holds the content.
    Holder,
    /// The class that accumulates.
    Class,
    /// The methods that allocated more than half of the growth, according to samples.
    Frame,
}

/// An error in a line.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {fault}")]
pub struct IgnoreError {
    /// Line number, from 1.
    pub line: usize,
    /// The error.
    pub fault: IgnoreFault,
}

/// An error in a rule.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum IgnoreFault {
    /// The first word is not `holder`, `class` or `frame`.
    #[error("`{0}` is not a kind of rule")]
    Kind(String),
    /// Nothing follows the first word.
    #[error("`{0}` has no pattern")]
    NoPattern(String),
    /// The pattern is invalid.
    #[error("{pattern}: {why}")]
    Pattern {
        /// The pattern as it is written.
        pattern: String,
        /// The reason, in one line.
        why: String,
    },
}

/// Suspects, divided by the rules into new and known ones.
#[derive(Debug, Default)]
pub struct Sorted<'a> {
    /// Suspects that no [`IgnoreRule`] matches. Their ranks are numbered again from 1.
    pub new: Vec<Suspect>,
    /// Known suspects, each with the first rule that matches it.
    pub known: Vec<(Suspect, &'a IgnoreRule)>,
    /// Rules that match no suspect.
    pub unused: Vec<&'a IgnoreRule>,
}

impl IgnoreRules {
    /// Parses rules.
    ///
    /// # Errors
    /// Returns an error for the first line that is not a rule.
    pub fn parse(text: &str) -> Result<Self, IgnoreError> {
        let mut rules = Vec::new();
        for (line, text) in (1..).zip(text.lines()) {
            let text = without_comment(text);
            if !text.is_empty() {
                rules.push(rule(line, text).map_err(|fault| IgnoreError { line, fault })?);
            }
        }
        Ok(Self { rules })
    }

    /// Separates known suspects from new ones. Every suspect is compared with every rule.
    #[must_use]
    pub fn sort(&self, suspects: Vec<Suspect>) -> Sorted<'_> {
        let mut sorted = Sorted::default();
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
                Some(rule) => sorted.known.push((suspect, rule)),
                None => sorted.new.push(suspect),
            }
        }
        let rules = self.rules.iter().zip(used);
        sorted.unused = rules.filter(|(_, used)| !used).map(|(r, _)| r).collect();
        for (suspect, rank) in sorted.new.iter_mut().zip(1..) {
            suspect.rank = rank;
        }
        sorted
    }
}

/// Removes a comment from a line. A `#` begins a comment at the start of a line or after a space.
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

fn rule(line: usize, text: &str) -> Result<IgnoreRule, IgnoreFault> {
    let (kind, shown) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let kind = match kind {
        "holder" => RuleSubject::Holder,
        "class" => RuleSubject::Class,
        "frame" => RuleSubject::Frame,
        other => return Err(IgnoreFault::Kind(other.to_owned())),
    };
    let shown = shown.trim();
    if shown.is_empty() {
        return Err(IgnoreFault::NoPattern(text.to_owned()));
    }
    let regex = shown.strip_prefix('/').and_then(|p| p.strip_suffix('/'));
    let pattern = match regex {
        Some(regex) => pattern(regex),
        None => glob(shown),
    };
    Ok(IgnoreRule {
        line,
        text: text.to_owned(),
        kind,
        pattern: pattern.map_err(|why| IgnoreFault::Pattern {
            pattern: shown.to_owned(),
            why,
        })?,
    })
}

/// Builds a regular expression from a pattern that matches a whole name. In the pattern, `*` is any string and `?` any
/// character.
fn glob(glob: &str) -> Result<Regex, String> {
    let mut text = String::from("^(?s:");
    for c in glob.chars() {
        match c {
            '*' => text += ".*",
            '?' => text.push('.'),
            c => text += &regex::escape(c.encode_utf8(&mut [0; 4])),
        }
    }
    pattern(&(text + ")$"))
}

/// Compiles a regular expression that a user wrote.
///
/// # Errors
/// Returns the reason why it is invalid, in one line.
pub fn pattern(text: &str) -> Result<Regex, String> {
    Regex::new(text).map_err(|e| {
        let text = e.to_string();
        let last = text.lines().last().unwrap_or_default();
        last.strip_prefix("error: ").unwrap_or(last).to_owned()
    })
}

/// Minimum probability, in thousandths, that the objects were allocated through a frame that a rule matches. Applies to
/// suspects whose stacks are from a recording.
const SURE: u64 = 750;

impl IgnoreRule {
    fn fits(&self, suspect: &Suspect) -> bool {
        match self.kind {
            RuleSubject::Holder => self.pattern.is_match(&suspect.holder),
            RuleSubject::Class => self.pattern.is_match(&suspect.class),
            RuleSubject::Frame => {
                let passes =
                    |frame: &String| self.pattern.is_match(FrameParts::parse(frame).function);
                // The stacks of a recording are only probable. A rule that matches an improbable stack could hide a new
                // suspect. So the matching stacks together must have a high probability.
                if suspect.joined.is_some() {
                    let through = suspect
                        .stacks
                        .iter()
                        .filter(|s| s.frames.iter().any(passes));
                    let permille = through.filter_map(|s| s.probability_permille).sum::<u64>();
                    return permille >= SURE;
                }
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
    use super::*;
    use heapdiff_model::diff::{Growth, Stack, Verdict};

    fn suspect(holder: &str) -> Suspect {
        Suspect {
            rank: 1,
            verdict: Verdict::Growth,
            root: "static a.Cache".to_owned(),
            holder: holder.to_owned(),
            class: "com.acme.Entry".to_owned(),
            objects: vec![10, 20],
            shallow_bytes: vec![160, 320],
            retained_bytes: vec![800, 1600],
            growth: Growth {
                objects: 10,
                shallow_bytes: 160,
                retained_bytes: 800,
            },
            holders: 1,
            off_heap_bytes: vec![0, 0],
            ..Suspect::default()
        }
    }

    /// Returns a stack of these frames, innermost first.
    fn stack(frames: &[&str], bytes: u64) -> Stack {
        Stack {
            frames: frames.iter().map(|&f| f.to_owned()).collect(),
            class: "com.acme.Entry".to_owned(),
            samples: 10,
            estimated_bytes: bytes,
            ci95: [bytes, bytes],
            estimated_objects: 10,
            survival_permille: 1000,
            survival_known: true,
            ..Stack::default()
        }
    }

    #[test]
    fn rules_fit_whole_names() {
        let holders = ["a.Cache.map", "a.Cache.mapped", "b.List.all"];
        let text = "# known\nholder a.Cache.map  # the cache\n\nclass b.*\nholder /^b[.]/\n";
        let rules = IgnoreRules::parse(text).unwrap();
        let Sorted { new, known, unused } = rules.sort(holders.map(suspect).to_vec());
        assert_eq!(new.len(), 1);
        assert_eq!((new[0].rank, &*new[0].holder), (1, "a.Cache.mapped"));
        let said: Vec<_> = known.iter().map(|(_, r)| (r.line, &*r.text)).collect();
        assert_eq!(said, [(2, "holder a.Cache.map"), (5, "holder /^b[.]/")]);
        let unused: Vec<_> = unused.iter().map(|r| (r.line, &*r.text)).collect();
        assert_eq!(unused, [(4, "class b.*")]);
    }

    #[test]
    fn rules_for_frames_match_most_of_the_growth() {
        let rules = IgnoreRules::parse("frame a.Warm.*").unwrap();
        let fits = |s: &Suspect| rules.rules[0].fits(s);
        let mut one = suspect("a.Cache.map");
        one.stacks = vec![stack(&["a.Warm.up(W.java:3)", "a.Main.main(M.java:1)"], 60)];
        assert!(fits(&one));
        one.stacks.push(stack(&["a.Main.main(M.java:1)"], 60));
        assert!(!fits(&one), "half is not most");
        one.stacks.clear();
        assert!(!fits(&one));
    }

    #[test]
    fn a_probable_stack_sets_nothing_aside() {
        let rules = IgnoreRules::parse("frame a.Warm.*").unwrap();
        let fits = |permille: u64| {
            let mut one = suspect("a.Cache.map");
            let mut joined = stack(&["a.Warm.up(line 3)"], 60);
            joined.probability_permille = Some(permille);
            one.stacks = vec![joined];
            one.joined = Some("probably allocated in a.Warm.up".to_owned());
            rules.rules[0].fits(&one)
        };
        assert!(fits(750) && !fits(749));
    }

    #[test]
    fn invalid_rules_are_reported() {
        for (text, why) in [
            ("holders a", "line 1: `holders` is not a kind of rule"),
            ("\nclass", "line 2: `class` has no pattern"),
            ("class /(/", "line 1: /(/: unclosed group"),
        ] {
            let error = IgnoreRules::parse(text).unwrap_err();
            assert!(error.to_string().contains(why), "{error}");
        }
        assert!(glob("a.$[]*?").unwrap().is_match("a.$[]xyz"));
    }
}
