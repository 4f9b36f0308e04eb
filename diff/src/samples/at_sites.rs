//! Exact counts of all allocations at each line of code, which the agent makes with `count=on`.

use std::collections::BTreeMap;

use heapdiff_sites::{Counted, CountedSite, Line, statics};
use hprof::Snapshot;

use super::agent::{Reader, Result};
use super::counting::{Leaf, Leaves};

/// Counted allocations by line of code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AtSites {
    /// Time at which the agent copied its counters into the heap, in milliseconds since 1970. The figures contain
    /// everything that was counted before this time.
    pub at_ms: u64,
    /// Time at which counting began, in milliseconds since 1970.
    pub since_ms: u64,
    /// True if JDK classes are also counted.
    pub jdk: bool,
    /// Number of sites that are not counted, because the agent had no counter left or the heap had no room.
    pub missing_sites: u64,
    /// Number of methods that are not counted, because the agent cannot insert counters into them.
    pub missing_methods: u64,
    /// Number of classes that are not counted, because the agent cannot insert counters into them.
    pub missing_classes: u64,
    /// Lines of code at which anything was allocated, sorted by bytes, descending.
    pub sites: Vec<CountedSite>,
    /// Lines of code with the sum of their allocations. Empty if counting began after sampling: samples and counts then
    /// cover different times.
    pub(super) lines: Vec<OfLine>,
    /// The line of code of each stack's first frame, by [`super::SiteId`].
    pub(super) lines_of_stacks: Vec<Option<u32>>,
}

/// The bytes counted at one line of code, summed over all classes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OfLine {
    pub(super) class: String,
    pub(super) method: String,
    pub(super) line: u32,
    /// `None` if the bytes of some allocations are unknown.
    pub(super) bytes: Option<u64>,
}

impl AtSites {
    /// Sums up the counts at each line of code that is the first frame of a stack.
    pub(super) fn add_lines(&mut self, leaves: &Leaves<'_>, stacks: usize) {
        let mut sums: BTreeMap<Leaf<'_>, Option<u64>> = BTreeMap::new();
        for site in &self.sites {
            let leaf = (&*site.class, &*site.method, site.line.unwrap_or(0));
            let sum = sums.entry(leaf).or_insert(Some(0));
            *sum = sum.zip(site.bytes).map(|(a, b)| a.saturating_add(b));
        }
        let mut numbers: BTreeMap<Leaf<'_>, u32> = BTreeMap::new();
        let (mut lines, mut of_stacks) = (Vec::new(), vec![None; stacks]);
        for (site, leaf) in leaves {
            let known = leaf.and_then(|leaf| Some((leaf, *sums.get(&leaf)?)));
            let (Some((leaf, bytes)), Some(of)) = (known, of_stacks.get_mut(site.0 as usize))
            else {
                continue;
            };
            *of = Some(*numbers.entry(leaf).or_insert_with(|| {
                let (class, method, line) = leaf;
                lines.push(OfLine {
                    class: class.to_owned(),
                    method: method.to_owned(),
                    line,
                    bytes,
                });
                u32::try_from(lines.len() - 1).unwrap_or(u32::MAX)
            }));
        }
        (self.lines, self.lines_of_stacks) = (lines, of_stacks);
    }
}

/// Class, method, line, and the allocated class.
type Place<'a> = (&'a str, &'a str, Option<u32>, &'a str);

impl Reader<'_> {
    /// Returns the counts. Returns `None` if the agent does not count, or has not copied its counters yet.
    pub(super) fn at_sites(&self) -> Result<Option<AtSites>> {
        // Older agents lack the field.
        if self.value(statics::COUNTED).is_err() {
            return Ok(None);
        }
        let head: Vec<_> = self.array(statics::COUNTED)?.into_iter().collect();
        let head = self.longs(&head).pop().unwrap_or_default();
        let figure = |place: Counted| {
            let figure = head.get(place.index()).copied().unwrap_or(0);
            u64::try_from(figure).unwrap_or(0)
        };
        if figure(Counted::At) == 0 {
            return Ok(None);
        }
        let (table, _) = self.table(statics::COUNTED_SITES)?;
        let mut sums: BTreeMap<Place<'_>, [u64; 2]> = BTreeMap::new();
        for (id, counts) in
            self.by_id::<2>(statics::COUNTED_TOTALS, table.site_ids().into_iter())?
        {
            let frame = table.frames(id).next();
            let (Some(frame), true) = (frame, counts[0] > 0) else {
                continue;
            };
            let line = match frame.line {
                Line::At(line) => Some(line),
                _ => None,
            };
            let allocated = table.class(id).unwrap_or_default();
            let sum = sums.entry((frame.class, frame.method, line, allocated));
            let sum = sum.or_default();
            *sum = [0, 1].map(|i| sum[i].saturating_add(counts[i]));
        }
        let site = |((class, method, line, allocated), [objects, bytes]): (Place<'_>, [u64; 2])| {
            let size = instance_bytes(self.snapshot, allocated);
            CountedSite {
                class: class.to_owned(),
                method: method.to_owned(),
                line,
                allocated: allocated.to_owned(),
                objects,
                // For objects that are not arrays, the agent reports bytes only if several classes have the same name.
                // Otherwise the size of the class in the dump gives the bytes.
                bytes: if allocated.ends_with("[]") || bytes > 0 {
                    Some(bytes)
                } else {
                    size.map(|size| size.saturating_mul(objects))
                },
            }
        };
        let mut sites: Vec<CountedSite> = sums.into_iter().map(site).collect();
        // The sort is stable, so sites with equal bytes stay sorted by name.
        sites.sort_by_key(|site| std::cmp::Reverse((site.bytes, site.objects)));
        Ok(Some(AtSites {
            at_ms: figure(Counted::At),
            since_ms: figure(Counted::Since),
            jdk: figure(Counted::Jdk) != 0,
            missing_sites: figure(Counted::NoRoom).saturating_add(figure(Counted::HeapFull)),
            missing_methods: figure(Counted::LeftAlone),
            missing_classes: figure(Counted::Refused),
            sites,
            ..AtSites::default()
        }))
    }
}

/// Returns the size of an instance of a class. Returns `None` if the dump does not have the class, or if it has several
/// classes of that name with different sizes.
fn instance_bytes(snapshot: &Snapshot, name: &str) -> Option<u64> {
    let classes = snapshot.classes().by_name(name);
    let mut sizes = classes.iter().map(|&class| snapshot.instance_bytes(class));
    let first = sizes.next()?;
    sizes.all(|size| size == first).then_some(first)
}
