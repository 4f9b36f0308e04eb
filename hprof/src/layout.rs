//! Object sizes: measured from the distances between objects, modelled where too few were seen.
//!
//! A dump does not hold object sizes, but object ids are addresses: the smallest distance from an
//! object of a class to the next object is that class's size, provided one of them has a close
//! neighbour. The model is HotSpot's field layout, with the JVM's parameters (reference width,
//! header, alignment) chosen so that it agrees with the distances.

use crate::classes::Classes;
use crate::ids::ClassIndex;
use crate::record::Kind;
use crate::stats::Stats;

/// The JVM's object layout, as inferred from the dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Bytes of a reference in the heap: 4 when compressed.
    pub reference: u32,
    /// Bytes of an object's header.
    pub header: u32,
    /// Bytes of an array's header, the length included.
    pub array_header: u32,
    /// Object sizes are multiples of this.
    pub align: u32,
    /// What the sizes rest on.
    pub source: LayoutSource,
}

/// What sizes rest on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutSource {
    /// Distances between objects.
    Addresses,
    /// Only the model: ids are no addresses, or the objects are too few.
    Assumed,
}

/// How a JVM orders fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// JDK 15 and later: largest first, each into the tightest hole, those of superclasses included.
    Packed,
    /// Before: by size, superclass fields rounded up to a reference.
    Classic,
}

/// A hypothesis about the JVM.
#[derive(Clone, Copy, Debug)]
struct Model {
    reference: u32,
    header: u32,
    array_header: u32,
    align: u32,
    order: Order,
}

/// A class's fields laid out: where they end and which holes they leave.
#[derive(Clone, Debug, Default)]
struct Laid {
    end: u32,
    /// Offset and length.
    holes: Vec<(u32, u32)>,
}

/// Sizes of all objects.
#[derive(Debug)]
pub(crate) struct Sizes {
    pub(crate) layout: Layout,
    /// For each class the size of an instance.
    instance: Vec<u64>,
    /// For each class the size of its class object.
    class_object: Vec<u64>,
    /// For each array class, where the elements begin and what each takes.
    arrays: Vec<(u32, u32)>,
    align: u64,
}

impl Sizes {
    /// Infers the layout. `next_start` tells the first object after an address.
    pub(crate) fn infer(
        classes: &Classes,
        stats: &Stats,
        id_size: usize,
        next_start: impl Fn(u64) -> Option<u64>,
    ) -> Self {
        let mirrors = Mirrors::new(classes);
        let gaps: Vec<Gap> = classes
            .iter()
            .map(|(i, c)| Gap::new(stats, i, &mirrors, c.element.is_some()))
            .collect();
        let align = (1_u32 << stats.address_bits.trailing_zeros().min(8)).max(8);
        let measured = stats.address_bits != 0 && stats.address_bits.trailing_zeros() >= 3;
        let (model, score) = choose(classes, &gaps, stats, id_size, align);
        let source = if measured && score > 0 {
            LayoutSource::Addresses
        } else {
            LayoutSource::Assumed
        };
        let laid = lay_out_all(classes, &model, &gaps);
        let mut instance: Vec<u64> = Vec::with_capacity(classes.len());
        for (i, _) in classes.iter() {
            let predicted = model.size(&laid[i.index()]);
            instance.push(gaps[i.index()].settle(predicted));
        }
        let arrays = classes
            .iter()
            .map(|(_, c)| {
                c.element.map_or((0, 0), |kind| {
                    (model.array_base(kind), width(kind, model.reference))
                })
            })
            .collect();
        let layout = Layout {
            reference: model.reference,
            header: model.header,
            array_header: model.array_header,
            align,
            source,
        };
        let mut sizes = Self {
            layout,
            instance,
            class_object: Vec::new(),
            arrays,
            align: u64::from(align),
        };
        let base = classes
            .by_name("java.lang.Class")
            .first()
            .map_or(0, |c| sizes.instance[c.index()]);
        sizes.class_object = classes
            .iter()
            .map(|(_, class)| {
                let laid = lay_out_statics(
                    class
                        .statics
                        .iter()
                        .filter(|s| !s.name.starts_with('<'))
                        .map(|s| s.kind),
                    &model,
                );
                let size = round_up(base + round_up(u64::from(laid), 8), u64::from(align));
                let room = [next_start(class.id.0), mirrors.next(class.id.0)]
                    .into_iter()
                    .flatten()
                    .min();
                match room {
                    Some(next) if measured => size.min(next - class.id.0),
                    _ => size,
                }
            })
            .collect();
        sizes
    }

