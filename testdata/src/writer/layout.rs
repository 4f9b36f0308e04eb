//! Computes the offsets of fields and the sizes of objects, as a JVM would.

use super::format::FieldType;

/// The object layout of a JVM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JvmLayout {
    /// Bytes of a reference: 4 (compressed or 32 bit) or 8.
    pub reference: u64,
    /// Bytes of an instance's header: 12 with compressed class pointers, 16 without them, and 8 with compact headers or
    /// on 32-bit JVMs.
    pub header: u64,
    /// Bytes before an array's elements: 16 with compressed class pointers, 20 or 24 without them, and 12 with compact
    /// headers or on 32-bit JVMs.
    pub array_header: u64,
    /// Alignment of objects: 8 or 16 bytes.
    pub alignment: u64,
}

impl JvmLayout {
    /// A 64-bit JVM with compressed references, as is usual for heaps below 32 GB.
    pub const COMPRESSED: Self = Self::of(4, 12, 16, 8);
    /// Compressed references with `-XX:ObjectAlignmentInBytes=16`.
    pub const ALIGN_16: Self = Self::of(4, 12, 16, 16);
    /// 8-byte references and compressed class pointers, as with ZGC or heaps above 32 GB.
    pub const WIDE: Self = Self::of(8, 12, 16, 8);
    /// 8-byte references and 8-byte class pointers, up to JDK 22.
    pub const WIDE_CLASSES: Self = Self::of(8, 16, 24, 8);
    /// 8-byte references and 8-byte class pointers since JDK 23. In these versions, the elements of a byte array start
    /// at offset 20.
    pub const WIDE_CLASSES_JDK23: Self = Self::of(8, 16, 20, 8);
    /// `-XX:+UseCompactObjectHeaders` with compressed references.
    pub const COMPACT: Self = Self::of(4, 8, 12, 8);
    /// A 32-bit JVM, or Android.
    pub const BITS_32: Self = Self::of(4, 8, 12, 8);

    const fn of(reference: u64, header: u64, array_header: u64, alignment: u64) -> Self {
        Self {
            reference,
            header,
            array_header,
            alignment,
        }
    }

    /// Returns the size of an array with header and padding.
    pub fn array_size(&self, element: FieldType, length: u64) -> u64 {
        let width = element.width(self.reference as usize) as u64;
        let base = self.array_header.next_multiple_of(width);
        (base + width * length).next_multiple_of(self.alignment)
    }

    /// Returns the size of an instance of a class with this shape.
    pub fn instance_size(&self, shape: &Shape) -> u64 {
        shape
            .end
            .next_multiple_of(8)
            .next_multiple_of(self.alignment)
    }

    /// Returns the size of a class object: the fields of `java.lang.Class`, the fields that the VM injects, and the
    /// statics.
    pub fn class_object_size(&self, statics: impl IntoIterator<Item = FieldType>) -> u64 {
        let mut fields = [FieldType::Object; 19].to_vec();
        fields.extend([FieldType::Int; 5]);
        fields.extend([FieldType::Long; 2]);
        let shape = Shape::new(self).with_fields(self, fields);
        let statics: u64 = statics
            .into_iter()
            .map(|kind| kind.width(self.reference as usize) as u64)
            .sum();
        (shape.end.next_multiple_of(8) + statics)
            .next_multiple_of(8)
            .next_multiple_of(self.alignment)
    }
}

/// The used and free parts of an instance: the end of the last field, and the gaps between fields. Follows the layout
/// of HotSpot since JDK 15. In this layout, fields of a subclass also fill the gaps that alignment left between the
/// fields of superclasses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    gaps: Vec<(u64, u64)>,
    end: u64,
}

impl Shape {
    /// Returns the shape of an object without fields.
    pub fn new(layout: &JvmLayout) -> Self {
        Self {
            gaps: Vec::new(),
            end: layout.header,
        }
    }

