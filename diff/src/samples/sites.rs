//! Allocation sites: stacks of readable frames, each frame stored once.

use std::collections::HashMap;

/// The number of a stack in the dump's list of stacks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SiteId(pub u32);

/// The stacks of a dump.
#[derive(Clone, Debug, Default)]
pub struct Sites {
    pub(super) frames: Vec<Box<str>>,
    index: HashMap<Box<str>, u32>,
    pub(super) stacks: Vec<Box<[u32]>>,
    pub(super) numbers: HashMap<Box<[u32]>, SiteId>,
}

impl Sites {
    /// Adds a stack, given innermost frame first. If an equal stack exists already, returns its number.
    pub(crate) fn add(&mut self, frames: impl IntoIterator<Item = String>) -> SiteId {
        let frames: Box<[u32]> = frames.into_iter().map(|f| self.frame(f)).collect();
        if let Some(&site) = self.numbers.get(&frames) {
            return site;
        }
        let site = SiteId(u32::try_from(self.stacks.len()).unwrap_or(u32::MAX));
        self.stacks.push(frames.clone());
        self.numbers.insert(frames, site);
        site
    }

    /// Returns the number of a frame. Adds the frame if it is not known yet.
    pub(super) fn frame(&mut self, text: String) -> u32 {
        let text = text.into_boxed_str();
        if let Some(&frame) = self.index.get(&text) {
            return frame;
        }
        let frame = u32::try_from(self.frames.len()).unwrap_or(u32::MAX);
        self.frames.push(text.clone());
        self.index.insert(text, frame);
        frame
    }

    /// Finds a stack by its frames, given innermost first.
    pub(super) fn find<'a>(&self, frames: impl Iterator<Item = &'a str>) -> Option<SiteId> {
        let frames: Option<Box<[u32]>> = frames.map(|f| self.index.get(f).copied()).collect();
        self.numbers.get(&frames?).copied()
    }

    /// Returns the frames of a stack, innermost first. Empty if the JVM reported no frames.
    pub fn frames(&self, site: SiteId) -> impl ExactSizeIterator<Item = &str> {
        let frames = self.stacks.get(site.0 as usize);
        let frames = frames.map_or(&[][..], |f| f);
        frames
            .iter()
            .map(|&f| self.frames.get(f as usize).map_or("", |f| f))
    }

    /// Returns the number of stacks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.stacks.len()
    }

    /// True if there are no stacks.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.stacks.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_and_stacks_are_stored_once() {
        let mut sites = Sites::default();
        let stack = |frames: &[&str]| -> Vec<String> { frames.iter().map(|&f| f.into()).collect() };
        let one = sites.add(stack(&["a", "b"]));
        let two = sites.add(stack(&["b"]));
        assert_eq!(sites.add(stack(&["a", "b"])), one);
        assert_eq!((sites.len(), sites.frames.len()), (2, 2));
        assert_eq!(sites.frames(one).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(sites.frames(two).collect::<Vec<_>>(), ["b"]);
        assert_eq!(sites.frames(SiteId(7)).len(), 0);
    }
}
