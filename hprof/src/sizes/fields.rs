//! HotSpot's field layout: the order of fields, hidden fields that HotSpot adds, and padding.

use crate::records::classes::Class;
use crate::records::record::Kind;

/// Number of padding bytes around fields against false sharing (`ContendedPaddingWidth`).
const CONTENDED: u32 = 128;

/// The order in which a JVM places fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// JDK 15 and later: the largest fields first. Each field is placed in the smallest hole that fits, including holes
    /// between the fields of superclasses.
    Packed,
    /// Up to JDK 14: fields are sorted by size. The end of each superclass's fields is rounded up to a multiple of the
    /// size of a reference.
    Classic,
}

/// The position of static reference fields in a class object: before or after the other static fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum References {
    First,
    /// After the other static fields, as in JDK 28 and later.
    Last,
}

/// A hypothesis about the JVM's object layout. All sizes are in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Model {
    pub(crate) reference: u32,
    pub(crate) header: u32,
    pub(crate) array_header: u32,
    pub(crate) align: u32,
    pub(crate) order: Order,
}

/// The layout of a class's fields: their end, and the holes between them.
#[derive(Clone, Debug, Default)]
pub(crate) struct LaidOut {
    pub(crate) end: u32,
    /// Offset and length of each hole.
    holes: Vec<(u32, u32)>,
    /// The end of the last field, if the class has `@Contended` fields. Padding lies between this end and the fields of
    /// subclasses. Fields of subclasses fill no holes before this end.
    contended_end: Option<u32>,
}

impl Model {
    pub(crate) fn object(&self) -> LaidOut {
        LaidOut {
            end: self.header,
            ..LaidOut::default()
        }
    }

    pub(crate) fn size(&self, laid: &LaidOut) -> u64 {
        let align = u64::from(self.align);
        (u64::from(laid.end.max(self.header)) + align - 1) & !(align - 1)
    }

    pub(crate) fn width(&self, kind: Kind) -> u32 {
        match kind.size(0) {
            0 => self.reference,
            size => size as u32,
        }
    }

    /// Returns the offset of an array's first element.
    pub(crate) fn array_base(&self, kind: Kind) -> u32 {
        self.array_header.next_multiple_of(self.width(kind).max(1))
    }

    /// Returns the layout of `class`, whose superclass has the layout `above`.
    pub(crate) fn lay_out(&self, above: LaidOut, class: &Class, variant: &Variant) -> LaidOut {
        let apart = |name: &str| match variant.contended {
            Contended::Nothing => false,
            Contended::Fields(names) | Contended::Class(names) => names.contains(&name),
        };
        let (mut own, mut group) = (Sorted::default(), Sorted::default());
        for field in &class.fields {
            if apart(&field.name) {
                group.add(field.kind);
            } else {
                own.add(field.kind);
            }
        }
        variant.injected.iter().for_each(|&kind| own.add(kind));
        let mut laid = above;
        if let Some(fields_end) = laid.contended_end.filter(|_| own.any() || group.any()) {
            laid.end = fields_end.saturating_add(CONTENDED);
        }
        if matches!(variant.contended, Contended::Class(_)) {
            laid.append(CONTENDED);
            laid.contended_end = Some(laid.end);
        }
        laid = match self.order {
            Order::Packed => own.place_packed(laid, self.reference),
            Order::Classic if has_references_first(class) => {
                own.references_first(laid, self.reference)
            }
            Order::Classic => own.classic(laid, self.reference),
        };
        if variant.contended != Contended::Nothing {
            if group.any() {
                laid.append(CONTENDED);
                laid.contended_end = Some(laid.end);
                laid = group.place_packed(laid, self.reference);
            }
            laid.contended_end = Some(laid.end);
            laid.append(CONTENDED);
        } else if laid.contended_end.is_some() && own.any() {
            laid.contended_end = Some(laid.end);
        }
        laid
    }

