//! Writes JSON and text of limited size, for readers with little room, such as AI assistants.
//!
//! Lists are cut to their first elements, and the middle of long strings is removed. Larger reports are cut more. The
//! key `left_out` has the number of elements that were removed from each list. All other keys are the same as in a
//! complete JSON report.

use heapdiff_units::counted;
use serde_json::{Map, Value, json};

use crate::printable::shorten_middle;
use crate::report::Report;

/// The JSON key of an object that contains, for each cut list, the number of elements that were removed from it.
const LEFT_OUT: &str = "left_out";

/// The limits to which a report is cut.
struct Cut {
    /// Maximum number of elements of a list at the top level of the report.
    rows: usize,
    /// Maximum number of elements of a list that is inside an element of another list.
    nested: usize,
    /// Maximum number of frames of a stack.
    frames: usize,
    /// Maximum number of columns of a query.
    columns: usize,
    /// Maximum width of a string, in columns of a terminal.
    text: usize,
}

/// Sets of limits, the least strict first. [`data`] uses the first set with which the report is short enough.
const CUTS: [Cut; 7] = {
    const fn cut(rows: usize, nested: usize, frames: usize, columns: usize, text: usize) -> Cut {
        Cut {
            rows,
            nested,
            frames,
            columns,
            text,
        }
    }
    [
        cut(200, 20, 24, 64, 300),
        cut(100, 10, 16, 64, 200),
        cut(50, 6, 12, 64, 160),
        cut(20, 4, 10, 32, 120),
        cut(10, 3, 8, 16, 100),
        cut(4, 2, 6, 8, 80),
        cut(1, 1, 3, 4, 60),
    ]
};

/// Cuts a report so that it has at most `room` bytes, as JSON without spaces. Returns `None` if the report is too long
/// even with the strictest limits.
///
/// Lists that have one figure for each dump are not cut. The key `left_out` of the result has the number of removed
/// elements of each list, under the keys that lead to the list, joined by dots. For example, it has
/// `"suspects.stacks": 4` if four stacks were removed from all suspects together. `more` has the numbers of elements
/// that the report already lacked before this call, by list.
#[must_use]
pub fn data(report: &Value, more: &[(&str, u64)], room: usize) -> Option<Value> {
    CUTS.iter().find_map(|cut| {
        let mut cutting = Cutting {
            cut,
            left_out: Map::new(),
        };
        let mut kept = cutting.value(report, "", 0);
        for &(list, count) in more {
            cutting.record_omitted(list, count);
        }
        if let (Value::Object(kept), false) = (&mut kept, cutting.left_out.is_empty()) {
            kept.insert(LEFT_OUT.to_owned(), Value::Object(cutting.left_out));
        }
        (kept.to_string().len() <= room).then_some(kept)
    })
}

/// Returns the first lines of a text. If lines are omitted, their number follows as the last line. As a JSON string,
/// the result has at most `room` bytes. If a line has more than 200 columns, its middle is removed.
#[must_use]
pub fn text(text: &str, room: usize) -> String {
    const LINE: usize = 200;
    let size = |text: &str| Value::from(text).to_string().len();
    let mut kept = String::new();
    let more = |lines: u64| format!("(and {})\n", counted(lines, "more line"));
    let mut left = room.saturating_sub(size(&more(u64::MAX)));
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let line = format!("{}\n", shorten_middle(line, LINE));
        match left.checked_sub(size(&line)) {
            Some(rest) => left = rest,
            None => {
                kept += &more(1 + lines.count() as u64);
                break;
            }
        }
        kept += &line;
    }
    kept
}

/// Returns how many elements each list of a JSON report lacks because of the option `--top`. For suspects, the number
/// may be too low: some reports record only whether there are more suspects.
#[must_use]
pub fn left_out(report: &Report) -> Vec<(&'static str, u64)> {
    let rest = |all: u64, listed: usize| all.saturating_sub(listed as u64);
    let lists = match report {
        Report::Diff(r) => vec![
            ("suspects", r.more.more_suspects.len() as u64),
            ("classes", r.more.more_classes as u64),
        ],
        Report::Heap(r) => vec![
            ("suspects", u64::from(r.more.more_suspects)),
            ("classes", r.more.more_classes as u64),
        ],
        Report::Histo(r) => vec![("classes", rest(r.totals.classes, r.classes.len()))],
        Report::Sizeof(r) => vec![
            ("objects", rest(r.set.objects, r.objects.len())),
            ("by_class", r.more.more_classes.0),
        ],
        Report::Sites(r) if r.by == "class" => {
            vec![("classes", rest(r.more.class_count, r.classes.len()))]
        }
        Report::Sites(r) => vec![("stacks", rest(r.totals.stacks, r.stacks.len()))],
        Report::Allocated(r) if r.by == "class" => {
            vec![("classes", rest(r.totals.rows, r.classes.len()))]
        }
        Report::Allocated(r) => vec![("stacks", rest(r.totals.rows, r.stacks.len()))],
        // Other reports need no entry here: either their JSON already contains the number of missing elements, or
        // `--top` does not limit their lists.
        _ => Vec::new(),
    };
    let is_cut = |list: &(&str, u64)| list.1 > 0;
    lists.into_iter().filter(is_cut).collect()
}

/// The state while a report is cut: the limits, and the numbers of elements that were removed so far.
struct Cutting<'a> {
    cut: &'a Cut,
    left_out: Map<String, Value>,
}

