//! Prints the path of a suspect, from its GC root to the objects that grow.

use heapdiff_diff::{is_application_frame, is_jdk_frame};

use crate::document::{Document, INDENT, WIDTH};
use crate::printable::printable;

/// Maximum number of steps shown at each end of a path, unless the user requests all. A step is an object or field on
/// the path.
const STEPS: usize = 6;
/// Minimum number of adjacent steps through JDK and framework classes that are replaced by their number.
const FOLDED: usize = 3;
/// Separator of two steps.
const ARROW: &str = " -> ";

/// A path with its holder.
pub(crate) struct HolderPath<'a> {
    pub(crate) root: &'a str,
    pub(crate) steps: &'a [String],
    pub(crate) holder: &'a str,
}

impl HolderPath<'_> {
    /// Adds the path. Each line contains as many steps as fit.
    pub(super) fn add(&self, verbose: bool, doc: &mut Document) {
        let mut steps = self.rooted();
        if !verbose {
            steps = shorten_steps(self.folded(steps));
        }
        let mut lines: Vec<String> = Vec::new();
        for step in steps {
            let step = printable(&step);
            match lines.last_mut() {
                None => lines.push(step.into_owned()),
                Some(line) if columns(line) + columns(ARROW) + columns(&step) <= WIDTH - INDENT => {
                    *line += &format!("{ARROW}{step}");
                }
                Some(_) => lines.push(format!("{}{step}", ARROW.trim_start())),
            }
        }
        for (i, text) in lines.iter().enumerate() {
            doc.pair(if i == 0 { "path" } else { "" }, text);
        }
    }

    /// Returns the GC root and the steps of the path. A class and its static field are one step.
    pub(crate) fn rooted(&self) -> Vec<String> {
        let field = self.steps.first().filter(|first| {
            let class = self.root.strip_prefix("static ");
            class.is_some_and(|class| {
                first
                    .strip_prefix(class)
                    .is_some_and(|f| f.starts_with('.'))
            })
        });
        let first = match field {
            Some(field) => format!("static {field}"),
            None => self.root.to_owned(),
        };
        let others = self.steps.iter().skip(usize::from(field.is_some()));
        std::iter::once(first).chain(others.cloned()).collect()
    }

    /// Replaces [`FOLDED`] or more adjacent steps through JDK and framework classes by their number. The first step and
    /// the holder are never replaced.
    fn folded(&self, steps: Vec<String>) -> Vec<String> {
        let mut shown = Vec::with_capacity(steps.len());
        let mut run: Vec<String> = Vec::new();
        for (i, step) in steps.into_iter().enumerate() {
            if i > 0 && step != self.holder && !is_application_frame(&step) {
                run.push(step);
                continue;
            }
            end_run(&mut run, &mut shown);
            shown.push(step);
        }
        end_run(&mut run, &mut shown);
        shown
    }
}

fn end_run(run: &mut Vec<String>, shown: &mut Vec<String>) {
    if run.len() < FOLDED {
        shown.append(run);
        return;
    }
    let jdk = run.iter().filter(|step| is_jdk_frame(step)).count();
    let whose = match jdk {
        0 => "framework",
        _ if jdk == run.len() => "JDK",
        _ => "JDK and framework",
    };
    shown.push(format!("… {} {whose} steps (-v shows them)", run.len()));
    run.clear();
}

/// Shortens a long path to its first [`STEPS`] + 1 and its last [`STEPS`] steps. Between them, the result has the
/// number of removed steps.
fn shorten_steps(mut steps: Vec<String>) -> Vec<String> {
    let hidden = steps.len().saturating_sub(2 * STEPS + 1);
    if hidden > 1 {
        let note = format!("… {hidden} more steps (-v shows them)");
        steps.splice(STEPS + 1..STEPS + 1 + hidden, [note]);
    }
    steps
}

fn columns(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::Style;
    use crate::text::tests::printed;

    fn written(root: &str, steps: &[&str], holder: &str, verbose: bool) -> String {
        let steps: Vec<String> = steps.iter().map(|&step| step.to_owned()).collect();
        let path = HolderPath {
            root,
            steps: &steps,
            holder,
        };
        let text = printed(Style::plain(), |doc| path.add(verbose, doc));
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_class_and_its_static_field_are_one_step() {
        let list = ["a.B.all", "java.util.ArrayList.elementData"];
        assert_eq!(
            written("static a.B", &list, "a.B.all", false),
            "path static a.B.all -> java.util.ArrayList.elementData"
        );
        assert_eq!(
            written("static a.B", &["a.Bee.all"], "a.Bee.all", false),
            "path static a.B -> a.Bee.all"
        );
        assert_eq!(
            written("thread a.T", &list, "a.B.all", false),
            "path thread a.T -> a.B.all -> java.util.ArrayList.elementData"
        );
    }

    #[test]
    fn steps_through_frameworks_are_folded_and_the_holder_stays() {
        let steps = [
            "org.springframework.Context.beans",
            "java.util.HashMap.table",
            "java.util.HashMap$Node[*]",
            "java.util.HashMap$Node.value",
            "org.springframework.Registry.all",
            "com.shop.Carts.open",
            "java.util.ArrayList.elementData",
        ];
        let root = "static org.springframework.Context";
        assert_eq!(
            written(root, &steps, "com.shop.Carts.open", false),
            "path static org.springframework.Context.beans -> … 4 JDK and framework steps (-v shows them) \
             -> com.shop.Carts.open -> java.util.ArrayList.elementData"
        );
        // The holder is one of the JDK and framework steps, so it divides them into two groups. Each group has too few
        // steps to be replaced by `…`.
        let all = written(root, &steps, "java.util.HashMap$Node[*]", false);
        assert!(!all.contains('…'), "{all}");
        assert!(!written(root, &steps, "com.shop.Carts.open", true).contains('…'));
    }

    #[test]
    fn steps_through_a_collection_are_jdk_steps() {
        let steps = [
            "a.B.all",
            "java.util.HashMap.table",
            "java.util.HashMap$Node[*]",
            "java.util.HashMap$Node.value",
        ];
        assert_eq!(
            written("static a.B", &steps, "a.B.all", false),
            "path static a.B.all -> … 3 JDK steps (-v shows them)"
        );
    }

    #[test]
    fn the_middle_of_a_long_path_is_left_out() {
        let steps: Vec<String> = (0..40).map(|i| format!("a.B{i}.next")).collect();
        let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
        let short = written("thread main", &steps, "a.B39.next", false);
        assert!(short.contains("a.B5.next -> … 28 more steps (-v shows them) -> a.B34.next"));
        assert!(written("thread main", &steps, "a.B39.next", true).contains("a.B20.next"));
    }
}