    /// Returns the two possible layouts of an object of a value class, the more likely first. HotSpot must be able to
    /// copy such an object to a flattened field in one step. So HotSpot adds a null marker of one byte to the object,
    /// and aligns the object's fields to the size of the copy. In one of the two layouts, the fields begin at a
    /// multiple of 8 bytes.
    pub(crate) fn lay_out_value(&self, above: &LaidOut, class: &Class) -> [LaidOut; 2] {
        const SMALL: u32 = 4;
        let marked = |above: LaidOut| {
            let mut laid = self.lay_out(above, class, &PLAIN);
            laid.place(1, 1);
            laid
        };
        let mut aligned = above.clone();
        aligned.append(above.end.next_multiple_of(8) - above.end);
        let packed = marked(above.clone());
        let content: u32 = class.fields.iter().map(|f| self.width(f.kind)).sum();
        match content.saturating_add(1) {
            0..=SMALL => [packed, marked(aligned)],
            _ => [marked(aligned), packed],
        }
    }

    /// Returns the total size of static fields in bytes. Primitives are placed from the largest to the smallest, and
    /// references before or after all primitives, depending on `place`.
    pub(crate) fn statics(&self, kinds: impl Iterator<Item = Kind>, place: References) -> u64 {
        let mut sorted = Sorted::default();
        kinds.for_each(|kind| sorted.add(kind));
        let [eight, four, two, one] = [8_u32, 4, 2, 1].map(|n| (n, sorted.counts[n as usize]));
        let references = (self.reference, sorted.references);
        let mut all = [references, eight, four, two, one];
        if place == References::Last {
            all.rotate_left(1);
        }
        let mut end = 0_u64;
        for (size, count) in all.into_iter().filter(|(_, count)| *count > 0) {
            end = end.next_multiple_of(u64::from(size)) + u64::from(count) * u64::from(size);
        }
        end.next_multiple_of(8)
    }
}

/// The number of fields of each size. `counts` is indexed by size in bytes, and does not include references.
#[derive(Default)]
struct Sorted {
    counts: [u32; 9],
    references: u32,
}

impl Sorted {
    fn add(&mut self, kind: Kind) {
        match kind.size(0) {
            0 => self.references += 1,
            size => self.counts[size] += 1,
        }
    }

    fn any(&self) -> bool {
        self.references > 0 || self.counts.iter().any(|&n| n > 0)
    }

    /// Places fields like HotSpot since JDK 15: primitives from the largest to the smallest, then references. Each
    /// field goes in the smallest hole that fits, otherwise at the end.
    fn place_packed(&self, mut laid: LaidOut, reference: u32) -> LaidOut {
        for size in [8_u32, 4, 2, 1] {
            laid.place(size, self.counts[size as usize]);
        }
        laid.place(reference, self.references);
        laid
    }

    /// Places fields like HotSpot up to JDK 14: longs, ints, shorts, bytes, references. Smaller fields come before the
    /// longs if the longs would leave a hole.
    fn classic(&self, laid: LaidOut, reference: u32) -> LaidOut {
        let (mut counts, mut references) = (self.counts, self.references);
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
        classic_end(&laid, at, reference)
    }

    /// Places the fields of a class in [`REFERENCES_FIRST`] as HotSpot up to JDK 14 does: references, longs, ints,
    /// shorts, bytes. Holes are not filled.
    fn references_first(&self, laid: LaidOut, reference: u32) -> LaidOut {
        let mut at = laid.end;
        if self.references > 0 {
            at = at.next_multiple_of(reference) + reference * self.references;
        }
        for size in [8_u32, 4, 2, 1] {
            if self.counts[size as usize] > 0 {
                at = at.next_multiple_of(size) + size * self.counts[size as usize];
            }
        }
        classic_end(&laid, at, reference)
    }
}

/// Returns the layout of a class whose fields end at `at`. The end is rounded up to a multiple of `reference`. A class
/// without fields of its own keeps the end of its superclass.
fn classic_end(above: &LaidOut, at: u32, reference: u32) -> LaidOut {
    let end = if at == above.end {
        at
    } else {
        at.next_multiple_of(reference)
    };
    LaidOut {
        end,
        ..LaidOut::default()
    }
}

/// Classes whose field offsets are built into HotSpot up to JDK 14 (`JavaClasses::compute_hard_coded_offsets`), sorted.
const REFERENCES_FIRST: [&str; 16] = [
    "java.lang.AssertionStatusDirectives",
    "java.lang.Boolean",
    "java.lang.Byte",
    "java.lang.Character",
    "java.lang.Class",
    "java.lang.ClassLoader",
    "java.lang.Double",
    "java.lang.Float",
    "java.lang.Integer",
    "java.lang.Long",
    "java.lang.Short",
    "java.lang.StackTraceElement",
    "java.lang.String",
    "java.lang.Throwable",
    "java.lang.ref.Reference",
    "java.lang.ref.SoftReference",
];

