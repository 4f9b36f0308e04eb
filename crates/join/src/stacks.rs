//! Stores the classes, frames, stacks and reference chains of all evidence, each once.

use heapdiff_diff::{frame_text, is_application_frame, is_jdk_frame};
use rustc_hash::FxHashMap;

/// The index of a string in [`Stacks`].
pub(crate) type TextId = u32;
/// The index of a frame in [`Stacks`].
pub(crate) type FrameId = u32;
/// The index of a stack in [`Stacks`]. 0 is the stack without frames.
pub(crate) type StackId = u32;
/// The index of a reference chain in [`Stacks`]. 0 is the chain without references.
pub(crate) type ChainId = u32;

/// A frame.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    /// The class that declares the method.
    pub(crate) class: TextId,
    /// The class and the method, such as `com.acme.Foo.add`.
    pub(crate) method: TextId,
    /// The frame as reports show it.
    pub(crate) text: String,
    /// True if the frame is in application code.
    pub(crate) is_application: bool,
    /// True if the frame is in the JDK.
    pub(crate) is_jdk: bool,
}

/// Strings without duplicates, each with an id.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    texts: Vec<String>,
    index: FxHashMap<String, TextId>,
}

impl Texts {
    pub(crate) fn id(&mut self, text: &str) -> TextId {
        if let Some(&id) = self.index.get(text) {
            return id;
        }
        let id = u32::try_from(self.texts.len()).unwrap_or(u32::MAX);
        self.texts.push(text.to_owned());
        self.index.insert(text.to_owned(), id);
        id
    }

    pub(crate) fn find(&self, text: &str) -> Option<TextId> {
        self.index.get(text).copied()
    }

    pub(crate) fn text(&self, id: TextId) -> &str {
        self.texts.get(id as usize).map_or("", |text| text)
    }
}

/// Lists of ids without duplicates. List 0 is empty.
#[derive(Debug)]
struct Lists {
    lists: Vec<Vec<u32>>,
    index: FxHashMap<Vec<u32>, u32>,
}

impl Default for Lists {
    fn default() -> Self {
        Self {
            lists: vec![Vec::new()],
            index: FxHashMap::from_iter([(Vec::new(), 0)]),
        }
    }
}

impl Lists {
    fn id(&mut self, list: Vec<u32>) -> u32 {
        if let Some(&id) = self.index.get(&list) {
            return id;
        }
        let id = u32::try_from(self.lists.len()).unwrap_or(u32::MAX);
        self.lists.push(list.clone());
        self.index.insert(list, id);
        id
    }

    fn get(&self, id: u32) -> &[u32] {
        self.lists.get(id as usize).map_or(&[], |list| list)
    }

    /// Adds all lists of `other`. The elements of these lists are ids, which `of` maps to new ids. Returns the new ids
    /// of the lists, by their old ids.
    fn absorb(&mut self, other: &Self, of: &[u32]) -> Vec<u32> {
        let of = |&old: &u32| of.get(old as usize).copied().unwrap_or(0);
        let lists = other.lists.iter();
        lists
            .map(|list| self.id(list.iter().map(of).collect()))
            .collect()
    }
}

/// All classes, frames, stacks and reference chains.
#[derive(Debug, Default)]
pub(crate) struct Stacks {
    pub(crate) texts: Texts,
    frames: Vec<Frame>,
    by_frame: FxHashMap<(TextId, TextId, i32), FrameId>,
    stacks: Lists,
    chains: Lists,
}

/// The new ids of strings, stacks and chains, indexed by the ids that they had in the absorbed [`Stacks`].
pub(crate) struct NewIds {
    texts: Vec<TextId>,
    stacks: Vec<StackId>,
    chains: Vec<ChainId>,
}

impl NewIds {
    pub(crate) fn text(&self, old: TextId) -> TextId {
        self.texts.get(old as usize).copied().unwrap_or(0)
    }

    pub(crate) fn stack(&self, old: StackId) -> StackId {
        self.stacks.get(old as usize).copied().unwrap_or(0)
    }

    pub(crate) fn chain(&self, old: ChainId) -> ChainId {
        self.chains.get(old as usize).copied().unwrap_or(0)
    }
}

impl Stacks {
    /// Adds a frame. `line` is 0 if it is unknown, and negative for a native method.
    pub(crate) fn frame(&mut self, class: &str, method: &str, line: i32) -> FrameId {
        let key = (self.texts.id(class), self.texts.id(method), line);
        if let Some(&id) = self.by_frame.get(&key) {
            return id;
        }
        let id = u32::try_from(self.frames.len()).unwrap_or(u32::MAX);
        let text = frame_text(class, method, None, Some(line.into()));
        self.frames.push(Frame {
            class: key.0,
            method: self.texts.id(&format!("{class}.{method}")),
            is_application: is_application_frame(&text),
            is_jdk: is_jdk_frame(&text),
            text,
        });
        self.by_frame.insert(key, id);
        id
    }

    /// Returns the number of frames.
    pub(crate) const fn count(&self) -> usize {
        self.frames.len()
    }

    /// Returns the class, the method and the line of each frame, by the id of the frame.
    pub(crate) fn frame_keys(&self) -> Vec<(TextId, TextId, i32)> {
        let mut keys = vec![(0, 0, 0); self.frames.len()];
        for (&key, &frame) in &self.by_frame {
            if let Some(at) = keys.get_mut(frame as usize) {
                *at = key;
            }
        }
        keys
    }

    /// Adds a stack, given innermost frame first.
    pub(crate) fn stack(&mut self, frames: Vec<FrameId>) -> StackId {
        self.stacks.id(frames)
    }

    /// Adds a reference chain: classes and `class.field` names.
    pub(crate) fn chain(&mut self, links: Vec<TextId>) -> ChainId {
        self.chains.id(links)
    }

    /// Adds the frames, stacks and reference chains of `other`. Returns the new ids of strings, stacks and chains.
    pub(crate) fn absorb(&mut self, other: &Self) -> NewIds {
        let texts = other.texts.texts.iter();
        let texts: Vec<TextId> = texts.map(|text| self.texts.id(text)).collect();
        let mut frames = vec![0; other.frames.len()];
        for (&(class, method, line), &old) in &other.by_frame {
            let (class, method) = (other.texts.text(class), other.texts.text(method));
            let new = self.frame(class, method, line);
            if let Some(frame) = frames.get_mut(old as usize) {
                *frame = new;
            }
        }
        NewIds {
            stacks: self.stacks.absorb(&other.stacks, &frames),
            chains: self.chains.absorb(&other.chains, &texts),
            texts,
        }
    }

    /// Returns the frames of a stack, innermost first.
    pub(crate) fn frames(&self, stack: StackId) -> &[FrameId] {
        self.stacks.get(stack)
    }

    /// Returns the links of a reference chain.
    pub(crate) fn links(&self, chain: ChainId) -> &[TextId] {
        self.chains.get(chain)
    }

    /// Returns a frame.
    pub(crate) fn get(&self, frame: FrameId) -> Option<&Frame> {
        self.frames.get(frame as usize)
    }
}