    /// Returns the shape of a subclass that adds these fields. Large primitives are placed first, and references last.
    pub fn with_fields(
        &self,
        layout: &JvmLayout,
        fields: impl IntoIterator<Item = FieldType>,
    ) -> Self {
        let width = |kind: &FieldType| kind.width(layout.reference as usize) as u64;
        let mut fields: Vec<FieldType> = fields.into_iter().collect();
        fields.sort_by_key(|kind| match kind {
            FieldType::Object => u64::MAX,
            primitive => 8 - width(primitive),
        });
        let mut shape = self.clone();
        for kind in &fields {
            shape.place(width(kind));
        }
        shape
    }

    /// Places a field of `width` bytes in the smallest gap that is large enough. If there is no such gap, places the
    /// field at the end.
    fn place(&mut self, width: u64) {
        let fitting = self
            .gaps
            .iter()
            .enumerate()
            .filter(|(_, (start, end))| start.next_multiple_of(width) + width <= *end)
            .min_by_key(|(_, (start, end))| end - start)
            .map(|(i, gap)| (i, *gap));
        match fitting {
            Some((i, (start, end))) => {
                let at = start.next_multiple_of(width);
                self.gaps.remove(i);
                self.add_gap(start, at);
                self.add_gap(at + width, end);
            }
            None => {
                let at = self.end.next_multiple_of(width);
                self.add_gap(self.end, at);
                self.end = at + width;
            }
        }
    }

    fn add_gap(&mut self, start: u64, end: u64) {
        if start < end {
            self.gaps.push((start, end));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use FieldType::{Byte, Int, Long, Object};

    fn size(layout: JvmLayout, levels: &[&[FieldType]]) -> u64 {
        let shape = levels.iter().fold(Shape::new(&layout), |shape, fields| {
            shape.with_fields(&layout, fields.iter().copied())
        });
        layout.instance_size(&shape)
    }

    #[test]
    fn instance_sizes_are_those_of_hotspot() {
        // Sizes of java.lang.Object, Integer, Long, and String (with fields of type reference, int, byte and boolean).
        for (layout, sizes) in [
            (JvmLayout::COMPRESSED, [16, 16, 24, 24]),
            (JvmLayout::WIDE, [16, 16, 24, 32]),
            (JvmLayout::WIDE_CLASSES, [16, 24, 24, 32]),
            (JvmLayout::COMPACT, [8, 16, 16, 24]),
            (JvmLayout::ALIGN_16, [16, 16, 32, 32]),
        ] {
            assert_eq!(size(layout, &[]), sizes[0]);
            assert_eq!(size(layout, &[&[Int]]), sizes[1]);
            assert_eq!(size(layout, &[&[Long]]), sizes[2]);
            assert_eq!(size(layout, &[&[Object, Int, Byte, Byte]]), sizes[3]);
        }
    }

    #[test]
    fn fields_fill_gaps_of_the_superclass() {
        // The long field of the superclass is at offset 16. This leaves a gap at offset 12, and the int field of the
        // subclass is placed there.
        assert_eq!(size(JvmLayout::COMPRESSED, &[&[Long], &[Int]]), 24);
        assert_eq!(size(JvmLayout::COMPRESSED, &[&[Byte], &[Byte]]), 16);
    }

    #[test]
    fn arrays_start_their_elements_aligned() {
        assert_eq!(JvmLayout::COMPRESSED.array_size(Byte, 0), 16);
        assert_eq!(JvmLayout::COMPRESSED.array_size(Byte, 1), 24);
        assert_eq!(JvmLayout::COMPACT.array_size(Byte, 4), 16);
        assert_eq!(JvmLayout::COMPACT.array_size(Long, 1), 24);
        assert_eq!(JvmLayout::WIDE_CLASSES_JDK23.array_size(Byte, 4), 24);
        assert_eq!(JvmLayout::WIDE_CLASSES_JDK23.array_size(Object, 1), 32);
    }
}