    /// Bytes of an instance of a class.
    #[inline]
    pub(crate) fn instance(&self, class: ClassIndex) -> u64 {
        self.instance[class.index()]
    }

    /// Bytes of a class object, its static fields included.
    pub(crate) fn class_object(&self, class: ClassIndex) -> u64 {
        self.class_object[class.index()]
    }

    /// Bytes of an array.
    #[inline]
    pub(crate) fn array(&self, class: ClassIndex, len: u32) -> u64 {
        let (base, element) = self.arrays[class.index()];
        round_up(
            u64::from(base) + u64::from(len) * u64::from(element),
            self.align,
        )
    }

    /// Number and bytes of all arrays of a class that a scan counted.
    pub(crate) fn arrays(&self, class: ClassIndex, number: usize, stats: &Stats) -> (u64, u64) {
        let residues = stats.residues(number).iter().zip(0..);
        let (count, bytes) = residues.fold((0, 0), |(n, b), (&count, residue)| {
            (n + count, b + count * self.array(class, residue))
        });
        let element = u64::from(self.arrays[class.index()].1);
        (
            count,
            bytes + stats.quotient(number) * stats.modulus as u64 * element,
        )
    }
}

/// `to` is a power of two.
#[inline]
const fn round_up(value: u64, to: u64) -> u64 {
    (value + to - 1) & !(to - 1)
}

/// Class objects by address: they lie among the other objects but have no object records.
struct Mirrors(Vec<u64>);

impl Mirrors {
    fn new(classes: &Classes) -> Self {
        let mut ids: Vec<u64> = classes
            .iter()
            .map(|(_, c)| c.id.0)
            .filter(|&id| id != 0)
            .collect();
        ids.sort_unstable();
        Self(ids)
    }

    fn next(&self, address: u64) -> Option<u64> {
        self.0
            .get(self.0.partition_point(|&id| id <= address))
            .copied()
    }
}

/// What was measured of a class.
#[derive(Clone, Copy, Debug)]
struct Gap {
    bytes: u64,
    seen: u64,
    instances: u64,
}

impl Gap {
    fn new(stats: &Stats, class: ClassIndex, mirrors: &Mirrors, array: bool) -> Self {
        let s = &stats.classes[class.index()];
        if array || s.instances == 0 {
            return Self {
                bytes: u64::MAX,
                seen: 0,
                instances: 0,
            };
        }
        let to_mirror = mirrors
            .next(s.gap_at)
            .map_or(u64::MAX, |next| next - s.gap_at);
        Self {
            bytes: s.gap.min(to_mirror),
            seen: s.gap_seen,
            instances: s.instances,
        }
    }

    /// The class's size, between what was measured (never too small a bound) and the model.
    fn settle(&self, predicted: u64) -> u64 {
        // The same distance several times is no accident; a single larger one may be one.
        const CERTAIN: u64 = 3;
        if self.bytes <= predicted || (self.seen >= CERTAIN && self.bytes != u64::MAX) {
            self.bytes
        } else {
            predicted
        }
    }
}

