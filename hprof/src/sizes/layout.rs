//! Infers object sizes from the distances between objects, and from a model for classes with few objects.
//!
//! A dump does not contain object sizes, but object ids are addresses. The smallest distance from an instance of a
//! class to the next object is the size of the class's instances, if at least one instance has no gap behind it. The
//! model is HotSpot's field layout ([`crate::sizes::fields`]). Its parameters (reference width, header, alignment) are
//! chosen so that it agrees with the distances.

#[cfg(test)]
#[path = "layout_tests.rs"]
mod rule_tests;

use crate::error::Warning;
use crate::flaw::Flaw;
use crate::ids::{ClassIndex, ObjectId};
use crate::records::classes::{Class, Classes};
use crate::records::forked::Forked;
use crate::records::outline::LiveObjects;
use crate::records::record::Kind;
use crate::sizes::agent::Agreed;
use crate::sizes::fields::{self, LaidOut, Model, Order, Variant};
use crate::sizes::mirrors::{Mirrors, max_mirror_size, static_references, statics};
use crate::sizes::stats::{self, Stats};

/// The JVM's object layout, inferred from the dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Layout {
    /// Number of bytes of a reference in the heap; 4 for compressed references.
    pub reference: u32,
    /// Number of bytes of an object's header.
    pub header: u32,
    /// Number of bytes of an array's header, including the length.
    pub array_header: u32,
    /// Object sizes are multiples of this number of bytes.
    pub align: u32,
    /// The source of the sizes: measured or assumed.
    pub source: LayoutSource,
}

/// The source of the object sizes: measured or assumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutSource {
    /// Sizes were measured as distances between objects.
    Addresses,
    /// The layout comes only from the model, because ids are not addresses or there are too few objects.
    Assumed,
}

impl LayoutSource {
    /// Returns the name of the source: `addresses` or `assumed`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Addresses => "addresses",
            Self::Assumed => "assumed",
        }
    }
}

/// The layout that is assumed if ids are not addresses. Most heaps are smaller than 32 GB and belong to 64-bit JVMs.
/// The size of ids does not show the size of references: ids of the hprof agent have four bytes on all JVMs.
pub(super) const COMPRESSED: Model = Model {
    reference: 4,
    header: 12,
    array_header: 16,
    align: 8,
    order: Order::Classic,
};

/// True if ids are not addresses: in more than half of the measured classes, the smallest distance from an instance to
/// the next object is less than 8 bytes, or less than the size of the instance's fields with references of four bytes.
fn are_ids_too_close(classes: &Classes, gaps: &[Gap]) -> bool {
    let mut fields = vec![None; classes.len()];
    let (mut near, mut all) = (0_usize, 0_usize);
    for (class, gap) in gaps.iter().enumerate().filter(|(_, gap)| gap.is_known()) {
        let class = ClassIndex(class as u32);
        let chain = classes.chain(class);
        let chain: Vec<ClassIndex> = chain.take_while(|c| fields[c.index()].is_none()).collect();
        for &c in chain.iter().rev() {
            let above = classes[c].superclass.and_then(|s| fields[s.index()]);
            let own = classes[c]
                .fields
                .iter()
                .map(|f| u64::from(COMPRESSED.width(f.kind)));
            fields[c.index()] = Some(above.unwrap_or(0) + own.sum::<u64>());
        }
        all += 1;
        near += usize::from(gap.bytes < fields[class.index()].unwrap_or(0).max(8));
    }
    near * 2 > all
}

/// In a forked dump, a measured size of a class object is accepted if it differs from the model's size by at most this
/// number of bytes. The sizes differ because JVMs add different fields to class objects.
const NEARLY: u64 = 64;

/// An entry of `Sizes::arrays` with this value instead of an element size belongs to the class of stack chunks (parts
/// of virtual threads' stacks).
const STACK: u32 = 16;

