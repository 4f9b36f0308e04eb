//! Classes, frames and stacks of all evidence, each stored once.

use heapdiff_diff::{frame_text, is_application_frame, is_jdk_frame};
use rustc_hash::FxHashMap;

/// The index of a string in [`Stacks`].
pub(crate) type TextId = u32;
/// The index of a frame in [`Stacks`].
pub(crate) type FrameId = u32;
/// The index of a stack in [`Stacks`]. 0 is the stack without frames.
pub(crate) type StackId = u32;

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

/// Strings without duplicates.
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

/// All classes, frames and stacks.
#[derive(Debug)]
pub(crate) struct Stacks {
    pub(crate) texts: Texts,
    frames: Vec<Frame>,
    by_frame: FxHashMap<(TextId, TextId, i32), FrameId>,
    stacks: Vec<Vec<FrameId>>,
    by_stack: FxHashMap<Vec<FrameId>, StackId>,
}

impl Default for Stacks {
    fn default() -> Self {
        Self {
            texts: Texts::default(),
            frames: Vec::new(),
            by_frame: FxHashMap::default(),
            stacks: vec![Vec::new()],
            by_stack: FxHashMap::from_iter([(Vec::new(), 0)]),
        }
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

    /// Sets whether a frame is in application code.
    pub(crate) fn set_application(&mut self, frame: FrameId, is_application: bool) {
        if let Some(frame) = self.frames.get_mut(frame as usize) {
            frame.is_application = is_application;
        }
    }

    /// Adds a stack, the leaf first.
    pub(crate) fn stack(&mut self, frames: Vec<FrameId>) -> StackId {
        if let Some(&id) = self.by_stack.get(&frames) {
            return id;
        }
        let id = u32::try_from(self.stacks.len()).unwrap_or(u32::MAX);
        self.stacks.push(frames.clone());
        self.by_stack.insert(frames, id);
        id
    }

    /// Adds all stacks of `other`. Returns the new ids of its strings and of its stacks, by their old ids.
    pub(crate) fn absorb(&mut self, other: &Self) -> (Vec<TextId>, Vec<StackId>) {
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
        let of = |&old: &FrameId| frames.get(old as usize).copied().unwrap_or(0);
        let stacks: Vec<StackId> = other
            .stacks
            .iter()
            .map(|stack| {
                let stack = stack.iter().map(of).collect();
                self.stack(stack)
            })
            .collect();
        // Flags of frames may be narrower in one of both recordings.
        for (&new, frame) in frames.iter().zip(&other.frames) {
            if let Some(own) = self.frames.get_mut(new as usize) {
                own.is_application &= frame.is_application;
            }
        }
        (texts, stacks)
    }

    /// Returns the frames of a stack, the leaf first.
    pub(crate) fn frames(&self, stack: StackId) -> &[FrameId] {
        self.stacks.get(stack as usize).map_or(&[], |stack| stack)
    }

    /// Returns a frame.
    pub(crate) fn get(&self, frame: FrameId) -> Option<&Frame> {
        self.frames.get(frame as usize)
    }

    /// Restricts application frames to classes whose names begin with `prefix`, if there are such frames.
    pub(crate) fn narrow(&mut self, prefix: &str) {
        let is_within = |frame: &Frame, texts: &Texts| {
            frame.is_application && texts.text(frame.class).starts_with(prefix)
        };
        if self
            .frames
            .iter()
            .any(|frame| is_within(frame, &self.texts))
        {
            for frame in &mut self.frames {
                frame.is_application = is_within(frame, &self.texts);
            }
        }
    }
}