/// The hypothesis that the distances speak for, and for how many objects it is exact.
fn choose(
    classes: &Classes,
    gaps: &[Gap],
    stats: &Stats,
    id_size: usize,
    align: u32,
) -> (Model, u64) {
    let wide = id_size == 8;
    let references: &[u32] = if wide { &[4, 8] } else { &[4] };
    let headers: &[u32] = if wide { &[12, 16, 8] } else { &[8] };
    let mut best: Option<(Model, i128)> = None;
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
                let mut score = i128::from(model.array_evidence(stats));
                let laid = lay_out_all(classes, &model, &[]);
                for (gap, laid) in gaps.iter().zip(&laid).filter(|(g, _)| g.bytes != u64::MAX) {
                    match model.size(laid).cmp(&gap.bytes) {
                        std::cmp::Ordering::Equal => score += i128::from(gap.seen),
                        // No object is larger than the distance to the next.
                        std::cmp::Ordering::Greater => score -= 4 * i128::from(gap.instances),
                        std::cmp::Ordering::Less => {}
                    }
                }
                if best.is_none_or(|(_, b)| score > b) {
                    best = Some((model, score));
                }
            }
        }
    }
    let fallback = Model {
        reference: 4,
        header: 12,
        array_header: 16,
        align,
        order: Order::Packed,
    };
    best.map_or((fallback, 0), |(model, score)| {
        (model, u64::try_from(score).unwrap_or(0))
    })
}