/// The sizes of all objects.
#[derive(Debug)]
pub(crate) struct Sizes {
    pub(crate) layout: Layout,
    /// For each class, the size of an instance.
    pub(crate) instance: Vec<u64>,
    /// For each class, the size of its class object.
    pub(crate) class_object: Vec<u64>,
    /// For each array class, the offset of the first element and the size of an element. For the class of stack chunks,
    /// the offset of the stack and [`STACK`].
    pub(crate) arrays: Vec<(u32, u32)>,
    /// Like `arrays`, but for arrays whose elements are flattened values or null.
    pub(crate) value_arrays: Vec<(u32, u32)>,
    pub(crate) align: u64,
    /// True if ids are not addresses, so that nothing was measured.
    pub(crate) modelled: bool,
    /// Two numbers of classes: the classes for which the sizes in the dump's allocation sites agree with the model, and
    /// all classes that were compared.
    pub(crate) agreed: Option<(usize, usize)>,
}

impl Sizes {
    /// Infers the layout. If the hprof agent wrote the dump, `live` has the number and bytes of each class's live
    /// objects.
    ///
    /// Cost: for each of a dozen hypotheses, the layout of all classes that have instances.
    pub(crate) fn infer(
        classes: &Classes,
        stats: &Stats,
        id_size: usize,
        live: &LiveObjects,
    ) -> Self {
        let mut mirrors = Mirrors::new(classes, stats);
        let mut gaps: Vec<Gap> = classes
            .iter()
            .map(|(i, _)| Gap::new(stats, i, &mirrors, classes))
            .collect();
        let class_class = classes.by_name("java.lang.Class").first().copied();
        let forked = classes.forked.as_ref();
        if forked.is_some() {
            gaps.iter_mut().for_each(Gap::set_exact_size);
        }
        let align = match forked {
            Some(forked) => forked_alignment(forked, &gaps),
            None => alignment(classes, stats),
        };
        let modelled = forked.is_none() && are_ids_too_close(classes, &gaps);
        let measured =
            !modelled && stats.address_bits != 0 && stats.address_bits.trailing_zeros() >= 3;
        let mut agreed = None;
        let (model, score) = if modelled {
            gaps.iter_mut().for_each(Gap::forget);
            mirrors = Mirrors::default();
            let found = Agreed::new(classes, &gaps, live);
            if let Some(found) = &found {
                for (&id, &of) in live {
                    let class = classes.by_id(ObjectId(id));
                    if let (Some(class), Some(size)) = (class, found.instance(of)) {
                        gaps[class.index()].set_file_size(size);
                    }
                }
                agreed = Some((found.classes, found.of));
            }
            (found.map_or(COMPRESSED, |f| f.model), 0)
        } else {
            choose(
                classes,
                &mut gaps,
                class_class,
                &mirrors,
                stats,
                id_size,
                align,
            )
        };
        if stats.flattened() > 0 || Layouts::new(classes, &model, &gaps, false).marks_integers() {
            expect_markers(classes, &mut gaps);
        }
        let align = model.align;
        let source = if measured && score > 0 {
            LayoutSource::Addresses
        } else {
            LayoutSource::Assumed
        };
        let layouts = Layouts::new(classes, &model, &gaps, true).all();
        let instance: Vec<u64> = gaps
            .iter()
            .zip(&layouts)
            .map(|(gap, laid)| gap.resolve_size(model.size(laid)))
            .collect();
        let arrays: Vec<(u32, u32)> = classes
            .iter()
            .map(|(i, c)| match c.element {
                Some(_) if classes.is_filler(i) => (model.array_header, model.width(Kind::Int)),
                Some(kind) => (model.array_base(kind), model.width(kind)),
                None if classes.is_stack_chunk(i) => {
                    (u32::try_from(instance[i.index()]).unwrap_or(0), STACK)
                }
                None => (0, 0),
            })
            .collect();
        let value_arrays = classes.iter().zip(&arrays);
        let value_arrays = value_arrays
            .map(|((i, _), &array)| value_array(classes, stats, i, &model).unwrap_or(array))
            .collect();
        let base = class_class.map_or(0, |c| instance[c.index()]);
        let place = static_references(classes);
        let class_object = classes
            .iter()
            .map(|(_, class)| {
                let size = round_up(base + statics(class, &model, place), u64::from(align));
                match mirrors.next(class.id.0) {
                    // In a forked dump, two class objects are adjacent if the child process reached one after the
                    // other. Then their distance is the exact size, which is close to the model's size.
                    Some(next) if forked.is_some() => {
                        let exact = next - class.id.0;
                        if exact.abs_diff(size) <= NEARLY {
                            exact
                        } else {
                            size
                        }
                    }
                    Some(next) if measured => size.min(next - class.id.0),
                    _ => size,
                }
            })
            .collect();
        Self {
            layout: Layout {
                reference: model.reference,
                header: model.header,
                array_header: model.array_header,
                align,
                source,
            },
            instance,
            class_object,
            arrays,
            value_arrays,
            align: u64::from(align),
            modelled,
            agreed,
        }
    }

