//! Checks that the results of a small run make sense.

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::Outcome;
use super::plan::Group;
use super::report::{hprof_slurp_count, report};

/// Fails if a command failed, or if its report does not match the generated heap.
pub(super) fn check(outcomes: &[Outcome]) -> Result<()> {
    for outcome in outcomes {
        if let Some(failure) = &outcome.failure {
            bail!("{} failed: {failure}", outcome.job.name);
        }
    }
    let mut counted = None;
    for outcome in outcomes.iter().filter(|outcome| outcome.job.ours) {
        let name = &outcome.job.name;
        let report = report(outcome).with_context(|| format!("{name} wrote no JSON"))?;
        match outcome.job.group {
            Group::Histogram => counted = Some(histogram(&report).context(name.clone())?),
            Group::Retained => retained(&report).context(name.clone())?,
            Group::Diff => diff(&report).context(name.clone())?,
            Group::Indexed => check_same_answer(outcome, &report, outcomes)?,
            Group::Kept => {
                diff(&report).context(name.clone())?;
                check_same_answer(outcome, &report, outcomes)?;
            }
            Group::Sizes => sizes(&report).context(name.clone())?,
            Group::Waste => waste(&report).context(name.clone())?,
        }
    }
    if let (Some(ours), Some(theirs)) = (counted, outcomes.iter().find_map(hprof_slurp_count)) {
        // hprof-slurp does not count class objects. A dump has a few thousand of them.
        ensure!(
            ours.abs_diff(theirs) < 20_000,
            "heapdiff counts {ours} objects, but hprof-slurp counts {theirs}"
        );
    }
    Ok(())
}

/// Checks that the report from an index or a cached summary equals the report from the dump itself. Does nothing if
/// this run did not also measure the job that reads the dump itself.
fn check_same_answer(outcome: &Outcome, found: &Value, outcomes: &[Outcome]) -> Result<()> {
    let name = outcome.job.name.split_once(" (").map(|(name, _)| name);
    let twin = outcomes.iter().find(|o| Some(&*o.job.name) == name);
    if let Some(expected) = twin.and_then(report) {
        ensure!(
            *found == expected,
            "{}: the report differs from the report of the same job",
            outcome.job.name
        );
    }
    Ok(())
}

fn schema(report: &Value, expected: &str) -> Result<()> {
    let found = report.get("schema").and_then(Value::as_str);
    ensure!(
        found == Some(expected),
        "the schema is {found:?}, expected {expected}"
    );
    Ok(())
}

fn rows<'a>(report: &'a Value, list: &str) -> Result<&'a [Value]> {
    let rows = report.get(list).and_then(Value::as_array);
    let rows = rows.with_context(|| format!("the report has no list `{list}`"))?;
    ensure!(!rows.is_empty(), "the list `{list}` is empty");
    Ok(rows)
}

fn number(value: &Value, key: &str) -> Result<i64> {
    let number = value.get(key).and_then(Value::as_i64);
    number.with_context(|| format!("the report has no number `{key}`"))
}

fn histogram(report: &Value) -> Result<u64> {
    schema(report, "heapdiff.histo/1")?;
    let mut sum = 0;
    for class in rows(report, "classes")? {
        sum += number(class, "objects")?;
        ensure!(
            number(class, "shallow_bytes")? >= 8 * number(class, "objects")?,
            "the objects of a class are smaller than an object header: {class}"
        );
    }
    let snapshot = report.get("snapshot").context("no snapshot")?;
    let objects = number(snapshot, "objects")?;
    ensure!(
        sum <= objects,
        "the classes have {sum} objects, but the total is {objects}"
    );
    ensure!(objects > 500_000, "only {objects} objects");
    Ok(objects.unsigned_abs())
}

fn retained(report: &Value) -> Result<()> {
    schema(report, "heapdiff.top/1")?;
    let mut last = i64::MAX;
    for object in rows(report, "objects")? {
        let retained = number(object, "retained_bytes")?;
        ensure!(
            retained <= last && retained >= number(object, "shallow_bytes")?,
            "the list is not sorted at this object, or the object's retained size is less than its shallow size: {object}"
        );
        last = retained;
    }
    Ok(())
}

fn diff(report: &Value) -> Result<()> {
    schema(report, "heapdiff.diff/1")?;
    let delta = report.get("delta").context("no delta")?;
    ensure!(number(delta, "objects")? > 0, "the heap did not grow");
    let holder = rows(report, "suspects")?[0].get("holder");
    let holder = holder.and_then(Value::as_str).unwrap_or_default();
    ensure!(
        holder.contains("AuditLog.entries"),
        "the first suspect is {holder:?}, not BigHeap$AuditLog.entries"
    );
    Ok(())
}

fn sizes(report: &Value) -> Result<()> {
    schema(report, "heapdiff.sizeof/1")?;
    let set = report.get("set").context("no set")?;
    let [objects, shallow, deep] =
        ["objects", "shallow_bytes", "deep_bytes"].map(|figure| number(set, figure));
    let (objects, shallow, deep) = (objects?, shallow?, deep?);
    ensure!(objects > 10_000, "only {objects} objects");
    ensure!(
        deep > shallow,
        "the deep size {deep} is not greater than the shallow size {shallow}"
    );
    Ok(())
}

fn waste(report: &Value) -> Result<()> {
    schema(report, "heapdiff.waste/1")?;
    let mut sum = 0;
    for kind in rows(report, "kinds")? {
        let figures = rows(kind, "bytes_to_win")?;
        sum += figures[0].as_i64().context("no figure")?;
    }
    let all = rows(report, "bytes_to_win")?[0].as_i64();
    ensure!(
        all == Some(sum) && sum > 0,
        "the total of all categories is {all:?} bytes, but the sum of the categories is {sum}"
    );
    Ok(())
}