/// The array header that goes with an object header.
fn array_header(stats: &Stats, header: u32, wide: bool) -> u32 {
    match header {
        _ if !wide => 12,
        8 => 12,
        12 => 16,
        _ => {
            // Since JDK 22 elements of up to four bytes follow the length at once.
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

impl Model {
    fn size(&self, laid: &Laid) -> u64 {
        round_up(u64::from(laid.end.max(self.header)), u64::from(self.align))
    }

    fn array_base(&self, kind: Kind) -> u32 {
        let element = if kind == Kind::Object {
            self.reference
        } else {
            kind.size(0) as u32
        };
        if element == 8 {
            self.array_header.next_multiple_of(8)
        } else {
            self.array_header
        }
    }

    /// Arrays contradict a hypothesis that makes them larger than the distance to the next object.
    fn array_evidence(&self, stats: &Stats) -> i64 {
        const VETO: i64 = i64::MIN / 4;
        let mut score = 0;
        for kind in Kind::PRIMITIVES.into_iter().chain([Kind::Object]) {
            let wide = kind == Kind::Object && self.reference == 8;
            let slack = if wide {
                stats.array_slack_wide
            } else {
                stats.array_slack[kind as usize]
            };
            let base = i64::from(self.array_base(kind));
            if slack < base {
                return VETO;
            }
            score += i64::from(slack == base) * 16;
        }
        score
    }
}

/// Lays out every class, superclasses first. Where distances are given, what a class is larger than
/// the model says (fields that the JVM injects, padding against false sharing) is passed on to its
/// subclasses.
fn lay_out_all(classes: &Classes, model: &Model, gaps: &[Gap]) -> Vec<Laid> {
    let mut done: Vec<Option<Laid>> = vec![None; classes.len()];
    for (i, _) in classes.iter() {
        // Superclass chains are short (limited when the table is built).
        let chain: Vec<ClassIndex> = classes
            .chain(i)
            .take_while(|c| done[c.index()].is_none())
            .collect();
        for &c in chain.iter().rev() {
            let class = &classes[c];
            let above = class.superclass.and_then(|s| done[s.index()].clone());
            let start = above.unwrap_or(Laid {
                end: model.header,
                holes: Vec::new(),
            });
            let kinds = class
                .fields
                .iter()
                .map(|f| f.kind)
                .chain(injected(&class.name, class.loader.is_null()));
            let mut laid = match model.order {
                Order::Packed => packed(start, kinds, model.reference),
                Order::Classic => classic(start, kinds, model.reference),
            };
            if let Some(gap) = gaps.get(c.index()) {
                let predicted = model.size(&laid);
                let settled = gap.settle(predicted);
                if settled > predicted && settled != u64::MAX {
                    laid.end += (settled - predicted) as u32;
                }
            }
            done[c.index()] = Some(laid);
        }
    }
    done.into_iter().map(Option::unwrap_or_default).collect()
}

/// Fields that HotSpot adds to classes of its own; no dump shows them.
fn injected(name: &str, boot: bool) -> impl Iterator<Item = Kind> + use<> {
    use Kind::{Long, Short};
    let kinds: &[Kind] = match name {
        _ if !boot => &[],
        "java.lang.ClassLoader" | "java.lang.Module" | "java.lang.invoke.ResolvedMethodName" => {
            &[Long]
        }
        "java.lang.invoke.MemberName" => &[Long],
        "java.lang.invoke.MethodHandleNatives$CallSiteContext" => &[Long, Long],
        "java.lang.StackFrameInfo" => &[Short],
        "java.lang.String" => &[Kind::Byte],
        _ => &[],
    };
    kinds.iter().copied()
}

fn width(kind: Kind, reference: u32) -> u32 {
    if kind == Kind::Object {
        reference
    } else {
        kind.size(0) as u32
    }
}

/// HotSpot's field layout since JDK 15: primitives from the largest to the smallest, then
/// references, each into the smallest hole that takes it, else at the end.
fn packed(mut laid: Laid, kinds: impl Iterator<Item = Kind>, reference: u32) -> Laid {
    let mut counts = [0_u32; 9];
    let mut references = 0_u32;
    for kind in kinds {
        if kind == Kind::Object {
            references += 1;
        } else {
            counts[kind.size(0)] += 1;
        }
    }
    for size in [8_u32, 4, 2, 1] {
        for _ in 0..counts[size as usize] {
            laid.place(size);
        }
    }
    for _ in 0..references {
        laid.place(reference);
    }
    laid
}

impl Laid {
    fn place(&mut self, size: u32) {
        let fits =
            |&(offset, len): &(u32, u32)| offset.next_multiple_of(size) + size <= offset + len;
        let hole = (0..self.holes.len())
            .filter(|&i| fits(&self.holes[i]))
            .min_by_key(|&i| self.holes[i].1);
        match hole {
            Some(i) => {
                let (offset, len) = self.holes.remove(i);
                let at = offset.next_multiple_of(size);
                if at > offset {
                    self.holes.push((offset, at - offset));
                }
                if at + size < offset + len {
                    self.holes.push((at + size, offset + len - at - size));
                }
            }
            None => {
                let at = self.end.next_multiple_of(size);
                if at > self.end {
                    self.holes.push((self.end, at - self.end));
                }
                self.end = at + size;
            }
        }
    }
}

/// HotSpot's field layout up to JDK 14: longs, ints, shorts, bytes, references, with smaller ones
/// moved before the longs when these would leave a hole.
fn classic(laid: Laid, kinds: impl Iterator<Item = Kind>, reference: u32) -> Laid {
    let mut counts = [0_u32; 9];
    let mut references = 0_u32;
    for kind in kinds {
        if kind == Kind::Object {
            references += 1;
        } else {
            counts[kind.size(0)] += 1;
        }
    }
    let mut at = laid.end;
    if counts[8] > 0 {
        let aligned = at.next_multiple_of(8);
        for size in [4_u32, 2, 1] {
            while counts[size as usize] > 0 && at + size <= aligned {
                (at, counts[size as usize]) = (at + size, counts[size as usize] - 1);
            }
        }
        while reference == 4 && references > 0 && at + 4 <= aligned {
            (at, references) = (at + 4, references - 1);
        }
        at = aligned;
    }
    for size in [8_u32, 4, 2, 1] {
        if counts[size as usize] > 0 {
            at = at.next_multiple_of(size) + size * counts[size as usize];
        }
    }
    if references > 0 {
        at = at.next_multiple_of(reference) + reference * references;
    }
    // A class without fields of its own leaves its superclass's end as it is.
    let end = if at == laid.end {
        at
    } else {
        at.next_multiple_of(reference)
    };
    Laid {
        end,
        holes: Vec::new(),
    }
}

/// Bytes of static fields: references, then primitives from the largest to the smallest.
fn lay_out_statics(kinds: impl Iterator<Item = Kind>, model: &Model) -> u32 {
    let mut sizes: Vec<(bool, u32)> = kinds
        .map(|k| (k != Kind::Object, u32::MAX - width(k, model.reference)))
        .collect();
    sizes.sort_unstable();
    let mut laid = Laid::default();
    for (_, size) in sizes {
        laid.place(u32::MAX - size);
    }
    laid.end
}