    /// Returns the warnings for a dump of the hprof agent of JDK 5 to 8: the sizes are not measured, and arrays may be
    /// incomplete.
    pub(crate) fn doubts(&self) -> impl Iterator<Item = Warning> {
        let Layout {
            reference,
            header,
            align,
            ..
        } = self.layout;
        let doubts = self.modelled.then(|| {
            let assumed = Flaw::AssumedSizes {
                agree: self.agreed,
                reference,
                header,
                align,
            };
            // The agent writes an `Object[]` only up to its last element that is not null.
            [assumed, Flaw::NoTrailingNulls].map(|flaw| Warning::new(&flaw))
        });
        doubts.into_iter().flatten()
    }

    /// Returns the size of an instance of a class in bytes.
    #[inline]
    pub(crate) fn instance(&self, class: ClassIndex) -> u64 {
        self.instance[class.index()]
    }

    /// Returns the size of a class object in bytes, including its static fields.
    pub(crate) fn class_object(&self, class: ClassIndex) -> u64 {
        self.class_object[class.index()]
    }

    /// Returns the size of an array in bytes.
    #[inline]
    pub(crate) fn array(&self, class: ClassIndex, len: u32) -> u64 {
        let (base, element) = self.arrays[class.index()];
        let content = if element == STACK {
            self.stack(len)
        } else {
            u64::from(len) * u64::from(element)
        };
        round_up(u64::from(base) + content, self.align)
    }

    /// Returns the size of an array whose elements are flattened values or null, in bytes.
    pub(crate) fn value_array(&self, class: ClassIndex, len: u32) -> u64 {
        let (base, element) = self.value_arrays[class.index()];
        let content = u64::from(len) * u64::from(element);
        round_up(u64::from(base) + content, self.align)
    }

    /// Returns the size of a stack of `words` words, plus the size of its bitmap. The bitmap has one bit for each
    /// position in the stack that can hold a reference.
    #[cold]
    fn stack(&self, words: u32) -> u64 {
        let words = u64::from(words);
        let places = words * u64::from(8 / self.layout.reference.clamp(1, 8));
        (words + places.div_ceil(64)) * 8
    }

    /// Returns the number of a class's arrays that a scan counted, and their total size in bytes.
    pub(crate) fn arrays(&self, class: ClassIndex, number: usize, stats: &Stats) -> (u64, u64) {
        if self.arrays[class.index()].1 == STACK {
            let chunks = stats.stack_chunks.iter();
            return chunks.fold((0, 0), |(n, b), (&words, &count)| {
                (n + count, b + count * self.array(class, words))
            });
        }
        let residues = stats.residues(number).iter().zip(0..);
        let (count, bytes) = residues.fold((0, 0), |(n, b), (&count, residue)| {
            (n + count, b + count * self.array(class, residue))
        });
        let array = number as u32;
        let values = stats
            .value_arrays
            .range((array, 0)..=(array, u32::MAX))
            .fold((count, bytes), |(n, b), (&(_, len), &count)| {
                (n + count, b + count * self.value_array(class, len))
            });
        let (count, bytes) = values;
        let element = u64::from(self.arrays[class.index()].1);
        (
            count,
            bytes + stats.quotient(number) * stats.modulus as u64 * element,
        )
    }
}

