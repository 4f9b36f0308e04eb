//! Detects two leaks of buffers: memory of direct buffers outside of the heap, and small views that keep large arrays
//! alive.

use heapdiff_units::Size;
use hprof::ObjectIndex;
use hprof::answers::{Content, FieldValue, Value};
use hprof::records::Kind;

use super::Finding;
use crate::evidence::context::SuspectContext;
use crate::names;
use crate::sentence::Evidence;
use crate::trie::StepId;

const LOOKED_AT: usize = 256;
/// A view is small if it covers at most 1/8 of its array.
const SMALL_PART: u64 = 8;
/// Suffix of the names of classes such as `ArrayList$SubList`, which are views of a list.
const SUB_LIST: &str = "List$SubList";
/// Arrays with fewer elements than this are ignored.
const LARGE: u32 = 256;

/// Detects direct byte buffers. Their memory is not part of the heap, so the heap's figures do not contain it.
pub(super) fn direct(context: &SuspectContext<'_>) -> Option<Finding> {
    let (first, last) = context.off_heap();
    let named = context.of_kind("java.nio.DirectByteBuffer");
    if last.bytes <= first.bytes || (named.is_none() && last.bytes - first.bytes < 1 << 20) {
        return None;
    }
    let sentence = Evidence::DirectBuffers {
        size: Size(last.bytes),
        before: (!context.is_alone()).then_some(Size(first.bytes)),
        buffers: context.changed(first.buffers, last.buffers, "buffers"),
    };
    Some(Finding::new("direct-buffer", sentence))
}

/// Detects views (slices) that keep a large buffer alive although they use only a small part of it.
pub(super) fn slice(context: &SuspectContext<'_>) -> Option<Finding> {
    // Check the trie nodes on the path from the suspect's content down to the named trie node. Use the first trie node
    // at which at least half of the objects read, and at least eight objects, are small views.
    let content = context.candidate.content.first().copied()?;
    let from = context.steps.iter().position(|&s| s == content)?;
    let views = context.steps[from..].iter().copied();
    views
        .filter(|&s| may_be_view(context.class(s)))
        .find_map(|step| {
            let Slices {
                small,
                checked,
                used,
                pinned,
            } = context.fact(step, |_| slices(context, step), |facts| facts.slices)?;
            let class = context.class(step).to_owned();
            let sentence = if class.ends_with(SUB_LIST) {
                Evidence::ListSlices {
                    small,
                    checked,
                    class,
                    used,
                    pinned,
                }
            } else {
                Evidence::ArraySlices {
                    small,
                    checked,
                    class,
                    used: Size(used),
                    pinned: Size(pinned),
                }
            };
            Some(Finding::new("slice", sentence))
        })
}

/// True if objects of a class may be views of an array or a list.
pub(crate) fn may_be_view(class: &str) -> bool {
    !class.ends_with("[]") && (!names::is_container(class) || class.ends_with(SUB_LIST))
}

/// The views among the objects of a trie node that use only a small part of their array or list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slices {
    pub(crate) small: u64,
    /// Number of objects that were read.
    pub(crate) checked: u64,
    /// Size of the parts that these views use (`used`), and of the whole arrays or lists (`pinned`). The unit is bytes
    /// for arrays, and elements for lists.
    pub(crate) used: u64,
    pub(crate) pinned: u64,
}

/// Counts the small views among a trie node's objects. A small view uses at most 1/8 of its array or list. Returns
/// `None` if fewer than half of the objects that were read are small views, or fewer than eight.
pub(crate) fn slices(context: &SuspectContext<'_>, step: StepId) -> Option<Slices> {
    let some = context.members(step, LOOKED_AT);
    if context.class(step).ends_with(SUB_LIST) {
        return sub_lists(context, &some);
    }
    let (mut small, mut used, mut pinned) = (0, 0, 0);
    for record in context.read(&some) {
        if let Content::Instance(fields) = &record.content
            && let Some((part, all)) = view(context, fields)
        {
            small += 1;
            used += part;
            pinned += all;
        }
    }
    let checked = some.len() as u64;
    (small >= 8 && small * 2 >= checked).then_some(Slices {
        small,
        checked,
        used,
        pinned,
    })
}

/// Returns the views that cover at most 1/8 of their lists. Returns `None` under the same conditions as [`slices`].
fn sub_lists(context: &SuspectContext<'_>, some: &[ObjectIndex]) -> Option<Slices> {
    let roots = context.field(some, "root");
    let views = some.iter().zip(roots);
    let views = views.filter_map(|(&view, root)| Some((view, root?)));
    let (views, lists): (Vec<ObjectIndex>, Vec<ObjectIndex>) = views.unzip();
    let number = |n: Option<i64>| n.and_then(|n| u64::try_from(n).ok());
    let sizes = context.number(&views, "size").into_iter();
    let sizes = sizes.zip(context.number(&lists, "size"));
    let sizes = sizes.filter_map(|(view, list)| Some((number(view)?, number(list)?)));
    let is_small = |s: &(u64, u64)| s.0.saturating_mul(SMALL_PART) <= s.1;
    let small: Vec<(u64, u64)> = sizes.filter(is_small).collect();
    if small.len() < 8 || small.len() * 2 < some.len() {
        return None;
    }
    let sum =
        |part: &dyn Fn(&(u64, u64)) -> u64| small.iter().map(part).fold(0, u64::saturating_add);
    Some(Slices {
        small: small.len() as u64,
        checked: some.len() as u64,
        used: sum(&|s| s.0),
        pinned: sum(&|s| s.1),
    })
}

/// If an object is a small view of an array, returns two numbers of bytes: the bytes of the array that the view uses,
/// and the bytes of the whole array.
fn view(context: &SuspectContext<'_>, fields: &[FieldValue<'_>]) -> Option<(u64, u64)> {
    let arrays = fields.iter().filter_map(|f| {
        let array: ObjectIndex = f.value.and_then(Value::object)?;
        let class = context.dump()?.class(array)?;
        let element = class.element.filter(|&e| e != Kind::Object)?;
        let len = context.dump()?.array_length(array)?;
        Some((len, element.size(8) as u64))
    });
    let (len, size) = arrays.max_by_key(|&(len, size)| u64::from(len) * size)?;
    // A view has fields for a length and a start. A buffer that is merely not full has no start.
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
