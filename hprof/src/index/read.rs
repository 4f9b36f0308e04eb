//! Creates a snapshot from its index.

use std::collections::HashSet;
use std::path::Path;

use bytemuck::Pod;

use super::check;
use super::codes::{MISSING_ROOTS, ORDERED, PERMUTED, RUNS, SORTED, class_hash};
use super::encode::Decoder;
use super::fault::IndexFault;
use super::format::{Section, Sections};
use crate::answers::histogram::Histogram;
use crate::bytes::array::{Column, Store};
use crate::bytes::source::Source;
use crate::dominators::ranges::Sums;
use crate::dominators::tree::DominatorTree;
use crate::error::{Error, Warning};
use crate::graph::address::{AddressMap, PAIRS_IN_LINE, Range, Ranks, Space, Split};
use crate::graph::blocks::Blocks;
use crate::graph::plan::{self, LateClasses};
use crate::graph::reach;
use crate::graph::runs::{Row, RunTable};
use crate::graph::scan::Piece;
use crate::graph::waypoints::Waypoints;
use crate::ids::{NONE, ObjectId};
use crate::index::inbound::Inbound;
use crate::index::positions::Positions;
use crate::options::Options;
use crate::records::outline::{Outline, Segment};
use crate::records::record::{self, Header};
use crate::records::walk::{Root, RootKind};
use crate::sizes::layout::{Layout, LayoutSource, Sizes};
use crate::sizes::shape::{ShapeSizes, Shapes};
use crate::sizes::totals::{ClassTotal, Total};
use crate::snapshot::{Derived, Dump, Snapshot};

type Checked<T> = std::result::Result<T, IndexFault>;

const MISFIT: IndexFault = IndexFault::Damaged("the parts of the file contradict each other");

impl Snapshot {
    /// Creates the snapshot that [`Snapshot::open`] returns, from an index that [`index::write`](super::write()) wrote.
    ///
    /// Cost: reads the records outside the heap like [`Snapshot::open`], and verifies the index in one parallel pass.
    /// The arrays stay in the file and are mapped.
    ///
    /// # Errors
    /// Returns an error if the index belongs to another dump, version or kind of [`Refs`](crate::Refs), or if it is
    /// damaged. Also returns an error if the dump cannot be read. In this case, [`Snapshot::open`] returns the reason.
    pub fn from_index(path: &Path, index: &Path, options: &Options) -> Checked<Self> {
        let store = Store::new(options.max_memory);
        // An analysis keeps the memory of dropped arrays for its next arrays. Here, memory is returned to the system at
        // once, because the arrays are mapped from the file.
        store.stop_keeping();
        let parts = OpenedIndex::open(path, index, options, &store)?;
        let OpenedIndex {
            sections,
            small,
            dump,
        } = parts;
        let SmallSection {
            split,
            pieces,
            roots,
            holders,
            map,
            derived,
            totals,
            ..
        } = small;
        let classes = &dump.classes;
        let mut shapes = Shapes::new(classes);
        let pairs = |section| sections.column(section, |_: &[[u32; 2]], _| true);
        let longs = pairs(Section::LongArrays)?;
        if longs.iter().any(|l| l[0] as usize >= classes.len()) || !shapes.has_room(longs.len()) {
            return Err(MISFIT);
        }
        shapes.longs = longs.iter().map(|l| (l[0], l[1])).collect();
        let limit = shapes.first_long() as usize + longs.len();
        let inner_shapes = sections.column(Section::InnerShapes, check::below(limit))?;
        let leaf_shapes = sections.column(Section::LeafShapes, check::below(limit))?;
        let inner = (split.inner as usize).checked_sub(split.classes as usize);
        let leaves = u32::try_from(leaf_shapes.len()).ok();
        let objects = leaves.and_then(|l| l.checked_add(split.inner));
        let objects = objects.filter(|&o| o < NONE).ok_or(MISFIT)?;
        if inner != Some(inner_shapes.len()) || split.classes as usize != classes.dumped() {
            return Err(MISFIT);
        }
        let sites = pairs(Section::Sites)?;
        let sites: Vec<(u32, u32)> = sites.iter().map(|s| (s[0], s[1])).collect();
        let first = |p: &Piece| p.first_inner <= split.inner - split.classes;
        let fits = sites.is_sorted()
            && sites.iter().all(|s| s.0 < objects)
            && pieces.is_sorted_by_key(|p| (p.first_inner, p.first_leaf))
            && pieces.is_sorted_by_key(|p| p.first_leaf)
            && pieces
                .iter()
                .all(|p| first(p) && p.first_leaf as usize <= leaf_shapes.len())
            && holders.is_sorted_by_key(|r| r.0)
            && holders.iter().all(|r| r.0 < objects);
        if !fits {
            return Err(MISFIT);
        }
        let map = map.read(&sections, split, objects, leaf_shapes.len())?;
        let tree = tree(&sections, holders, split.inner, objects, leaf_shapes.len())?;
        let counts = [split.inner - split.classes, leaf_shapes.len() as u32];
        let (positions, inbound) = links(&sections, &pieces, counts, objects)?;
        Ok(Self {
            shape_sizes: ShapeSizes::new(&shapes, &dump.sizes),
            dump,
            map,
            pieces,
            shapes,
            inner_shapes,
            noted: std::sync::Mutex::new(None),
            leaf_shapes,
            split,
            roots,
            sites,
            options: options.clone(),
            store,
            tree,
            totals,
            derived,
            positions,
            inbound,
            waypoints: Waypoints::default(),
        })
    }
}