fn has_references_first(class: &Class) -> bool {
    class.loader.is_null() && REFERENCES_FIRST.binary_search(&&*class.name).is_ok()
}

impl LaidOut {
    /// Places fields of one size. Each field goes in the smallest hole that fits, otherwise at the end. If several
    /// holes have the same length, HotSpot takes the hole with the highest offset.
    fn place(&mut self, size: u32, count: u32) {
        for done in 0..count {
            let fits =
                |&(offset, len): &(u32, u32)| offset.next_multiple_of(size) + size <= offset + len;
            let hole = (0..self.holes.len())
                .filter(|&i| fits(&self.holes[i]))
                .min_by_key(|&i| (self.holes[i].1, std::cmp::Reverse(self.holes[i].0)));
            let Some(i) = hole else {
                // This field does not fit in any hole between fields, so the remaining fields of the same size do not
                // fit either.
                let at = self.end.next_multiple_of(size);
                if at > self.end && self.contended_end.is_none() {
                    self.holes.push((self.end, at - self.end));
                }
                self.end = at.saturating_add(size.saturating_mul(count - done));
                return;
            };
            let (offset, len) = self.holes.remove(i);
            let at = offset.next_multiple_of(size);
            if at > offset {
                self.holes.push((offset, at - offset));
            }
            if at + size < offset + len {
                self.holes.push((at + size, offset + len - at - size));
            }
        }
    }

    /// Appends padding. Fields that are placed later do not fill holes before the padding.
    pub(crate) fn append(&mut self, bytes: u32) {
        self.end = self.end.saturating_add(bytes);
        self.holes.clear();
    }
}

/// The fields of a class with padding around them (`@Contended`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Contended {
    Nothing,
    /// The named fields are next to each other, with padding before the first and after the last.
    Fields(&'static [&'static str]),
    /// Padding around the whole class, and more padding around the named fields.
    Class(&'static [&'static str]),
}

/// A way in which a JVM may lay out one of the JDK classes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Variant {
    class: &'static str,
    /// The variant applies only if the class declares the field with this name.
    has: Option<&'static str>,
    /// The variant applies only if the class does not declare the field with this name.
    lacks: Option<&'static str>,
    /// Fields that the JVM adds. They are not in the dump.
    injected: &'static [Kind],
    contended: Contended,
}

/// An ordinary class.
pub(crate) const PLAIN: Variant = Variant {
    class: "",
    has: None,
    lacks: None,
    injected: &[],
    contended: Contended::Nothing,
};

const fn injected(
    class: &'static str,
    has: Option<&'static str>,
    injected: &'static [Kind],
) -> Variant {
    Variant {
        class,
        has,
        injected,
        ..PLAIN
    }
}

const fn contended(
    class: &'static str,
    has: Option<&'static str>,
    contended: Contended,
) -> Variant {
    Variant {
        class,
        has,
        contended,
        ..PLAIN
    }
}

const THREAD_LOCAL_RANDOM: Contended = Contended::Fields(&[
    "threadLocalRandomSeed",
    "threadLocalRandomProbe",
    "threadLocalRandomSecondarySeed",
]);

use Kind::{Boolean, Byte, Int, Long, Object, Short};