/// Returns the object alignment: the largest power of two (8 to 256) that divides all addresses. Returns 8 if there are
/// only a few addresses.
fn alignment(classes: &Classes, stats: &Stats) -> u32 {
    /// Minimum number of addresses from which the alignment is derived. A few addresses could by chance all be
    /// multiples of a number that is larger than the alignment.
    const FEW: u64 = 16;
    let ids = classes.iter().map(|(_, c)| c.id.0).filter(|&id| id != 0);
    let (known, bits) = ids.fold((0_u64, stats.address_bits), |(n, b), id| (n + 1, b | id));
    let objects: u64 = stats.classes.iter().map(|s| s.instances).sum();
    if known + objects < FEW {
        return 8;
    }
    (1_u32 << bits.trailing_zeros().min(8)).max(8)
}

/// Returns the object alignment of a forked dump: the recorded alignment if there is one, otherwise the largest power
/// of two (8 to 256) that divides all sizes. Returns 8 if no size is known.
fn forked_alignment(forked: &Forked, gaps: &[Gap]) -> u32 {
    if let Some(recorded) = forked.recorded {
        return recorded.align;
    }
    let known = gaps.iter().filter(|gap| gap.is_known());
    let bits = known.fold(0_u64, |bits, gap| bits | gap.bytes);
    if bits == 0 {
        return 8;
    }
    (1_u32 << bits.trailing_zeros().min(8)).max(8)
}

/// Rounds up to a multiple of `to`, which is a power of two.
#[inline]
const fn round_up(value: u64, to: u64) -> u64 {
    (value + to - 1) & !(to - 1)
}

/// The measured size of the instances of one class.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gap {
    /// The smallest distance to the next object. `u64::MAX` if no distance was measured.
    bytes: u64,
    seen: u64,
    instances: u64,
    /// True if the distance to the next object may be used as the instance size although the layout model predicts a
    /// smaller size. (The distance must have been measured at least three times.) False if the distance may include
    /// unreachable objects, which a dump of live objects does not contain.
    over_model: bool,
    /// Whether the JVM adds a null marker: a byte that is 0 if a flattened value is null.
    marker: Marker,
    /// Maximum number of bytes by which flattened fields make an instance larger than the model predicts.
    flattened: u64,
}

/// Whether instances of a class have a null marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Marker {
    No,
    /// The class may be a value class.
    Maybe,
    /// The class has flattened values, or is one of [`SMALL_VALUES`].
    Likely,
}

/// Returns the offset of the first element and the size of an element, if arrays of this class contain flattened
/// values, otherwise `None`.
fn value_array(
    classes: &Classes,
    stats: &Stats,
    class: ClassIndex,
    model: &Model,
) -> Option<(u32, u32)> {
    let array = classes.layout(class.0).array;
    let elements = stats.elements.get(array as usize)?;
    let width = match elements.width {
        0 => LARGEST_FLATTENED,
        width => width.min(LARGEST_FLATTENED),
    };
    let base = stats::value_array_base(model.array_header);
    elements.are_flattened.then_some((base, width))
}

/// Maximum size of a flattened value with its null marker in bytes. HotSpot reads and writes such a value in one step.
const LARGEST_FLATTENED: u32 = 8;

/// Value classes of the JDK whose values are small enough to be flattened everywhere.
const SMALL_VALUES: [&str; 6] = [
    "java.lang.Boolean",
    "java.lang.Byte",
    "java.lang.Character",
    "java.lang.Float",
    "java.lang.Integer",
    "java.lang.Short",
];

/// Marks the classes whose instances may have a null marker, because they might be value classes. These classes are
/// [`SMALL_VALUES`], and classes without subclasses if at least three instances have the smallest distance to the next
/// object.
fn expect_markers(classes: &Classes, gaps: &mut [Gap]) {
    let mut is_superclass = vec![false; classes.len()];
    let superclasses = classes.iter().filter_map(|(_, class)| class.superclass);
    superclasses.for_each(|class| is_superclass[class.index()] = true);
    for ((gap, is_superclass), (_, class)) in gaps.iter_mut().zip(is_superclass).zip(classes.iter())
    {
        if class.loader.is_null() && SMALL_VALUES.contains(&&*class.name) {
            gap.marker = Marker::Likely;
        } else if !is_superclass && gap.marker == Marker::No && gap.is_certain() {
            gap.marker = Marker::Maybe;
        }
    }
}