/// Returns true if the index of a snapshot was found damaged after it was loaded. No result is based on damaged data.
#[must_use]
pub fn is_damaged(snapshot: &Snapshot) -> bool {
    snapshot.inbound.as_ref().is_some_and(Inbound::is_damaged)
}

impl Histogram {
    /// Reads from an index the histogram that [`Histogram::open`] computes from a dump.
    ///
    /// Cost: that of [`Snapshot::from_index`], but only the section with the small data of the index is read and
    /// verified. It contains the totals of each class.
    ///
    /// # Errors
    /// See [`Snapshot::from_index`].
    pub fn from_index(path: &Path, index: &Path, options: &Options) -> Checked<Self> {
        let store = Store::new(options.max_memory);
        let OpenedIndex {
            small, mut dump, ..
        } = OpenedIndex::open(path, index, options, &store)?;
        let of_graph = &small.derived.of_graph;
        dump.warnings.retain(|w| !of_graph.contains(w));
        Ok(Self {
            dump,
            totals: small.totals,
        })
    }
}

/// The data of an index from which both a snapshot and a histogram are created.
struct OpenedIndex {
    sections: Sections,
    small: SmallSection,
    dump: Dump,
}

impl OpenedIndex {
    fn open(path: &Path, index: &Path, options: &Options, store: &Store) -> Checked<Self> {
        if options.dump > 0 {
            return Err(IndexFault::NoFile);
        }
        let unreadable = |e: Error| match e {
            Error::Io { source, .. } => IndexFault::Unreadable(source),
            _ => IndexFault::Stale,
        };
        let source = Source::open(path).map_err(unreadable)?;
        let stamp = source.stamp().ok_or(IndexFault::NoFile)?;
        let sections = Sections::open(index, stamp, options.refs, store)?;
        let bytes: Column<u8> = sections.column(Section::Small, |_, _| true)?;
        let mut decoder = Decoder(&bytes);
        let small = SmallSection::decode(&mut decoder, source.len());
        let mut small = small.filter(|_| decoder.0.is_empty()).ok_or(MISFIT)?;
        let header = record::header(&source).map_err(unreadable)?;
        let outline = Outline::from_source(&source, &header);
        let mut dump = small.dump(source, header, outline)?;
        dump.rename(options);
        Ok(Self {
            sections,
            small,
            dump,
        })
    }
}

/// The section of an index with small data, such as the GC roots.
struct SmallSection {
    class_hash: u64,
    warnings: Vec<Warning>,
    sizes: Option<Sizes>,
    totals: Vec<ClassTotal>,
    split: Split,
    pieces: Vec<Piece>,
    roots: Vec<Root>,
    /// Objects that GC roots hold.
    holders: Vec<(u32, RootKind)>,
    map: MapKind,
    derived: Derived,
}

