//! Writes the index of a snapshot.

use std::io::{self, Write};

use super::codes::{MISSING_ROOTS, ORDERED, PERMUTED, RUNS, SORTED, class_hash};
use super::encode::Encoder;
use super::format::{self, ALIGN, SECTIONS, Section};
use super::gather::Gathered;
use crate::error::Warning;
use crate::graph::address::{AddressMap, Ranks};
use crate::graph::missing_roots::MissingRoots;
use crate::records::walk::RootKind;
use crate::sizes::layout::LayoutSource;
use crate::sizes::totals::{ClassTotal, Total};
use crate::snapshot::Snapshot;

fn kind(encoder: &mut Encoder, kind: RootKind) {
    let at = RootKind::ALL.iter().position(|&k| k == kind);
    encoder.u32(at.unwrap_or(RootKind::ALL.len()) as u32);
}

fn warning(encoder: &mut Encoder, warning: &Warning) {
    encoder.option(warning.offset, Encoder::u64);
    encoder.text(&warning.message);
    encoder.flag(warning.partial);
}

fn missing_code(missing: MissingRoots) -> u32 {
    let at = MISSING_ROOTS.iter().position(|&m| m == missing);
    at.unwrap_or(MISSING_ROOTS.len()) as u32
}

fn total(encoder: &mut Encoder, total: Total) {
    encoder.u64(total.objects);
    encoder.u64(total.bytes);
}

/// Returns true if an index of this dump can be written. The dump has to be an uncompressed file whose size and
/// modification time have not changed since it was loaded.
#[must_use]
pub fn can_be_written(snapshot: &Snapshot) -> bool {
    let source = snapshot.source();
    let meta = std::fs::metadata(source.path());
    !cfg!(target_endian = "big")
        && source
            .stamp()
            .zip(meta.ok())
            .is_some_and(|(stamp, meta)| stamp.matches_metadata(&meta))
}

/// Returns an upper estimate of the number of bytes that [`write()`] writes.
#[must_use]
pub fn max_bytes(snapshot: &Snapshot) -> u64 {
    let columns = snapshot
        .columns()
        .iter()
        .map(|c| c.len() as u64)
        .sum::<u64>();
    // The result is an estimate and not a strict limit. The address map takes two bits for each eight bytes of heap. A
    // reference nearly always takes less than half as many bytes in the index as in the dump.
    columns + snapshot.source().len() as u64 / 16 * 5 + snapshot.object_count() * 2 + (1 << 20)
}

