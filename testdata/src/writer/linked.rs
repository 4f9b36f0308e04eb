//! Writes linked structures of any length. Only one segment of the dump is in memory at a time.

use std::io::{self, Write};

use super::format::{Body, ClassDump, Datum, FieldType, IdSize, Root, Version, tag};
use super::layout::{JvmLayout, Shape};
use super::record::{Framing, Header, RecordWriter};

/// The positions and sizes of the objects in a streamed dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Linked {
    /// Number of nodes.
    pub nodes: u64,
    /// ID of node 0; node `i` is at `first + i * node_size`.
    pub first: u64,
    /// The shallow size of a node.
    pub node_size: u64,
    /// ID of the class `linked.Holder`, whose static `head` holds node 0.
    pub holder: u64,
    /// ID of the class `linked.Node`.
    pub node_class: u64,
    /// ID and shallow size of the array that `linked.Holder.table` holds.
    pub table: Option<(u64, u64)>,
    /// The length of the dump in bytes.
    pub bytes: u64,
}

/// Writes a singly linked list of `nodes` nodes. A static field refers to the first node.
pub fn list<W: Write>(nodes: u64, out: &mut W) -> io::Result<Linked> {
    write(nodes, out, false, &["next"], |i| [i + 1, u64::MAX])
}

/// Writes a complete binary tree: the children of node `i` are `2 i + 1` and `2 i + 2`.
pub fn tree<W: Write>(nodes: u64, out: &mut W) -> io::Result<Linked> {
    write(nodes, out, false, &["left", "right"], |i| {
        [2 * i + 1, 2 * i + 2]
    })
}

/// Writes a list as [`list`] does, and a second static field that refers to an `Object[]` with all nodes. The array is
/// one sub-record, so `nodes` must be below 2^29.
pub fn list_with_table<W: Write>(nodes: u64, out: &mut W) -> io::Result<Linked> {
    write(nodes, out, true, &["next"], |i| [i + 1, u64::MAX])
}

const ID_SIZE: IdSize = IdSize::Eight;
const LAYOUT: JvmLayout = JvmLayout::COMPRESSED;
const BASE: u64 = 0x7_0000_0000;
/// The ID of a name is its index in this list plus 1.
const NAMES: [&str; 10] = [
    "java/lang/Object",
    "[Ljava/lang/Object;",
    "linked/Node",
    "linked/Holder",
    "head",
    "table",
    "value",
    "next",
    "left",
    "right",
];

fn name(text: &str) -> u64 {
    NAMES
        .iter()
        .position(|known| *known == text)
        .map_or(0, |i| i as u64 + 1)
}

