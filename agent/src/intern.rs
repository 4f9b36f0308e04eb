//! Assigns ids to strings, methods, frames, sites and types, and records which of them are in the heap.
//!
//! An id is assigned at once. Its definition is written to the heap soon after, and no lock is held in between. Until
//! then the definition counts as unpublished, and another thread that needs the id also writes the definition. So no id
//! is used before its definition is in the heap, and no thread waits.

use std::hash::Hash;
use std::sync::Arc;

use heapdiff_sites::Batch;
use heapdiff_trace::FrameName;
use rustc_hash::FxHashMap;

/// Approximate maximum size of all definitions, in bytes.
const BUDGET: usize = 64 << 20;
/// Maximum length of a string in bytes. Longer strings are truncated.
const LONGEST: usize = 4096;
/// Maximum number of sites. Further sites have the id 0.
pub(crate) const MAX_SITES: usize = 1 << 18;
/// Maximum number of types.
pub(crate) const MAX_TYPES: usize = 1 << 16;

struct Kind<K> {
    ids: FxHashMap<K, u32>,
    list: Vec<K>,
    published: Vec<bool>,
}

impl<K> Default for Kind<K> {
    fn default() -> Self {
        Self {
            ids: FxHashMap::default(),
            list: Vec::new(),
            published: Vec::new(),
        }
    }
}

impl<K: Clone + Eq + Hash> Kind<K> {
    fn id(&mut self, key: &K, bytes: usize, budget: &mut usize, most: usize) -> u32 {
        if let Some(&id) = self.ids.get(key) {
            return id;
        }
        if self.list.len() >= most || *budget < bytes {
            return 0;
        }
        let Ok(id) = u32::try_from(self.list.len() + 1) else {
            return 0;
        };
        *budget -= bytes;
        self.ids.insert(key.clone(), id);
        self.list.push(key.clone());
        self.published.push(false);
        id
    }

    fn get(&self, id: u32) -> Option<&K> {
        self.list.get((id as usize).checked_sub(1)?)
    }

    /// Returns the definition with this id. Returns `None` if the definition is already in the heap.
    fn pending(&self, id: u32) -> Option<&K> {
        let at = (id as usize).checked_sub(1)?;
        (!*self.published.get(at)?).then(|| &self.list[at])
    }

    fn publish(&mut self, ids: &[u32]) {
        for &id in ids {
            if let Some(flag) = (id as usize)
                .checked_sub(1)
                .and_then(|at| self.published.get_mut(at))
            {
                *flag = true;
            }
        }
    }
}

/// Definitions of strings, methods, frames, sites and types that are about to be written to the Java heap.
#[derive(Default)]
pub(crate) struct Pending {
    pub(crate) batch: Batch,
    strings: Vec<u32>,
    methods: Vec<u32>,
    frames: Vec<u32>,
    sites: Vec<u32>,
    types: Vec<u32>,
}

impl Pending {
    fn first(list: &mut Vec<u32>, id: u32) -> bool {
        // A linear search is fast enough, because each list contains only the new ids of one batch.
        let first = !list.contains(&id);
        if first {
            list.push(id);
        }
        first
    }
}

/// All ids and their definitions.
pub(crate) struct Interner {
    strings: Kind<Arc<str>>,
    methods: Kind<[u32; 3]>,
    frames: Kind<(u32, i32)>,
    sites: Kind<(bool, Arc<[u32]>)>,
    types: Kind<u32>,
    budget: usize,
}

impl Default for Interner {
    fn default() -> Self {
        Self::with_budget(BUDGET)
    }
}

impl Interner {
    fn with_budget(budget: usize) -> Self {
        Self {
            strings: Kind::default(),
            methods: Kind::default(),
            frames: Kind::default(),
            sites: Kind::default(),
            types: Kind::default(),
            budget,
        }
    }

    /// Returns the id of a string. All functions here that return an id return 0 if the table is full.
    pub(crate) fn string(&mut self, text: &str) -> u32 {
        let text = truncate(text, LONGEST);
        if let Some(&id) = self.strings.ids.get(text) {
            return id;
        }
        self.strings
            .id(&text.into(), text.len() + 8, &mut self.budget, usize::MAX)
    }