/// Writes an index, from which [`Snapshot::from_index`] can create this snapshot again.
///
/// Cost: computes the results that all reports contain, unless they were computed before. One pass over the dump for
/// the lists of referrers, which temporarily takes up to ten bytes for each object. One pass over the arrays for the
/// checksums. Writes about 30 bytes for each object.
///
/// # Errors
/// Returns an error if writing fails, or if the dump's file cannot have an index.
pub fn write(snapshot: &Snapshot, out: &mut dyn Write) -> io::Result<()> {
    let Some(stamp) = snapshot.source().stamp() else {
        return Err(io::Error::other("compressed dumps and pipes have no index"));
    };
    let (small, longs, sites) = (
        snapshot.encode_small_section(),
        pairs(&snapshot.shapes.longs),
        pairs(&snapshot.sites),
    );
    let mut sections = snapshot.columns();
    sections[Section::Small as usize] = &small;
    let stretches = snapshot.map.ranks().map(Ranks::stretches);
    let (numbers, bits, counts) = stretches.unwrap_or_default();
    sections[Section::MapStretches as usize] = bytemuck::cast_slice(&numbers);
    sections[Section::MapBits as usize] = bytemuck::cast_slice(&bits);
    sections[Section::MapCounts as usize] = bytemuck::cast_slice(&counts);
    sections[Section::LongArrays as usize] = bytemuck::cast_slice(&longs);
    sections[Section::Sites as usize] = bytemuck::cast_slice(&sites);
    let Gathered { positions, lists } = snapshot.gather();
    let sums = [&lists.near, &lists.far].map(|bytes| format::block_hashes(bytes));
    for (section, bytes) in [
        (
            Section::LinkedPositions,
            bytemuck::cast_slice(&positions[0]),
        ),
        (Section::LeafPositions, bytemuck::cast_slice(&positions[1])),
        (Section::InboundGroups, bytemuck::cast_slice(&lists.groups)),
        (Section::InboundFarBases, bytemuck::cast_slice(&lists.bases)),
        (Section::InboundSums, bytemuck::cast_slice(&sums[0])),
        (Section::InboundFarSums, bytemuck::cast_slice(&sums[1])),
        (Section::Inbound, &lists.near),
        (Section::InboundFar, &lists.far),
    ] {
        sections[section as usize] = bytes;
    }
    let (head, offsets) = format::head(stamp, snapshot.options.refs, &sections);
    out.write_all(&head)?;
    let mut at = head.len() as u64;
    let mut pad = |out: &mut dyn Write, to: u64| -> io::Result<()> {
        let gap = [0; ALIGN];
        out.write_all(&gap[..to.saturating_sub(at).min(ALIGN as u64) as usize])?;
        at = to;
        Ok(())
    };
    for (section, &offset) in sections.iter().zip(&offsets) {
        pad(out, offset)?;
        out.write_all(section)?;
        pad(&mut io::sink(), offset + section.len() as u64)?;
    }
    let end = offsets.last().zip(sections.last());
    let end = end.map_or(0, |(offset, last)| offset + last.len() as u64);
    pad(out, end.next_multiple_of(ALIGN as u64))?;
    out.flush()
}

impl Snapshot {
    /// Returns the arrays that the index contains, each at the position of its section. If the data of a section is not
    /// one flat array in memory, the section is left empty here.
    fn columns(&self) -> [&[u8]; SECTIONS] {
        let mut sections: [&[u8]; SECTIONS] = [&[]; SECTIONS];
        let mut put = |section: Section, bytes| sections[section as usize] = bytes;
        put(
            Section::InnerShapes,
            bytemuck::cast_slice(&self.inner_shapes),
        );
        put(Section::LeafShapes, bytemuck::cast_slice(&self.leaf_shapes));
        match &self.map {
            AddressMap::Ordered(_) | AddressMap::Runs { .. } => {}
            AddressMap::Permuted {
                with_refs, leaves, ..
            } => {
                put(Section::MapNumbers, bytemuck::cast_slice(with_refs));
                put(Section::MapLeaves, bytemuck::cast_slice(leaves));
            }
            AddressMap::Sorted { ids, numbers } => {
                put(Section::MapNumbers, bytemuck::cast_slice(numbers));
                put(Section::MapIds, bytemuck::cast_slice(ids));
            }
        }
        let tree = &self.tree;
        put(Section::NodeObject, bytemuck::cast_slice(&tree.object));
        put(Section::NodeParent, bytemuck::cast_slice(&tree.parent));
        put(Section::NodeEnd, bytemuck::cast_slice(&tree.end));
        put(Section::NodeBases, bytemuck::cast_slice(&tree.bytes.bases));
        put(Section::NodeBytes, bytemuck::cast_slice(&tree.bytes.rest));
        put(Section::NodeFarBytes, bytemuck::cast_slice(&tree.bytes.far));
        let starts = &tree.leaf_start;
        put(Section::LeafBases, bytemuck::cast_slice(&starts.bases));
        put(Section::NodeLeaves, bytemuck::cast_slice(&starts.rest));
        put(Section::LeafFar, bytemuck::cast_slice(&starts.far));
        put(Section::Leaves, bytemuck::cast_slice(&tree.leaves));
        put(Section::NodeOf, bytemuck::cast_slice(&tree.node_of));
        put(Section::LeafParent, bytemuck::cast_slice(&tree.leaf_parent));
        sections
    }

