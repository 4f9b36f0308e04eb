//! A reader of dumps that uses the simplest algorithms and shares no code with the crate. It builds the heap graph,
//! with the same rules for references and roots as the crate.

use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The strength of a reference.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Strength {
    Strong,
    Soft,
    Final,
    Weak,
    Phantom,
}

/// The kind of an object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Class,
    Instance(u64),
    Objects(u64),
    Primitives(u8),
}

/// An object of a dump.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) id: u64,
    pub(crate) kind: Kind,
    pub(crate) edges: Vec<(usize, Strength)>,
    /// References of fields, elements and statics.
    pub(crate) fields: Vec<(usize, Strength)>,
}

/// The objects and references of a dump.
#[derive(Debug, Default)]
pub(crate) struct Heap {
    pub(crate) nodes: Vec<Node>,
    pub(crate) by_id: HashMap<u64, usize>,
    pub(crate) roots: BTreeSet<usize>,
    pub(crate) names: HashMap<u64, String>,
}

struct ClassRecord {
    superclass: u64,
    loader: u64,
    refers: Vec<u64>,
    statics: Vec<u64>,
    fields: Vec<(u64, u8)>,
}

enum Content {
    Class,
    Instance(u64, Vec<u8>),
    Objects(u64, Vec<u8>),
    Primitives(u8),
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    id: usize,
}

impl<'a> Cursor<'a> {
    fn take(&mut self, n: usize) -> &'a [u8] {
        self.at += n;
        &self.bytes[self.at - n..self.at]
    }
    fn number(&mut self, n: usize) -> u64 {
        self.take(n).iter().fold(0, |v, &b| v << 8 | u64::from(b))
    }
    fn id(&mut self) -> u64 {
        self.number(self.id)
    }
}

fn width(kind: u8, id: usize) -> usize {
    match kind {
        2 => id,
        4 | 8 => 1,
        5 | 9 => 2,
        6 | 10 => 4,
        7 | 11 => 8,
        _ => panic!("a value of type {kind}"),
    }
}

/// Reads an undamaged, uncompressed dump.
pub(crate) fn read(bytes: &[u8]) -> Heap {
    let end = bytes.iter().position(|&b| b == 0).unwrap() + 1;
    let mut c = Cursor {
        bytes,
        at: end,
        id: 4,
    };
    c.id = c.number(4) as usize;
    c.take(8);
    let mut raw = Raw::default();
    while c.at < bytes.len() {
        let (tag, _, length) = (c.number(1), c.number(4), c.number(4) as usize);
        let mut body = Cursor {
            bytes: &bytes[..c.at + length],
            at: c.at,
            id: c.id,
        };
        c.take(length);
        match tag {
            0x01 => {
                let id = body.id();
                let text = String::from_utf8_lossy(&body.bytes[body.at..]).into_owned();
                raw.texts.insert(id, text);
            }
            0x02 => {
                body.take(4);
                let class = body.id();
                body.take(4);
                raw.class_names.insert(class, body.id());
            }
            0x0c | 0x1c => {
                while body.at < body.bytes.len() {
                    raw.sub_record(&mut body);
                }
            }
            _ => {}
        }
    }
    raw.link(c.id)
}

#[derive(Default)]
struct Raw {
    texts: HashMap<u64, String>,
    class_names: HashMap<u64, u64>,
    classes: HashMap<u64, ClassRecord>,
    objects: Vec<(u64, Content)>,
    /// The GC roots: tag, ID and thread serial number of each.
    roots: Vec<(u8, u64, u64)>,
}

impl Raw {
    fn sub_record(&mut self, c: &mut Cursor<'_>) {
        let tag = c.number(1) as u8;
        let id = c.id();
        match tag {
            0x01 => {
                c.id();
                self.roots.push((tag, id, 0));
            }
            0x02 | 0x03 | 0x08 | 0x8e => {
                let thread = c.number(4);
                c.take(4);
                self.roots.push((tag, id, thread));
            }
            0x04 | 0x06 => {
                let thread = c.number(4);
                self.roots.push((tag, id, thread));
            }
            0x05 | 0x07 | 0x89..=0x8d | 0xff => self.roots.push((tag, id, 0)),
            0x20 => {
                c.take(4);
                let (superclass, loader, signers, domain) = (c.id(), c.id(), c.id(), c.id());
                c.take(2 * c.id + 4);
                let mut refers = vec![signers, domain];
                for _ in 0..c.number(2) {
                    c.take(2);
                    let kind = c.number(1) as u8;
                    let value = c.number(width(kind, c.id));
                    refers.extend((kind == 2).then_some(value));
                }
                let mut statics = Vec::new();
                for _ in 0..c.number(2) {
                    c.id();
                    let kind = c.number(1) as u8;
                    let value = c.number(width(kind, c.id));
                    statics.extend((kind == 2).then_some(value));
                }
                let fields = (0..c.number(2))
                    .map(|_| (c.id(), c.number(1) as u8))
                    .collect();
                self.classes.entry(id).or_insert(ClassRecord {
                    superclass,
                    loader,
                    refers,
                    statics,
                    fields,
                });
                self.objects.push((id, Content::Class));
            }
            0x21 => {
                c.take(4);
                let class = c.id();
                let length = c.number(4) as usize;
                let body = c.take(length).to_vec();
                self.objects.push((id, Content::Instance(class, body)));
            }
            0x22 => {
                c.take(4);
                let length = c.number(4) as usize;
                let class = c.id();
                let body = c.take(length * c.id).to_vec();
                self.objects.push((id, Content::Objects(class, body)));
            }
            0x23 => {
                c.take(4);
                let (length, kind) = (c.number(4) as usize, c.number(1) as u8);
                c.take(length * width(kind, c.id));
                self.objects.push((id, Content::Primitives(kind)));
            }
            _ => panic!("a sub-record {tag:#x}"),
        }
    }