impl Cutting<'_> {
    /// Returns the value, cut to the limits. `depth` is the number of JSON lists that contain the value. The recursion
    /// needs no limit, because a report is nested only as deeply as its Rust structs.
    fn value(&mut self, value: &Value, path: &str, depth: usize) -> Value {
        match value {
            Value::String(text) => shorten_middle(text, self.cut.text).into(),
            Value::Array(list) => {
                let kept = list.len().min(self.limit(list, path, depth));
                self.record_omitted(path, (list.len() - kept) as u64);
                let list = list.iter().take(kept);
                list.map(|value| self.value(value, path, depth + 1))
                    .collect()
            }
            Value::Object(map) => {
                let below = |key: &String| match path {
                    "" => key.clone(),
                    _ => format!("{path}.{key}"),
                };
                let kept = map
                    .iter()
                    .map(|(key, value)| (key.clone(), self.value(value, &below(key), depth)));
                Value::Object(kept.collect())
            }
            other => other.clone(),
        }
    }

    /// Returns how many elements of a list are kept.
    fn limit(&self, list: &[Value], path: &str, depth: usize) -> usize {
        let name = path.rsplit('.').next().unwrap_or(path);
        match (name, depth) {
            // Other lists have one figure for each dump, in the order of the list of dumps. So the list of dumps must
            // stay complete.
            ("snapshots" | "dumps", 0) => usize::MAX,
            ("rows", 1) | ("columns", 0) => self.cut.columns,
            _ if list.iter().all(Value::is_number) => usize::MAX,
            ("frames", _) => self.cut.frames,
            (_, 0) => self.cut.rows,
            _ => self.cut.nested,
        }
    }

    fn record_omitted(&mut self, list: &str, count: u64) {
        if count > 0 {
            let before = self.left_out.get(list).and_then(Value::as_u64);
            let count = before.unwrap_or(0).saturating_add(count);
            self.left_out.insert(list.to_owned(), json!(count));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a report in which each list of names, stacks or suspects has `each` elements. Each name has `name`
    /// characters.
    fn report(each: usize, name: usize) -> Value {
        let name = "n".repeat(name);
        let names = vec![name.clone(); each];
        let stack = json!({ "frames": names, "threads": names, "class": name });
        let suspect = json!({
            "holder": name, "path": names, "reasons": names, "stacks": vec![stack; each],
            "objects": [1, 2, 3], "retained_bytes": vec![u64::MAX; 8],
        });
        json!({
            "schema": "heapdiff.diff/1",
            "snapshots": vec![json!({ "path": name, "warnings": names }); 8],
            "suspects": vec![suspect; each],
        })
    }

    #[test]
    fn small_reports_are_not_truncated() {
        let small = report(2, 10);
        assert_eq!(data(&small, &[], 100_000), Some(small));
    }

    #[test]
    fn any_report_fits() {
        for (each, name) in [(1, 100_000), (30, 50), (100, 1000), (3, 200)] {
            let kept = data(&report(each, name), &[("classes", 7)], 10_000).unwrap();
            assert!(kept.to_string().len() <= 10_000);
            assert_eq!(kept["schema"], "heapdiff.diff/1");
            assert_eq!(kept["snapshots"].as_array().unwrap().len(), 8);
            let suspect = &kept["suspects"][0];
            assert_eq!(suspect["objects"], json!([1, 2, 3]));
            assert_eq!(suspect["retained_bytes"].as_array().unwrap().len(), 8);
            assert_eq!(kept[LEFT_OUT]["classes"], 7);
        }
        assert_eq!(data(&report(1, 100), &[], 100), None);
    }

    #[test]
    fn omitted_entries_are_counted() {
        let kept = data(&report(30, 50), &[("suspects", 5)], 10_000).unwrap();
        let listed = kept["suspects"].as_array().unwrap();
        let missing = kept[LEFT_OUT]["suspects"].as_u64().unwrap();
        assert_eq!(listed.len() as u64 + missing, 35);
        let stacks: usize = listed
            .iter()
            .map(|s| s["stacks"].as_array().unwrap().len())
            .sum();
        let missing = kept[LEFT_OUT]["suspects.stacks"].as_u64().unwrap();
        assert_eq!(stacks as u64 + missing, 30 * listed.len() as u64);
    }

    #[test]
    fn rows_of_a_query_keep_their_columns() {
        let row: Vec<Value> = (0..100).map(|n| json!("x".repeat(n))).collect();
        let columns = vec![json!({ "name": "c", "type": null }); 100];
        let all = json!({ "columns": columns, "rows": vec![row; 50] });
        let kept = data(&all, &[], 10_000).unwrap();
        let columns = kept["columns"].as_array().unwrap().len();
        let rows = kept["rows"].as_array().unwrap();
        assert!(columns < 100 && !rows.is_empty());
        assert!(
            rows.iter()
                .all(|row| row.as_array().unwrap().len() == columns)
        );
    }

    #[test]
    fn a_text_keeps_its_first_lines() {
        assert_eq!(text("one\ntwo\n", 1000), "one\ntwo\n");
        let long = (0..500).map(|n| format!("line {n} \"\u{1b}\"\n"));
        let long: String = long.collect();
        let kept = text(&long, 1000);
        assert!(Value::from(&*kept).to_string().len() <= 1000);
        let lines = kept.lines().count() - 1;
        assert!(lines > 20 && kept.starts_with("line 0 "));
        assert!(kept.ends_with(&format!("(and {} more lines)\n", 500 - lines)));
        let wide = text(&"w".repeat(100_000), 1000);
        assert_eq!(wide.chars().count(), 201);
    }
}
