//! Buffers: memory outside of the heap, and small views of large arrays.

use hprof::{Content, FieldValue, Kind, ObjectIndex, Value};

use super::Finding;
use crate::case::Case;
use crate::figures::changed;
use crate::names;
use crate::size::{Size, grouped};
use crate::trie::StepId;

const LOOKED_AT: usize = 256;
/// A view is small if it covers less than this part of the array.
const SMALL_PART: u64 = 8;
/// A view of an `ArrayList`.
const SUB_LIST: &str = "List$SubList";
/// Arrays smaller than this are not worth a word.
const LARGE: u32 = 256;

/// Direct byte buffers, whose memory no heap figure shows.
pub(super) fn direct(case: &Case<'_>) -> Option<Finding> {
    let (first, last) = case.off_heap();
    let named = case.of_kind("java.nio.DirectByteBuffer");
    if last.bytes <= first.bytes || (named.is_none() && last.bytes - first.bytes < 1 << 20) {
        return None;
    }
    let sentence = format!(
        "direct byte buffers: {} outside of the heap, up from {}, in {}",
        Size(last.bytes),
        Size(first.bytes),
        changed(first.buffers, last.buffers, "buffers")
    );
    Some(Finding::new("direct-buffer", sentence))
}

/// Slices that keep a large buffer for a small part of it.
pub(super) fn slice(case: &Case<'_>) -> Option<Finding> {
    // Down from the content to what is named: the first object with an array and a length of its own.
    let content = case.candidate.content.first().copied()?;
    let from = case.steps.iter().position(|&s| s == content)?;
    let views = case.steps[from..].iter().copied();
    views
        .filter(|&s| {
            let class = case.class(s);
            !class.ends_with("[]") && (!names::is_container(class) || class.ends_with(SUB_LIST))
        })
        .find_map(|step| {
            let some = case.members(step, LOOKED_AT);
            if case.class(step).ends_with(SUB_LIST) {
                return sub_lists(case, step, &some);
            }
            let (mut small, mut used, mut pinned) = (0, 0, 0);
            for record in case.read(&some) {
                if let Content::Instance(fields) = &record.content
                    && let Some((part, all)) = view(case, fields)
                {
                    small += 1;
                    used += part;
                    pinned += all;
                }
            }
            if small < 8 || small * 2 < some.len() as u64 {
                return None;
            }
            let sentence = format!(
                "slices that pin a large buffer: {} of {} objects of class {} looked at use {} of the {} that \
                 their arrays have",
                grouped(small),
                grouped(some.len() as u64),
                case.class(step),
                Size(used),
                Size(pinned)
            );
            Some(Finding::new("slice", sentence))
        })
}

/// Views of lists.
fn sub_lists(case: &Case<'_>, step: StepId, some: &[ObjectIndex]) -> Option<Finding> {
    let roots = case.field(some, "root");
    let views = some.iter().zip(roots);
    let views = views.filter_map(|(&view, root)| Some((view, root?)));
    let (views, lists): (Vec<ObjectIndex>, Vec<ObjectIndex>) = views.unzip();
    let number = |n: Option<i64>| n.and_then(|n| u64::try_from(n).ok());
    let sizes = case.number(&views, "size").into_iter();
    let sizes = sizes.zip(case.number(&lists, "size"));
    let sizes = sizes.filter_map(|(view, list)| Some((number(view)?, number(list)?)));
    let is_small = |s: &(u64, u64)| s.0.saturating_mul(SMALL_PART) <= s.1;
    let small: Vec<(u64, u64)> = sizes.filter(is_small).collect();
    if small.len() < 8 || small.len() * 2 < some.len() {
        return None;
    }
    let sentence = format!(
        "slices that pin a large list: {} of {} objects of class {} looked at show {} of the {} elements that \
         their lists have",
        grouped(small.len() as u64),
        grouped(some.len() as u64),
        case.class(step),
        grouped(small.iter().map(|s| s.0).sum()),
        grouped(small.iter().map(|s| s.1).sum())
    );
    Some(Finding::new("slice", sentence))
}

/// How many bytes of its array an object uses, and how many there are, if it is a small view of it.
fn view(case: &Case<'_>, fields: &[FieldValue<'_>]) -> Option<(u64, u64)> {
    let arrays = fields.iter().filter_map(|f| {
        let array: ObjectIndex = f.value.and_then(Value::object)?;
        let class = case.snapshot.class(array)?;
        let element = class.element.filter(|&e| e != Kind::Object)?;
        let len = case.snapshot.array_length(array)?;
        Some((len, element.size(8) as u64))
    });
    let (len, size) = arrays.max_by_key(|&(len, size)| u64::from(len) * size)?;
    // A length, and a place to begin at: a buffer that is only not full has no such place.
    const LENGTHS: [&str; 6] = ["len", "length", "size", "limit", "capacity", "count"];
    const STARTS: [&str; 7] = [
        "off", "offset", "start", "begin", "from", "position", "index",
    ];
    let is_length = |name: &str| LENGTHS.iter().any(|l| name.ends_with(l));
    let is_start = |name: &str| STARTS.iter().any(|l| name.ends_with(l));
    let number = |wanted: &dyn Fn(&str) -> bool| {
        fields
            .iter()
            .filter(|f| wanted(&f.name.to_ascii_lowercase()))
            .filter_map(|f| u64::try_from(f.value?.integer()?).ok())
            .max()
    };
    number(&is_start)?;
    let part = number(&is_length)?;
    let is_small = len >= LARGE && part * SMALL_PART <= u64::from(len);
    is_small.then(|| (part * size, u64::from(len) * size))
}
