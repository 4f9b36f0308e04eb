//! What the agent counted at each line of code with `count=on`, every allocation of it.

use std::collections::BTreeMap;

use heapdiff_sites::{Counted, CountedSite, Line, statics};
use hprof::Snapshot;

use super::agent::{Reader, Result};
use super::counting::{Leaf, Leaves};

/// Allocations by line of code, counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AtSites {
    /// When the agent copied its counters, in milliseconds since 1970: all that was counted until then is in the figures.
    pub at_ms: u64,
    /// When counting began, likewise.
    pub since_ms: u64,
    /// Whether classes of the JDK's are counted as well.
    pub jdk: bool,
    /// Sites that are not counted, for want of a counter or of room in the heap.
    pub missing_sites: u64,
    /// Methods that are not counted, since they cannot be rewritten.
    pub missing_methods: u64,
    /// Classes that are not counted, likewise.
    pub missing_classes: u64,
    /// Lines that allocated anything, most bytes first.
    pub sites: Vec<CountedSite>,
    /// Lines with all that they allocate; none where the count is younger than the sampling.
    pub(super) lines: Vec<OfLine>,
    /// The line of each stack's first frame, by [`super::SiteId`].
    pub(super) lines_of_stacks: Vec<Option<u32>>,
}

/// What was counted at a line of code, whatever it allocates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OfLine {
    pub(super) class: String,
    pub(super) method: String,
    pub(super) line: u32,
    /// `None` where not all are known.
    pub(super) bytes: Option<u64>,
}

impl AtSites {
    /// Adds up what is counted at the lines of stacks' first frames.
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

/// Class, method, line, and the class of what is allocated.
type Place<'a> = (&'a str, &'a str, Option<u32>, &'a str);

impl Reader<'_> {
    /// `None` where the agent does not count, or has copied nothing yet.
    pub(super) fn at_sites(&self) -> Result<Option<AtSites>> {
        // Agents of earlier versions lack the field.
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
                // Of objects the agent tells the bytes where the class's name is not its own.
                bytes: if allocated.ends_with("[]") || bytes > 0 {
                    Some(bytes)
                } else {
                    size.map(|size| size.saturating_mul(objects))
                },
            }
        };
        let mut sites: Vec<CountedSite> = sums.into_iter().map(site).collect();
        // Stable: what is equal stays in the order of names.
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

/// Bytes of an object of a class, if the dump has the class, and those of one name agree.
fn instance_bytes(snapshot: &Snapshot, name: &str) -> Option<u64> {
    let classes = snapshot.classes().by_name(name);
    let mut sizes = classes.iter().map(|&class| snapshot.instance_bytes(class));
    let first = sizes.next()?;
    sizes.all(|size| size == first).then_some(first)
}