impl Gap {
    fn new(stats: &Stats, class: ClassIndex, mirrors: &Mirrors, classes: &Classes) -> Self {
        let s = &stats.classes[class.index()];
        let marker = match s.flattened {
            0 => Marker::No,
            _ => Marker::Likely,
        };
        if classes[class].element.is_some() || s.instances == 0 {
            return Self {
                bytes: u64::MAX,
                seen: 0,
                instances: 0,
                over_model: false,
                marker,
                flattened: 0,
            };
        }
        let references = classes.chain(class).flat_map(|c| &classes[c].fields);
        let references = references
            .filter(|field| field.kind == Kind::Object)
            .count() as u64;
        let flattened = match s.holds_flattened {
            true => references * u64::from(LARGEST_FLATTENED),
            false => 0,
        };
        let to_mirror = mirrors
            .next(s.gap_at)
            .map_or(u64::MAX, |next| next - s.gap_at);
        Self {
            bytes: s.gap.min(to_mirror),
            seen: s.gap_seen,
            instances: s.instances,
            over_model: true,
            marker,
            flattened,
        }
    }

    /// Sets the size of the class's instances to a size that the file contains.
    fn set_file_size(&mut self, bytes: u64) {
        (self.bytes, self.seen) = (bytes, u64::from(u32::MAX));
    }

    /// Takes the distance to the next object as the exact size of the class's instances. In a dump that a forked
    /// process writes, the distance is the size. A distance that is too large for an object is ignored, because the
    /// last object in a part of the heap has no next object.
    fn set_exact_size(&mut self) {
        /// Upper bound of an instance's size. A class file has at most 65,535 fields.
        const LARGEST_INSTANCE: u64 = 1 << 20;
        if self.is_known() && self.bytes <= LARGEST_INSTANCE {
            self.set_file_size(self.bytes);
        }
    }

    fn forget(&mut self) {
        (self.bytes, self.seen) = (u64::MAX, 0);
    }

    fn is_known(&self) -> bool {
        self.bytes != u64::MAX
    }

    /// True if at least three objects have this distance to the next object. Then the distance is not regarded as
    /// random variation.
    fn is_certain(&self) -> bool {
        self.is_known() && self.seen >= 3
    }

    /// Returns the size of the class's instances, from the measured distance (an upper bound) and the model's
    /// prediction.
    fn resolve_size(&self, predicted: u64) -> u64 {
        let most = predicted.saturating_add(self.flattened);
        if self.bytes <= most || (self.over_model && self.is_certain()) {
            self.bytes
        } else {
            predicted
        }
    }
}

/// Number of classes whose measured distances (from one object to the next) agree with a possible layout. A class
/// counts only if its distance was measured at least three times.
#[derive(Clone, Copy, Default)]
struct Agreement {
    equal: u64,
    /// Number of classes for which the measured distance is smaller than the size predicted by the layout.
    nearer: u64,
    farther: u64,
}

impl Agreement {
    fn count(&mut self, predicted: u64, measured: u64) {
        match measured.cmp(&predicted) {
            std::cmp::Ordering::Equal => self.equal += 1,
            std::cmp::Ordering::Less => self.nearer += 1,
            std::cmp::Ordering::Greater => self.farther += 1,
        }
    }

    /// True if this possible object layout is regarded as the JVM's own layout. Then a distance from an instance to the
    /// next object that is larger than the predicted size is not the size of the instance.
    ///
    /// A distance that is smaller than the predicted size contradicts the layout. A larger distance does not always
    /// contradict it, because ZGC leaves unreachable objects in place. If a program creates the same short-lived
    /// objects next to each object that it keeps, all distances between the kept objects are equal and too large. If
    /// the JVM has a layout that this program does not know, with larger objects, the distances of hardly any class
    /// equal the predicted size.
    const fn is_exact_layout(self) -> bool {
        self.equal > 4 * self.nearer && self.equal > self.farther
    }
}