impl SmallSection {
    /// Decodes the section that [`Snapshot::encode_small_section`] encodes.
    fn decode(d: &mut Decoder<'_>, file: usize) -> Option<Self> {
        let class_hash = d.u64()?;
        let late_classes = LateClasses {
            late: d.list(Decoder::usize)?,
            unknown: d.list(Decoder::u64)?,
            arrays: d.list(Decoder::u64)?,
            by_loader: d.list(Decoder::u32)?,
        };
        let bare_leaves = d.flag()?;
        let warnings = d.list(warning)?;
        let of_graph = d.list(warning)?;
        let missing = d.option(|d| MISSING_ROOTS.get(d.u32()? as usize).copied())?;
        let layout = Layout {
            reference: d.u32()?,
            header: d.u32()?,
            array_header: d.u32()?,
            align: d.u32()?,
            source: if d.flag()? {
                LayoutSource::Addresses
            } else {
                LayoutSource::Assumed
            },
        };
        let align = d.u64().filter(|a| a.is_power_of_two() && *a <= 1 << 20)?;
        let sizes = Sizes {
            layout,
            instance: d.list(size)?,
            class_object: d.list(size)?,
            arrays: d.list(|d| Some((d.u32()?, d.u32()?)))?,
            value_arrays: d.list(|d| Some((d.u32()?, d.u32()?)))?,
            align,
            modelled: false,
            agreed: None,
        };
        let totals = d.list(|d| {
            Some(ClassTotal {
                all: total(d)?,
                flattened: size(d)?,
                ..ClassTotal::default()
            })
        })?;
        let histogram = d.list(|d| {
            Some(ClassTotal {
                all: total(d)?,
                reachable: total(d)?,
                retained_bytes: size(d)?,
                flattened: size(d)?,
            })
        })?;
        let derived = Derived {
            late_classes,
            bare_leaves,
            of_graph,
            missing,
            unreachable: size(d)?.into(),
            jvm: d.option(Decoder::text)?.into(),
            doubt: d.option(warning)?.into(),
            histogram: histogram.into(),
        };
        let split = Split {
            classes: d.u32()?,
            inner: d.u32()?,
        };
        let pieces = d.list(|d| {
            let (start, end) = (d.usize()?, d.usize()?);
            (start <= end && end <= file).then_some(())?;
            Some(Piece {
                segment: Segment { start, end },
                first_inner: d.u32()?,
                first_leaf: d.u32()?,
            })
        })?;
        let roots = d.list(|d| {
            Some(Root {
                kind: kind(d)?,
                id: ObjectId(d.u64()?),
                thread: d.u32()?,
                frame: d.u32()?.cast_signed(),
            })
        })?;
        let holders = d.list(|d| Some((d.u32()?, kind(d)?)))?;
        let (map, covered) = (d.u32()?, d.option(Covered::read)?);
        let covered = match covered {
            Some(covered) if !covered.fits_bitmap(file) => return None,
            covered => covered,
        };
        let rows = d.list(|d| {
            Some(Row {
                slot: d.u64()?,
                ranks: [d.u32()?, d.u32()?],
                numbers: [d.u32()?, d.u32()?],
            })
        })?;
        let map = match (map, covered, &rows[..]) {
            (ORDERED, Some(covered), []) => MapKind::Ordered(covered),
            (RUNS, Some(covered), _) => MapKind::Runs(covered, rows),
            (PERMUTED, Some(covered), []) => MapKind::Permuted(covered),
            (SORTED, None, []) => MapKind::Sorted,
            _ => return None,
        };
        Some(Self {
            class_hash,
            warnings,
            sizes: Some(sizes),
            totals,
            split,
            pieces,
            roots,
            holders,
            map,
            derived,
        })
    }

    /// Returns the dump with its classes. The classes have to be the same as when the index was written.
    fn dump(&mut self, source: Source, header: Header, mut outline: Outline) -> Checked<Dump> {
        let late_classes = &self.derived.late_classes;
        // In a valid index, each class without a record occurs once. The class records that come after objects are in
        // file order.
        let unknown: HashSet<u64> = late_classes.unknown.iter().copied().collect();
        let sane = unknown.len() == late_classes.unknown.len() && late_classes.late.is_sorted();
        let classes = plan::read_classes(&source, &header, &outline, late_classes);
        let classes = classes.filter(|c| sane && class_hash(c) == self.class_hash);
        let (classes, sizes) = classes.zip(self.sizes.take()).ok_or(MISFIT)?;
        let known = self.derived.histogram.get().map_or(0, Vec::len);
        let lens = [
            sizes.instance.len(),
            sizes.class_object.len(),
            sizes.arrays.len(),
            sizes.value_arrays.len(),
            self.totals.len(),
            known,
        ];
        if lens.iter().any(|&len| len != classes.len()) {
            return Err(MISFIT);
        }
        outline.warnings.clear();
        Ok(Dump {
            source,
            header,
            outline,
            classes,
            sizes,
            warnings: std::mem::take(&mut self.warnings),
        })
    }
}