    pub(crate) fn method(&mut self, class: &str, name: &str, file: Option<&str>) -> u32 {
        let class = self.string(class);
        let name = if name.is_empty() {
            0
        } else {
            self.string(name)
        };
        let file = file.map_or(0, |file| self.string(file));
        if class == 0 {
            return 0;
        }
        self.methods
            .id(&[class, name, file], 16, &mut self.budget, usize::MAX)
    }

    pub(crate) fn frame(&mut self, method: u32, line: i32) -> u32 {
        if method == 0 {
            return 0;
        }
        self.frames
            .id(&(method, line), 12, &mut self.budget, usize::MAX)
    }

    pub(crate) fn site(&mut self, frames: &[u32], cut: bool) -> u32 {
        let key = (cut, Arc::from(frames));
        let bytes = 16 + 4 * frames.len();
        self.sites.id(&key, bytes, &mut self.budget, MAX_SITES - 1)
    }

    pub(crate) fn class(&mut self, name: &str) -> u32 {
        let name = self.string(name);
        if name == 0 {
            return 0;
        }
        self.types.id(&name, 8, &mut self.budget, MAX_TYPES - 1)
    }

    /// Returns a string by its id.
    pub(crate) fn text_of(&self, id: u32) -> Option<&Arc<str>> {
        self.strings.get(id)
    }

    /// Returns a type's name.
    pub(crate) fn class_name(&self, id: u32) -> Option<Arc<str>> {
        self.text_of(*self.types.get(id)?).cloned()
    }

    /// Iterates over the names of classes whose methods are in stacks.
    pub(crate) fn classes_in_stacks(&self) -> impl Iterator<Item = &Arc<str>> {
        let methods = self.methods.list.iter();
        methods.filter_map(|[class, ..]| self.text_of(*class))
    }

    /// Returns a site's frames, innermost first. The flag is true if the stack was truncated.
    pub(crate) fn frames_of(&self, site: u32) -> (Vec<FrameName>, bool) {
        let Some((cut, frames)) = self.sites.get(site) else {
            return (Vec::new(), false);
        };
        let empty: Arc<str> = Arc::from("");
        let named = |&frame: &u32| {
            let (method, line) = self.frames.get(frame).copied().unwrap_or_default();
            let [class, name, file] = self.methods.get(method).copied().unwrap_or_default();
            let text = |id| self.text_of(id).unwrap_or(&empty).clone();
            FrameName {
                class: text(class),
                method: text(name),
                file: self.text_of(file).cloned(),
                line,
            }
        };
        (frames.iter().map(named).collect(), *cut)
    }

    /// Returns the id of a string, or 0 if the string has no id.
    pub(crate) fn existing_id(&self, text: &str) -> u32 {
        self.strings.ids.get(text).copied().unwrap_or(0)
    }

    pub(crate) fn string_count(&self) -> usize {
        self.strings.list.len()
    }

    pub(crate) fn site_count(&self) -> usize {
        self.sites.list.len()
    }

    /// Adds the definition of a string to `pending` if the Java heap does not contain this definition yet.
    pub(crate) fn need_string(&self, pending: &mut Pending, id: u32) {
        if let Some(text) = self.strings.pending(id)
            && Pending::first(&mut pending.strings, id)
        {
            pending.batch.string(id, text);
        }
    }

    /// Adds the definitions of a type to `pending` if the Java heap does not contain these definitions yet.
    pub(crate) fn need_class(&self, pending: &mut Pending, id: u32) {
        if let Some(&name) = self.types.pending(id)
            && Pending::first(&mut pending.types, id)
        {
            self.need_string(pending, name);
            pending.batch.class(id, name);
        }
    }

