//! Names, frames and stacks of all chunks, each stored once.
//!
//! Keys of constants are valid only within their chunk. The ids here are valid for the whole recording.

use std::sync::Arc;

use heapdiff_sites::{DEEPEST, Line, Originals, types};
use rustc_hash::FxHashMap;

use crate::chunk::{Chunk, Record};
use crate::error::{Damage, Fault};
use crate::layout::Value;
use crate::types::TypeIndex;

/// Maximum number of characters in a name. The JVM allows 65,535 bytes.
const MOST_CHARS: usize = 4096;
/// Maximum number of frames in a stack. JFR records 64 by default and at most 2,048.
const MOST_FRAMES: usize = 2048;
/// Maximum number of characters in the frames of all stacks together. Without this limit, many short stacks could
/// repeat long names, and a report would write each of them. A recording of 100 MB reaches a fifth of this limit.
const MOST_TEXT: u64 = 1 << 30;

/// The id of a name. 0 is the empty name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameId(pub u32);

/// The id of a stack. 0 is the stack without frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StackId(pub u32);

/// The id of a reference chain. 0 is the empty chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChainId(pub u32);

/// Maximum number of references in a chain. The second constant is the maximum for all chains together. The JVM writes
/// at most 100 references for each object.
const MOST_LINKS: usize = 100;
const MOST_LINKS_IN_ALL: usize = 1 << 20;

/// A reference in the chain from an object to a GC root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Link {
    /// Name of the class of the referrer. A static field has the referrer `java.lang.Class`.
    pub class: NameId,
    /// Name of the field, or the empty name for an element of an array.
    pub field: NameId,
}

/// A stack frame. Recordings do not contain the names of source files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Name of the class that declares the method, in the form `com.acme.Foo$Bar`.
    pub class: NameId,
    /// Name of the method.
    pub method: NameId,
    /// The line number, -1 in a native method, or 0 if unknown.
    pub line: i32,
}

/// A stack.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stack {
    /// The frames, innermost first, as indexes into [`Names::frames`].
    pub frames: Arc<[u32]>,
    /// True if the recorded stack was truncated.
    pub is_cut: bool,
}

/// The names, frames and stacks of a recording.
#[derive(Debug)]
pub struct Names {
    texts: Vec<Arc<str>>,
    by_text: FxHashMap<Arc<str>, NameId>,
    /// Maps class names from the JVM's form to the form of Java source: `com/acme/Foo$Bar` -> `com.acme.Foo$Bar`.
    java: FxHashMap<NameId, NameId>,
    frames: Vec<Frame>,
    by_frame: FxHashMap<Frame, u32>,
    stacks: Vec<Stack>,
    by_stack: FxHashMap<Stack, StackId>,
    chains: Vec<Vec<Link>>,
    links: usize,
    text: u64,
}

impl Default for Names {
    fn default() -> Self {
        let mut names = Self {
            texts: Vec::new(),
            by_text: FxHashMap::default(),
            java: FxHashMap::default(),
            frames: Vec::new(),
            by_frame: FxHashMap::default(),
            stacks: Vec::new(),
            by_stack: FxHashMap::default(),
            chains: vec![Vec::new()],
            links: 0,
            text: 0,
        };
        names.name("");
        names.intern(Stack {
            frames: Arc::new([]),
            is_cut: false,
        });
        names
    }
}