/// Reads a size or a sum of sizes. Refuses values of 2^60 or more, so that adding two of them does not overflow.
fn size(d: &mut Decoder<'_>) -> Option<u64> {
    d.u64().filter(|&size| size < 1 << 60)
}

fn total(d: &mut Decoder<'_>) -> Option<Total> {
    Some(Total {
        objects: size(d)?,
        bytes: size(d)?,
    })
}

fn warning(d: &mut Decoder<'_>) -> Option<Warning> {
    Some(Warning {
        offset: d.option(Decoder::u64)?,
        message: d.text()?,
        partial: d.flag()?,
    })
}

fn kind(d: &mut Decoder<'_>) -> Option<RootKind> {
    RootKind::ALL.get(d.u32()? as usize).copied()
}

/// The addresses that a map covers: a range, and if only some blocks of the range are covered, the numbers of these
/// blocks.
struct Covered {
    range: Range,
    blocks: Option<Vec<u32>>,
}

impl Covered {
    fn read(d: &mut Decoder<'_>) -> Option<Self> {
        let (base, end) = (d.u64()?, d.u64()?);
        let range = Range { base, end };
        (base < end && base.is_multiple_of(64)).then_some(Self {
            range,
            blocks: d.option(|d| d.list(Decoder::u32))?,
        })
    }

    /// Returns true if the bitmaps of objects for the address range of the index are small enough for a file of this
    /// size.
    fn fits_bitmap(&self, file: usize) -> bool {
        let slots = match &self.blocks {
            None => Some(self.range.slots()),
            Some(blocks) => Blocks::slots_in(self.range, blocks.len()),
        };
        slots.is_some_and(|slots| reach::fits_bitmap(slots, file))
    }

    fn space(self, store: &Store) -> Option<Space> {
        let blocks = match self.blocks {
            None => None,
            Some(numbered) => Some(Blocks::from_numbered(self.range, numbered, store)?),
        };
        Some(Space {
            range: self.range,
            blocks,
        })
    }
}

/// The kind of the address map, with the data about the map that `Section::Small` contains: the covered addresses
/// (except for a sorted table of ids), and the runs (parts of the file with ascending addresses).
enum MapKind {
    Ordered(Covered),
    Runs(Covered, Vec<Row>),
    Permuted(Covered),
    Sorted,
}

impl MapKind {
    fn read(
        self,
        sections: &Sections,
        split: Split,
        objects: u32,
        leaves: usize,
    ) -> Checked<AddressMap> {
        let inner = (split.inner - split.classes) as usize;
        match self {
            Self::Ordered(covered) => {
                let ranks = ranks(sections, covered)?;
                if ranks.marked.map(|m| m as usize) == [inner, leaves] {
                    Ok(AddressMap::Ordered(ranks))
                } else {
                    Err(MISFIT)
                }
            }
            Self::Runs(covered, rows) => {
                let ranks = ranks(sections, covered)?;
                let whole = ranks.marked.map(|m| m as usize) == [inner, leaves];
                let runs = RunTable::from_rows(rows, &ranks).filter(|_| whole);
                let runs = runs.ok_or(MISFIT)?;
                Ok(AddressMap::Runs { ranks, runs })
            }
            Self::Permuted(covered) => {
                let ranks = ranks(sections, covered)?;
                let with_refs = check::within(split.classes..split.inner);
                let with_refs = sections.column(Section::MapNumbers, with_refs)?;
                let of_leaves = check::within(split.inner..objects);
                let of_leaves = sections.column(Section::MapLeaves, of_leaves)?;
                let marked = ranks.marked.map(|m| m as usize);
                if marked == [with_refs.len(), of_leaves.len()] {
                    Ok(AddressMap::Permuted {
                        ranks,
                        with_refs,
                        leaves: of_leaves,
                    })
                } else {
                    Err(MISFIT)
                }
            }
            Self::Sorted => {
                let ids = sections.column(Section::MapIds, check::ascend::<u64>)?;
                let numbers = check::within(split.classes..objects);
                let numbers = sections.column(Section::MapNumbers, numbers)?;
                if ids.len() == numbers.len() {
                    Ok(AddressMap::Sorted { ids, numbers })
                } else {
                    Err(MISFIT)
                }
            }
        }
    }
}

