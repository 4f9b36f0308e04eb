//! A web page that contains only a flame graph, with callers first or with callees first.

use std::io::{self, Write};

use askama::Template;
use heapdiff_diff::Allocated;
use regex::Regex;

use super::{STYLE, flame_data, parts, policy, wrapped};
use crate::printable::printable;
use crate::stacks::{Names, Stacks};
use crate::svg::Measured;

/// Script of this page. It comes after [`parts`], which it uses.
const SCRIPT: &str = include_str!("../../assets/stacks.js");
/// Maximum number of frames in each of the two flame graphs: with callers first, and with callees first.
const FRAMES: usize = 200_000;

/// The content of the page.
#[derive(Clone, Copy, Debug)]
pub struct StackPage<'a> {
    /// All stacks.
    pub allocated: &'a Allocated,
    /// The unit and meaning of the figures of the stacks.
    pub measured: Measured,
    /// The pattern of `--focus`. Stacks begin with their outermost frame that matches the pattern.
    pub focus: Option<&'a Regex>,
    /// True if the page shows callees first when it is opened.
    pub reverse: bool,
    /// Names of the files from which the figures come.
    pub of: &'a [String],
    /// Warnings that the page shows.
    pub warnings: &'a [String],
}

#[derive(Template)]
#[template(path = "stacks.html")]
struct Page<'a> {
    policy: String,
    title: &'a str,
    style: &'a str,
    script: &'a str,
    of: Vec<String>,
    basis: &'a str,
    warnings: Vec<String>,
    cut: Vec<String>,
    focus: Option<String>,
    reverse: bool,
    estimated: bool,
    callers: String,
    callees: String,
}

/// Words for the sentence that says how many small frames a flame graph leaves out. The first text names the flame
/// graph. The second text follows the number of bytes of these frames.
const CALLERS: (&str, &str) = ("flame graph", "in total");
const CALLEES: (&str, &str) = ("flame graph with callees first", "in total");

/// Writes the page.
///
/// # Errors
/// Returns an error if the stream fails, or `InvalidInput` if there is nothing to draw.
pub fn render_stacks(page: &StackPage<'_>, out: &mut dyn Write) -> io::Result<()> {
    let stacks = Stacks::new(page.allocated, page.focus, Names::Functions);
    if stacks.lines.iter().all(|l| l.after.bytes == 0) {
        return Err(page.measured.nothing_to_draw(page.focus));
    }
    let mut cut = Vec::new();
    let callers = flame_data(page.allocated, &stacks, FRAMES, CALLERS, &mut cut)?;
    let reversed = stacks.reversed();
    let callees = flame_data(page.allocated, &reversed, FRAMES, CALLEES, &mut cut)?;
    let script = wrapped(&[&parts(), SCRIPT]);
    let all = |texts: &[String]| texts.iter().map(|t| printable(t).into_owned()).collect();
    let page = Page {
        policy: policy(&script),
        title: page.measured.title(),
        style: STYLE,
        script: &script,
        of: all(page.of),
        basis: page.measured.basis(),
        warnings: all(page.warnings),
        cut,
        focus: page.focus.map(|f| printable(f.as_str()).into_owned()),
        reverse: page.reverse,
        estimated: matches!(page.measured, Measured::Estimated | Measured::Allocated),
        callers,
        callees,
    };
    let page = page.render().map_err(io::Error::other)?;
    out.write_all(page.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::HOSTILE;
    use crate::tests::allocated;

    fn rendered(allocated: &Allocated, focus: Option<&Regex>, reverse: bool) -> String {
        let of = ["a.hprof".to_owned(), HOSTILE.to_owned()];
        let page = StackPage {
            allocated,
            measured: Measured::Allocated,
            focus,
            reverse,
            of: &of,
            warnings: &[HOSTILE.to_owned()],
        };
        let mut out = Vec::new();
        render_stacks(&page, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_page_holds_both_trees_and_names_stay_data() {
        let all = allocated(&[
            ("a.Main.main b.B.b", HOSTILE, [0, 5]),
            ("c.C.c", "Y", [0, 3]),
        ]);
        let page = rendered(&all, None, false);
        assert_eq!(
            page.matches("<script").count(),
            3,
            "two of data, one that runs"
        );
        assert!(!page.contains("window.hacked=1</script>"), "{page}");
        assert!(page.contains("Allocated bytes by stack, alive or not"));
        assert!(page.contains("Estimated from allocation samples"));
        let data = |id: &str| {
            let start = format!("<script type=\"application/json\" id=\"{id}\">");
            let (_, rest) = page.split_once(&start).unwrap();
            let (json, _) = rest.split_once("</script>").unwrap();
            serde_json::from_str::<serde_json::Value>(json).unwrap()
        };
        let (callers, callees) = (data("callers"), data("callees"));
        assert_eq!(callers["names"], callees["names"]);
        assert_ne!(callers["tree"], callees["tree"]);
        assert_eq!(page, rendered(&all, None, false), "the same on every run");
    }

    #[test]
    fn the_order_is_chosen_and_a_focus_without_match_is_refused() {
        let all = allocated(&[("a.Main.main", "X", [0, 5])]);
        let chosen = "<option value=\"callees\" selected>";
        assert!(rendered(&all, None, true).contains(chosen));
        assert!(!rendered(&all, None, false).contains(chosen));
        let nowhere = Regex::new("nowhere").unwrap();
        let page = StackPage {
            allocated: &all,
            measured: Measured::Estimated,
            focus: Some(&nowhere),
            reverse: false,
            of: &[],
            warnings: &[],
        };
        let refused = render_stacks(&page, &mut Vec::new()).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn truncation_of_each_graph_is_reported_by_its_name() {
        let lines = [
            ("a.A.a;a.B.b;a.C.c", "X", [0, 5]),
            ("a.D.d;a.E.e", "Y", [0, 3]),
        ];
        let all = allocated(&lines);
        let stacks = Stacks::new(&all, None, Names::Functions).reversed();
        let cut_to = |most: usize| {
            let mut cut = Vec::new();
            flame_data(&all, &stacks, most, CALLEES, &mut cut).unwrap();
            cut.concat()
        };
        let name = "flame graph with callees first";
        assert!(cut_to(1).starts_with(&format!("The {name} shows the 1 largest frames")));
        assert!(!cut_to(FRAMES).contains(name));
    }
}