fn number(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

impl Names {
    /// Returns the name with this id.
    #[must_use]
    pub fn text(&self, id: NameId) -> &Arc<str> {
        self.texts.get(id.0 as usize).unwrap_or(&self.texts[0])
    }

    /// Returns all frames.
    #[must_use]
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// Returns the stack with this id.
    #[must_use]
    pub fn stack(&self, id: StackId) -> &Stack {
        self.stacks.get(id.0 as usize).unwrap_or(&self.stacks[0])
    }

    /// Returns the references of a chain, the nearest to the object first.
    #[must_use]
    pub fn chain(&self, id: ChainId) -> &[Link] {
        self.chains.get(id.0 as usize).map_or(&[], |chain| chain)
    }

    /// Stores a chain. Returns the empty chain if there are too many references.
    fn add_chain(&mut self, chain: Vec<Link>) -> ChainId {
        if chain.is_empty() || self.links + chain.len() > MOST_LINKS_IN_ALL {
            return ChainId::default();
        }
        self.links += chain.len();
        let id = ChainId(number(self.chains.len()));
        self.chains.push(chain);
        id
    }

    pub(crate) fn name(&mut self, text: &str) -> NameId {
        if let Some(&id) = self.by_text.get(text) {
            return id;
        }
        let id = NameId(number(self.texts.len()));
        let text: Arc<str> = text.into();
        self.texts.push(text.clone());
        self.by_text.insert(text, id);
        id
    }

    /// Returns the name of a class in the form of Java source. `raw` is its name in the form that the JVM writes.
    fn class(&mut self, raw: NameId) -> NameId {
        if let Some(&id) = self.java.get(&raw) {
            return id;
        }
        let name = types::of_class(self.text(raw));
        let id = self.name(&name);
        self.java.insert(raw, id);
        id
    }

    /// Restores the original names in frames if a shrinker, such as ProGuard, had renamed classes and methods. A frame
    /// with inlined methods becomes several frames. Returns the new id of each stack, indexed by its old id.
    pub(crate) fn rename(&mut self, originals: &dyn Originals) -> Vec<StackId> {
        let frames = std::mem::take(&mut self.frames);
        self.by_frame.clear();
        let mut expanded: Vec<Vec<u32>> = Vec::with_capacity(frames.len());
        for frame in frames {
            let recorded = heapdiff_sites::Frame {
                class: self.text(frame.class),
                method: self.text(frame.method),
                file: None,
                line: Line::from_number(frame.line),
            };
            let all = match originals.frames(&recorded) {
                None => vec![frame],
                Some(all) => all
                    .into_iter()
                    .map(|original| Frame {
                        class: self.name(&original.class),
                        method: self.name(&original.method),
                        line: original.line.number(),
                    })
                    .collect(),
            };
            expanded.push(all.into_iter().map(|frame| self.frame(frame)).collect());
        }
        let stacks = std::mem::take(&mut self.stacks);
        self.by_stack.clear();
        let renamed = stacks.into_iter().map(|stack| {
            let own = stack.frames.iter();
            let all = own.flat_map(|&at| expanded.get(at as usize).into_iter().flatten());
            let frames: Vec<u32> = all.copied().take(DEEPEST).collect();
            self.intern(Stack {
                frames: frames.into(),
                is_cut: stack.is_cut,
            })
        });
        renamed.collect()
    }

    /// Restores the original names of classes in chains.
    pub(crate) fn rename_chains(&mut self, originals: &dyn Originals) {
        let mut chains = std::mem::take(&mut self.chains);
        for link in chains.iter_mut().flatten() {
            if let Some(original) = originals.class(self.text(link.class)) {
                link.class = self.name(&original);
            }
        }
        self.chains = chains;
    }

    fn frame(&mut self, frame: Frame) -> u32 {
        let next = number(self.frames.len());
        *self.by_frame.entry(frame).or_insert_with(|| {
            self.frames.push(frame);
            next
        })
    }

    fn intern(&mut self, stack: Stack) -> StackId {
        if let Some(&id) = self.by_stack.get(&stack) {
            return id;
        }
        let id = StackId(number(self.stacks.len()));
        self.stacks.push(stack.clone());
        self.by_stack.insert(stack, id);
        id
    }
}

/// Constants of a chunk that were looked up so far, with their ids in [`Names`].
#[derive(Debug, Default)]
pub(crate) struct Keys {
    /// Maps (type, key) to the id of a name. Used for symbols and for names of garbage collectors.
    names: FxHashMap<(TypeIndex, i64), NameId>,
    classes: FxHashMap<i64, NameId>,
    methods: FxHashMap<i64, (NameId, NameId)>,
    stacks: FxHashMap<i64, StackId>,
    threads: FxHashMap<i64, NameId>,
    /// Maps the key of a frame type to true if the method of such a frame is native.
    kinds: FxHashMap<i64, bool>,
}

impl Keys {
    /// Returns the first string of a constant, such as a symbol or the name of a garbage collector.
    pub(crate) fn name<'a>(
        &mut self,
        chunk: &Chunk<'a>,
        names: &mut Names,
        (index, key): (TypeIndex, i64),
    ) -> NameId {
        if let Some(&id) = self.names.get(&(index, key)) {
            return id;
        }
        let mut values: Vec<Value<'a>> = Vec::new();
        let mut id = NameId::default();
        if chunk.constant(index, key, &mut values) {
            let text = values.iter().find_map(|value| match value {
                Value::Text(text) => chunk.text(*text, MOST_CHARS),
                _ => None,
            });
            id = names.name(text.as_deref().unwrap_or_default());
        }
        self.names.insert((index, key), id);
        id
    }

    /// Returns the name of the constant that the field `name` refers to.
    pub(crate) fn find_by_name(
        &mut self,
        chunk: &Chunk<'_>,
        names: &mut Names,
        record: &Record<'_, '_>,
        field: &str,
    ) -> NameId {
        match record.constant(chunk, field) {
            Some(key) => self.name(chunk, names, key),
            None => {
                let text = record.text(chunk, field, MOST_CHARS);
                text.map_or(NameId::default(), |text| names.name(&text))
            }
        }
    }

    /// Returns the class that a field refers to.
    pub(crate) fn class(
        &mut self,
        chunk: &Chunk<'_>,
        names: &mut Names,
        record: &Record<'_, '_>,
        field: &str,
    ) -> NameId {
        let name = |keys: &mut Self, names: &mut Names, class: &Record<'_, '_>| {
            let raw = keys.find_by_name(chunk, names, class, "name");
            names.class(raw)
        };
        self.constant_name(chunk, names, record, field, |k| &mut k.classes, name)
    }

    /// Returns the name of the thread that a field refers to.
    pub(crate) fn thread(
        &mut self,
        chunk: &Chunk<'_>,
        names: &mut Names,
        record: &Record<'_, '_>,
        field: &str,
    ) -> NameId {
        let name = |keys: &mut Self, names: &mut Names, thread: &Record<'_, '_>| {
            let java = keys.find_by_name(chunk, names, thread, "javaName");
            if java == NameId::default() {
                keys.find_by_name(chunk, names, thread, "osName")
            } else {
                java
            }
        };
        self.constant_name(chunk, names, record, field, |k| &mut k.threads, name)
    }

    /// Returns the name of the constant that a field refers to. If `known` does not contain the name, computes it with
    /// the function `name` and stores it in `known`.
    fn constant_name(
        &mut self,
        chunk: &Chunk<'_>,
        names: &mut Names,
        record: &Record<'_, '_>,
        field: &str,
        known: fn(&mut Self) -> &mut FxHashMap<i64, NameId>,
        name: impl FnOnce(&mut Self, &mut Names, &Record<'_, '_>) -> NameId,
    ) -> NameId {
        let Some((index, key)) = record.constant(chunk, field) else {
            return NameId::default();
        };
        if let Some(&id) = known(self).get(&key) {
            return id;
        }
        let mut values = Vec::new();
        let mut id = NameId::default();
        if chunk.constant(index, key, &mut values) {
            id = name(self, names, &Record::new(index, &values));
        }
        known(self).insert(key, id);
        id
    }

    /// Reads the chain of references from an object to a GC root. Returns the empty chain if the recording has none.
    pub(crate) fn chain(
        &mut self,
        chunk: &Chunk<'_>,
        names: &mut Names,
        object: &Record<'_, '_>,
    ) -> ChainId {
        let mut links = Vec::new();
        let (mut referring, mut referrer, mut values) = (Vec::new(), Vec::new(), Vec::new());
        let mut next = object.constant(chunk, "referrer");
        while let Some((index, key)) = next.take() {
            if key == 0 || !chunk.constant(index, key, &mut referring) {
                break;
            }
            let reference = Record::new(index, &referring);
            let Some((index, key)) = reference.constant(chunk, "object") else {
                break;
            };
            if !chunk.constant(index, key, &mut referrer) {
                break;
            }
            let owner = Record::new(index, &referrer);
            let mut field = NameId::default();
            if let Some((index, key)) = reference.constant(chunk, "field")
                && chunk.constant(index, key, &mut values)
            {
                field = self.find_by_name(chunk, names, &Record::new(index, &values), "name");
            }
            links.push(Link {
                class: self.class(chunk, names, &owner, "type"),
                field,
            });
            if links.len() >= MOST_LINKS {
                break;
            }
            next = owner.constant(chunk, "referrer");
        }
        names.add_chain(links)
    }

    /// Returns the stack that a field refers to.
    pub(crate) fn stack(
        &mut self,
        chunk: &Chunk<'_>,
        names: &mut Names,
        record: &Record<'_, '_>,
        field: &str,
    ) -> Result<StackId, Damage> {
        let Some((index, key)) = record.constant(chunk, field) else {
            return Ok(StackId::default());
        };
        if let Some(&id) = self.stacks.get(&key) {
            return Ok(id);
        }
        let mut values = Vec::new();
        let mut frames = Vec::new();
        let mut is_cut = false;
        if chunk.constant(index, key, &mut values) {
            let trace = Record::new(index, &values);
            is_cut = trace.int(chunk, "truncated") != 0;
            if let Some(Value::Array(array)) = trace.get(chunk, "frames") {
                is_cut |= array.count > MOST_FRAMES as u64;
                chunk.elements(array, |frame| {
                    let frame = self.frame(chunk, names, &frame);
                    frames.push(names.frame(frame));
                    frames.len() < MOST_FRAMES
                });
            }
        }
        let stack = Stack {
            frames: frames.into(),
            is_cut,
        };
        if let Some(&id) = names.by_stack.get(&stack) {
            self.stacks.insert(key, id);
            return Ok(id);
        }
        let chars = |&at: &u32| {
            let frame = names.frames[at as usize];
            (names.text(frame.class).len() + names.text(frame.method).len()) as u64
        };
        let text: u64 = stack.frames.iter().map(chars).sum();
        if names.text.saturating_add(text) > MOST_TEXT {
            self.stacks.insert(key, StackId::default());
            let (what, most) = ("characters in the frame names of all stacks", MOST_TEXT);
            return Err(Fault::Limit { what, most }.at(chunk.offset()));
        }
        names.text += text;
        let id = names.intern(stack);
        self.stacks.insert(key, id);
        Ok(id)
    }

    fn frame(&mut self, chunk: &Chunk<'_>, names: &mut Names, frame: &Record<'_, '_>) -> Frame {
        let (class, method) = match frame.constant(chunk, "method") {
            None => Default::default(),
            Some((index, key)) => match self.methods.get(&key) {
                Some(&method) => method,
                None => {
                    let mut values = Vec::new();
                    let mut found = Default::default();
                    if chunk.constant(index, key, &mut values) {
                        let method = Record::new(index, &values);
                        found = (
                            self.class(chunk, names, &method, "type"),
                            self.find_by_name(chunk, names, &method, "name"),
                        );
                    }
                    self.methods.insert(key, found);
                    found
                }
            },
        };
        let is_native = match frame.constant(chunk, "type") {
            None => false,
            Some((index, key)) => match self.kinds.get(&key) {
                Some(&native) => native,
                None => {
                    let kind = self.name(chunk, names, (index, key));
                    let native = &**names.text(kind) == "Native";
                    self.kinds.insert(key, native);
                    native
                }
            },
        };
        let line = frame.int(chunk, "lineNumber");
        Frame {
            class,
            method,
            line: if is_native {
                -1
            } else {
                i32::try_from(line.max(0)).unwrap_or(0)
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use heapdiff_sites::OwnedFrame;

    use super::*;

    #[derive(Debug)]
    struct Inlined;

    impl Originals for Inlined {
        fn class(&self, _: &str) -> Option<String> {
            None
        }

        fn frames(&self, frame: &heapdiff_sites::Frame<'_>) -> Option<Vec<OwnedFrame>> {
            let at = |method: &str, line| OwnedFrame {
                class: "com.acme.Foo".to_owned(),
                method: method.to_owned(),
                file: None,
                line,
            };
            (frame.class == "a").then(|| vec![at("get", Line::At(7)), at("add", Line::Unknown)])
        }
    }

    #[test]
    fn frames_are_replaced_by_inlined_frames() {
        let mut names = Names::default();
        let (a, b, run) = (names.name("a"), names.name("b"), names.name("run"));
        let mut frame = |class, line| {
            let frame = Frame {
                class,
                method: run,
                line,
            };
            names.frame(frame)
        };
        let (first, second, other) = (frame(a, 1), frame(a, 2), frame(b, -1));
        let mut stack = |frames: &[u32]| {
            names.intern(Stack {
                frames: frames.into(),
                is_cut: false,
            })
        };
        let (one, same) = (stack(&[first, other]), stack(&[second, other]));
        let renamed = names.rename(&Inlined);
        let of = |id: StackId| renamed[id.0 as usize];
        assert_eq!(of(StackId::default()), StackId::default());
        // After the obfuscated names are replaced by the original ones, both stacks are equal.
        assert_eq!(of(one), of(same));
        let frames = names.stack(of(one)).frames.iter();
        let told: Vec<String> = frames
            .map(|&at| names.frames()[at as usize])
            .map(|f| {
                format!(
                    "{}.{} {}",
                    names.text(f.class),
                    names.text(f.method),
                    f.line
                )
            })
            .collect();
        assert_eq!(
            told,
            ["com.acme.Foo.get 7", "com.acme.Foo.add 0", "b.run -1"]
        );
    }

    #[test]
    fn ids_of_names_do_not_change() {
        let mut names = Names::default();
        assert_eq!(names.name(""), NameId(0));
        let a = names.name("a");
        assert_eq!((names.name("b"), names.name("a")), (NameId(2), a));
        assert_eq!(&**names.text(a), "a");
        assert_eq!(&**names.text(NameId(99)), "");
        assert!(names.stack(StackId(7)).frames.is_empty());
    }
}