/// Fields that HotSpot adds to JDK classes, and padding that the class library requests, from JDK 8 to 25. Sorted by
/// class, the newest variant of each class first.
const VARIANTS: &[Variant] = &[
    // HotSpot adds these fields to `java.lang.Class`: native pointers to its own data about the class and about the
    // array class, two counts, the init lock and the source file. In older JDKs it also adds the signers and the
    // protection domain. In later JDKs these are ordinary fields.
    injected(
        "java.lang.Class",
        Some("protectionDomain"),
        &[Long, Long, Int, Int, Object, Object],
    ),
    injected(
        "java.lang.Class",
        None,
        &[Long, Long, Int, Int, Object, Object, Object],
    ),
    injected(
        "java.lang.Class",
        None,
        &[Long, Long, Int, Int, Object, Object, Object, Object],
    ),
    injected("java.lang.ClassLoader", None, &[Long]),
    injected("java.lang.InternalError", None, &[Boolean]),
    injected("java.lang.Module", None, &[Long]),
    injected("java.lang.StackFrameInfo", None, &[Short]),
    injected("java.lang.String", Some("coder"), &[Byte]),
    injected(
        "java.lang.Thread",
        Some("holder"),
        &[Long, Int, Boolean, Short],
    ),
    contended("java.lang.Thread", None, THREAD_LOCAL_RANDOM),
    Variant {
        contended: THREAD_LOCAL_RANDOM,
        ..injected(
            "java.lang.Thread",
            Some("holder"),
            &[Long, Int, Boolean, Short],
        )
    },
    Variant {
        contended: THREAD_LOCAL_RANDOM,
        ..injected("java.lang.Thread", Some("holder"), &[Long, Boolean, Short])
    },
    injected("java.lang.VirtualThread", Some("onWaitingList"), &[Long]),
    Variant {
        lacks: Some("context"),
        ..injected("java.lang.invoke.CallSite", None, &[Long, Long])
    },
    injected("java.lang.invoke.MemberName", Some("method"), &[Long]),
    injected("java.lang.invoke.MemberName", None, &[Long, Long, Object]),
    injected(
        "java.lang.invoke.MethodHandleNatives$CallSiteContext",
        None,
        &[Long, Long],
    ),
    injected(
        "java.lang.invoke.MethodHandleNatives$CallSiteContext",
        None,
        &[Long],
    ),
    injected(
        "java.lang.invoke.ResolvedMethodName",
        Some("vmholder"),
        &[Long],
    ),
    injected("java.lang.invoke.ResolvedMethodName", None, &[Long, Object]),
    contended(
        "java.util.concurrent.ConcurrentHashMap$CounterCell",
        None,
        Contended::Class(&[]),
    ),
    contended(
        "java.util.concurrent.Exchanger$Node",
        None,
        Contended::Class(&[]),
    ),
    contended(
        "java.util.concurrent.Exchanger$Slot",
        None,
        Contended::Class(&[]),
    ),
    contended(
        "java.util.concurrent.ForkJoinPool",
        Some("ctl"),
        Contended::Fields(&["ctl", "parallelism"]),
    ),
    contended(
        "java.util.concurrent.ForkJoinPool",
        None,
        Contended::Class(&[]),
    ),
    contended(
        "java.util.concurrent.ForkJoinPool$WorkQueue",
        Some("parking"),
        Contended::Fields(&["phase", "top", "nsteals", "source", "parking", "stackPred"]),
    ),
    contended(
        "java.util.concurrent.ForkJoinPool$WorkQueue",
        None,
        Contended::Fields(&["top", "nsteals", "source"]),
    ),
    contended(
        "java.util.concurrent.ForkJoinPool$WorkQueue",
        None,
        Contended::Class(&[]),
    ),
    contended(
        "java.util.concurrent.SubmissionPublisher$BufferedSubscription",
        None,
        Contended::Class(&["demand", "waiting"]),
    ),
    contended(
        "java.util.concurrent.atomic.Striped64$Cell",
        None,
        Contended::Class(&[]),
    ),
    // HotSpot adds these fields to `StackChunk`: a reference to the continuation, a native address, the size to thaw,
    // flags and, in the first variant, the lock stack size.
    injected(
        "jdk.internal.vm.StackChunk",
        Some("bottom"),
        &[Object, Long, Int, Byte, Byte],
    ),
    injected(
        "jdk.internal.vm.StackChunk",
        None,
        &[Object, Long, Int, Byte],
    ),
];

/// Returns the ways in which JVMs may lay out a class (see [`Variant`]), the most likely first. The last one is
/// [`PLAIN`].
pub(crate) fn variants(class: &Class) -> impl Iterator<Item = &'static Variant> + '_ {
    let from = VARIANTS.partition_point(|v| v.class < &*class.name);
    let all = if class.loader.is_null() {
        &VARIANTS[from..]
    } else {
        &[]
    };
    let declares = |name| class.fields.iter().any(|f| &*f.name == name);
    all.iter()
        .take_while(|v| v.class == &*class.name)
        .filter(move |v| v.has.is_none_or(declares) && !v.lacks.is_some_and(declares))
        .chain([&PLAIN])
}