    /// Encodes the section with small data. [`super::read`] has the same fields in the same order.
    fn encode_small_section(&self) -> Vec<u8> {
        let mut e = Encoder::default();
        let (derived, sizes) = (&self.derived, &self.dump.sizes);
        e.u64(class_hash(self.classes()));
        e.list(&derived.late_classes.late, |e, &at| e.u64(at as u64));
        e.list(&derived.late_classes.unknown, |e, &id| e.u64(id));
        e.list(&derived.late_classes.arrays, |e, &id| e.u64(id));
        e.list(&derived.late_classes.by_loader, |e, &class| e.u32(class));
        e.flag(derived.bare_leaves);
        e.list(&self.dump.warnings, warning);
        e.list(&derived.of_graph, warning);
        let missing = derived.missing.map(missing_code);
        e.option(missing, Encoder::u32);
        let layout = &sizes.layout;
        for value in [
            layout.reference,
            layout.header,
            layout.array_header,
            layout.align,
        ] {
            e.u32(value);
        }
        e.flag(layout.source == LayoutSource::Addresses);
        e.u64(sizes.align);
        e.list(&sizes.instance, |e, &size| e.u64(size));
        e.list(&sizes.class_object, |e, &size| e.u64(size));
        e.list(&sizes.arrays, |e, &(base, element)| {
            e.u32(base);
            e.u32(element);
        });
        e.list(&sizes.value_arrays, |e, &(base, element)| {
            e.u32(base);
            e.u32(element);
        });
        e.list(&self.totals, |e, t: &ClassTotal| {
            total(e, t.all);
            e.u64(t.flattened);
        });
        e.list(&self.histogram(), |e, t: &ClassTotal| {
            total(e, t.all);
            total(e, t.reachable);
            e.u64(t.retained_bytes);
            e.u64(t.flattened);
        });
        e.u64(self.unreachable_bytes());
        e.option(self.jvm(), |e, jvm| e.text(&jvm));
        e.option(self.layout_doubt(), |e, doubt| warning(e, &doubt));
        e.u32(self.split.classes);
        e.u32(self.split.inner);
        e.list(&self.pieces, |e, piece| {
            e.u64(piece.segment.start as u64);
            e.u64(piece.segment.end as u64);
            e.u32(piece.first_inner);
            e.u32(piece.first_leaf);
        });
        e.list(&self.roots, |e, root| {
            kind(e, root.kind);
            e.u64(root.id.0);
            e.u32(root.thread);
            e.u32(root.frame.cast_unsigned());
        });
        e.list(&self.tree.roots, |e, &(object, of)| {
            e.u32(object);
            kind(e, of);
        });
        e.u32(match self.map {
            AddressMap::Ordered(_) => ORDERED,
            AddressMap::Runs { .. } => RUNS,
            AddressMap::Permuted { .. } => PERMUTED,
            AddressMap::Sorted { .. } => SORTED,
        });
        e.option(self.map.ranks(), |e, ranks| {
            e.u64(ranks.space.range.base);
            e.u64(ranks.space.range.end);
            let blocks = ranks.space.blocks.as_ref();
            e.option(blocks, |e, blocks| {
                e.list(blocks.numbered(), |e, &b| e.u32(b))
            });
        });
        let rows = match &self.map {
            AddressMap::Runs { runs, .. } => runs.rows(),
            _ => &[],
        };
        e.list(rows, |e, row| {
            e.u64(row.slot);
            row.ranks
                .into_iter()
                .chain(row.numbers)
                .for_each(|n| e.u32(n));
        });
        e.0
    }
}

fn pairs(list: &[(u32, u32)]) -> Vec<[u32; 2]> {
    list.iter().map(|&(a, b)| [a, b]).collect()
}