    /// Adds the definitions of a site to `pending` if the Java heap does not contain these definitions yet.
    pub(crate) fn need_site(&self, pending: &mut Pending, id: u32) {
        let Some((cut, frames)) = self.sites.pending(id) else {
            return;
        };
        if !Pending::first(&mut pending.sites, id) {
            return;
        }
        for &frame in &**frames {
            let Some(&(method, line)) = self.frames.pending(frame) else {
                continue;
            };
            if !Pending::first(&mut pending.frames, frame) {
                continue;
            }
            if let Some(&[class, name, file]) = self.methods.pending(method)
                && Pending::first(&mut pending.methods, method)
            {
                for text in [class, name, file] {
                    self.need_string(pending, text);
                }
                pending.batch.method(method, class, name, file);
            }
            pending.batch.frame(frame, method, line);
        }
        pending.batch.site(id, frames, *cut);
    }

    /// Records that the definitions in `pending` are written. Call this after their batch was written to the Java heap.
    pub(crate) fn publish(&mut self, pending: &Pending) {
        self.strings.publish(&pending.strings);
        self.methods.publish(&pending.methods);
        self.frames.publish(&pending.frames);
        self.sites.publish(&pending.sites);
        self.types.publish(&pending.types);
    }
}

/// Truncates a string to at most `most` bytes, at a character boundary.
pub(crate) fn truncate(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use heapdiff_sites::SiteTable;

    fn stack(interner: &mut Interner, lines: &[i32]) -> u32 {
        let method = interner.method("com.acme.Foo", "add", Some("Foo.java"));
        let frames: Vec<u32> = lines.iter().map(|&l| interner.frame(method, l)).collect();
        interner.site(&frames, false)
    }

    fn needed(interner: &Interner, site: u32) -> Pending {
        let mut pending = Pending::default();
        interner.need_site(&mut pending, site);
        pending
    }

    #[test]
    fn equal_stacks_have_one_id() {
        let mut interner = Interner::default();
        let a = stack(&mut interner, &[1, 2]);
        assert_eq!(stack(&mut interner, &[1, 2]), a);
        assert_ne!(stack(&mut interner, &[2, 1]), a);
        assert_ne!(interner.site(&[], false), interner.site(&[], true));
    }

    #[test]
    fn definitions_are_repeated_until_published() {
        let mut interner = Interner::default();
        let a = stack(&mut interner, &[1, 2]);
        let b = stack(&mut interner, &[2, 3]);
        let (of_a, of_b) = (needed(&interner, a), needed(&interner, b));
        // Both stacks are still unpublished, so each batch contains the definitions of a complete stack.
        for (pending, site) in [(of_a, a), (of_b, b)] {
            interner.publish(&pending);
            let bytes = pending.batch.finish();
            let table = SiteTable::decode([&bytes[..]]).unwrap();
            assert!(table.frames(site).all(|f| f.class == "com.acme.Foo"));
            assert_eq!(table.frames(site).len(), 2);
        }
        assert!(needed(&interner, a).batch.is_empty());
        // The frames of the third stack are already defined by the other two stacks, so only its site is new.
        let c = stack(&mut interner, &[3, 1]);
        assert!(needed(&interner, c).batch.finish().len() <= 24);
    }

    #[test]
    fn a_full_table_returns_zero_and_keeps_its_entries() {
        let mut interner = Interner::with_budget(300);
        let a = stack(&mut interner, &[1]);
        assert_ne!(a, 0);
        let mut last = 1;
        for line in 2..100 {
            last = stack(&mut interner, &[line]);
        }
        assert_eq!(last, 0);
        assert_eq!(stack(&mut interner, &[1]), a);
        assert_eq!(interner.class(&"x".repeat(5000)), 0);
    }

    #[test]
    fn long_names_are_cut_at_a_character() {
        let mut interner = Interner::default();
        let id = interner.string(&"é".repeat(4000));
        let mut pending = Pending::default();
        interner.need_string(&mut pending, id);
        let bytes = pending.batch.finish();
        let table = SiteTable::decode([&bytes[..]]).unwrap();
        assert_eq!(table.string(id).map(str::len), Some(4096));
    }
}