/// Returns the hypothesis about the object layout that fits the distances between neighbouring objects best. Also
/// returns its score: about the number of objects whose size it predicts exactly, with a penalty for objects that are
/// larger than the distance to the next one.
fn choose(
    classes: &Classes,
    gaps: &mut [Gap],
    class_class: Option<ClassIndex>,
    mirrors: &Mirrors,
    stats: &Stats,
    id_size: usize,
    align: u32,
) -> (Model, u64) {
    let wide = id_size == 8;
    let forked = classes.forked.as_ref();
    let recorded = forked.and_then(|forked| forked.recorded);
    let references: &[u32] = match recorded.map(|recorded| recorded.reference) {
        Some(8) if wide => &[8],
        None if wide => &[4, 8],
        _ => &[4],
    };
    let headers: &[u32] = if wide { &[12, 16, 8] } else { &[8] };
    let mut best: Option<(Model, i128, bool)> = None;
    for &reference in references {
        for &header in headers {
            for order in [Order::Packed, Order::Classic] {
                let model = Model {
                    reference,
                    header,
                    array_header: array_header(stats, header, wide),
                    align,
                    order,
                };
                let Some(evidence) = array_evidence(&model, stats) else {
                    continue;
                };
                let mut score = i128::from(evidence);
                let mut certain = Agreement::default();
                let mut layouts = Layouts::new(classes, &model, gaps, false);
                for (i, gap) in gaps.iter().enumerate().filter(|(_, g)| g.is_known()) {
                    let laid = layouts.of(ClassIndex(i as u32));
                    let size = model.size(&laid);
                    if gap.is_certain() {
                        certain.count(size, gap.bytes);
                    }
                    match size.cmp(&gap.bytes) {
                        std::cmp::Ordering::Equal => score += i128::from(gap.seen),
                        // No object is larger than the distance to the next one.
                        std::cmp::Ordering::Greater => score -= 4 * i128::from(gap.instances),
                        std::cmp::Ordering::Less => {}
                    }
                }
                if best.is_none_or(|(_, b, _)| score > b) {
                    best = Some((model, score, certain.is_exact_layout()));
                }
            }
        }
    }
    let fallback = Model {
        reference: if wide { 8 } else { 4 },
        header: if wide { 12 } else { 8 },
        array_header: if wide { 16 } else { 12 },
        align,
        order: Order::Packed,
    };
    let Some((model, score, proven)) = best else {
        return (fallback, 0);
    };
    if proven && forked.is_none() {
        for (gap, (_, class)) in gaps.iter_mut().zip(classes.iter()) {
            gap.over_model &= fields::is_special(class);
        }
    }
    // The distance between two adjacent class objects, minus the static fields of the first, is an upper bound of the
    // size of a class object without static fields.
    let room = max_mirror_size(classes, &model, mirrors);
    if let (Some(class), Some(room)) = (class_class, room) {
        let gap = &mut gaps[class.index()];
        if room < gap.bytes {
            (gap.bytes, gap.seen) = (room, 1);
        }
    }
    (model, u64::try_from(score).unwrap_or(0))
}

/// Returns the size of an array's header in a JVM whose object headers have `header` bytes.
fn array_header(stats: &Stats, header: u32, wide: bool) -> u32 {
    match header {
        _ if !wide => 12,
        8 => 12,
        12 => 16,
        _ => {
            // Since JDK 22, elements of up to four bytes directly follow the field with the array's length.
            let small = [
                Kind::Byte,
                Kind::Char,
                Kind::Int,
                Kind::Boolean,
                Kind::Short,
                Kind::Float,
            ];
            let least = small
                .iter()
                .map(|&k| stats.array_slack[k as usize])
                .min()
                .unwrap_or(i64::MAX);
            if least < 24 { 20 } else { 24 }
        }
    }
}