/// True if [`VARIANTS`] has a field layout of this class. Some JVMs may have layouts of this class that are not in the
/// table.
pub(crate) fn is_special(class: &Class) -> bool {
    let known = |v: &Variant| v.class.cmp(&*class.name);
    class.loader.is_null() && VARIANTS.binary_search_by(known).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::classes::Field;

    fn class(name: &str, fields: &[(&str, Kind)]) -> Class {
        let field = |&(name, kind): &(&str, Kind)| Field {
            name: name.into(),
            kind,
        };
        Class {
            name: name.into(),
            fields: fields.iter().map(field).collect(),
            ..Class::default()
        }
    }

    const COOPS: Model = Model {
        reference: 4,
        header: 12,
        array_header: 16,
        align: 8,
        order: Order::Packed,
    };

    #[test]
    fn the_tables_are_sorted() {
        assert!(VARIANTS.is_sorted_by_key(|v| v.class));
        assert!(REFERENCES_FIRST.is_sorted());
    }

    #[test]
    fn padding_is_as_hotspot_lays_it() {
        // Measured: on JDK 17 and 25, an instance of the class `Cell` that `LongAdder` uses takes 280 bytes.
        let cell = class(
            "java.util.concurrent.atomic.Striped64$Cell",
            &[("value", Long)],
        );
        let variant = variants(&cell).next().unwrap();
        let laid = COOPS.lay_out(COOPS.object(), &cell, variant);
        assert_eq!(COOPS.size(&laid), 280);
        // The class `Thread` of JDK 17, and subclasses with one additional field each.
        let mut fields = vec![("a", Object); 11];
        fields.extend([("b", Long); 3]);
        fields.extend([("c", Int); 2]);
        fields.extend([("d", Boolean); 3]);
        fields.extend([
            ("threadLocalRandomSeed", Long),
            ("threadLocalRandomProbe", Int),
            ("threadLocalRandomSecondarySeed", Int),
        ]);
        let thread = class("java.lang.Thread", &fields);
        let laid = COOPS.lay_out(COOPS.object(), &thread, variants(&thread).next().unwrap());
        assert_eq!(COOPS.size(&laid), 368);
        let own = class("Own", &[("running", Boolean)]);
        let below = COOPS.lay_out(laid, &own, &PLAIN);
        assert_eq!(COOPS.size(&below), 376);
        // Measured on JDK 17: the fields of the next subclass are padded again.
        assert_eq!(COOPS.size(&COOPS.lay_out(below, &own, &PLAIN)), 504);
    }

    #[test]
    fn references_come_first_in_a_class_loader_of_jdk_8_and_11() {
        // Measured: a class loader has 72 bytes on JDK 8 and 88 bytes on JDK 11. An instance of an ordinary class with
        // the same fields would have 64 and 80 bytes.
        for (references, expected) in [(10, [72, 64]), (14, [88, 80])] {
            let mut fields = vec![("a", Object); references];
            fields.push(("defaultAssertionStatus", Boolean));
            let model = Model {
                order: Order::Classic,
                ..COOPS
            };
            let sizes = ["java.lang.ClassLoader", "app.Loader"].map(|name| {
                let loader = class(name, &fields);
                let variant = injected("", None, &[Long]);
                model.size(&model.lay_out(model.object(), &loader, &variant))
            });
            assert_eq!(sizes, expected);
        }
    }

    #[test]
    fn static_fields_fill_no_holes() {
        // The static fields of `java.util.concurrent.atomic.AtomicLong` in the JDK: a reference, two longs, a boolean.
        let kinds = [Object, Long, Boolean, Long];
        assert_eq!(COOPS.statics(kinds.into_iter(), References::First), 32);
        // java.lang.Double of JDK 28: a reference, seven fields of eight bytes, and five fields of four bytes.
        let long = std::iter::repeat_n(Long, 7);
        let double = || {
            let ints = std::iter::repeat_n(Int, 5);
            ints.chain(long.clone()).chain([Object])
        };
        assert_eq!(COOPS.statics(double(), References::First), 88);
        assert_eq!(COOPS.statics(double(), References::Last), 80);
    }

    #[test]
    fn a_class_of_another_loader_has_no_variants() {
        let mut own = class("java.lang.Module", &[]);
        own.loader = crate::ids::ObjectId(8);
        assert_eq!(variants(&own).count(), 1);
    }
}
