//! The table of allocation sites by number. The table also records the results of rewriting classes.

use std::sync::Arc;

use heapdiff_bytecode::{Kind, Rewritten, Site};
use heapdiff_sites::MOST_NAMES;
use heapdiff_sites::types::of_class;
use rustc_hash::{FxHashMap, FxHashSet};

use super::cells::MOST_SITES;
use super::returned::Pair;
use crate::jvmti::modified_utf8;

/// Approximate maximum size of all names, in bytes.
const BUDGET: usize = 32 << 20;

/// An allocation site. Its number is never reused, because rewritten code may run until the JVM ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Known {
    class: u32,
    method: u32,
    descriptor: u32,
    allocated: u32,
    bytecode: u16,
    pub(crate) line: Option<u16>,
    level: Option<u8>,
    /// For a call site whose returned objects are counted by class: the way in which the call allocates, as a number
    /// from `calls::mark`.
    returned: Option<u8>,
    pub(crate) is_object: bool,
}

impl Known {
    /// Returns the numbers of the names of the site's class, its method and the allocated class.
    pub(crate) fn names(&self) -> [u32; 3] {
        [self.class, self.method, self.allocated]
    }
}

/// The site at which the objects of one pair of call site and class are counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Resolved {
    /// Number of the site. If it is `None`, the objects are not counted.
    pub(crate) site: Option<u32>,
    /// Size of one object. It is set if several classes with different sizes may have the same name.
    pub(crate) size: Option<u64>,
}

/// A set of numbered strings.
#[derive(Default)]
struct Names {
    numbers: FxHashMap<Arc<str>, u32>,
    list: Vec<Arc<str>>,
    bytes: usize,
}

impl Names {
    fn number(&mut self, name: &[u8]) -> Option<u32> {
        let name = modified_utf8(name);
        if let Some(&number) = self.numbers.get(&*name) {
            return Some(number);
        }
        let bytes = self.bytes + name.len() + 64;
        let number = u32::try_from(self.list.len()).ok()?;
        if bytes > BUDGET {
            return None;
        }
        self.bytes = bytes;
        let name: Arc<str> = name.into();
        self.list.push(Arc::clone(&name));
        self.numbers.insert(name, number);
        Some(number)
    }

    fn get(&self, number: u32) -> Arc<str> {
        self.list
            .get(number as usize)
            .map_or_else(|| Arc::from(""), Arc::clone)
    }
}

/// The methods or classes that are not counted: how many there are, and at most [`MOST_NAMES`] of their names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Missed {
    pub(crate) count: u64,
    pub(crate) names: Vec<String>,
}

impl Missed {
    pub(crate) fn add(&mut self, name: String) {
        self.count += 1;
        if self.names.len() < MOST_NAMES && !self.names.contains(&name) {
            self.names.push(name);
        }
    }
}

/// All allocation sites, and the results of rewriting classes for the current count.
#[derive(Default)]
pub(crate) struct Table {
    names: Names,
    numbers: FxHashMap<Known, u32>,
    sites: Vec<Known>,
    pub(crate) resolved: FxHashMap<Pair, Resolved>,
    /// Number of objects that were returned by calls but not counted so far, because the hash tables of the module
    /// `returned` were full.
    lost: u64,
    /// Signatures of classes that were rewritten for the current count.
    pub(crate) changed: FxHashSet<String>,
    /// Number of classes that were rewritten for the current count.
    pub(crate) classes: u64,
    pub(crate) uncounted: u64,
    pub(crate) left_alone: Missed,
    pub(crate) refused: Missed,
}

impl Table {
    /// Returns a site's number. Returns `None` if the table has no room for the site or for its names.
    pub(crate) fn number(&mut self, class: &[u8], site: &Site<'_>) -> Option<u32> {
        let number = self.known(class, site);
        self.uncounted += u64::from(number.is_none());
        number
    }

    fn known(&mut self, class: &[u8], site: &Site<'_>) -> Option<u32> {
        let known = Known {
            class: self.names.number(class)?,
            method: self.names.number(site.method.as_bytes())?,
            descriptor: self.names.number(site.descriptor.as_bytes())?,
            allocated: self.names.number(&site.class.to_bytes())?,
            bytecode: site.bytecode,
            line: site.line,
            level: match site.kind {
                Kind::Level(level) => Some(level),
                _ => None,
            },
            returned: match site.kind {
                Kind::Returned(mark) => Some(mark),
                _ => None,
            },
            is_object: matches!(site.kind, Kind::Object | Kind::Returned(_)),
        };
        self.site_number(known)
    }

    fn site_number(&mut self, known: Known) -> Option<u32> {
        if let Some(&number) = self.numbers.get(&known) {
            return Some(number);
        }
        if self.sites.len() >= MOST_SITES {
            return None;
        }
        let number = u32::try_from(self.sites.len()).ok()?;
        self.sites.push(known);
        self.numbers.insert(known, number);
        Some(number)
    }

    /// Returns the way in which a call site allocates, as a number from `calls::mark`. Returns `None` for sites whose
    /// returned objects are not counted by class.
    pub(crate) fn mark(&self, site: u32) -> Option<u8> {
        self.sites.get(site as usize)?.returned
    }

    /// Creates the site for a pair of call site and class.
    pub(crate) fn resolve(&mut self, pair: Pair, name: &str, is_object: bool, size: Option<u64>) {
        let known = self.sites.get(pair.0 as usize).copied();
        let allocated = self.names.number(name.as_bytes());
        let site = known.zip(allocated).and_then(|(known, allocated)| {
            self.site_number(Known {
                allocated,
                returned: None,
                is_object,
                ..known
            })
        });
        self.uncounted += u64::from(site.is_none());
        self.resolved.insert(pair, Resolved { site, size });
    }

    /// Stores `lost`: the number of objects that calls returned, but that were not counted because the hash tables were
    /// full. If this number has grown since the last call, adds one to `uncounted`, the number of sites that are not
    /// counted.
    pub(crate) fn set_uncounted(&mut self, lost: u64) {
        self.uncounted += u64::from(lost > self.lost);
        self.lost = lost;
    }

    /// Begins a new count: clears the results of rewriting classes for the previous count.
    pub(crate) fn begin(&mut self) {
        self.changed.clear();
        self.classes = 0;
        self.uncounted = 0;
        self.left_alone = Missed::default();
        self.refused = Missed::default();
    }

    /// Records the result of rewriting a class file.
    pub(crate) fn rewritten(&mut self, rewritten: &Rewritten<'_>) {
        let class = modified_utf8(rewritten.class.as_bytes());
        for left in &rewritten.left_alone {
            let method = modified_utf8(left.method.as_bytes());
            let name = format!("{}.{method}: {}", of_class(&class), left.reason);
            self.left_alone.add(name);
        }
        if rewritten.bytes.is_some() {
            // If the JVM rejects a class of a batch, the other classes of the batch are rewritten a second time. The
            // set `changed` contains each class only once, so each class is counted only once.
            self.classes += u64::from(self.changed.insert(format!("L{class};")));
        }
    }

    /// Returns the number of sites.
    pub(crate) fn len(&self) -> usize {
        self.sites.len()
    }

    /// Returns a site with the names of its class, its method and the allocated class, in the JVM's form.
    pub(crate) fn site(&self, number: usize) -> Option<(Known, [Arc<str>; 3])> {
        let site = self.sites.get(number)?;
        let names = [site.class, site.method, site.allocated].map(|name| self.names.get(name));
        Some((*site, names))
    }
}