/// Returns a score for the layout `model`. It grows with the number of element types of arrays whose measured sizes fit
/// the layout exactly. Returns `None` if arrays contradict the layout, because with it some arrays would be larger than
/// the distance to the next object.
fn array_evidence(model: &Model, stats: &Stats) -> Option<i64> {
    let mut score = 0;
    for kind in Kind::PRIMITIVES.into_iter().chain([Kind::Object]) {
        let wide = kind == Kind::Object && model.reference == 8;
        let slack = if wide {
            stats.array_slack_wide
        } else {
            stats.array_slack[kind as usize]
        };
        let base = i64::from(model.array_base(kind));
        if slack < base {
            return None;
        }
        score += i64::from(slack == base) * 16;
    }
    Some(score)
}

/// The layouts of classes under one hypothesis, computed on request.
pub(super) struct Layouts<'a> {
    classes: &'a Classes,
    model: &'a Model,
    gaps: &'a [Gap],
    /// True if subclasses inherit the surplus of a class: the bytes by which the class's instances are larger than the
    /// model predicts, because of padding and fields that the JVM adds.
    surplus: bool,
    done: Vec<Option<LaidOut>>,
}

impl<'a> Layouts<'a> {
    pub(super) fn new(
        classes: &'a Classes,
        model: &'a Model,
        gaps: &'a [Gap],
        surplus: bool,
    ) -> Self {
        Self {
            classes,
            model,
            gaps,
            surplus,
            done: vec![None; classes.len()],
        }
    }

    fn all(mut self) -> Vec<LaidOut> {
        (0..self.classes.len())
            .map(|i| self.of(ClassIndex(i as u32)))
            .collect()
    }

    /// True if the measured size of `java.lang.Integer` includes a null marker, so that the JVM has value classes.
    fn marks_integers(&mut self) -> bool {
        let integer = self.classes.by_name("java.lang.Integer").first();
        let Some(&integer) = integer.filter(|c| self.gaps[c.index()].is_certain()) else {
            return false;
        };
        let plain = self.model.size(&self.of(integer));
        let class = &self.classes[integer];
        let above = class.superclass.map(|above| self.of(above));
        let above = above.unwrap_or_else(|| self.model.object());
        let [marked, _] = self.model.lay_out_value(&above, class);
        let measured = self.gaps[integer.index()].bytes;
        plain < measured && self.model.size(&marked) == measured
    }

    pub(super) fn of(&mut self, class: ClassIndex) -> LaidOut {
        // Chains of superclasses are short: `Classes` limits their length.
        let chain: Vec<ClassIndex> = self
            .classes
            .chain(class)
            .take_while(|c| self.done[c.index()].is_none())
            .collect();
        for &c in chain.iter().rev() {
            let class = &self.classes[c];
            let above = class.superclass.and_then(|s| self.done[s.index()].clone());
            let above = above.unwrap_or_else(|| self.model.object());
            self.done[c.index()] = Some(self.lay_out(above, class, &self.gaps[c.index()]));
        }
        self.done[class.index()].clone().unwrap_or_default()
    }

    /// Returns the class's layout in the most likely variant that agrees with the measured distance.
    fn lay_out(&self, above: LaidOut, class: &Class, gap: &Gap) -> LaidOut {
        let model = self.model;
        let laid = |v: &Variant| model.lay_out(above.clone(), class, v);
        let with_marker = |wanted: Marker| {
            let values = (gap.marker == wanted).then(|| model.lay_out_value(&above, class));
            values.into_iter().flatten()
        };
        let mut first = None;
        let usual = fields::variants(class).map(laid);
        let possible = with_marker(Marker::Likely).chain(usual);
        for laid in possible.chain(with_marker(Marker::Maybe)) {
            let size = model.size(&laid);
            if size == gap.bytes {
                first = Some(laid);
                break;
            }
            if size <= gap.bytes {
                first = first.or(Some(laid));
            }
        }
        let mut laid = first.unwrap_or_else(|| laid(&fields::PLAIN));
        let predicted = model.size(&laid);
        let settled = gap.resolve_size(predicted);
        if self.surplus && settled > predicted && gap.is_known() {
            laid.append(u32::try_from(settled - predicted).unwrap_or(0));
        }
        laid
    }
}