fn whole<T: Pod + Sync>(sections: &Sections, section: Section) -> Checked<Column<T>> {
    sections.column(section, |_, _| true)
}

fn ranks(sections: &Sections, covered: Covered) -> Checked<Ranks> {
    let numbers: Column<u32> = whole(sections, Section::MapStretches)?;
    let bits: Column<u64> = whole(sections, Section::MapBits)?;
    let counts: Column<u32> = whole(sections, Section::MapCounts)?;
    let marked = check::ranks(&bits, &counts, PAIRS_IN_LINE * 2).ok_or(MISFIT)?;
    let [Ok(with_refs), Ok(leaves)] = marked.map(u32::try_from) else {
        return Err(MISFIT);
    };
    let stretches = (&numbers[..], &bits[..], &counts[..]);
    let space = covered.space(sections.store()).ok_or(MISFIT)?;
    Ranks::from_stretches(space, [with_refs, leaves], stretches, sections.store()).ok_or(MISFIT)
}

/// Returns the offsets of records and the lists of referrers, if the index has them.
fn links(
    sections: &Sections,
    pieces: &[Piece],
    counts: [u32; 2],
    objects: u32,
) -> Checked<(Option<Positions>, Option<Inbound>)> {
    let groups: Column<u64> = sections.column(Section::InboundGroups, check::ascend::<u64>)?;
    let linked = whole(sections, Section::LinkedPositions)?;
    let leaves = whole(sections, Section::LeafPositions)?;
    let bases = sections.column(Section::InboundFarBases, check::ascend::<u64>)?;
    let near = sections.lazy(Section::Inbound)?;
    let far = sections.lazy(Section::InboundFar)?;
    if groups.is_empty() {
        return Ok((None, None));
    }
    let positions = Positions::new(pieces, counts, [linked, leaves]);
    let inbound = Inbound::new(objects as usize, groups, bases, near, far);
    if positions.is_some() && inbound.is_some() {
        Ok((positions, inbound))
    } else {
        Err(MISFIT)
    }
}

fn tree(
    sections: &Sections,
    roots: Vec<(u32, RootKind)>,
    inner: u32,
    objects: u32,
    leaf_count: usize,
) -> Checked<DominatorTree> {
    let object = sections.column(Section::NodeObject, check::objects(inner))?;
    let nodes = object.len();
    let parent = sections.column(Section::NodeParent, check::parents)?;
    let end = sections.column(Section::NodeEnd, check::ends)?;
    let leaves = sections.column(Section::Leaves, check::within(inner..objects))?;
    let node_of = sections.column(Section::NodeOf, check::below_or_none(nodes))?;
    let leaf_parent = sections.column(Section::LeafParent, check::below_or_none(nodes))?;
    let sums = |bases, rest, far| -> Checked<Sums> {
        let (bases, far) = (whole(sections, bases)?, whole(sections, far)?);
        Sums::from_parts(bases, whole(sections, rest)?, far)
            .filter(|sums| sums.len() == nodes + 1)
            .ok_or(MISFIT)
    };
    let bytes = sums(
        Section::NodeBases,
        Section::NodeBytes,
        Section::NodeFarBytes,
    )?;
    let leaf_start = sums(Section::LeafBases, Section::NodeLeaves, Section::LeafFar)?;
    let fits = nodes > 0
        && parent.len() == nodes
        && end.len() == nodes
        && leaf_start.before(nodes as u32) == leaves.len() as u64
        && node_of.len() == inner as usize
        && leaf_parent.len() == leaf_count;
    if !fits {
        return Err(MISFIT);
    }
    Ok(DominatorTree {
        object,
        parent,
        end,
        bytes,
        leaf_start,
        leaves,
        node_of,
        leaf_parent,
        inner,
        roots,
    })
}