fn write<W: Write>(
    nodes: u64,
    out: &mut W,
    with_table: bool,
    links: &[&str],
    targets: impl Fn(u64) -> [u64; 2],
) -> io::Result<Linked> {
    let kinds = links.iter().map(|_| FieldType::Object);
    let shape = Shape::new(&LAYOUT).with_fields(&LAYOUT, kinds.chain([FieldType::Int]));
    let node_size = LAYOUT.instance_size(&shape);

    let plain = LAYOUT.class_object_size([]);
    let classes: [u64; 4] = std::array::from_fn(|i| BASE + plain * i as u64);
    let [object, objects, node, holder] = classes;
    let statics = [FieldType::Object; 2];
    let first = holder + LAYOUT.class_object_size(statics);
    let end = first + nodes * node_size;
    let table = with_table.then(|| (end, LAYOUT.array_size(FieldType::Object, nodes)));

    let header = Header {
        version: Version::V102,
        id_size: ID_SIZE,
        timestamp_ms: 1_700_000_000_000,
    };
    let mut w = RecordWriter::new(out, &header, Framing::Segments { bytes: 1 << 20 })?;
    let mut body = Body::new(ID_SIZE);
    for text in NAMES {
        body.clear().utf8(name(text), text);
        w.record(tag::UTF8, body.bytes())?;
    }
    for (i, class) in classes.into_iter().enumerate() {
        body.clear()
            .load_class(i as u32 + 1, class, 1, i as u64 + 1);
        w.record(tag::LOAD_CLASS, body.bytes())?;
    }
    body.clear().stack_trace(1, 0, &[]);
    w.record(tag::STACK_TRACE, body.bytes())?;

    let class = |id, super_id| ClassDump {
        id,
        trace: 1,
        super_id,
        ..ClassDump::default()
    };
    let mut node_dump = class(node, object);
    node_dump.instance_size = 8 * links.len() as u32 + 4;
    node_dump.fields = links
        .iter()
        .map(|link| (name(link), FieldType::Object))
        .chain([(name("value"), FieldType::Int)])
        .collect();
    let mut holder_dump = class(holder, object);
    holder_dump.statics = vec![
        (name("head"), Datum::Id(if nodes > 0 { first } else { 0 })),
        (name("table"), Datum::Id(table.map_or(0, |(id, _)| id))),
    ];
    for dump in [
        &class(object, 0),
        &class(objects, object),
        &node_dump,
        &holder_dump,
    ] {
        body.clear().class_dump(dump);
        w.sub_record(body.bytes())?;
    }

    let id_of = |i: u64| if i < nodes { first + i * node_size } else { 0 };
    for i in 0..nodes {
        body.clear();
        body.instance(id_of(i), 1, node, node_dump.instance_size);
        for target in &targets(i)[..links.len()] {
            body.id(id_of(*target));
        }
        body.u4(i as u32);
        w.sub_record(body.bytes())?;
    }
    if let Some((id, _)) = table {
        let length = u32::try_from(nodes)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "the table is too long"))?;
        body.clear().object_array(id, 1, objects, length);
        w.begin_large(body.bytes().len() as u64 + 8 * nodes)?;
        w.large_part(body.bytes())?;
        body.clear();
        for i in 0..nodes {
            body.id(id_of(i));
            if body.bytes().len() >= 1 << 16 {
                w.large_part(body.bytes())?;
                body.clear();
            }
        }
        w.large_part(body.bytes())?;
    }
    for class in classes {
        body.clear().root(Root::StickyClass, class);
        w.sub_record(body.bytes())?;
    }
    w.end_heap()?;
    let bytes = w.written();
    w.finish()?;
    Ok(Linked {
        nodes,
        first,
        node_size,
        holder,
        node_class: node,
        table,
        bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::super::format::sub;
    use super::*;

    #[test]
    fn lengths_and_addresses_match_the_written_bytes() {
        for with_table in [false, true] {
            let mut bytes = Vec::new();
            let linked = if with_table {
                list_with_table(100_000, &mut bytes)
            } else {
                list(100_000, &mut bytes)
            };
            let linked = linked.expect("memory does not fail");
            assert_eq!(linked.bytes, bytes.len() as u64);
            assert_eq!(linked.node_size, 24);
            assert_eq!(linked.table.is_some(), with_table);
        }
    }

    #[test]
    fn a_tree_node_names_its_children() {
        let mut bytes = Vec::new();
        let tree = tree(3, &mut bytes).expect("memory does not fail");
        let id = |i: u64| (tree.first + i * tree.node_size).to_be_bytes();
        let mut expected = vec![sub::INSTANCE_DUMP];
        expected.extend(id(0));
        expected.extend([0, 0, 0, 1]);
        expected.extend(tree.node_class.to_be_bytes());
        expected.extend([0, 0, 0, 20]);
        expected.extend(id(1));
        expected.extend(id(2));
        expected.extend([0, 0, 0, 0]);
        assert!(bytes.windows(expected.len()).any(|part| part == expected));
    }

    #[test]
    fn an_empty_list_is_still_a_dump() {
        let mut bytes = Vec::new();
        let none = list(0, &mut bytes).expect("memory does not fail");
        assert_eq!(none.bytes, bytes.len() as u64);
    }
}