    fn name(&self, class: u64) -> &str {
        let text = self.class_names.get(&class).and_then(|n| self.texts.get(n));
        text.map_or("", String::as_str)
    }

    /// Returns the class and its superclasses.
    fn chain(&self, class: u64) -> Vec<u64> {
        let up =
            |c: &u64| Some(self.classes[c].superclass).filter(|s| self.classes.contains_key(s));
        let first = Some(class).filter(|c| self.classes.contains_key(c));
        std::iter::successors(first, up).collect()
    }

    fn strength(&self, class: u64) -> Strength {
        self.chain(class)
            .iter()
            .find_map(|c| match self.name(*c) {
                "java/lang/ref/SoftReference" => Some(Strength::Soft),
                "java/lang/ref/FinalReference" => Some(Strength::Final),
                "java/lang/ref/WeakReference" => Some(Strength::Weak),
                "java/lang/ref/PhantomReference" => Some(Strength::Phantom),
                _ => None,
            })
            .unwrap_or(Strength::Strong)
    }

    fn link(self, id_size: usize) -> Heap {
        let mut heap = Heap::default();
        for (id, content) in &self.objects {
            let kind = match content {
                Content::Class => Kind::Class,
                Content::Instance(class, _) => Kind::Instance(*class),
                Content::Objects(class, _) => Kind::Objects(*class),
                Content::Primitives(kind) => Kind::Primitives(*kind),
            };
            heap.by_id.entry(*id).or_insert(heap.nodes.len());
            heap.nodes.push(Node {
                id: *id,
                kind,
                edges: Vec::new(),
                fields: Vec::new(),
            });
        }
        let number = |bytes: &[u8]| bytes.iter().fold(0, |v, &b| v << 8 | u64::from(b));
        for (at, (id, content)) in self.objects.iter().enumerate() {
            let mut refers: Vec<(u64, Strength)> = Vec::new();
            let mut others: Vec<u64> = Vec::new();
            match content {
                Content::Class => {
                    let class = &self.classes[id];
                    others.extend([class.superclass, class.loader]);
                    others.extend(&class.refers);
                    let statics = class.statics.iter();
                    refers.extend(statics.map(|&id| (id, Strength::Strong)));
                }
                Content::Instance(class, body) => {
                    others.push(*class);
                    let mut rest = &body[..];
                    for c in self.chain(*class) {
                        for &(name, kind) in &self.classes[&c].fields {
                            let (value, after) = rest.split_at(width(kind, id_size));
                            rest = after;
                            if kind == 2 {
                                let referent = self.name(c) == "java/lang/ref/Reference"
                                    && self.texts[&name] == "referent";
                                let strength = if referent {
                                    self.strength(*class)
                                } else {
                                    Strength::Strong
                                };
                                refers.push((number(value), strength));
                            }
                        }
                    }
                }
                Content::Objects(class, body) => {
                    others.push(*class);
                    let elements = body.chunks(id_size).map(number);
                    refers.extend(elements.map(|id| (id, Strength::Strong)));
                }
                Content::Primitives(_) => {}
            }
            let found = |(id, s): (u64, Strength)| {
                let at = Some(id).filter(|&id| id != 0);
                Some((*heap.by_id.get(&at?)?, s))
            };
            let fields: Vec<_> = refers.into_iter().filter_map(found).collect();
            let others = others.into_iter().map(|id| (id, Strength::Strong));
            let mut edges: Vec<_> = others.filter_map(found).collect();
            edges.extend(&fields);
            heap.nodes[at].edges = edges;
            heap.nodes[at].fields = fields;
        }
        self.link_rest(&mut heap);
        for class in self.classes.keys() {
            let name = self.name(*class).replace('/', ".");
            heap.names.insert(*class, name);
        }
        heap
    }

    /// Adds references from loaders to their classes and from threads to the objects on their stacks. Also adds the
    /// roots.
    fn link_rest(&self, heap: &mut Heap) {
        let sticky = self.roots.iter().any(|r| r.0 == 0x05);
        for (&id, class) in &self.classes {
            let at = heap.by_id[&id];
            if class.loader == 0 {
                // Array classes are not roots themselves.
                if !sticky || self.name(id).starts_with('[') {
                    heap.roots.insert(at);
                }
            }
            if self.roots.is_empty() {
                heap.roots.insert(at);
            }
            if let Some(&loader) = heap.by_id.get(&class.loader) {
                heap.nodes[loader].edges.push((at, Strength::Strong));
            }
        }
        let mut threads: BTreeMap<u64, usize> = BTreeMap::new();
        for &(tag, id, serial) in &self.roots {
            if let (0x08, Some(&at)) = (tag, heap.by_id.get(&id)) {
                threads.insert(serial, at);
            }
        }
        for &(tag, id, serial) in &self.roots {
            let Some(&at) = heap.by_id.get(&id) else {
                continue;
            };
            match (tag, threads.get(&serial)) {
                (0x02 | 0x03 | 0x04 | 0x06, Some(&thread)) => {
                    heap.nodes[thread].edges.push((at, Strength::Strong));
                }
                _ => {
                    heap.roots.insert(at);
                }
            }
        }
    }
}
